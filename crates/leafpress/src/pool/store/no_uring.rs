//! Stands in for io_uring where there is none.

use std::fs::File;
use std::io;

use super::transfer::Transfer;

pub(super) struct Rings;

impl Rings {
    pub(super) fn open() -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "not on this system"))
    }

    pub(super) fn run(&self, _file: &File, _transfers: &mut [Transfer<'_>]) {}
}
