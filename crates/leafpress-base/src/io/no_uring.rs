//! Stub for systems without io_uring and for builds without the feature.

use std::fs::File;
use std::io;

use super::transfer::Transfer;

/// The rings of a store; never created.
pub struct Rings;

impl Rings {
    /// Fails with the reason why io_uring is not available.
    pub fn open() -> io::Result<Self> {
        let reason = if cfg!(feature = "io-uring") {
            "not supported on this system"
        } else {
            "built without the feature io-uring"
        };
        Err(io::Error::new(io::ErrorKind::Unsupported, reason))
    }

    /// Leaves all transfers unfinished.
    pub fn run(&self, _file: &File, _transfers: &mut [Transfer<'_>]) {}
}
