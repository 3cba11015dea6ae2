//! The sampled pages, identified by the same small numbers in all miniatures.

use super::costs::{SIZES, Sizes, UNSHRINKABLE, class};
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::{TryGrow, room_for};

/// No page.
const NONE: u32 = u32::MAX;

/// An unknown stored size.
const UNKNOWN: u32 = 0;

#[derive(Debug, Clone)]
struct Page {
    hash: u64,
    raw_bytes: u32,
    /// Stored bytes, [`UNKNOWN`] or [`UNSHRINKABLE`].
    stored: u32,
    /// The next of its bucket, or of the free list.
    next: u32,
    /// Number of miniatures that hold it.
    holders: u8,
    class: u8,
    state: KeyState,
    /// Whether it is among those to be examined by [`SampledKeys::tidy`].
    is_loose: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyState {
    /// It is in the hash table.
    Listed,
    /// It is not in the hash table any more, and is freed when no miniature holds it.
    Gone,
    Free,
}

/// The stored size of a page that was sampled at some time, or [`UNSHRINKABLE`].
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    tag: u32,
    stored: u32,
}

/// A hash table of the sampled pages.
#[derive(Debug)]
pub(crate) struct SampledKeys {
    /// The first page of each bucket; their number is a power of two, and the low bits of the hash select one.
    buckets: Vec<u32>,
    pages: Vec<Page>,
    free: u32,
    len: usize,
    /// Pages that no miniature held when they were added here, each once: there is capacity for all.
    loose: Vec<u32>,
    /// Sorted sizes of the last compressed pages, from which the size of a page of unknown size is taken: selected by
    /// its hash, so that it is about the same each time. If it were drawn anew each time, an incompressible hot page
    /// would occasionally count as compressible.
    sizes: Sizes,
    /// Sizes of pages, whether a miniature holds them or not; a direct-mapped table with a power of two of elements.
    known: Vec<Known>,
}

impl SampledKeys {
    /// Creates a table for about `pages` pages; it can grow.
    pub(crate) fn new(pages: usize) -> Result<Self, OutOfMemory> {
        let mut buckets = room_for(pages.next_power_of_two())?;
        buckets.resize(pages.next_power_of_two(), NONE);
        let mut known = room_for((2 * pages).next_power_of_two())?;
        known.resize((2 * pages).next_power_of_two(), Known::default());
        Ok(Self {
            buckets,
            pages: room_for(pages)?,
            free: NONE,
            len: 0,
            loose: room_for(pages)?,
            sizes: [UNKNOWN; SIZES],
            known,
        })
    }

