//! The raw pages in the order of the eviction policy, and the queue of victims.

use std::collections::VecDeque;

use crate::eviction::Policy;

/// The raw pages in the order of the eviction policy.
pub(super) struct RawSpace {
    pub(super) policy: Box<dyn Policy>,
    /// Pages in the policy.
    pub(super) pages: usize,
    /// Waiting victims, each pinned once.
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

    /// Number of raw pages, including victims.
    pub(super) fn len(&self) -> usize {
        self.pages + self.queue.len()
    }

    /// Number of waiting victims.
    #[cfg(debug_assertions)]
    pub(super) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Memory held, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.policy.bytes() + self.queue.capacity() * size_of::<u32>()
    }
}
