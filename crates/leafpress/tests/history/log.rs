//! A recorder of histories: each operation with the times of its call and its return.

use std::sync::atomic::{AtomicU64, Ordering};

/// What an operation reveals about a key. Every written value has a unique number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The key has this value from some moment of the operation on, until another operation changes it.
    Write(u64),
    /// As [`What::Write`], where only a read of the value shows whether it was stored: a load.
    Load(u64),
    /// The key had this value at some moment of the operation.
    Read(u64),
    /// The key had no value at some moment of the operation, and has none until it is written again.
    Remove,
    /// This value was replaced or removed by this operation, and thus by no other.
    Consume(u64),
}

/// The key of a removal of all keys.
pub const ALL_KEYS: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
pub struct Event {
    pub key: u32,
    pub begin: u64,
    /// Time of the return; [`u64::MAX`] for a write that failed: it may take effect at any later time, or never.
    pub end: u64,
    pub what: What,
}

/// A logical clock whose times are totally ordered across threads.
#[derive(Default)]
pub struct Clock(AtomicU64);

impl Clock {
    pub fn tick(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

/// The recorded operations of one thread.
pub struct Recorder<'c> {
    clock: &'c Clock,
    thread: u64,
    values: u64,
    pub operations: u64,
    pub events: Vec<Event>,
}

impl<'c> Recorder<'c> {
    pub fn new(clock: &'c Clock, thread: u64) -> Self {
        Self {
            clock,
            thread,
            values: 0,
            operations: 0,
            events: Vec::new(),
        }
    }

    /// Returns the time of a call.
    pub fn begin(&mut self) -> u64 {
        self.operations += 1;
        self.clock.tick()
    }

    pub fn tick(&self) -> u64 {
        self.clock.tick()
    }

    /// Returns a unique number for a value.
    pub fn fresh(&mut self) -> u64 {
        self.values += 1;
        (self.thread + 1) << 40 | self.values
    }

    /// Records an operation that returns now.
    pub fn note(&mut self, key: u32, begin: u64, what: What) {
        let end = self.clock.tick();
        self.note_until(key, begin, end, what);
    }

    pub fn note_until(&mut self, key: u32, begin: u64, end: u64, what: What) {
        self.events.push(Event { key, begin, end, what });
    }

    /// Records what an operation found and replaced or removed.
    pub fn note_consumed(&mut self, key: u32, begin: u64, found: Option<u64>) {
        if let Some(value) = found {
            self.note(key, begin, What::Read(value));
            self.note(key, begin, What::Consume(value));
        }
    }
}
