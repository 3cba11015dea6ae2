//! The table of stale epochs: for each slot of key hashes, the epoch up to which records on disk are stale.
//!
//! The table is an array of words in a mapped file, so that a mark is one store and outlasts the process. Keys whose
//! hashes share a slot become stale together: that loses records, and never returns a stale one.
//!
//! ```text
//! header   committed (word)   slots (words)
//! word: check u8 (low)   value u24
//! ```
//!
//! Each word has a check of its own that includes its index, so that the change of any byte is detected.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use super::side_file_header::{HEADER_BYTES, SideFileHeader};
use crate::cache::disk::batch::MAX_EPOCH;
#[cfg(feature = "fuzz")]
use crate::cache::disk::page;
use crate::cache::disk::superblock::Kind;
use leafpress_base::io::at_path::at_path;
use leafpress_base::io::open;
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::room_for;
use leafpress_base::mem::shared_mapping::SharedMapping;

const MAGIC: &[u8; 16] = b"leafpress epochs";
/// Words before the slots: the header, and the number of committed log entries.
const FIRST_SLOT: usize = HEADER_BYTES / WORD_BYTES + 1;
const COMMITTED: usize = FIRST_SLOT - 1;
const WORD_BYTES: usize = size_of::<u32>();
/// The table takes this fraction (1/64) of the cache's memory...
const TABLE_DIVISOR: u64 = 64;
/// ...within these bounds on the number of slots.
const MIN_SLOTS: u64 = 1 << 15;
const MAX_SLOTS: u64 = 1 << 24;
const READ_WORDS: usize = 16 << 10;

/// Returns the bits of an entry's number that the table stores.
pub(super) fn low_bits(number: u64) -> u32 {
    (number & u64::from(MAX_EPOCH)) as u32
}

/// Returns the check of a word: no two values that differ in one byte have the same (CRC-8).
fn check(index: usize, value: u32) -> u8 {
    #[cfg(feature = "fuzz")]
    if page::IGNORES_CHECKSUMS.load(Ordering::Relaxed) {
        return 0;
    }
    let crc = value.to_le_bytes()[..3].iter().fold(0xFF_u8, |crc, byte| {
        (0..8).fold(
            crc ^ byte,
            |crc, _| if crc & 0x80 != 0 { crc << 1 ^ 0x07 } else { crc << 1 },
        )
    });
    let place = (index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56;
    crc ^ place as u8
}

fn encode(index: usize, value: u32) -> u32 {
    value << 8 | u32::from(check(index, value))
}

fn decode(index: usize, word: u32) -> Option<u32> {
    let value = word >> 8;
    (word as u8 == check(index, value)).then_some(value)
}

/// Returns a word with a wrong check.
fn invalid(index: usize) -> u32 {
    encode(index, 0) ^ 1
}

fn slot_of(hash: u64, slots: usize) -> usize {
    // Filters and the cache's own tables use other bits.
    (hash ^ hash >> 29) as usize & (slots - 1)
}

/// Returns the number of slots, a power of two, for a cache with this memory.
pub(super) fn slots_for(memory_bytes: u64) -> usize {
    let slots = memory_bytes / TABLE_DIVISOR / WORD_BYTES as u64;
    let slots = slots.clamp(MIN_SLOTS, MAX_SLOTS);
    1 << slots.ilog2()
}

/// The live table of a cache.
pub(super) struct StaleEpochTable {
    file: File,
    mapping: SharedMapping,
}

impl StaleEpochTable {
    /// Writes a table into a new file completely, so that its blocks are allocated, and maps it.
    pub(super) fn create(path: &Path, header: SideFileHeader, table: &[u32], committed: u32) -> io::Result<Self> {
        let create = || {
            let mut file = open::recreate_private(path)?;
            file.write_all(&header.write(MAGIC))?;
            file.write_all(&encode(COMMITTED, committed).to_le_bytes())?;
            let mut bytes = Vec::with_capacity(READ_WORDS * WORD_BYTES);
            for (part, values) in table.chunks(READ_WORDS).enumerate() {
                bytes.clear();
                for (index, value) in values.iter().enumerate() {
                    let word = encode(FIRST_SLOT + part * READ_WORDS + index, *value);
                    bytes.extend_from_slice(&word.to_le_bytes());
                }
                file.write_all(&bytes)?;
            }
            let mapping = SharedMapping::new(&file)?;
            Ok(Self { file, mapping })
        };
        create().map_err(|error| at_path(path, "write the table of stale epochs", error))
    }

    /// Syncs the table when the tier is closed, so that it survives a crash of the machine.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    fn slots(&self) -> &[AtomicU32] {
        self.mapping.words().get(FIRST_SLOT..).unwrap_or_default()
    }

    pub(super) fn held_bytes(&self) -> usize {
        size_of_val(self.mapping.words())
    }

    /// Marks records of a hash with this or an earlier epoch as stale.
    pub(super) fn mark_stale_up_to(&self, hash: u64, epoch: u32) {
        let slots = self.slots();
        let slot = slot_of(hash, slots.len());
        let index = FIRST_SLOT + slot;
        let raised = encode(index, epoch.min(MAX_EPOCH));
        let Some(slot) = slots.get(slot) else { return };
        let raise = |word| (decode(index, word)? < epoch.min(MAX_EPOCH)).then_some(raised);
        // A damaged word stays damaged: then nothing is recovered.
        let _ = slot.fetch_update(Ordering::Relaxed, Ordering::Relaxed, raise);
    }

    /// Commits the log's entries before this number.
    pub(super) fn commit(&self, number: u64) {
        self.store_committed(encode(COMMITTED, low_bits(number)));
    }

    /// Disables recovery after a crash.
    pub(super) fn invalidate(&self) {
        self.store_committed(invalid(COMMITTED));
    }

    fn store_committed(&self, word: u32) {
        if let Some(committed) = self.mapping.words().get(COMMITTED) {
            // A process that observes a later store has observed this one.
            committed.store(word, Ordering::SeqCst);
        }
    }
}

