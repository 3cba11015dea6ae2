//! Which records make room for others.
//!
//! A hand goes round the tree's leaves. All records of a leaf are judged together, and those that are worth least go, so that work is done for
//! a leaf and not for a record. The order is that of S3-FIFO (Yang et al., SOSP 2023), by what a record's mark says, and without its queues:
//!
//! - A record begins *new*. If it was not read when the hand comes by for the first time it is *on probation*, and the next time among the
//!   first to go. One that was evicted lately and has come back is in use.
//! - A record that is read is in *main* from then on, with a count of the visits at which it had been read. The count is lowered only when a
//!   hand finds too few others to take.
//!
//! A visit takes those on probation, but no fewer than a twentieth of the leaf and no more than a quarter. `docs/experiments/028` compares this
//! with other rules, on traces. [`Policy`] has some that a cache may be told to go by in its place.

use super::ghost::Ghost;
use super::policy::Policy;
use crate::tree::cache_hooks::{READ, Shown};

/// Of a leaf's records so many go at a visit: parts of them.
const MIN_PART: f64 = 0.05;
const MAX_PART: f64 = 0.25;
/// A record in main whose count is 0, and that was not read since the last visit, is on probation again with this chance.
const DEMOTED: f64 = 0.1;
/// Counts go up to this.
const MOST: u8 = 3;
/// Of the rounds in which a record was not read so many are counted.
const MAX_ROUNDS: u8 = 7;

/// What a record is, beside whether it was read: bits of its mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// The hand has not seen it.
    New,
    /// The hand has seen it unread.
    Probation,
    /// It was read; at so many visits, about.
    Main(u8),
}

impl Class {
    fn of(mark: u8) -> Self {
        match mark >> 1 {
            0 => Self::New,
            1 => Self::Probation,
            main => Self::Main((main - 2).min(MOST)),
        }
    }

    fn mark(self) -> u8 {
        let class = match self {
            Self::New => 0,
            Self::Probation => 1,
            Self::Main(count) => count + 2,
        };
        class << 1
    }

    /// What it is once the hand knows whether it was read, and whether it came back.
    fn seen(self, is_read: bool, came_back: bool) -> Self {
        match (self, is_read) {
            (Self::New, true) if came_back => Self::Main(2),
            (Self::New | Self::Probation, true) => Self::Main(0),
            (Self::New, false) if came_back => Self::Main(1),
            (Self::Main(count), true) => Self::Main((count + 1).min(MOST)),
            (unread, false) => unread,
        }
    }

    /// What goes first has the least.
    fn worth(self) -> u8 {
        match self {
            Self::Probation => 0,
            Self::New => 1,
            Self::Main(count) => 1 + count,
        }
    }
}

/// How much a record is in use, by its mark: 0 where it was hardly read.
pub(super) fn heat(policy: Policy, mark: u8) -> u8 {
    let is_read = mark & READ;
    match (policy, Class::of(mark)) {
        (Policy::S3Fifo, Class::Main(count)) => 1 + count + is_read,
        (Policy::Lru, _) if is_read == 1 => MAX_ROUNDS,
        // One that was read and then not for some rounds looks like one that was never read for as long.
        _ => is_read,
    }
}

/// Random numbers (xorshift: Marsaglia, 2003).
#[derive(Debug)]
pub(super) struct Chance(u64);

impl Default for Chance {
    fn default() -> Self {
        Self(0x9E37_79B9_7F4A_7C15)
    }
}

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// At least 0, below 1.
    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// What is kept from visit to visit.
#[derive(Default)]
pub(super) struct EvictionState {
    pub ghost: Ghost,
    pub policy: Policy,
    chance: Chance,
}

/// A record as it is judged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Judged {
    worth: u8,
    tie: u64,
    index: usize,
}

