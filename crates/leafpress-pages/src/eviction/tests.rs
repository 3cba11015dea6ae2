//! Every policy, compared with a naive model of it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

const SLOTS: u32 = 32;

#[derive(Default)]
struct Table {
    popularity: RefCell<[u8; SLOTS as usize]>,
    pinned: RefCell<[bool; SLOTS as usize]>,
    looks: Cell<usize>,
}

impl Pages for Table {
    fn popularity(&self, slot: u32) -> u8 {
        self.looks.set(self.looks.get() + 1);
        self.popularity.borrow()[slot as usize]
    }
    fn set_popularity(&self, slot: u32, popularity: u8) {
        self.popularity.borrow_mut()[slot as usize] = popularity;
    }
    fn is_pinned(&self, slot: u32) -> bool {
        self.pinned.borrow()[slot as usize]
    }
}

impl Table {
    fn hit(&self, slot: u32) {
        let popularity = &mut self.popularity.borrow_mut()[slot as usize];
        *popularity = (*popularity + 1).min(MAX_POPULARITY);
    }
    fn pin(&self, slot: u32, pinned: bool) {
        self.pinned.borrow_mut()[slot as usize] = pinned;
    }
}

/// One page per slot. Fingerprints are distinct and spread evenly over buckets, so that no ghost queue drops one early.
fn hash(slot: u32) -> u64 {
    u64::from(slot) << 32
}

/// The specification of a policy, without regard to speed.
trait Model {
    fn insert(&mut self, slot: u32);
    fn hit(&mut self, slot: u32) {
        let _ = slot;
    }
    fn remove(&mut self, slot: u32);
    fn victim(&mut self, table: &Table) -> Option<u32>;
}

/// Pages in the order of the hand.
#[derive(Default)]
struct NaiveClock(VecDeque<u32>);

impl Model for NaiveClock {
    fn insert(&mut self, slot: u32) {
        self.0.push_back(slot);
    }
    fn remove(&mut self, slot: u32) {
        self.0.retain(|&other| other != slot);
    }
    fn victim(&mut self, table: &Table) -> Option<u32> {
        if self.0.iter().all(|&slot| table.is_pinned(slot)) {
            return None;
        }
        loop {
            let slot = self.0.pop_front()?;
            if !table.is_pinned(slot) {
                let popularity = table.popularity(slot);
                if popularity == 0 {
                    return Some(slot);
                }
                table.set_popularity(slot, popularity / 2);
            }
            self.0.push_back(slot);
        }
    }
}

/// Pages in the order of their last hits.
#[derive(Default)]
struct NaiveLru(VecDeque<u32>);

impl Model for NaiveLru {
    fn insert(&mut self, slot: u32) {
        self.0.push_back(slot);
    }
    fn hit(&mut self, slot: u32) {
        if self.0.contains(&slot) {
            self.remove(slot);
            self.0.push_back(slot);
        }
    }
    fn remove(&mut self, slot: u32) {
        self.0.retain(|&other| other != slot);
    }
    fn victim(&mut self, table: &Table) -> Option<u32> {
        let at = self.0.iter().position(|&slot| !table.is_pinned(slot))?;
        self.0.rotate_left(at);
        self.0.pop_front()
    }
}

/// Algorithm 1 of the paper.
#[derive(Default)]
struct NaiveS3Fifo {
    small: VecDeque<u32>,
    main: VecDeque<u32>,
    /// Every page evicted from the small queue, the last at the back; [`None`] if it has returned since.
    left: Vec<Option<u32>>,
}

