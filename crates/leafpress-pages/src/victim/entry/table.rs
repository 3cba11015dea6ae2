//! The entries of a shard: a hash table with chained buckets, and an unordered list of those that are kept raw though
//! they are compressible.
//!
//! An entry in the table is not freed: it has to be unlinked first, which requires exclusive access to the table.

use super::{At, BlockRef, Link, Owned};

/// A table of entries. If it is dropped, its entries are leaked.
#[derive(Debug, Default)]
pub(in crate::victim) struct EntryTable {
    buckets: Vec<Option<Link>>,
    /// Each entry knows its index here. The capacity is the maximum length.
    listed: Vec<Link>,
    listed_bytes: usize,
}

/// An unlinked entry, for the accounting.
#[derive(Debug)]
pub(in crate::victim) struct Unlinked {
    pub(in crate::victim) raw_bytes: u32,
    pub(in crate::victim) stored_bytes: u32,
    pub(in crate::victim) pressed: bool,
    /// The shard's clock at its last hit.
    pub(in crate::victim) touched: u32,
    /// The entry, unless it has readers: the last of them gets it.
    pub(in crate::victim) entry: Option<Owned>,
}

/// Iterator over the entries of a bucket.
#[derive(Debug)]
pub(in crate::victim) struct Chain<'t> {
    next: Option<Link>,
    table: std::marker::PhantomData<&'t EntryTable>,
}

impl<'t> Iterator for Chain<'t> {
    type Item = BlockRef<'t>;

    #[inline]
    fn next(&mut self) -> Option<BlockRef<'t>> {
        // SAFETY: the entries of a table that is borrowed for `'t` stay in it for that long.
        let entry = unsafe { self.next?.entry() };
        self.next = entry.next();
        Some(entry)
    }
}

impl EntryTable {
    /// Memory of a table with these numbers of buckets and list elements, in bytes.
    pub(in crate::victim) fn bytes_for(buckets: usize, places: usize) -> usize {
        buckets * size_of::<Option<Link>>() + places * size_of::<Link>()
    }

    pub(in crate::victim) fn buckets(&self) -> usize {
        self.buckets.len()
    }

    /// Returns true if nothing can be inserted.
    pub(in crate::victim) fn is_closed(&self) -> bool {
        self.buckets.is_empty()
    }

