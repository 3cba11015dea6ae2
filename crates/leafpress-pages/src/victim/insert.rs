//! Insertion: admission, choice of the form, raw or compressed, and deferred compression.

use std::sync::atomic::Ordering::Relaxed;

use rapidhash::v3::rapidhash_v3;

use super::buffers::Buffers;
use super::dictionaries::{FAMILIES, Version};
use super::entry::Parts;
use super::inner::VictimInner;
use super::locked_shard::{LockedShard, Pinned};
use super::read::nanoseconds;
use super::shard::{Form, Placed};
use super::stats::Count;
use super::{Insertion, MAX_KEY_BYTES, NewBlock};
use leafpress_codec::{Codec, MAX_STORED_65536THS, saves_enough};

/// Blocks of a family that was incompressible recently are tried once in this many.
const TRY_ONE_IN: u32 = 16;
/// Maximum number of surplus raw blocks that an insertion compresses: so that a smaller share is reached gradually, and
/// no insertion takes long.
const MAX_COMPRESSED: usize = 3;
/// If nothing is compressed, one block in this many is compressed as a probe, to measure the cost; several follow each
/// other, of which the first only warms the caches for the codec's tables and code, the usual state if every block is
/// compressed.
const PROBE_EVERY: u32 = 64;
const PROBES_IN_A_ROW: u32 = 4;

/// The measurement of a compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measured {
    Yes,
    WarmUp,
}

/// The form in which a block is stored.
enum Stored {
    Raw,
    /// Kept raw for now.
    RawForNow,
    Compressed,
}

/// An older block of a key, which is removed when this is dropped unless it was removed before.
struct Outdated<'c> {
    shard: &'c LockedShard,
    hash: u64,
    key: &'c [u8],
    is_here: bool,
}

impl Drop for Outdated<'_> {
    fn drop(&mut self) {
        if self.is_here {
            self.shard.0.lock().drop_outdated(self.key, self.hash);
        }
    }
}

