//! Dictionary-primed decode buffers for callers that bring none: one for each of the dictionaries that were seen last.
//!
//! History directly before the output is the fast case of every LZ77 decoder, by a factor of two to three where a block of
//! 16 KiB leans on a dictionary of 64 KiB. That is worth decoding here and copying the raw bytes out.

use super::{CodecError, Dictionary, Scratch};
use leafpress_base::sync::per_core::PerCore;

/// Dictionaries that stand ready in each set of buffers; a store that is taken from an old dictionary to a new one reads by both.
const SLOTS: usize = 4;

/// A dictionary is copied before a buffer's output at once where a block has at least this fraction of its bytes; else
/// when it is asked for twice with no other between.
const COPIED_FOR_ONE_IN: usize = 16;

/// Longer blocks are decoded where their caller wants them: a buffer never shrinks.
const MAX_RAW_BYTES: usize = 128 << 10;

/// A set of buffers.
#[derive(Default)]
pub(super) struct PrimedBuffers {
    slots: [Slot; SLOTS],
    /// For blocks without a dictionary before the output.
    plain: Scratch,
    /// Counts uses.
    now: u64,
    /// The dictionary that was asked for last and has no slot; 0 is none.
    wanted: u64,
}

#[derive(Default)]
struct Slot {
    /// The dictionary's name; 0 is none.
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
    /// The buffer for blocks without a dictionary.
    pub(super) fn plain(&mut self) -> &mut Scratch {
        &mut self.plain
    }

    /// The buffer in which the dictionary that `id` names stands, or will once [`Scratch::prime`] is asked; nothing where
    /// copying it there does not pay. `once` says whether it can pay for one block alone.
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