    #[inline]
    pub(in crate::victim) fn bucket(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.buckets.len() as u128) >> 64) as usize
    }

    /// Returns the entries of a bucket; of one that does not exist, none.
    #[inline]
    pub(in crate::victim) fn chain(&self, bucket: usize) -> Chain<'_> {
        Chain {
            next: self.buckets.get(bucket).copied().flatten(),
            table: std::marker::PhantomData,
        }
    }

    #[inline]
    pub(in crate::victim) fn find(&self, key: &[u8], hash: u64) -> Option<BlockRef<'_>> {
        self.chain(self.bucket(hash))
            .find(|entry| entry.hash == hash && entry.key() == key)
    }

    /// Inserts an entry; there must be no other one with its key.
    pub(in crate::victim) fn link(&mut self, entry: Owned) -> At {
        let link = entry.into_link();
        // SAFETY: the entry is exclusively owned, and is added to this table, or leaked.
        let entry: BlockRef<'static> = unsafe { link.entry() };
        let bucket = self.bucket(entry.hash);
        if let Some(first) = self.buckets.get_mut(bucket) {
            entry.set_next(first.replace(link));
        }
        entry.at()
    }

    /// Removes an entry from its bucket and from the list; [`None`] if it is not in the table any more.
    pub(in crate::victim) fn unlink(&mut self, at: At) -> Option<Unlinked> {
        let bucket = self.bucket(at.hash);
        let mut before: Option<BlockRef<'_>> = None;
        let entry = self.chain(bucket).find(|entry| {
            let is_it = entry.link == at.link;
            if !is_it {
                before = Some(*entry);
            }
            is_it
        })?;
        let (link, next, place) = (entry.link, entry.next(), entry.place());
        let (raw_bytes, stored_bytes, pressed) = (entry.raw_bytes, entry.stored_bytes, entry.pressed);
        let touched = entry.touched();
        match before {
            Some(before) => before.set_next(next),
            None => self.buckets[bucket] = next,
        }
        if let Some(place) = place {
            self.unlist(place);
        }
        // SAFETY: the entry was just removed from the table, and the link is not used again.
        let entry = unsafe { link.unlinked() };
        Some(Unlinked {
            raw_bytes,
            stored_bytes,
            pressed,
            touched,
            entry,
        })
    }

    /// Rebuilds the table with these numbers of buckets and list elements; returns true on success. Entries for which
    /// there is no element are not listed any more.
    pub(in crate::victim) fn remake(&mut self, buckets: usize, places: usize) -> bool {
        let (mut new, mut listed) = (Vec::new(), Vec::new());
        if new.try_reserve_exact(buckets).is_err() || listed.try_reserve_exact(places).is_err() || buckets == 0 {
            return false;
        }
        while self.listed.len() > places {
            self.unlist(self.listed.len() - 1);
        }
        listed.extend_from_slice(&self.listed);
        self.listed = listed;
        new.resize(buckets, None);
        for first in std::mem::replace(&mut self.buckets, new) {
            let mut next = first;
            while let Some(link) = next {
                // SAFETY: the entry was in this table, and is added to it again.
                let entry: BlockRef<'static> = unsafe { link.entry() };
                next = entry.next();
                let bucket = self.bucket(entry.hash);
                entry.set_next(self.buckets[bucket].replace(link));
            }
        }
        true
    }

    /// Frees the memory of a table without entries.
    pub(in crate::victim) fn close(&mut self) {
        debug_assert!(self.listed.is_empty() && self.buckets.iter().all(Option::is_none));
        *self = Self::default();
    }

    /// Number of listed entries.
    pub(in crate::victim) fn listed(&self) -> usize {
        self.listed.len()
    }

    /// Capacity of the list.
    pub(in crate::victim) fn places(&self) -> usize {
        self.listed.capacity()
    }

    /// Memory of the listed entries, in bytes.
    pub(in crate::victim) fn listed_bytes(&self) -> usize {
        self.listed_bytes
    }

    /// Returns the entry at an index of the list.
    pub(in crate::victim) fn listed_at(&self, place: usize) -> Option<BlockRef<'_>> {
        let link = *self.listed.get(place)?;
        // SAFETY: listed entries are in the table, which is borrowed.
        Some(unsafe { link.entry() })
    }

    /// Lists an entry that is not listed yet, if there is capacity and it is in the table.
    pub(in crate::victim) fn list(&mut self, at: At) {
        let place = self.listed.len();
        if place == self.listed.capacity() {
            return;
        }
        let found = self.chain(self.bucket(at.hash)).find(|entry| entry.link == at.link);
        let Some(entry) = found.filter(|entry| !entry.is_listed()) else {
            return;
        };
        entry.set_place(place);
        let bytes = entry.bytes();
        self.listed.push(at.link);
        self.listed_bytes += bytes;
    }

    /// Removes the entry at an index from the list.
    pub(in crate::victim) fn unlist(&mut self, place: usize) {
        let Some(entry) = self.listed_at(place) else { return };
        entry.clear_place();
        let bytes = entry.bytes();
        self.listed.swap_remove(place);
        self.listed_bytes -= bytes;
        if let Some(moved) = self.listed_at(place) {
            moved.set_place(place);
        }
    }

    /// Returns true if the list and the entry's own index agree.
    pub(in crate::victim) fn is_in_order(&self, entry: BlockRef<'_>) -> bool {
        let Some(place) = entry.place() else { return true };
        self.listed.get(place) == Some(&entry.link) && !entry.pressed
    }

    /// Flips a bit of a block that has no readers; returns true if there is one with the key.
    #[cfg(feature = "testing")]
    pub(in crate::victim) fn flip(&mut self, key: &[u8], hash: u64, bit: usize) -> bool {
        let Some(entry) = self.find(key, hash).filter(|entry| !entry.is_pinned()) else {
            return false;
        };
        let link = entry.link;
        // SAFETY: the entry has no pins, and since access to the table is exclusive, no borrowed reference.
        unsafe { link.flip(bit) };
        true
    }
}