impl EvictionState {
    /// Marks what is to go of a leaf's records, of which so many go at any rate, and notes of the others that the hand has seen them.
    pub(super) fn judge(&mut self, records: &mut [Shown<'_>], going: usize) {
        match self.policy {
            Policy::S3Fifo => self.judge_by_class(records, going),
            Policy::Clock => judge_by_read(records),
            Policy::Lru => self.judge_by_rounds(records, going),
            Policy::Page => judge_as_one(records),
        }
    }

    /// Marks those that were not read for the most rounds.
    fn judge_by_rounds(&mut self, records: &mut [Shown<'_>], going: usize) {
        let mut judged: Vec<Judged> = Vec::new();
        if judged.try_reserve_exact(records.len()).is_err() {
            return;
        }
        for (index, record) in records.iter_mut().enumerate().filter(|(_, record)| !record.goes) {
            let rounds = if record.mark & READ != 0 {
                0
            } else {
                (record.mark >> 1).saturating_add(1).min(MAX_ROUNDS)
            };
            record.mark = rounds << 1;
            judged.push(Judged {
                worth: MAX_ROUNDS - rounds,
                tie: self.chance.next(),
                index,
            });
        }
        let least = (records.len() as f64 * MIN_PART + self.chance.fraction()) as usize;
        let wanted = least.saturating_sub(going).min(judged.len());
        if wanted > 0 {
            judged.select_nth_unstable(wanted - 1);
        }
        judged[..wanted]
            .iter()
            .for_each(|judged| records[judged.index].goes = true);
    }

    fn judge_by_class(&mut self, records: &mut [Shown<'_>], going: usize) {
        let Self { ghost, chance, .. } = self;
        let mut judged: Vec<Judged> = Vec::new();
        if judged.try_reserve_exact(records.len()).is_err() {
            return;
        }
        let mut on_probation = 0;
        for (index, record) in records.iter_mut().enumerate().filter(|(_, record)| !record.goes) {
            let class = Class::of(record.mark);
            let came_back = class == Class::New && record.keeps_mark() && ghost.take(record.hash);
            let class = class.seen(record.mark & READ != 0, came_back);
            // Kept until what stays has grown older below.
            record.mark = class.mark() | record.mark & READ;
            on_probation += usize::from(class == Class::Probation);
            judged.push(Judged {
                worth: class.worth(),
                tie: chance.next(),
                index,
            });
        }
        let mut part = |part: f64| (records.len() as f64 * part + chance.fraction()) as usize;
        let (least, most) = (part(MIN_PART), part(MAX_PART));
        let wanted = on_probation
            .clamp(least, most.max(least))
            .saturating_sub(going)
            .min(judged.len());
        let mut lowered = 0;
        if wanted > 0 {
            let (_, last, _) = judged.select_nth_unstable(wanted - 1);
            if let Class::Main(count) = Class::of(records[last.index].mark) {
                lowered = count;
            }
        }
        for judged in &judged[..wanted] {
            let record = &mut records[judged.index];
            record.goes = true;
            ghost.add(record.hash);
        }
        for judged in &judged[wanted..] {
            let record = &mut records[judged.index];
            let is_read = record.mark & READ != 0;
            let class = match Class::of(record.mark) {
                Class::Main(0) if !is_read && chance.fraction() < DEMOTED => Class::Probation,
                Class::Main(count) => Class::Main(count.saturating_sub(lowered)),
                Class::New | Class::Probation => Class::Probation,
            };
            record.mark = class.mark();
        }
    }
}

/// Marks those that were not read.
fn judge_by_read(records: &mut [Shown<'_>]) {
    for record in records {
        record.goes |= record.mark & READ == 0;
        record.mark = 0;
    }
}

/// Marks all, unless one was read.
fn judge_as_one(records: &mut [Shown<'_>]) {
    let is_read = records.iter().any(|record| record.mark & READ != 0);
    for record in records {
        record.goes |= !is_read;
        record.mark = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_holds_a_class() {
        for class in [Class::New, Class::Probation, Class::Main(0), Class::Main(MOST)] {
            assert_eq!(Class::of(class.mark()), class);
            assert_eq!(Class::of(class.mark() | READ), class);
        }
        // What a record begins with.
        assert_eq!(Class::of(0), Class::New);
    }

    #[test]
    fn what_is_read_outlives_what_is_not() {
        assert_eq!(Class::New.seen(true, false), Class::Main(0));
        assert_eq!(Class::New.seen(false, false), Class::New);
        assert!(Class::New.seen(false, true).worth() > Class::New.worth());
        assert_eq!(Class::Main(MOST).seen(true, false), Class::Main(MOST));
        assert!(Class::Probation.worth() < Class::New.worth());
        assert!(Class::Main(1).worth() > Class::Main(0).worth());
    }

    #[test]
    fn chance_is_fair() {
        let mut chance = Chance::default();
        let mean = (0..10_000).map(|_| chance.fraction()).sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
    }
}
