//! A leaf's layout: its header, and where its sections start.
//!
//! ```text
//! header
//! large values: address each, then slot u16 each
//! keys:    bit-packed numbers, see `key_array`  (packed form)
//! frames:  offset u16 each and one more        where a frame's block starts in the data
//!          first  u16 each and one more        (absent when every frame is one record) the frame's first slot
//!          raw    u16 each                     (fingerprint form, not one record a frame) the frame's raw length
//!          end    u16 each                     (fingerprint form, ordered) where the frame's separator ends
//! keys:    one byte a record                   (fingerprint form)
//! lengths: bit-packed length of each value
//! prefix   common to all keys
//! separators                                   (fingerprint form, ordered) each frame's first key behind the prefix
//! data:    the frames' blocks
//! marks:   one byte a record, at the node's end (where a cache uses the tree)
//! ```
//! A leaf has one of two forms. *Packed*: all keys have one length and differ only in their last eight bytes; they are kept as
//! numbers and found exactly, without decoding. *Fingerprints*: any keys; a fingerprint a record leads to its frame, which
//! holds the keys as well as the values. A packed frame's raw bytes are its values; a fingerprint frame's are the keys (all but
//! the first where frames are ordered, since that one is the separator) and then the values.
//!
//! A block as long as its raw bytes is stored raw. A slot is a record's place in the leaf; in ordered leaves slots follow key
//! order, in hashed leaves they follow it within each frame.

use std::sync::atomic::{AtomicU32 as Counter, AtomicU64 as Sum};

use crate::tree::node::key_array::Widths;
use crate::tree::node::packed;
use leafpress_base::mem::node::NodeHeader;
use leafpress_base::sync::{AtomicBool, AtomicPtr, AtomicU64, Latch};
use leafpress_codec::Dictionary;

/// Keys are fingerprints, not packed numbers.
pub(crate) const FINGERPRINTS: u8 = 1;
/// Every frame is one record.
pub(crate) const SINGLE: u8 = 2;
/// Frames are sub-pages by key hash.
pub(crate) const HASHED: u8 = 4;
/// The leaf is cold.
const COLD: u8 = 8;
/// There is a mark for each record.
pub(crate) const MARKED: u8 = 16;

/// In a record's mark: it was read or replaced since the marks were last looked at. The other bits are whoever's who looks at them.
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
    /// What says so among a leaf's flags.
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

/// Most records of a leaf.
pub(crate) const MAX_RECORDS: usize = 4096;

/// What a write stores to, and what every read needs before the leaf's keys, stands together behind the node's header: blocks of the heap
/// begin 16 bytes before a cache line, so that it is that line. Writers' cores hand it to each other, and a read of a leaf in memory
/// waits for no other before it knows where its key's block is.
#[repr(C)]
pub(crate) struct Header {
    pub node: NodeHeader,
    /// The landing buffer, null until the first write.
    pub landing: AtomicPtr<u8>,
    /// A bit for each key in the landing buffer, by its hash: most reads need not look there. A bit is set before its entry is
    /// published. Stored under the lock.
    pub landed: AtomicU64,
    /// Bytes of the keys and values a reader can see, landing buffer and large values included. Stored under the lock.
    pub live_user_bytes: Sum,
    pub dictionary: *const Dictionary,
    /// Records a reader can see. Stored under the lock.
    pub live: Counter,
    pub len_base: u32,
    pub data_at: u32,
    pub key_len: u16,
    pub shape: Shape,
    pub lock: Latch,
    /// Set under the lock when another leaf has taken this one's place.
    pub obsolete: AtomicBool,
    /// In the background's queue.
    pub queued: AtomicBool,
    /// With the keys, mostly, in the next line.
    pub key_base: u64,
    /// User bytes in the frames: keys, and values but for large ones.
    pub inline_bytes: u32,
    /// Sampled reads, halved as they grow old, and [`WRITTEN`], where the tree has leaves of several temperatures. Threads may overwrite
    /// each other's.
    pub reads: Counter,
}

/// Among a leaf's reads: it was compacted for writes since they were last halved.
pub(crate) const WRITTEN: u32 = 1 << 31;

/// Where the line begins that every read needs.
pub(crate) const READ_AT: usize = size_of::<NodeHeader>();

// A model checker's atomics are larger.
#[cfg(not(shuttle))]
const _: () = assert!(std::mem::offset_of!(Header, key_base) <= READ_AT + leafpress_base::mem::prefetch::LINE_BYTES);

/// The counts that a leaf's sections follow from.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Shape {
    /// Records.
    pub count: u16,
    pub frames: u16,
    pub prefix_len: u16,
    /// Large values.
    pub large: u16,
    pub keys: Widths,
    pub len_bits: u8,
    pub flags: u8,
}

pub(crate) const HEADER_BYTES: usize = size_of::<Header>().next_multiple_of(8);

/// Where a leaf's sections start, from its counts.
#[derive(Clone, Copy)]
pub(crate) struct Sections {
    pub large_slots: usize,
    pub offsets: usize,
    pub firsts: usize,
    pub raws: usize,
    pub ends: usize,
    pub keys: usize,
    pub lens: usize,
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
        // Numbers come first, where a read can tell before it has the leaf.
        let numbers = if prints { 0 } else { shape.keys.bytes(count) };
        let offsets = (behind_large + numbers).next_multiple_of(2);
        let firsts = offsets + (frames + 1) * 2;
        let raws = if single { firsts } else { firsts + (frames + 1) * 2 };
        let ends = if prints && !single { raws + frames * 2 } else { raws };
        let behind_frames = if prints && flags & HASHED == 0 {
            ends + frames * 2
        } else {
            ends
        };
        let (keys, lens) = if prints {
            (behind_frames, behind_frames + count)
        } else {
            (behind_large, behind_frames)
        };
        let prefix = lens + packed::bytes_for(count, shape.len_bits);
        let separators = prefix + shape.prefix_len as usize;
        Self {
            large_slots,
            offsets,
            firsts,
            raws,
            ends,
            keys,
            lens,
            prefix,
            separators,
        }
    }
}
