//! Writes into a leaf's landing buffer, which is allocated or thinned for them.

use std::sync::atomic::Ordering;

use crate::tree::error::TreeError;
use crate::tree::hash::hash;
use crate::tree::inner::TreeInner;
use crate::tree::node::landing::{Change, LandedWrite, Landing, MAX_LANDING_BYTES, newest_by_key};
use crate::tree::node::leaf::Leaf;
use crate::tree::thread_state::Count;
use crate::tree::write::WritePath;
use leafpress_base::mem::room::room_for;
use leafpress_base::reclaim::node_heap::NodeHeap;

/// Number of entries that a landing buffer has room for, where its leaf is large enough.
const LANDING_ENTRIES: usize = 32;
/// A landing buffer has at most this fraction of its leaf and its large values, but at least the following bytes.
const LEAF_FOR_LANDING: usize = 8;
const MIN_LANDING_BYTES: usize = 512;

impl TreeInner {
    pub(in crate::tree) fn set_min_landing_bytes(&self, bytes: usize) {
        let bytes = bytes.min(MAX_LANDING_BYTES);
        self.least_landing_bytes.store(bytes, Ordering::Relaxed);
    }
}

impl<'w> WritePath<'w> {
    /// Appends the entry to the landing buffer, which is allocated if there is none; returns false when it has no room.
    pub(super) fn land(
        &self,
        leaf: Leaf<'w>,
        landing: Option<Landing<'w>>,
        entry: &LandedWrite<'_>,
        hash: u64,
    ) -> Result<bool, TreeError> {
        let bytes = Landing::entry_bytes(entry.key, &entry.change);
        if let Some(landing) = landing {
            leaf.will_land(hash);
            // SAFETY: the caller holds the leaf's lock.
            let landed = unsafe { landing.append(entry, hash) };
            if landed {
                self.context.add(Count::CopiedBytes, bytes as u64);
            }
            return Ok(landed);
        }
        let room = self.landing_room(leaf, bytes);
        if bytes > room {
            return Ok(false);
        }
        // SAFETY: the memory outlives every node.
        let new = unsafe { Landing::allocate(room, bytes, &self.core.memory)? };
        // SAFETY: the buffer is not published before it is stored, so no lock is needed.
        if !unsafe { new.landing().append(entry, hash) } {
            return Ok(false);
        }
        leaf.will_land(hash);
        leaf.store_landing(new);
        self.context.add(Count::CopiedBytes, bytes as u64);
        self.core.background.landed_anew();
        Ok(true)
    }

    /// Returns the size of a landing buffer for entries of `entry_bytes`: enough of them that a compaction pays off,
    /// but small compared to the leaf's contents, since every leaf has a buffer while writes continue. It is a power of
    /// two, so that freed buffers fit new ones.
    fn landing_room(&self, leaf: Leaf<'_>, entry_bytes: usize) -> usize {
        let chosen = self.core.landing_bytes.unwrap_or_else(|| {
            let header = leaf.header();
            let user = header.live_user_bytes.load(Ordering::Relaxed) as usize;
            let outside = user.saturating_sub(header.inline_bytes as usize);
            let most = (header.node.requested_bytes() + outside) / LEAF_FOR_LANDING;
            let room = (LANDING_ENTRIES * entry_bytes).min(most);
            (1 << room.max(1).ilog2()).clamp(MIN_LANDING_BYTES, MAX_LANDING_BYTES)
        });
        chosen.max(self.core.least_landing_bytes.load(Ordering::Relaxed))
    }

    /// Rebuilds a landing buffer that is full of superseded entries, or smaller than the current minimum, and appends
    /// the entry; returns false when half of it would not be free then.
    pub(super) fn thin_landing(&self, leaf: Leaf<'w>, entry: LandedWrite<'_>) -> Result<bool, TreeError> {
        let Some(old) = leaf.landing_locked() else {
            return Ok(false);
        };
        // Each bit set stands for at least one key: with this many, at least half of the entries are current.
        let may_grow = self.core.least_landing_bytes.load(Ordering::Relaxed) != 0;
        if !may_grow && leaf.landed_bits() > old.entries() / 2 {
            return Ok(false);
        }
        let mut entries = old.read_all()?;
        entries.push(entry);
        let mut dead = room_for(entries.len())?;
        newest_by_key(&mut entries, |entry| dead.push(entry));
        let bytes: usize = entries
            .iter()
            .map(|entry| Landing::entry_bytes(entry.key, &entry.change))
            .sum();
        let room = self.landing_room(leaf, bytes / entries.len());
        // A buffer that grows keeps its entries.
        if bytes > room / 2 || dead.is_empty() && !may_grow {
            return Ok(false);
        }
        // SAFETY: the memory outlives every node.
        let new = unsafe { Landing::allocate(room, bytes / entries.len(), &self.core.memory)? };
        // SAFETY: the new buffer is not published before it is stored, so no lock is needed.
        let appended = |entry: &LandedWrite<'_>| unsafe { new.landing().append(entry, hash(entry.key)) };
        if !entries.iter().all(appended) {
            return Ok(false);
        }
        leaf.will_land(hash(entry.key));
        leaf.store_landing(new);
        self.context.add(Count::CopiedBytes, bytes as u64);
        // SAFETY: the leaf no longer points to the old buffer, and nothing points to the large values that only the old
        // buffer pointed to.
        unsafe {
            NodeHeap::retire(old.node(), self.guard);
            for entry in dead {
                if let Change::PutLarge(large) = entry.change {
                    NodeHeap::retire(large.node(), self.guard);
                }
            }
        }
        Ok(true)
    }
}
