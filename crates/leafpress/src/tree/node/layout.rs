//! A leaf's layout: its header, and the start of each section.
//!
//! ```text
//! header
//! large values: address each, then slot u16 each
//! keys:    bit-packed numbers, see `key_array`  (packed form)
//! frames:  offset u16 each and one more        where a frame's block starts in the data
//!          first  u16 each and one more        (absent when every frame is one record) the frame's first slot
//!          raw    u16 each                     (fingerprint form, not one record a frame) the frame's raw length
//!          end    u16 each                     (fingerprint form, ordered, not keyed) where the frame's separator ends
//! keys:    one byte a record                   (fingerprint form)
//! lengths: bit-packed length of each value
//! suffixes: bit-packed length of each key behind the prefix  (keyed)
//! prefix   common to all keys
//! separators                                   (fingerprint form, ordered, not keyed) each frame's first key behind
//!                                              the prefix
//! data:    the frames' blocks
//! marks:   one byte a record, at the node's end (where a cache uses the tree)
//! ```
//! A leaf has one of two forms. *Packed*: all keys have one length and differ only in their last eight bytes; they are
//! stored as numbers and found exactly, without decoding. *Fingerprints*: any keys; a fingerprint per record leads to
//! its frame, which holds the keys as well as the values. A packed frame's raw bytes are its values; a fingerprint
//! frame's are the keys (all but the first where frames are ordered, since that one is the separator) and then the
//! values.
//!
//! A leaf of fingerprints whose frames are one record each may be *keyed*: a record's block then holds its key behind
//! the prefix, and its value. Nothing of a key but the fingerprint is stored uncompressed, and every comparison of keys
//! decodes; that pays for a codec that decodes a record in some tens of nanoseconds. Blocks are copied from leaf to
//! leaf as long as the prefix stays the same, which it does when a leaf splits.
//!
//! A block with the length of its raw bytes is stored raw. A slot is a record's index in the leaf; in ordered leaves
//! slots follow key order, in hashed leaves they follow it within each frame.

use std::sync::atomic::{AtomicU32 as Counter, AtomicU64 as Sum};

use crate::tree::node::key_array::Widths;
use crate::tree::node::packed;
use leafpress_base::mem::node::NodeHeader;
use leafpress_base::sync::{AtomicBool, AtomicPtr, AtomicU64, Latch};
use leafpress_codec::Dictionary;

/// Flag: keys are fingerprints, not packed numbers.
pub(crate) const FINGERPRINTS: u8 = 1;
/// Flag: every frame is one record.
pub(crate) const SINGLE: u8 = 2;
/// Flag: frames are sub-pages by key hash.
pub(crate) const HASHED: u8 = 4;
/// Flag: the leaf is cold.
const COLD: u8 = 8;
/// Flag: there is a mark for each record.
pub(crate) const MARKED: u8 = 16;
/// Flag: a record's block holds its key behind the prefix before its value. Only in leaves of fingerprints whose frames
/// are one record each.
pub(crate) const KEYED: u8 = 32;

/// Bit of a record's mark: it was read or replaced since the marks were last examined. The other bits belong to the
/// eviction policy.
pub(crate) const READ: u8 = 1;

/// How a leaf's frames are compressed. In a tree of one codec all leaves are warm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Temperature {
    /// With the tree's codec and its dictionary.
    Warm,
    /// In wide frames, with a stronger codec and a dictionary of its own.
    Cold,
}

impl Temperature {
    /// Returns the leaf flag of the temperature.
    pub(crate) fn flag(self) -> u8 {
        match self {
            Self::Warm => 0,
            Self::Cold => COLD,
        }
    }

    #[inline(always)]
    pub(crate) fn of(flags: u8) -> Self {
        if flags & COLD != 0 { Self::Cold } else { Self::Warm }
    }
}

/// Maximum number of records of a leaf.
pub(crate) const MAX_RECORDS: usize = 4096;

