//! Dictionary-primed decode buffers for callers without their own: one for each of the most recently used dictionaries.
//!
//! Contiguous history before the output is the fast case of every LZ77 decoder, by a factor of two to three if a block
//! of 16 KiB depends on a dictionary of 64 KiB. That makes it worthwhile to decode here and copy the raw bytes.

use super::{CodecError, Dictionary, Scratch};
use leafpress_base::sync::per_core::PerCore;

/// Dictionaries that are primed in each set of buffers; a store in transition from an old dictionary to a new one reads
/// with both.
const SLOTS: usize = 4;

/// A dictionary is copied before a buffer's output at once if a block has at least this fraction (1/16) of its bytes;
/// otherwise when it is requested twice in a row.
const COPIED_FOR_ONE_IN: usize = 16;

/// Longer blocks are decoded directly into the caller's memory: a buffer never shrinks.
const MAX_RAW_BYTES: usize = 128 << 10;

/// A set of buffers.
#[derive(Default)]
pub(super) struct PrimedBuffers {
    slots: [Slot; SLOTS],
    /// For blocks without a dictionary before the output.
    plain: Scratch,
    /// Use counter, for the LRU replacement of slots.
    now: u64,
    /// The dictionary that was requested last and has no slot; 0 for none.
    wanted: u64,
}

#[derive(Default)]
struct Slot {
    /// The dictionary's name; 0 for none.
    id: u64,
    used: u64,
    scratch: Scratch,
}

static PRIMED: PerCore<PrimedBuffers> = PerCore::new();

/// Runs `work` with a set of buffers.
#[inline]
pub(super) fn with_primed_buffers<R>(
    work: impl FnOnce(&mut PrimedBuffers) -> Result<R, CodecError>,
) -> Result<R, CodecError> {
    PRIMED.with(work)
}

impl PrimedBuffers {
    /// Returns the buffer for blocks without a dictionary.
    pub(super) fn plain(&mut self) -> &mut Scratch {
        &mut self.plain
    }

    /// Returns the buffer that is primed with the dictionary that `id` names, or will be once [`Scratch::prime`] is
    /// called; `None` if copying the dictionary does not pay. `once` states whether it can pay for one block alone.
    #[inline]
    pub(super) fn primed_with(
        &mut self,
        id: u64,
        dictionary: &Dictionary,
        raw_len: usize,
        once: bool,
    ) -> Option<&mut Scratch> {
        if raw_len > MAX_RAW_BYTES {
            return None;
        }
        self.now += 1;
        if let Some(at) = self.slots.iter().position(|slot| slot.id == id) {
            let slot = &mut self.slots[at];
            slot.used = self.now;
            return Some(&mut slot.scratch);
        }
        let pays = once && raw_len.saturating_mul(COPIED_FOR_ONE_IN) >= dictionary.bytes().len();
        if !pays && self.wanted != id {
            self.wanted = id;
            return None;
        }
        self.wanted = 0;
        let slot = self.slots.iter_mut().min_by_key(|slot| slot.used)?;
        slot.scratch.unprime();
        (slot.id, slot.used) = (id, self.now);
        Some(&mut slot.scratch)
    }
}
