//! State of the writer of a disk tier.

use std::sync::Arc;

use super::merge::ReadBuffers;
use super::run_writer::WriteBuffers;
use crate::cache::clock::Clock;

/// State that only the writer uses.
pub(super) struct Writer {
    /// The next position to be written.
    pub head: u64,
    /// Writes that failed since the last one that did not.
    pub failures_in_a_row: u32,
    /// Moving average of blocks written per raw block.
    pub ratio: Option<f64>,
    pub write_buffers: WriteBuffers,
    /// One per run of the largest merge so far.
    pub read_buffers: Vec<ReadBuffers>,
    pub clock: Arc<dyn Clock>,
}

impl Writer {
    pub(super) fn new(head: u64, clock: Arc<dyn Clock>) -> Self {
        Self {
            head,
            failures_in_a_row: 0,
            ratio: None,
            write_buffers: WriteBuffers::default(),
            read_buffers: Vec::new(),
            clock,
        }
    }
}
