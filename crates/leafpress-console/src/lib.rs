//! Shared behaviour of Leafpress's commands: one-line failures with exit codes, standard output, the progress bar,
//! Ctrl-C, and the cost options.
//!
//! This library prints, because that is its purpose; it exits only at a second Ctrl-C.
#![warn(missing_docs)]

#[cfg(feature = "cache")]
pub mod cache;
pub mod cost;
pub mod failure;
mod failure_report;
pub mod given;
pub mod interrupt;
pub mod output;
pub mod progress;
pub mod usage;
pub mod words;