impl NaiveS3Fifo {
    fn ghosts(&self) -> usize {
        let pages = self.small.len() + self.main.len();
        pages - pages / 10
    }
    fn small_victim(&mut self, table: &Table) -> Option<u32> {
        for _ in 0..self.small.len() {
            let slot = self.small.pop_front()?;
            if table.is_pinned(slot) {
                self.small.push_back(slot);
            } else if table.popularity(slot) > 1 {
                table.set_popularity(slot, 0);
                self.main.push_back(slot);
            } else {
                self.left.push(Some(slot));
                return Some(slot);
            }
        }
        None
    }
    fn main_victim(&mut self, table: &Table) -> Option<u32> {
        if self.main.iter().all(|&slot| table.is_pinned(slot)) {
            return None;
        }
        loop {
            let slot = self.main.pop_front()?;
            if !table.is_pinned(slot) {
                let popularity = table.popularity(slot).min(3);
                if popularity == 0 {
                    return Some(slot);
                }
                table.set_popularity(slot, popularity - 1);
            }
            self.main.push_back(slot);
        }
    }
}

impl Model for NaiveS3Fifo {
    fn insert(&mut self, slot: u32) {
        let since = self.left.len().saturating_sub(self.ghosts());
        let remembered = self.left[since..].contains(&Some(slot));
        for left in self.left.iter_mut().filter(|left| **left == Some(slot)) {
            *left = None;
        }
        if remembered {
            self.main.push_back(slot)
        } else {
            self.small.push_back(slot)
        }
    }
    fn remove(&mut self, slot: u32) {
        self.small.retain(|&other| other != slot);
        self.main.retain(|&other| other != slot);
    }
    fn victim(&mut self, table: &Table) -> Option<u32> {
        if self.small.len() * 10 > self.small.len() + self.main.len() {
            self.small_victim(table).or_else(|| self.main_victim(table))
        } else {
            self.main_victim(table).or_else(|| self.small_victim(table))
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Insert(u32),
    Hit(u32),
    Remove(u32),
    Pin(u32, bool),
    Victim,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..SLOTS).prop_map(Step::Insert),
        6 => (0..SLOTS).prop_map(Step::Hit),
        1 => (0..SLOTS).prop_map(Step::Remove),
        1 => (0..SLOTS, any::<bool>()).prop_map(|(slot, pinned)| Step::Pin(slot, pinned)),
        3 => Just(Step::Victim),
    ];
    proptest::collection::vec(step, 0..400)
}

/// Runs policy and model side by side; they must return the same victims and leave the same popularities.
fn agree(kind: PolicyKind, mut model: impl Model, steps: Vec<Step>) {
    let mut policy = kind.build().unwrap();
    let (ours, theirs) = (Table::default(), Table::default());
    let mut inside = [false; SLOTS as usize];
    for step in steps {
        match step {
            Step::Insert(slot) if !inside[slot as usize] => {
                inside[slot as usize] = true;
                ours.set_popularity(slot, 0);
                theirs.set_popularity(slot, 0);
                policy.insert(slot, hash(slot));
                model.insert(slot);
            }
            Step::Insert(slot) | Step::Hit(slot) => {
                if inside[slot as usize] {
                    ours.hit(slot);
                    theirs.hit(slot);
                    model.hit(slot);
                }
                if policy.wants_hits() {
                    // Hits are reported with a delay: the page may be gone.
                    policy.hit(slot);
                }
            }
            Step::Remove(slot) => {
                inside[slot as usize] = false;
                policy.remove(slot);
                model.remove(slot);
            }
            Step::Pin(slot, pinned) => {
                ours.pin(slot, pinned);
                theirs.pin(slot, pinned);
            }
            Step::Victim => {
                let victim = policy.victim(&ours, &hash);
                assert_eq!(victim, model.victim(&theirs));
                if let Some(slot) = victim {
                    assert!(inside[slot as usize] && !ours.is_pinned(slot));
                    inside[slot as usize] = false;
                }
            }
        }
        assert_eq!(ours.popularity, theirs.popularity);
    }
}

proptest! {
    #[test]
    fn clock_is_its_model(steps in steps()) {
        agree(PolicyKind::Clock, NaiveClock::default(), steps);
    }

    #[test]
    fn lru_is_its_model(steps in steps()) {
        agree(PolicyKind::Lru, NaiveLru::default(), steps);
    }

    #[test]
    fn s3_fifo_is_its_model(steps in steps()) {
        agree(PolicyKind::S3Fifo, NaiveS3Fifo::default(), steps);
    }
}

