//! Stands in for io_uring where there is none, or where the crate is built without it.

use std::fs::File;
use std::io;

use super::transfer::Transfer;

pub struct Rings;

impl Rings {
    pub fn open() -> io::Result<Self> {
        let reason = if cfg!(feature = "io-uring") {
            "not on this system"
        } else {
            "this build is without the feature io-uring"
        };
        Err(io::Error::new(io::ErrorKind::Unsupported, reason))
    }

    pub fn run(&self, _file: &File, _transfers: &mut [Transfer<'_>]) {}
}
