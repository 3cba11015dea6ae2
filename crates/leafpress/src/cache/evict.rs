//! Selection of victims.
//!
//! A CLOCK-like hand goes round the tree's leaves. All records of a leaf are rated together and those of least worth
//! are evicted, so the cost is per leaf instead of per record. The order is that of S3-FIFO (Yang et al., SOSP 2023),
//! expressed by each record's mark instead of queues:
//!
//! - A record begins *new*. If it was not read before the hand's first visit it is *on probation*, and at the next
//!   visit among the first candidates. A record whose key is in the ghost queue begins in *main*.
//! - A record that is read is in *main* from then on, with a count of the visits at which it had been read. The count
//!   is decremented only when a visit finds too few other candidates. A record whose count is 0, and that was not read
//!   since the last visit, returns to probation with a small probability.
//!
//! A visit evicts the records on probation, but at least a twentieth of the leaf and at most a quarter.
//! `docs/experiments/028` compares this with other policies on traces. The pool's S3-FIFO, which evicts pages
//! (`leafpress_pages::pool`), has the same ghost queue, but real queues instead of marks and a hand.

use super::policy::Policy;
use crate::tree::cache_hooks::{READ, Shown};
use leafpress_base::ghost::Ghost;
use leafpress_base::random::Random;

/// Minimum and maximum fraction of a leaf's records evicted at a visit.
const MIN_FRACTION: f64 = 0.05;
const MAX_FRACTION: f64 = 0.25;
/// Probability that a record in main whose count is 0, and that was not read since the last visit, returns to
/// probation.
const DEMOTED: f64 = 0.1;
/// Maximum of the count.
const MAX_COUNT: u8 = 3;

/// The class of a record: bits of its mark besides the read bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Not visited by the hand yet.
    New,
    /// Visited by the hand without having been read.
    Probation,
    /// Read; at about this number of visits.
    Main(u8),
}

impl Class {
    fn of(mark: u8) -> Self {
        match mark >> 1 {
            0 => Self::New,
            1 => Self::Probation,
            main => Self::Main((main - 2).min(MAX_COUNT)),
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

    /// Returns the class after a visit, given whether the record was read and whether its key was in the ghost queue.
    fn seen(self, is_read: bool, came_back: bool) -> Self {
        match (self, is_read) {
            (Self::New, true) if came_back => Self::Main(2),
            (Self::New | Self::Probation, true) => Self::Main(0),
            (Self::New, false) if came_back => Self::Main(1),
            (Self::Main(count), true) => Self::Main((count + 1).min(MAX_COUNT)),
            (unread, false) => unread,
        }
    }

    /// The records of least worth are evicted first.
    fn worth(self) -> u8 {
        match self {
            Self::Probation => 0,
            Self::New => 1,
            Self::Main(count) => 1 + count,
        }
    }
}

/// Returns how much a record is in use, by its mark: 0 if it was hardly read.
pub(super) fn heat(mark: u8) -> u8 {
    let is_read = mark & READ;
    match Class::of(mark) {
        Class::Main(count) => 1 + count + is_read,
        Class::New | Class::Probation => is_read,
    }
}

/// State kept between visits.
#[derive(Default)]
pub(super) struct EvictionState {
    pub ghost: Ghost,
    /// Records that were found in the ghost queue.
    pub returned: u64,
    pub policy: Policy,
    chance: Random,
}

/// A record's rank during a visit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Judged {
    worth: u8,
    tie: u64,
    index: usize,
}

impl EvictionState {
    /// Marks the victims among a leaf's records, at least `going`, and marks the others as visited.
    pub(super) fn judge(&mut self, records: &mut [Shown<'_>], going: usize) {
        match self.policy {
            Policy::S3Fifo => self.judge_by_class(records, going),
            Policy::Page => judge_as_one(records),
        }
    }

    fn judge_by_class(&mut self, records: &mut [Shown<'_>], going: usize) {
        let Self {
            ghost,
            returned,
            chance,
            ..
        } = self;
        let mut judged: Vec<Judged> = Vec::new();
        if judged.try_reserve_exact(records.len()).is_err() {
            return;
        }
        let mut on_probation = 0;
        for (index, record) in records.iter_mut().enumerate().filter(|(_, record)| !record.goes) {
            let class = Class::of(record.mark);
            let came_back = class == Class::New && record.keeps_mark() && ghost.take(record.hash, usize::MAX);
            *returned += u64::from(came_back);
            let class = class.seen(record.mark & READ != 0, came_back);
            // Kept until the remaining records are aged below.
            record.mark = class.mark() | record.mark & READ;
            on_probation += usize::from(class == Class::Probation);
            judged.push(Judged {
                worth: class.worth(),
                tie: chance.next_u64(),
                index,
            });
        }
        let mut part = |part: f64| (records.len() as f64 * part + chance.fraction()) as usize;
        let (least, most) = (part(MIN_FRACTION), part(MAX_FRACTION));
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

/// Marks all records, unless one was read.
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
        for class in [Class::New, Class::Probation, Class::Main(0), Class::Main(MAX_COUNT)] {
            assert_eq!(Class::of(class.mark()), class);
            assert_eq!(Class::of(class.mark() | READ), class);
        }
        // The mark of a new record.
        assert_eq!(Class::of(0), Class::New);
    }

    #[test]
    fn what_is_read_outlives_what_is_not() {
        assert_eq!(Class::New.seen(true, false), Class::Main(0));
        assert_eq!(Class::New.seen(false, false), Class::New);
        assert!(Class::New.seen(false, true).worth() > Class::New.worth());
        assert_eq!(Class::Main(MAX_COUNT).seen(true, false), Class::Main(MAX_COUNT));
        assert!(Class::Probation.worth() < Class::New.worth());
        assert!(Class::Main(1).worth() > Class::Main(0).worth());
    }
}