#[test]
fn all_pinned_has_no_victim_and_unpinning_gives_one() {
    for kind in PolicyKind::ALL {
        let (mut policy, table) = (kind.build().unwrap(), Table::default());
        assert_eq!(policy.victim(&table, &hash), None, "{kind}: empty");
        for slot in 0..SLOTS {
            policy.insert(slot, hash(slot));
            table.pin(slot, true);
            table.set_popularity(slot, MAX_POPULARITY);
        }
        assert_eq!(policy.victim(&table, &hash), None, "{kind}");
        assert_eq!(policy.victim(&table, &hash), None, "{kind}: and nothing was lost");
        table.pin(17, false);
        assert_eq!(policy.victim(&table, &hash), Some(17), "{kind}");
        assert_eq!(policy.victim(&table, &hash), None, "{kind}");
    }
}

/// A table whose pages are hit faster than a hand can go round.
struct Boiling;

impl Pages for Boiling {
    fn popularity(&self, _slot: u32) -> u8 {
        MAX_POPULARITY
    }
    fn set_popularity(&self, _slot: u32, _popularity: u8) {}
    fn is_pinned(&self, slot: u32) -> bool {
        slot.is_multiple_of(2)
    }
}

#[test]
fn hits_that_never_end_do_not_keep_a_victim_from_being_found() {
    for kind in PolicyKind::ALL {
        let mut policy = kind.build().unwrap();
        for slot in 0..SLOTS {
            policy.insert(slot, hash(slot));
        }
        for _ in 0..SLOTS / 2 {
            assert!(
                policy.victim(&Boiling, &hash).is_some_and(|slot| slot % 2 == 1),
                "{kind}"
            );
        }
        assert_eq!(policy.victim(&Boiling, &hash), None, "{kind}");
    }
}

#[test]
fn a_victim_costs_few_looks_however_many_pages_there_are() {
    let mut random = fastrand::Rng::with_seed(3);
    for kind in PolicyKind::ALL {
        let (mut policy, table) = (kind.build().unwrap(), Table::default());
        let mut hits = 0;
        for slot in 0..SLOTS {
            policy.insert(slot, hash(slot));
        }
        for _ in 0..10_000 {
            for _ in 0..random.u32(0..4) {
                table.hit(random.u32(0..SLOTS));
                hits += 1;
            }
            if let Some(slot) = policy.victim(&table, &hash) {
                table.set_popularity(slot, 0);
                policy.insert(slot, hash(slot));
            }
        }
        assert!(
            table.looks.get() <= 2 * (hits + 10_000 + SLOTS as usize),
            "{kind}: {} looks",
            table.looks.get()
        );
    }
}

#[test]
fn s3_fifo_lets_a_scan_pass_by_what_was_hit() {
    let (mut policy, table) = (PolicyKind::S3Fifo.build().unwrap(), Table::default());
    for slot in 0..20 {
        policy.insert(slot, hash(slot));
        table.hit(slot);
        table.hit(slot);
    }
    // A scan of new pages through the slots from 20 on, which are never hit.
    for slot in 20..30 {
        policy.insert(slot, hash(slot));
    }
    for round in 0..1_000u64 {
        for slot in 0..20 {
            table.hit(slot);
        }
        let Some(victim) = policy.victim(&table, &|slot| (u64::from(slot) << 32) + (round << 48)) else {
            panic!("nothing is pinned");
        };
        assert!(victim >= 20, "{victim} was hit in every round");
        table.set_popularity(victim, 0);
        policy.insert(victim, (u64::from(victim) << 32) + ((round + 1) << 48));
    }
}

#[test]
fn memory_is_counted() {
    for kind in PolicyKind::ALL {
        let mut policy = kind.build().unwrap();
        assert_eq!(policy.bytes(), 0, "{kind}");
        for slot in 0..1_000 {
            policy.insert(slot, hash(slot));
        }
        assert!((8_000..40_000).contains(&policy.bytes()), "{kind}: {}", policy.bytes());
    }
}
