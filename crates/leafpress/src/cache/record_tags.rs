//! The tags of one record: their identities, and the record's stamp (see `tags`).

use crate::tree::hash::hash;

/// The maximum number of tags of a record.
pub const MAX_TAGS: usize = 8;
/// Length of a tag's identity, and of a stamp, in a record.
pub(super) const ID_BYTES: usize = 6;
pub(super) const ID_BITS: u32 = 8 * ID_BYTES as u32;

/// The tags of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tags {
    ids: [u64; MAX_TAGS],
    /// More than [`MAX_TAGS`] if there were too many.
    count: usize,
    stamp: u64,
}

impl Tags {
    pub(super) fn add(&mut self, tag: &[u8]) {
        let id = id_of(tag);
        if self.ids().contains(&id) {
            return;
        }
        if let Some(slot) = self.ids.get_mut(self.count) {
            *slot = id;
        }
        self.count = (self.count + 1).min(MAX_TAGS + 1);
    }

    pub(super) fn ids(&self) -> &[u64] {
        &self.ids[..self.count.min(MAX_TAGS)]
    }

    pub(super) fn has_too_many(&self) -> bool {
        self.count > MAX_TAGS
    }

    pub(super) fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Returns the tags with a stamp; [`None`] if there are none.
    pub(super) fn stamped(mut self, stamp: u64) -> Option<Self> {
        self.stamp = stamp;
        (self.count > 0).then_some(self)
    }

    /// Returns the tags with these identities, of which there are at most [`MAX_TAGS`], and a stamp.
    pub(super) fn of_ids(ids: impl Iterator<Item = u64>, stamp: u64) -> Option<Self> {
        let mut tags = Self::default();
        for (slot, id) in tags.ids.iter_mut().zip(ids) {
            *slot = id;
            tags.count += 1;
        }
        tags.stamped(stamp)
    }
}

/// Returns the identity of a tag.
pub(super) fn id_of(tag: &[u8]) -> u64 {
    hash(tag) >> (u64::BITS - ID_BITS)
}
