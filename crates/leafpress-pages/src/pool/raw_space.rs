//! The order in which raw pages leave, and the victims that are to leave next.

use std::collections::VecDeque;

use crate::eviction::Policy;

/// The order in which raw pages leave.
pub(super) struct RawSpace {
    pub(super) policy: Box<dyn Policy>,
    /// Pages in the order.
    pub(super) pages: usize,
    /// Victims that are waiting, each pinned once.
    pub(super) queue: VecDeque<u32>,
    pub(super) probes: u64,
}

impl RawSpace {
    pub(super) fn new(policy: Box<dyn Policy>) -> Self {
        Self {
            policy,
            pages: 0,
            queue: VecDeque::with_capacity(1),
            probes: 0,
        }
    }

    pub(super) fn insert(&mut self, number: u32, hash: u64) {
        self.policy.insert(number, hash);
        self.pages += 1;
    }

    pub(super) fn remove(&mut self, number: u32) {
        self.policy.remove(number);
        self.pages -= 1;
    }

    /// Raw pages, those that are victims included.
    pub(super) fn len(&self) -> usize {
        self.pages + self.queue.len()
    }

    /// Victims that are waiting.
    #[cfg(debug_assertions)]
    pub(super) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Memory held, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.policy.bytes() + self.queue.capacity() * size_of::<u32>()
    }
}
