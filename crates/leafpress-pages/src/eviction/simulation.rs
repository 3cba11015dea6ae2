//! Simulation of a policy over objects of any size, without their contents: the hits of a cache of a given size.

use std::cell::Cell;

use rapidhash::RapidHashMap;
use rapidhash::v3::rapidhash_v3;

use super::{MAX_POPULARITY, Pages, Policy, PolicyKind};

/// A simulation of a policy. Its memory is proportional to the number of objects that fit.
pub struct PolicySimulation {
    policy: Box<dyn Policy>,
    capacity_bytes: u64,
    held_bytes: u64,
    slots: Slots,
    free: Vec<u32>,
    places: RapidHashMap<u64, u32>,
}

struct Slot {
    key: u64,
    bytes: u64,
    hits: Cell<u8>,
}

struct Slots(Vec<Slot>);

impl Slots {
    fn hash(&self, slot: u32) -> u64 {
        rapidhash_v3(&self.0[slot as usize].key.to_le_bytes())
    }
}

impl Pages for Slots {
    fn popularity(&self, slot: u32) -> u8 {
        self.0[slot as usize].hits.get()
    }

    fn set_popularity(&self, slot: u32, popularity: u8) {
        self.0[slot as usize].hits.set(popularity);
    }

    fn is_pinned(&self, _slot: u32) -> bool {
        false
    }
}

impl PolicySimulation {
    /// Returns an empty simulation; [`None`] if there is no memory for it.
    #[must_use]
    pub fn new(kind: PolicyKind, capacity_bytes: u64) -> Option<Self> {
        Some(Self {
            policy: kind.build().ok()?,
            capacity_bytes,
            held_bytes: 0,
            slots: Slots(Vec::new()),
            free: Vec::new(),
            places: RapidHashMap::default(),
        })
    }

    /// Accesses an object; returns true if it was present. If not, it is inserted, and others are evicted for it; an
    /// object larger than the capacity is not inserted. An object keeps the size with which it was inserted.
    pub fn access(&mut self, key: u64, bytes: u64) -> bool {
        if let Some(&slot) = self.places.get(&key) {
            let hits = &self.slots.0[slot as usize].hits;
            hits.set((hits.get() + 1).min(MAX_POPULARITY));
            if self.policy.wants_hits() {
                self.policy.hit(slot);
            }
            return true;
        }
        if bytes <= self.capacity_bytes {
            self.make_room(bytes);
            self.enter(key, bytes);
        }
        false
    }

    fn make_room(&mut self, bytes: u64) {
        while self.held_bytes > self.capacity_bytes - bytes {
            let slots = &self.slots;
            let Some(victim) = self.policy.victim(slots, &|slot| slots.hash(slot)) else {
                return;
            };
            let Slot { key, bytes, .. } = &self.slots.0[victim as usize];
            self.held_bytes -= bytes;
            self.places.remove(key);
            self.free.push(victim);
        }
    }

    fn enter(&mut self, key: u64, bytes: u64) {
        let new = Slot {
            key,
            bytes,
            hits: Cell::new(0),
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots.0[slot as usize] = new;
                slot
            }
            None => {
                let slots = self.slots.0.len();
                let Ok(slot) = u32::try_from(slots) else { return };
                if !self.policy.reserve((slots + 1).next_power_of_two()) {
                    return;
                }
                self.slots.0.push(new);
                slot
            }
        };
        self.places.insert(key, slot);
        self.held_bytes += bytes;
        self.policy.insert(slot, self.slots.hash(slot));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(kind: PolicyKind, capacity_bytes: u64, requests: impl IntoIterator<Item = (u64, u64)>) -> usize {
        let mut simulation = PolicySimulation::new(kind, capacity_bytes).unwrap();
        let requests = requests.into_iter();
        requests.filter(|(key, bytes)| simulation.access(*key, *bytes)).count()
    }

    #[test]
    fn what_fits_stays_and_what_does_not_leaves() {
        for kind in PolicyKind::ALL {
            let loops = |keys: u64| (0..3 * keys).map(move |at| (at % keys, 10));
            assert_eq!(hits(kind, 100, loops(10)), 20, "{kind}");
            assert_eq!(hits(kind, 0, loops(10)), 0, "{kind}");
            assert_eq!(hits(kind, 9, [(1, 10), (1, 10)]), 0, "{kind}: larger than all of it");
        }
        assert_eq!(hits(PolicyKind::Lru, 99, (0..30).map(|at| (at % 10, 10))), 0);
        assert_eq!(
            hits(
                PolicyKind::Lru,
                30,
                [(1, 10), (2, 20), (1, 10), (3, 15), (1, 10), (2, 20)]
            ),
            2
        );
    }

    #[test]
    fn a_scan_does_not_push_out_what_is_used() {
        // Every other request is for one of 50 objects; the others are requested once.
        let requests = || (0..40_000_u64).map(|at| (if at % 2 == 0 { at / 2 % 50 } else { 1000 + at }, 1));
        let [lru, s3_fifo] = [PolicyKind::Lru, PolicyKind::S3Fifo].map(|kind| hits(kind, 60, requests()));
        assert!(s3_fifo > 19_000 && lru < 1000, "{s3_fifo} {lru}");
    }
}
