//! The possible values of every key, so that a reader can check any answer without a lock.
//!
//! Every mutation of a key gets the next *version* of that key. What a version is follows from the key and the version
//! alone: a delete, or a put of one certain cut of the corpus. So nothing is stamped into the values: they are the
//! corpus's own bytes, byte for byte, and remain equally compressible.
//!
//! A reader accepts every version that some order of the mutations allows. Mutations of one key fall into *busy
//! periods*, in which at least one is under way, and quiet times between them. When a period ends, everything before it
//! is overwritten, but any of its own versions may have come last. Hence the rule, for a read that began after period P
//! ended and saw versions up to `issued` by its end: good is what a version from P's first one (the *floor*) to
//! `issued` says, and nothing else. Where no two threads mutate a key at once, as nearly always, P is a single version
//! and so is the choice. A stale, torn, foreign or missing value is a mismatch.

use std::cmp::Ordering as Order;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::core::corpus::{Assignment, Corpus, Pairing};
use crate::core::keys::{below, mix};
use crate::core::resources;

/// Possible values of the keys `0..keys`. All are at version 0, a put, before anything is issued.
#[derive(Debug)]
pub struct Ledger {
    corpus: Arc<Corpus>,
    cells: Box<[Cell]>,
    /// Whether a mutation was ever issued. Until then every key is at version 0, and no cell need be looked at: in a
    /// large key space that is a cache miss for every read.
    touched: AtomicBool,
    /// Which cut each version of a key is.
    assignment: Assignment,
    delete_pct: u64,
}

/// One key's mutations. Versions wrap around at 2^32, which is harmless: a period spans far fewer.
#[derive(Debug, Default)]
#[repr(align(16))]
struct Cell {
    /// See [`State`].
    state: AtomicU64,
    /// First version of the last busy period that ended.
    floor: AtomicU32,
}

/// `issued` in the upper 32 bits, then `span` in 20, then `under_way` in 12.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    /// The newest version.
    issued: u32,
    /// Versions of the present busy period before `issued`; stays at its maximum once there.
    span: u32,
    /// Mutations under way.
    under_way: u32,
}

const SPAN_BITS: u32 = 20;
const UNDER_WAY_BITS: u32 = 12;
const SPAN_MAX: u32 = (1 << SPAN_BITS) - 1;

impl State {
    fn unpack(word: u64) -> Self {
        let low = word as u32;
        Self {
            issued: (word >> 32) as u32,
            span: low >> UNDER_WAY_BITS,
            under_way: low & ((1 << UNDER_WAY_BITS) - 1),
        }
    }

    fn pack(self) -> u64 {
        u64::from(self.issued) << 32 | u64::from(self.span << UNDER_WAY_BITS | self.under_way)
    }
}

/// A mutation under way.
#[derive(Debug, Clone, Copy)]
pub struct Ticket {
    id: u64,
    version: u32,
    /// The one version the key could be at before, if there was only one.
    before: Option<u32>,
}

/// A mutation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation<'c> {
    /// Puts this value.
    Put(&'c [u8]),
    /// Deletes the key.
    Delete,
}

impl Ledger {
    /// Creates a ledger for `keys` keys, in which `delete_pct` percent of the mutations are deletes.
    pub fn new(corpus: Arc<Corpus>, keys: u64, pairing: Pairing, delete_pct: u32) -> Self {
        let cells: Box<[Cell]> = (0..keys).map(|_| Cell::default()).collect();
        resources::in_huge_pages(&cells);
        let assignment = corpus.assignment(keys, pairing);
        Self {
            corpus,
            cells,
            touched: AtomicBool::new(false),
            assignment,
            delete_pct: delete_pct.into(),
        }
    }

    /// Returns the values.
    pub fn corpus(&self) -> &Corpus {
        &self.corpus
    }

    /// Returns the number of keys.
    pub fn keys(&self) -> u64 {
        self.cells.len() as u64
    }

