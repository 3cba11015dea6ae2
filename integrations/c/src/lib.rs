//! The C interface of Leafpress: what `include/leafpress.h` declares, which is made from the comments here.
//!
//! A file that has functions of the interface is one section of the header; its documentation is written for readers of
//! C. Behind them, `handle` is what opaque pointers point to, `given` what callers hand over, `failure` what becomes of
//! errors and panics, and `fork` knows whether the process is the one that made a handle.
#![warn(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]
#![allow(non_camel_case_types, reason = "they are C's names")]
#![allow(
    clippy::missing_safety_doc,
    reason = "the header says once, for all functions, what pointers have to be"
)]

mod callback;
mod failure;
mod fork;
mod given;
mod handle;
#[macro_use]
mod map;
mod option_table;
mod sections;

pub use sections::*;