    /// Number of sampled pages.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.pages.capacity() * size_of::<Page>()
            + (self.buckets.len() + self.loose.capacity()) * size_of::<u32>()
            + self.known.len() * size_of::<Known>()
    }

    pub(crate) fn hash(&self, slot: u32) -> u64 {
        self.pages[slot as usize].hash
    }

    pub(crate) fn raw_bytes(&self, slot: u32) -> u32 {
        self.pages[slot as usize].raw_bytes
    }

    pub(crate) fn class(&self, slot: u32) -> usize {
        usize::from(self.pages[slot as usize].class)
    }

    /// Sets the sample of sizes for pages of unknown size.
    pub(crate) fn set_sizes(&mut self, mut sizes: Sizes) {
        // While there are few, they are repeated for the others.
        let (mut known, mut count) = ([UNKNOWN; SIZES], 0);
        for &size in sizes.iter().filter(|&&size| size != UNKNOWN) {
            known[count] = size;
            count += 1;
        }
        for (size, &known) in sizes.iter_mut().zip(known[..count].iter().cycle()) {
            *size = known;
        }
        sizes.sort_unstable();
        self.sizes = sizes;
    }

    /// Returns the stored size of a page, known or estimated; [`None`] if it is incompressible.
    pub(crate) fn stored(&self, slot: u32) -> Option<u32> {
        let page = &self.pages[slot as usize];
        match page.stored {
            UNSHRINKABLE => None,
            UNKNOWN => match self.sizes[(page.hash >> 8) as usize % SIZES] {
                UNSHRINKABLE => None,
                UNKNOWN => Some(page.raw_bytes / 2),
                size => Some(((u64::from(page.raw_bytes) * u64::from(size)) >> 16) as u32),
            },
            stored => Some(stored),
        }
    }

    /// Records the stored size of a page, or that it is [`UNSHRINKABLE`]; returns the page if a miniature may hold it.
    pub(crate) fn set_stored(&mut self, hash: u64, stored: u32) -> Option<u32> {
        let stored = stored.max(1);
        let place = self.known_place(hash);
        self.known[place] = Known { tag: tag(hash), stored };
        let slot = self.find(hash)?;
        self.pages[slot as usize].stored = stored;
        Some(slot)
    }

    /// Counts one more miniature that holds the page.
    pub(crate) fn hold(&mut self, slot: u32) {
        self.pages[slot as usize].holders += 1;
    }

    /// Counts one less miniature that holds the page.
    pub(crate) fn let_go(&mut self, slot: u32) {
        let page = &mut self.pages[slot as usize];
        page.holders -= 1;
        if page.holders == 0 {
            self.loosen(slot);
        }
    }

    pub(crate) fn find(&self, hash: u64) -> Option<u32> {
        let mut slot = self.buckets[self.bucket(hash)];
        while slot != NONE {
            let page = &self.pages[slot as usize];
            if page.hash == hash {
                return Some(slot);
            }
            slot = page.next;
        }
        None
    }

    fn loosen(&mut self, slot: u32) {
        let page = &mut self.pages[slot as usize];
        if !std::mem::replace(&mut page.is_loose, true) {
            self.loose.push(slot);
        }
    }

    /// Adds a page that is absent. It stays at least until [`SampledKeys::tidy`].
    pub(crate) fn add(&mut self, hash: u64, raw_bytes: u32) -> Result<u32, OutOfMemory> {
        let bucket = self.bucket(hash);
        let known = self.known[self.known_place(hash)];
        let page = Page {
            hash,
            raw_bytes,
            stored: if known.tag == tag(hash) { known.stored } else { UNKNOWN },
            next: self.buckets[bucket],
            holders: 0,
            class: class(raw_bytes) as u8,
            state: KeyState::Listed,
            is_loose: false,
        };
        let slot = self.free;
        let slot = if slot == NONE {
            self.pages.try_grow(1)?;
            self.loose.try_grow(self.pages.len() + 1 - self.loose.len())?;
            self.pages.push(page);
            (self.pages.len() - 1) as u32
        } else {
            self.free = self.pages[slot as usize].next;
            self.pages[slot as usize] = page;
            slot
        };
        self.buckets[bucket] = slot;
        self.len += 1;
        self.loosen(slot);
        Ok(slot)
    }

    /// Removes the page from the hash table; it stays at least until [`SampledKeys::tidy`], and until no miniature
    /// holds it.
    pub(crate) fn unlist(&mut self, slot: u32) {
        if self.pages[slot as usize].state != KeyState::Listed {
            return;
        }
        let bucket = self.bucket(self.pages[slot as usize].hash);
        let next = self.pages[slot as usize].next;
        if self.buckets[bucket] == slot {
            self.buckets[bucket] = next;
        } else {
            let mut at = self.buckets[bucket];
            while at != NONE {
                let page = &mut self.pages[at as usize];
                if page.next == slot {
                    page.next = next;
                    break;
                }
                at = page.next;
            }
        }
        self.pages[slot as usize].state = KeyState::Gone;
        self.len -= 1;
        self.loosen(slot);
    }

    /// Returns the first slot from `from` on whose page has a hash above `threshold`.
    pub(crate) fn next_above(&self, threshold: u64, from: u32) -> Option<u32> {
        let is_above = |page: &Page| page.state == KeyState::Listed && page.hash > threshold;
        let rest = self.pages.get(from as usize..)?;
        rest.iter().position(is_above).map(|at| from + at as u32)
    }

    /// Frees the pages that no miniature holds.
    pub(crate) fn tidy(&mut self) {
        while let Some(slot) = self.loose.pop() {
            self.pages[slot as usize].is_loose = false;
            if self.pages[slot as usize].holders > 0 || self.pages[slot as usize].state == KeyState::Free {
                continue;
            }
            self.unlist(slot);
            let page = &mut self.pages[slot as usize];
            page.state = KeyState::Free;
            page.next = self.free;
            self.free = slot;
        }
    }

    fn bucket(&self, hash: u64) -> usize {
        hash as usize & (self.buckets.len() - 1)
    }

    fn known_place(&self, hash: u64) -> usize {
        hash as usize & (self.known.len() - 1)
    }
}

