//! Loads and drives shared libraries written for the PiBench index benchmark ("wrappers").
//!
//! [`Library::open`] loads one and has it make a tree; the methods then call that tree. A C++ shim does the calling: it
//! builds the options with their `std::string`, and turns exceptions into [`CallError`]s. A build for which no C++
//! compiler was found has no shim, and [`Library::open`] always says so: see [`available`].
//!
//! ```no_run
//! use leafpress_pibench_host::{Library, TreeOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let options = TreeOptions { value_size: 100, ..TreeOptions::default() };
//! // SAFETY: a wrapper that we built ourselves.
//! let tree = unsafe { Library::open("path/to/libwrapper.so".as_ref(), &options) }?;
//! assert!(tree.insert(b"the key.", &[7; 100])?);
//! let mut records = Vec::new();
//! let count = tree.scan(b"the key.", 10, 8 + 100, &mut records)?;
//! assert_eq!(records.len(), count * 108);
//! # Ok(())
//! # }
//! ```
//!
//! # Trust
//! A wrapper is a program that runs in this process. Exceptions, missing trees and impossible results are reported; a
//! wrapper that overwrites memory that is not its own, or crashes, takes the process with it. So [`Library::open`] is
//! unsafe: its caller vouches for the wrapper, and everything after is safe on that word.
#![warn(missing_docs)]

mod error;
#[cfg(pibench_shim)]
mod interface;
mod library;
mod mapped;
mod options;
#[cfg(pibench_shim)]
mod shim;
#[cfg(not(pibench_shim))]
#[path = "shim_absent.rs"]
mod shim;

pub use error::{CallError, LoadError};
pub use library::{FIND_BUFFER_BYTES, Library};
pub use options::TreeOptions;

/// Returns whether this build has the C++ shim and so can load wrappers.
pub const fn available() -> bool {
    cfg!(pibench_shim)
}