/// A table read from a file.
pub(super) struct StoredEpochTable {
    pub header: SideFileHeader,
    /// Low bits of the number of committed log entries; [`None`] if none is.
    pub committed: Option<u32>,
    values: Vec<u32>,
}

/// Returns the table of a new tier.
pub(super) fn fresh(slots: usize) -> Result<Vec<u32>, OutOfMemory> {
    let mut values = room_for(slots)?;
    values.resize(slots, 0);
    Ok(values)
}

impl StoredEpochTable {
    /// Reads a file as a table of `slots` slots; [`None`] if it is not of this tier and session, or damaged.
    pub(super) fn read(
        path: &Path,
        kind: Kind,
        tier: u64,
        session: u64,
        slots: usize,
    ) -> Result<Option<Self>, OutOfMemory> {
        let mut values = fresh(slots)?;
        let mut read = || -> Option<(SideFileHeader, Option<u32>)> {
            let mut file = open::read_regular(path).ok()?;
            let mut header = [0; HEADER_BYTES];
            file.read_exact(&mut header).ok()?;
            let header = SideFileHeader::read(&header, MAGIC, kind, tier, session)?;
            let its_slots = header.own[1];
            if !its_slots.is_power_of_two() || its_slots > MAX_SLOTS {
                return None;
            }
            let its_slots = usize::try_from(its_slots).ok()?;
            let bytes = (FIRST_SLOT + its_slots) * WORD_BYTES;
            if file.metadata().ok()?.len() != bytes as u64 {
                return None;
            }
            let mut word = [0; WORD_BYTES];
            file.read_exact(&mut word).ok()?;
            let committed = decode(COMMITTED, u32::from_le_bytes(word));
            read_slots(&mut file, its_slots, &mut values)?;
            Some((header, committed))
        };
        let Some((header, committed)) = read() else {
            return Ok(None);
        };
        Ok(Some(Self {
            header,
            committed,
            values,
        }))
    }

    pub(super) fn into_values(self) -> Vec<u32> {
        self.values
    }
}

/// Reads slots into a table of another size: merged slots take the maximum, split slots copy their value.
fn read_slots(file: &mut File, its_slots: usize, values: &mut [u32]) -> Option<()> {
    let slots = values.len();
    let mut bytes = vec![0; READ_WORDS.min(its_slots) * WORD_BYTES];
    let mut next = 0;
    while next < its_slots {
        file.read_exact(&mut bytes).ok()?;
        for word in bytes.as_chunks::<WORD_BYTES>().0 {
            let value = decode(FIRST_SLOT + next, u32::from_le_bytes(*word))?;
            for at in (next % slots..slots).step_by(its_slots) {
                values[at] = values[at].max(value);
            }
            next += 1;
        }
    }
    Some(())
}

/// Filters records of runs written before a crash, by the table as it was then.
pub(in crate::cache::disk) struct StaleFilter {
    /// Runs before this position are filtered.
    pub before: u64,
    values: Vec<u32>,
}

impl StaleFilter {
    pub(super) fn new(before: u64, values: Vec<u32>) -> Self {
        Self { before, values }
    }

    /// Returns true if a record may be stale.
    pub(in crate::cache::disk) fn refuses(&self, hash: u64, epoch: u32) -> bool {
        let slot = slot_of(hash, self.values.len());
        self.values.get(slot).is_none_or(|value| epoch <= *value)
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.values.capacity() * size_of::<u32>()
    }
}

/// Returns the latest epoch in a table.
pub(super) fn latest(values: &[u32]) -> u32 {
    values.iter().copied().max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_read_as_it_was_written_and_no_byte_of_it_changes_unseen() {
        for index in [COMMITTED, FIRST_SLOT, FIRST_SLOT + 77, FIRST_SLOT + 70_000] {
            for value in [0, 1, 255, 256, 0x1234, MAX_EPOCH] {
                let word = encode(index, value);
                assert_eq!(decode(index, word), Some(value));
                for byte in 0..4 {
                    for change in 1..=255_u32 {
                        assert_eq!(decode(index, word ^ change << (8 * byte)), None);
                    }
                }
            }
            assert_eq!(decode(index, invalid(index)), None);
        }
    }

    #[test]
    fn slots_fold_and_unfold_by_their_hash() {
        for hash in (0..5000_u64).map(|n| rapidhash::v3::rapidhash_v3(&n.to_le_bytes())) {
            let (few, many) = (slot_of(hash, 1 << 15), slot_of(hash, 1 << 18));
            assert_eq!(many % (1 << 15), few);
        }
    }
}
