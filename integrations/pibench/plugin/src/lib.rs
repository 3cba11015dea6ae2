//! `libleafpress_pibench.so`: the Leafpress tree as a shared library that the PiBench index benchmark loads.
//!
//! It exports `create_tree`, and what that returns is a C++ object to its caller: see `abi`, which holds all of the
//! unsafe code. No C++ compiler is needed to build it. The tree's options come from the environment variable
//! `LEAFPRESS_TREE`: see `settings`.
//!
//! # What a benchmark sees
//! - Keys and values have the sizes that `create_tree` was given; a write of any other size is refused, as `find` and
//!   `scan` hand out bytes without their lengths.
//! - `insert` of a key that is there, and `update` or `remove` of one that is not, return false and change nothing.
//! - Any method may be called from any thread. What a scan returns is the calling thread's and stays until its next
//!   scan.
//! - No exception and no panic leaves the library.
//!
//! # What is printed
//! Libraries do not print. This one does, one line on standard error, when no tree can be made and at a tree's first
//! failure: PiBench's interface knows no errors, so that the user would otherwise see "Error instantiating tree." for a
//! misspelt codec, and a failed insert as one of a key that is there.
#![warn(missing_docs)]

mod abi;
mod index;
mod program;
mod report;
mod settings;

pub use abi::create_tree;
