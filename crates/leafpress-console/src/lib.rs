//! What Leafpress's commands have in common, so that they look and end alike: one-line failures with their exit codes, standard
//! output, the progress bar, Ctrl-C, and the options of cost.
//!
//! This library prints, because that is its work; it never exits but at a second Ctrl-C.
#![warn(missing_docs)]

#[cfg(feature = "cache")]
pub mod cache;
pub mod cost;
pub mod failure;
pub mod interrupt;
pub mod output;
pub mod progress;
pub mod usage;
pub mod words;
