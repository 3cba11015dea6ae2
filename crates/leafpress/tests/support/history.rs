//! Checks whether a history of concurrent operations on one key is linearizable (Herlihy and Wing 1990). The search is
//! that of Wing and Gong (1993) with Lowe's memory of configurations seen.
//!
//! Linearizability is local: a history over several keys is linearizable if each key's is, so keys are checked one by
//! one.

use std::collections::HashSet;

/// An operation on the key with its result. Values are numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Insert or replace; whether the key was new.
    Put(u64, bool),
    /// Insert a value if absent; whether it did.
    Insert(u64, bool),
    /// Update to a value if present; whether it did.
    Update(u64, bool),
    /// Remove; whether the key was present.
    Remove(bool),
    /// Insert a value, or remove for `None`, and get the old one.
    Swap(Option<u64>, Option<u64>),
    /// Compare with the first and set the second, or remove; whether it did.
    CompareAndSwap(Option<u64>, Option<u64>, bool),
    /// Set a value computed from the old one, which was this.
    UpdateWith(u64, Option<u64>),
    /// Get.
    Get(Option<u64>),
}

impl Call {
    /// Returns the key's state after this call took effect at `state`, or `None` when its result does not fit.
    fn step(self, state: Option<u64>) -> Option<Option<u64>> {
        let absent = state.is_none();
        match self {
            Call::Put(value, new) => (new == absent).then_some(Some(value)),
            Call::Insert(value, done) => (done == absent).then_some(if absent { Some(value) } else { state }),
            Call::Update(value, done) => (done != absent).then_some(if absent { None } else { Some(value) }),
            Call::Remove(done) => (done != absent).then_some(None),
            Call::Swap(value, old) => (old == state).then_some(value),
            Call::CompareAndSwap(expected, new, done) => {
                (done == (expected == state)).then_some(if done { new } else { state })
            }
            Call::UpdateWith(value, old) => (old == state).then_some(Some(value)),
            Call::Get(value) => (value == state).then_some(state),
        }
    }
}

/// One operation with the times of its start and its return.
#[derive(Debug, Clone, Copy)]
pub struct Event {
    pub begin: u64,
    pub end: u64,
    pub call: Call,
}

/// Returns whether the events (at most 64) can be put in an order that respects time and explains every result, from
/// `initial` on.
pub fn is_linearizable(events: &[Event], initial: Option<u64>) -> bool {
    assert!(events.len() <= 64);
    let mut seen = HashSet::new();
    search(events, 0, initial, &mut seen)
}

fn search(events: &[Event], done: u64, state: Option<u64>, seen: &mut HashSet<(u64, Option<u64>)>) -> bool {
    if done.count_ones() as usize == events.len() {
        return true;
    }
    if !seen.insert((done, state)) {
        return false;
    }
    let open = || events.iter().enumerate().filter(|(i, _)| done >> i & 1 == 0);
    // A call that began after the first return among the open ones cannot be next.
    let first_end = open().map(|(_, event)| event.end).min().unwrap_or(u64::MAX);
    open().filter(|(_, event)| event.begin < first_end).any(|(i, event)| {
        event
            .call
            .step(state)
            .is_some_and(|state| search(events, done | 1 << i, state, seen))
    })
}