    /// Returns the effect of version `version` of key `id`.
    ///
    /// Version 0 is a put of the cut that the key is loaded with: see [`Assignment`].
    #[inline]
    pub fn mutation(&self, id: u64, version: u32) -> Mutation<'_> {
        if self.is_delete(id, version) {
            Mutation::Delete
        } else {
            Mutation::Put(self.value(id, version))
        }
    }

    #[inline]
    fn value(&self, id: u64, version: u32) -> &[u8] {
        self.corpus.get(self.assignment.value(id, version))
    }

    #[inline]
    fn is_delete(&self, id: u64, version: u32) -> bool {
        self.delete_pct != 0
            && version != 0
            && below(mix(id << 32 ^ u64::from(version) ^ 1 << 63), 100) < self.delete_pct
    }

    /// Asks for the cache line of what key `id` may hold.
    #[inline]
    pub fn prefetch_state(&self, id: u64) {
        if !self.touched.load(Ordering::Relaxed) {
            return;
        }
        prefetch((&raw const self.cells[id as usize]).cast());
    }

    /// Asks for the value that key `id` holds, or with `next` for the one its next mutation puts.
    #[inline]
    pub fn prefetch_value(&self, id: u64, next: bool) {
        let issued = self.issued(id);
        let value = self.value(id, issued.wrapping_add(u32::from(next)));
        // By lines, not by steps from the value's first byte: a cut seldom begins where a line does, and its end would
        // be left out.
        let into_line = value.as_ptr().addr() % LINE_BYTES;
        let first = value.as_ptr().wrapping_sub(into_line);
        for offset in (0..into_line + value.len()).step_by(LINE_BYTES).take(PREFETCHED_LINES) {
            prefetch(first.wrapping_add(offset));
        }
    }

    /// Issues the next version of key `id`; every ticket must be handed back to [`Ledger::settle`] once the mutation is
    /// done.
    #[inline]
    pub fn issue(&self, id: u64) -> Ticket {
        // Before the mutation: a reader of its result sees this set.
        if !self.touched.load(Ordering::Relaxed) {
            self.touched.store(true, Ordering::Release);
        }
        let cell = &self.cells[id as usize];
        let mut word = cell.state.load(Ordering::Acquire);
        loop {
            let old = State::unpack(word);
            let idle = old.under_way == 0;
            let new = State {
                issued: old.issued.wrapping_add(1),
                span: if idle { 0 } else { (old.span + 1).min(SPAN_MAX) },
                under_way: old.under_way + 1,
            };
            match cell
                .state
                .compare_exchange_weak(word, new.pack(), Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => {
                    let certain = idle && cell.floor.load(Ordering::Acquire) == old.issued;
                    return Ticket {
                        id,
                        version: new.issued,
                        before: certain.then_some(old.issued),
                    };
                }
                Err(now) => word = now,
            }
        }
    }

    /// Returns the mutation of the ticket.
    #[inline]
    pub fn mutation_of(&self, ticket: Ticket) -> Mutation<'_> {
        self.mutation(ticket.id, ticket.version)
    }

    /// Takes a done mutation back. `was_there` is what the map said of the key before it; the answer is whether that
    /// can be.
    #[inline]
    pub fn settle(&self, ticket: Ticket, was_there: bool) -> bool {
        let cell = &self.cells[ticket.id as usize];
        let mut word = cell.state.load(Ordering::Acquire);
        loop {
            let old = State::unpack(word);
            let new = State {
                under_way: old.under_way - 1,
                ..old
            };
            match cell
                .state
                .compare_exchange_weak(word, new.pack(), Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => {
                    if new.under_way == 0 && old.span < SPAN_MAX {
                        raise(&cell.floor, old.issued.wrapping_sub(old.span));
                    }
                    let alone = old.issued == ticket.version && old.span == 0;
                    return match ticket.before {
                        Some(before) if alone => was_there != self.is_delete(ticket.id, before),
                        _ => true,
                    };
                }
                Err(now) => word = now,
            }
        }
    }

    /// Returns the oldest version a read of key `id` that begins now may see.
    #[inline]
    pub fn floor(&self, id: u64) -> u32 {
        if !self.touched.load(Ordering::Acquire) {
            return 0;
        }
        self.cells[id as usize].floor.load(Ordering::Acquire)
    }

    /// The newest version of key `id`.
    #[inline]
    fn issued(&self, id: u64) -> u32 {
        if !self.touched.load(Ordering::Acquire) {
            return 0;
        }
        State::unpack(self.cells[id as usize].state.load(Ordering::Acquire)).issued
    }

    /// Returns whether a read of key `id` that began at `floor` and has ended may have seen `answer`.
    #[inline]
    pub fn allows(&self, id: u64, floor: u32, answer: Option<&[u8]>) -> bool {
        let mut version = self.issued(id);
        loop {
            let matches = match (self.mutation(id, version), answer) {
                (Mutation::Put(value), Some(answer)) => value == answer,
                (Mutation::Delete, None) => true,
                _ => false,
            };
            if matches {
                return true;
            }
            if version == floor {
                return false;
            }
            version = version.wrapping_sub(1);
        }
    }
}

const LINE_BYTES: usize = 64;
/// Cache lines of a value to prefetch; the hardware prefetcher handles longer runs.
const PREFETCHED_LINES: usize = 4;

/// Prefetches a cache line.
#[inline(always)]
pub(crate) fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no visible memory access.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Raises a wrapping counter to `to`, unless it is past it.
fn raise(counter: &AtomicU32, to: u32) {
    let mut now = counter.load(Ordering::Relaxed);
    while (to.wrapping_sub(now) as i32).cmp(&0) == Order::Greater {
        match counter.compare_exchange_weak(now, to, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(newer) => now = newer,
        }
    }
}

#[cfg(test)]
#[path = "oracle_tests.rs"]
mod tests;