impl VictimInner {
    /// Inserts a block whose bytes `fill` writes, if it is admitted. If it is not inserted, for any reason, an older
    /// block of the key is removed nevertheless, because it is outdated, unless it can only be the same block
    /// ([`NewBlock::unchanging`]).
    pub(super) fn insert<E>(
        &self,
        key: &[u8],
        block: &NewBlock,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Insertion, E> {
        let hash = rapidhash_v3(key);
        let shard = self.shard(hash);
        // Also if `fill` panics.
        let mut outdated = Outdated {
            shard,
            hash,
            key,
            is_here: !block.unchanging,
        };
        let result = self.insert_in(shard, hash, key, block, fill);
        outdated.is_here &= !matches!(result, Ok(Insertion::Inserted));
        result
    }

    fn insert_in<E>(
        &self,
        shard: &LockedShard,
        hash: u64,
        key: &[u8],
        block: &NewBlock,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Insertion, E> {
        if key.len() > MAX_KEY_BYTES || block.raw_bytes == 0 || u32::try_from(block.raw_bytes).is_err() {
            return Ok(Insertion::NoRoom);
        }
        self.miss_ends(block.raw_bytes as u32);
        let family = usize::from(block.family).min(FAMILIES - 1);
        let compress = block.compress && self.codec != Codec::None;
        let form = match self.admit(shard, key, hash, block, compress.then_some(family)) {
            Ok(form) => form,
            Err(done) => return Ok(done),
        };
        let mut buffers = self.buffers.borrow();
        let Buffers { raw, pressed: out, .. } = &mut *buffers;
        if !self.fill(raw, block.raw_bytes, fill)? {
            return Ok(Insertion::NoRoom);
        }
        let version = if compress {
            self.dictionaries.current(family)
        } else {
            None
        };
        let stored = self.store_as(form, hash, raw, family, version.as_deref(), out);
        let pressed = matches!(stored, Stored::Compressed);
        let parts = Parts {
            key,
            hash,
            stored: if pressed { out } else { raw },
            raw_bytes: block.raw_bytes as u32,
            pressed,
            dictionary: if pressed { version } else { None },
            family: family as u8,
            tag: block.tag,
        };
        let (placed, has_surplus) = {
            let mut shard = shard.0.lock();
            (
                shard.insert(parts, matches!(stored, Stored::RawForNow)),
                shard.has_surplus(),
            )
        };
        if has_surplus {
            self.compress_surplus(shard, &mut buffers);
        }
        if compress && self.dictionaries.inserted(family, block.raw_bytes) {
            self.work.training(family);
        }
        Ok(match placed {
            Placed::Inserted => Insertion::Inserted,
            Placed::NoRoom => Insertion::NoRoom,
        })
    }

    /// Writes a block's bytes to `raw`; returns true if there was memory for them.
    fn fill<E>(
        &self,
        raw: &mut Vec<u8>,
        raw_bytes: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<bool, E> {
        raw.clear();
        if raw.try_reserve(raw_bytes).is_err() {
            self.counts.add_shared(Count::FailedInsertions, 1);
            return Ok(false);
        }
        raw.resize(raw_bytes, 0);
        fill(raw).inspect_err(|_| {
            self.counts.add_shared(Count::FailedInsertions, 1);
        })?;
        Ok(true)
    }

    /// Returns the form in which a block is admitted, or the result if it is not. `family` is that of a block that may
    /// be compressed.
    fn admit(
        &self,
        shard: &LockedShard,
        key: &[u8],
        hash: u64,
        block: &NewBlock,
        family: Option<usize>,
    ) -> Result<Form, Insertion> {
        let mut shard = shard.0.lock();
        if family.is_some() {
            let frequency = shard.frequency(hash);
            self.note(hash, |adaptive| {
                adaptive.offered(hash, frequency, block.raw_bytes as u32, block.force);
            });
        }
        if block.unchanging && shard.has_returned(key, hash, block.raw_bytes as u32, block.tag) {
            return Err(Insertion::Inserted);
        }
        if shard.is_closed() {
            return Err(Insertion::NoRoom);
        }
        let form = match family {
            Some(_) => shard.form(key.len(), block.raw_bytes),
            None => Form::Never,
        };
        let expected = match (family, form) {
            (Some(family), Form::Compressed | Form::RawForNow) => self.expected(family, block.raw_bytes),
            _ => block.raw_bytes,
        };
        if !block.force && self.admission.load(Relaxed) && !shard.admits(hash, key.len(), expected) {
            shard.counts.add(Count::Rejected, 1);
            return Err(Insertion::Rejected);
        }
        Ok(form)
    }

    /// Returns the estimated compressed length of a block of a family, in bytes.
    fn expected(&self, family: usize, raw_bytes: usize) -> usize {
        (raw_bytes * self.shrinkage[family].load(Relaxed) as usize) >> 16
    }

    /// Compresses a block, if it is to be compressed.
    fn store_as(
        &self,
        form: Form,
        hash: u64,
        raw: &[u8],
        family: usize,
        version: Option<&Version>,
        out: &mut Vec<u8>,
    ) -> Stored {
        let measured = match form {
            Form::Never => return Stored::Raw,
            Form::RawForNow => return Stored::RawForNow,
            Form::Compressed => Measured::Yes,
            Form::Raw => match self.probes.fetch_add(1, Relaxed) % (PROBE_EVERY * PROBES_IN_A_ROW) {
                0 => Measured::WarmUp,
                1..PROBES_IN_A_ROW => Measured::Yes,
                _ => return Stored::Raw,
            },
        };
        if self.press(raw, hash, family, version, measured, out) {
            Stored::Compressed
        } else {
            Stored::Raw
        }
    }

    /// Compresses a block; returns true if that saves enough.
    fn press(
        &self,
        raw: &[u8],
        hash: u64,
        family: usize,
        version: Option<&Version>,
        measured: Measured,
        out: &mut Vec<u8>,
    ) -> bool {
        let shrinkage = &self.shrinkage[family];
        let lately = shrinkage.load(Relaxed);
        let is_hopeless = lately > MAX_STORED_65536THS;
        if is_hopeless && !self.attempts.fetch_add(1, Relaxed).is_multiple_of(TRY_ONE_IN) {
            return false;
        }
        out.clear();
        let start = std::time::Instant::now();
        let pressed = self
            .engine
            .compress(raw, version.map(|version| &version.dictionary), out);
        let ns = nanoseconds(start);
        let Ok(len) = pressed else { return false };
        let share = ((len.min(raw.len()) << 16) / raw.len()) as u32;
        // A lost update is harmless.
        shrinkage.store(lately - lately / 32 + share / 32, Relaxed);
        let stored = saves_enough(len, raw.len()).then_some(len as u32);
        if measured == Measured::Yes {
            self.costs.compress(raw.len() as u32, ns, stored);
        }
        self.note(hash, |adaptive| adaptive.sized(hash, stored));
        stored.is_some()
    }

    /// Compresses surplus raw blocks of a shard.
    fn compress_surplus(&self, shard: &LockedShard, buffers: &mut Buffers) {
        let admission = self.admission.load(Relaxed);
        for _ in 0..MAX_COMPRESSED {
            let expected = |family: u8, raw_bytes| self.expected(usize::from(family), raw_bytes);
            let Some(pin) = shard.0.lock().surplus(admission, expected) else {
                return;
            };
            let pinned = Pinned::new(shard, pin);
            let entry = pinned.entry();
            if !entry.is_sound() {
                self.counts.add_shared(Count::CorruptUnread, 1);
                shard.0.lock().remove(entry.at());
                continue;
            }
            let family = usize::from(entry.family);
            let version = self.dictionaries.current(family);
            let out = &mut buffers.pressed;
            if !self.press(
                entry.stored(),
                entry.hash,
                family,
                version.as_deref(),
                Measured::Yes,
                out,
            ) {
                // It stays raw, and does not count as compressible any more.
                continue;
            }
            let parts = Parts {
                key: entry.key(),
                hash: entry.hash,
                stored: out,
                raw_bytes: entry.raw_bytes,
                pressed: true,
                dictionary: version,
                family: entry.family,
                tag: entry.tag,
            };
            let replaced = shard.0.lock().replace(entry.at(), parts, false);
            self.counts.add_shared(Count::CompressedLater, u64::from(replaced));
        }
    }

    /// Makes a compressed block raw again that was just decoded. The caller has a pin.
    pub(super) fn restore(&self, pinned: &Pinned<'_>, raw: &[u8]) {
        let entry = pinned.entry();
        let parts = Parts {
            key: entry.key(),
            hash: entry.hash,
            stored: raw,
            raw_bytes: entry.raw_bytes,
            pressed: false,
            dictionary: None,
            family: entry.family,
            tag: entry.tag,
        };
        let mut shard = pinned.home().0.lock();
        let replaced = shard.replace(entry.at(), parts, true);
        shard.counts.add(Count::Restored, u64::from(replaced));
    }
}
