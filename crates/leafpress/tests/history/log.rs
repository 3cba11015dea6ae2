//! Recording what threads do: each operation with the moments of its call and its return.

use std::sync::atomic::{AtomicU64, Ordering};

/// What an operation shows of a key. Every value that is written has a number of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The key has this value from some moment of the operation on, until another operation changes that.
    Write(u64),
    /// As [`What::Write`], where nobody but a reader of the value can tell whether it was stored: a load.
    Load(u64),
    /// The key had this value at some moment of the operation.
    Read(u64),
    /// The key had no value at some moment of the operation, and has none until it is written again.
    Remove,
    /// This value was replaced or removed by this operation, and so by no other.
    Consume(u64),
}

/// The key of a removal of all keys.
pub const ALL_KEYS: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
pub struct Event {
    pub key: u32,
    pub begin: u64,
    /// [`u64::MAX`] for a write that failed: it may take effect at any time, or never.
    pub end: u64,
    pub what: What,
}

/// Moments, in the order that all threads see.
#[derive(Default)]
pub struct Clock(AtomicU64);

impl Clock {
    pub fn tick(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

/// What one thread did.
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

    /// The moment of a call.
    pub fn begin(&mut self) -> u64 {
        self.operations += 1;
        self.clock.tick()
    }

    pub fn tick(&self) -> u64 {
        self.clock.tick()
    }

    /// A number for a value.
    pub fn fresh(&mut self) -> u64 {
        self.values += 1;
        (self.thread + 1) << 40 | self.values
    }

    /// Notes an operation that returns now.
    pub fn note(&mut self, key: u32, begin: u64, what: What) {
        let end = self.clock.tick();
        self.note_until(key, begin, end, what);
    }

    pub fn note_until(&mut self, key: u32, begin: u64, end: u64, what: What) {
        self.events.push(Event { key, begin, end, what });
    }

    /// Notes what an operation found and replaced or removed.
    pub fn note_consumed(&mut self, key: u32, begin: u64, found: Option<u64>) {
        if let Some(value) = found {
            self.note(key, begin, What::Read(value));
            self.note(key, begin, What::Consume(value));
        }
    }
}
