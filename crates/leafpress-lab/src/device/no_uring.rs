//! Where the io-uring crate has no bindings for the system: no ring.

use std::io;

use super::job::{Broken, Job, Tally};

/// A ring that there is not.
pub(super) enum Ring {}

impl Ring {
    /// # Errors
    /// Always.
    pub(super) fn open(_queue_depth: u32) -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "not on this system"))
    }

    pub(super) fn run(self, _job: Job<'_>, _tally: Tally, _progress: &mut dyn FnMut(f64)) -> Result<Tally, Broken> {
        match self {}
    }
}