/// The header of a leaf. The fields that a write stores, and those that every read needs before the leaf's keys, are
/// stored together after the node's header: blocks of the heap begin 16 bytes before a cache line, so they are that
/// line. It moves between writers' cores, and a read of a leaf in memory needs no other line to know where its key's
/// block is.
#[repr(C)]
pub(crate) struct LeafHeader {
    pub node: NodeHeader,
    /// The landing buffer, null until the first write.
    pub landing: AtomicPtr<u8>,
    /// A filter with a bit for each key in the landing buffer, by its hash: most reads need not access the buffer. A
    /// bit is set before its entry is published. Stored under the lock.
    pub landed: AtomicU64,
    /// Bytes of the keys and values visible to readers, landing buffer and large values included. Stored under the
    /// lock.
    pub live_user_bytes: Sum,
    pub dictionary: *const Dictionary,
    /// Number of records visible to readers. Stored under the lock.
    pub live: Counter,
    pub len_base: u32,
    pub data_at: u32,
    /// Length of every key of a packed leaf; in a keyed leaf the least length of a key behind the prefix.
    pub key_len: u16,
    pub shape: Shape,
    pub lock: Latch,
    /// Set under the lock when another leaf has replaced this one.
    pub obsolete: AtomicBool,
    /// Whether the leaf is in the queue for background compaction.
    pub queued: AtomicBool,
    /// In most cases in the next line, with the keys.
    pub key_base: u64,
    /// User bytes in the frames: keys, and values except large ones.
    pub inline_bytes: u32,
    /// Sampled reads, halved periodically, and [`WRITTEN`], where the tree has leaves of several temperatures. Updates
    /// are not atomic read-modify-writes and may be lost.
    pub reads: Counter,
}

/// Flag in the read counter: the leaf was compacted for writes since the counter was last halved.
pub(crate) const WRITTEN: u32 = 1 << 31;

/// Start of the line that every read needs.
pub(crate) const READ_AT: usize = size_of::<NodeHeader>();

// A model checker's atomics are larger.
#[cfg(not(shuttle))]
const _: () =
    assert!(std::mem::offset_of!(LeafHeader, key_base) <= READ_AT + leafpress_base::mem::prefetch::LINE_BYTES);

/// The counts that determine the positions of a leaf's sections.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Shape {
    /// Number of records.
    pub count: u16,
    pub frames: u16,
    pub prefix_len: u16,
    /// Number of large values.
    pub large: u16,
    /// Widths of a packed leaf's keys; in a keyed leaf `key_bits` is the width of the keys' lengths.
    pub keys: Widths,
    pub len_bits: u8,
    pub flags: u8,
}

pub(crate) const HEADER_BYTES: usize = size_of::<LeafHeader>().next_multiple_of(8);

/// The positions of a leaf's sections, computed from its counts.
#[derive(Clone, Copy)]
pub(crate) struct Sections {
    pub large_slots: usize,
    pub offsets: usize,
    pub firsts: usize,
    pub raws: usize,
    pub ends: usize,
    pub keys: usize,
    pub lens: usize,
    /// Lengths of the keys behind the prefix, in a keyed leaf.
    pub suffix_lens: usize,
    pub prefix: usize,
    pub separators: usize,
}

impl Sections {
    #[inline(always)]
    pub(crate) fn of(shape: &Shape) -> Self {
        let (count, frames, flags) = (shape.count as usize, shape.frames as usize, shape.flags);
        let prints = flags & FINGERPRINTS != 0;
        let single = flags & SINGLE != 0;
        let large_slots = HEADER_BYTES + shape.large as usize * 8;
        let behind_large = large_slots + shape.large as usize * 2;
        // Numbers come first, at an offset that a read can compute before it has the leaf.
        let numbers = if prints { 0 } else { shape.keys.bytes(count) };
        let offsets = (behind_large + numbers).next_multiple_of(2);
        let firsts = offsets + (frames + 1) * 2;
        let raws = if single { firsts } else { firsts + (frames + 1) * 2 };
        let ends = if prints && !single { raws + frames * 2 } else { raws };
        let keyed = flags & KEYED != 0;
        let behind_frames = if prints && !keyed && flags & HASHED == 0 {
            ends + frames * 2
        } else {
            ends
        };
        let (keys, lens) = if prints {
            (behind_frames, behind_frames + count)
        } else {
            (behind_large, behind_frames)
        };
        let suffix_lens = lens + packed::bytes_for(count, shape.len_bits);
        let prefix = if keyed {
            suffix_lens + packed::bytes_for(count, shape.keys.key_bits)
        } else {
            suffix_lens
        };
        let separators = prefix + shape.prefix_len as usize;
        Self {
            large_slots,
            offsets,
            firsts,
            raws,
            ends,
            keys,
            lens,
            suffix_lens,
            prefix,
            separators,
        }
    }
}