#[cfg(test)]
impl SampledKeys {
    /// Number of slots, used or free.
    pub(crate) fn slots(&self) -> usize {
        self.pages.len()
    }

    /// Panics if the holders of pages are inconsistent.
    pub(crate) fn validate(&self, holders: &[u8]) {
        let listed = self.pages.iter().filter(|page| page.state == KeyState::Listed);
        assert_eq!(listed.count(), self.len);
        for (page, &holders) in self.pages.iter().zip(holders) {
            assert!(
                page.state == KeyState::Free || page.holders == holders,
                "{page:?} is held {holders} times"
            );
            assert_eq!(page.state == KeyState::Listed, holders > 0, "{page:?}");
        }
    }
}

/// Bits of the hash that identify a page with a known size: not the highest, which are equal in all sampled pages.
fn tag(hash: u64) -> u32 {
    (hash >> 16) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn is_a_map_that_drops_unheld_pages() {
        let mut random = fastrand::Rng::with_seed(4);
        let mut sampled = SampledKeys::new(16).unwrap();
        let mut model: HashMap<u64, (u32, u8)> = HashMap::new();
        for round in 0..20_000 {
            let hash = random.u64(0..40) << 2;
            match (random.u8(0..4), model.get_mut(&hash)) {
                (0, None) => {
                    let slot = sampled.add(hash, 700).unwrap();
                    sampled.hold(slot);
                    model.insert(hash, (slot, 1));
                }
                (0 | 1, Some((slot, holders))) if *holders < 11 => {
                    sampled.hold(*slot);
                    *holders += 1;
                }
                (2, Some((slot, holders))) => {
                    sampled.let_go(*slot);
                    *holders -= 1;
                    if *holders == 0 {
                        model.remove(&hash);
                        sampled.tidy();
                    }
                }
                (3, Some(&mut (slot, holders))) => {
                    sampled.unlist(slot);
                    assert_eq!(sampled.find(hash), None);
                    for _ in 0..holders {
                        sampled.let_go(slot);
                    }
                    sampled.tidy();
                    model.remove(&hash);
                }
                _ => {}
            }
            if round % 16 == 0 {
                sampled.tidy();
            }
            assert_eq!(sampled.find(hash), model.get(&hash).map(|&(slot, _)| slot));
            assert_eq!(sampled.len(), model.len());
        }
        assert!(
            sampled.pages.len() <= 40,
            "freed pages are used again: {}",
            sampled.pages.len()
        );
    }

    #[test]
    fn a_size_is_guessed_until_it_is_known() {
        let mut sampled = SampledKeys::new(4).unwrap();
        let slot = sampled.add(0x1234_5678, 8192).unwrap();
        assert_eq!(sampled.stored(slot), Some(4096));
        sampled.set_sizes([65536 / 8; SIZES]);
        assert_eq!(sampled.stored(slot), Some(1024));
        sampled.set_sizes([UNSHRINKABLE; SIZES]);
        assert_eq!(sampled.stored(slot), None);
        assert_eq!(sampled.set_stored(0x1234_5678, 777), Some(slot));
        assert_eq!(sampled.stored(slot), Some(777));
        sampled.set_stored(0x1234_5678, UNSHRINKABLE);
        assert_eq!(sampled.stored(slot), None);
        assert_eq!(sampled.set_stored(0x9999_1234_5679, 555), None);
        sampled.tidy();
        assert_eq!(sampled.find(0x1234_5678), None);
        let slot = sampled.add(0x1234_5678, 8192).unwrap();
        assert_eq!(sampled.stored(slot), None, "it is remembered");
        let slot = sampled.add(0x9999_1234_5679, 8192).unwrap();
        assert_eq!(sampled.stored(slot), Some(555), "and so is what was never followed");
    }
}
