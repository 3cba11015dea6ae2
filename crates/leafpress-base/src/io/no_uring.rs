//! Stub for systems without io_uring and for builds without the feature.

use std::fs::File;
use std::io;

use super::transfer::Transfer;

pub struct Rings;

impl Rings {
    pub fn open() -> io::Result<Self> {
        let reason = if cfg!(feature = "io-uring") {
            "not supported on this system"
        } else {
            "built without the feature io-uring"
        };
        Err(io::Error::new(io::ErrorKind::Unsupported, reason))
    }

    pub fn run(&self, _file: &File, _transfers: &mut [Transfer<'_>]) {}
}
