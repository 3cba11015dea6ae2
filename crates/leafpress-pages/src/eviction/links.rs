//! Rings of slots: circular doubly linked lists whose links are stored in one table, indexed by slot.

/// No slot.
const NONE: u32 = u32::MAX;

/// A slot's neighbours, both [`NONE`] if it is in no ring.
#[derive(Debug, Clone, Copy)]
struct Pair {
    before: u32,
    after: u32,
}

impl Pair {
    const NONE: Self = Self {
        before: NONE,
        after: NONE,
    };
}

/// The links of all slots. A slot is in at most one ring.
#[derive(Debug, Default)]
pub(crate) struct Links(Vec<Pair>);

/// A ring: slots in order from the front to the back, which is followed by the front.
#[derive(Debug)]
pub(crate) struct Ring {
    front: u32,
    len: usize,
}

impl Default for Ring {
    fn default() -> Self {
        Self { front: NONE, len: 0 }
    }
}

impl Ring {
    /// Number of slots in the ring.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The slot at the front.
    pub(crate) fn front(&self) -> Option<u32> {
        (self.len > 0).then_some(self.front)
    }

    /// Makes the front the back, and its successor the front.
    pub(crate) fn turn(&mut self, links: &Links) {
        if self.len > 0 {
            self.front = links.0[self.front as usize].after;
        }
    }

    /// Inserts a slot that is in no ring at the back. Does nothing for one that is in a ring.
    pub(crate) fn push_back(&mut self, links: &mut Links, slot: u32) {
        let index = slot as usize;
        if index >= links.0.len() {
            links.0.resize(index + 1, Pair::NONE);
        }
        if links.contains(slot) {
            debug_assert!(false, "slot {slot} is in a ring already");
            return;
        }
        if self.len == 0 {
            links.0[index] = Pair {
                before: slot,
                after: slot,
            };
            self.front = slot;
        } else {
            let front = self.front as usize;
            let back = links.0[front].before;
            links.0[index] = Pair {
                before: back,
                after: self.front,
            };
            links.0[back as usize].after = slot;
            links.0[front].before = slot;
        }
        self.len += 1;
    }

    /// Removes a slot, which must be in this ring or in none; returns true if it was in.
    pub(crate) fn remove(&mut self, links: &mut Links, slot: u32) -> bool {
        if !links.contains(slot) {
            return false;
        }
        let Pair { before, after } = links.0[slot as usize];
        links.0[before as usize].after = after;
        links.0[after as usize].before = before;
        links.0[slot as usize] = Pair::NONE;
        self.len -= 1;
        if self.len == 0 {
            self.front = NONE;
        } else if self.front == slot {
            self.front = after;
        }
        true
    }
}

impl Links {
    /// Reserves memory for slots below `slots`; returns true on success.
    pub(crate) fn reserve(&mut self, slots: usize) -> bool {
        let more = slots.saturating_sub(self.0.len());
        let has_room = self.0.try_reserve(more).is_ok();
        if has_room {
            self.0.resize(slots.max(self.0.len()), Pair::NONE);
        }
        has_room
    }

    /// Returns true if the slot is in a ring.
    pub(crate) fn contains(&self, slot: u32) -> bool {
        self.0.get(slot as usize).is_some_and(|pair| pair.after != NONE)
    }

    /// Memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<Pair>()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    /// The ring's slots, front first; checks each link in both directions.
    fn listed(ring: &Ring, links: &Links) -> Vec<u32> {
        let mut slots = Vec::new();
        let mut at = ring.front;
        for _ in 0..ring.len {
            slots.push(at);
            let after = links.0[at as usize].after;
            assert_eq!(links.0[after as usize].before, at);
            at = after;
        }
        assert_eq!(at, ring.front);
        slots
    }

    #[derive(Debug, Clone)]
    enum Step {
        Push(bool, u32),
        Remove(bool, u32),
        Turn(bool),
    }

    proptest! {
        #[test]
        fn two_rings_over_one_table_are_two_queues(
            steps in proptest::collection::vec(
                prop_oneof![
                    (any::<bool>(), 0..20u32).prop_map(|(ring, slot)| Step::Push(ring, slot)),
                    (any::<bool>(), 0..20u32).prop_map(|(ring, slot)| Step::Remove(ring, slot)),
                    any::<bool>().prop_map(Step::Turn),
                ],
                0..200,
            )
        ) {
            let mut links = Links::default();
            let mut rings = [Ring::default(), Ring::default()];
            let mut queues = [VecDeque::new(), VecDeque::new()];
            for step in steps {
                match step {
                    Step::Push(ring, slot) => {
                        if !queues.iter().any(|queue: &VecDeque<u32>| queue.contains(&slot)) {
                            queues[usize::from(ring)].push_back(slot);
                            rings[usize::from(ring)].push_back(&mut links, slot);
                        }
                        prop_assert!(links.contains(slot));
                    }
                    Step::Remove(ring, slot) => {
                        if queues[usize::from(!ring)].contains(&slot) {
                            continue;
                        }
                        let queue = &mut queues[usize::from(ring)];
                        let was_in = queue.contains(&slot);
                        queue.retain(|&other| other != slot);
                        prop_assert_eq!(rings[usize::from(ring)].remove(&mut links, slot), was_in);
                        prop_assert!(!links.contains(slot));
                    }
                    Step::Turn(ring) => {
                        rings[usize::from(ring)].turn(&links);
                        let queue = &mut queues[usize::from(ring)];
                        if !queue.is_empty() {
                            queue.rotate_left(1);
                        }
                    }
                }
                for (ring, queue) in rings.iter().zip(&queues) {
                    prop_assert_eq!(listed(ring, &links), queue.iter().copied().collect::<Vec<_>>());
                    prop_assert_eq!(ring.front(), queue.front().copied());
                }
            }
        }
    }
}
