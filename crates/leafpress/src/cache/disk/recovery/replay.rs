//! Replay of the log of runs.
//!
//! For any log, even a damaged one, the time is bounded by its length, and the memory by the given limit.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use super::run_log::{CLEAR, ENTRY_HEADER_BYTES, FORGET_FROM, MAGIC, OF_LEAVES, REPLACE, SPLIT, checksum_seed};
use super::side_file_header::{HEADER_BYTES, SideFileHeader};
use super::stale_epochs::low_bits;
use crate::cache::disk::bytes::{MAX_RUNS, Take, are_in_order};
use crate::cache::disk::failure::Failure;
use crate::cache::disk::run::Run;
use crate::cache::disk::state::SuperLeaf;
use crate::cache::disk::superblock::{Kind, MAX_HEAD};
use crate::tree::MAX_KEY_BYTES;
use leafpress_base::bytes::Bytes;
use leafpress_base::io::open;
use leafpress_base::mem::room::{TryGrow, room_for};

/// The list of runs at the end of the log.
pub(super) struct Replayed {
    pub leaves: Vec<SuperLeaf>,
    /// Upper bound of the runs' ends.
    pub head: u64,
    /// Upper bound of the records' epochs.
    pub epoch: u32,
}

/// The payload of an entry, whose checksum was verified.
struct Payload<'p> {
    bytes: Bytes<'p>,
    device_blocks: u64,
    room_bytes: usize,
}

impl Take for Payload<'_> {
    fn read(&mut self, into: &mut [u8]) -> Result<(), Failure> {
        into.copy_from_slice(self.bytes.take(into.len()).ok_or(Failure::Damaged)?);
        Ok(())
    }

    fn charge(&mut self, bytes: usize) -> Result<(), Failure> {
        self.room_bytes = self.room_bytes.checked_sub(bytes).ok_or(Failure::Damaged)?;
        Ok(())
    }

    fn device_blocks(&self) -> u64 {
        self.device_blocks
    }
}

struct Replay {
    file: BufReader<File>,
    header: SideFileHeader,
    payload: Vec<u8>,
    /// Memory that all runs may take, in bytes.
    room_bytes: usize,
    held_bytes: usize,
    leaves: Leaves,
    head: u64,
    epoch: u32,
}

/// The runs of each leaf, by the leaf's first key.
type Leaves = BTreeMap<Arc<[u8]>, Vec<Arc<Run>>>;
/// Memory of a leaf in addition to its key and runs, here and in the resulting list.
const LEAF_BYTES: usize = 2 * size_of::<SuperLeaf>();

/// Replays the log of this tier and session up to the entry whose number has the low bits `committed`; [`None`] if it
/// belongs to another tier or session, is damaged, or needs more than `room_bytes` of memory.
pub(super) fn replay(
    path: &Path,
    kind: Kind,
    tier: u64,
    session: u64,
    committed: u32,
    room_bytes: usize,
) -> Result<Option<Replayed>, Failure> {
    match try_replay(path, kind, tier, session, committed, room_bytes) {
        Ok(replayed) => Ok(Some(replayed)),
        Err(Failure::OutOfMemory { bytes }) => Err(Failure::OutOfMemory { bytes }),
        Err(_) => Ok(None),
    }
}

fn try_replay(
    path: &Path,
    kind: Kind,
    tier: u64,
    session: u64,
    committed: u32,
    room_bytes: usize,
) -> Result<Replayed, Failure> {
    let mut file = BufReader::new(open::read_regular(path)?);
    let mut header = [0; HEADER_BYTES];
    file.read_exact(&mut header)?;
    let header = SideFileHeader::read(&header, MAGIC, kind, tier, session).ok_or(Failure::Damaged)?;
    let [first, epoch, head, leaves] = header.own;
    let mut replay = Replay {
        file,
        header,
        payload: Vec::new(),
        room_bytes,
        held_bytes: 0,
        leaves: Leaves::new(),
        head,
        epoch: u32::try_from(epoch).map_err(|_| Failure::Damaged)?,
    };
    for leaf in 0..leaves {
        replay.next(OF_LEAVES + leaf)?;
        let leaf = replay.payload().leaf()?;
        leaf.runs.iter().try_for_each(|run| replay.count(run))?;
        replay.add(leaf)?;
    }
    // A log older or newer than the table ends too early.
    let entries = low_bits(u64::from(committed).wrapping_sub(first));
    let end = first.checked_add(entries.into()).ok_or(Failure::Damaged)?;
    for number in first..end {
        replay.next(number)?;
        replay.change()?;
    }
    let Replay {
        leaves, head, epoch, ..
    } = replay;
    if head >= MAX_HEAD || !leaves.values().all(|runs| are_in_order(runs, head)) {
        return Err(Failure::Damaged);
    }
    let mut list = room_for(leaves.len())?;
    list.extend(leaves.into_iter().map(|(from, runs)| SuperLeaf { from, runs }));
    Ok(Replayed {
        leaves: list,
        head,
        epoch,
    })
}

impl Replay {
    /// Reads the payload of the next entry.
    fn next(&mut self, number: u64) -> Result<(), Failure> {
        let mut header = [0; ENTRY_HEADER_BYTES];
        self.file.read_exact(&mut header)?;
        let ([len, ..], [_, checksum @ ..]) = (header.as_chunks::<4>().0, header.as_chunks::<4>().0) else {
            return Err(Failure::Damaged);
        };
        let len = u32::from_le_bytes(*len) as usize;
        let checksum = u64::from_le_bytes(checksum.as_flattened().try_into().map_err(|_| Failure::Damaged)?);
        if len > self.room_bytes {
            return Err(Failure::Damaged);
        }
        // Read what is present, instead of allocating for a length that may be damaged.
        self.payload.clear();
        let mut part = [0; 4096];
        while self.payload.len() < len {
            let part = &mut part[..(len - self.payload.len()).min(4096)];
            self.file.read_exact(part)?;
            self.payload.try_append(part)?;
        }
        if checksum == checksum_seed(&self.header, number).checksum(&self.payload) {
            Ok(())
        } else {
            Err(Failure::Damaged)
        }
    }

    fn payload(&self) -> Payload<'_> {
        Payload {
            bytes: Bytes(&self.payload),
            device_blocks: self.header.kind.blocks,
            room_bytes: self.room_bytes - self.held_bytes,
        }
    }

    fn count(&mut self, run: &Run) -> Result<(), Failure> {
        let end = run.position.saturating_add(run.blocks.into());
        self.head = self.head.max(end);
        self.hold(run.held_bytes())
    }

    /// Adds a leaf that is not present yet.
    fn add(&mut self, leaf: SuperLeaf) -> Result<(), Failure> {
        self.hold(LEAF_BYTES + leaf.from.len())?;
        match self.leaves.insert(leaf.from, leaf.runs) {
            Some(_) => Err(Failure::Damaged),
            None => Ok(()),
        }
    }

    fn hold(&mut self, bytes: usize) -> Result<(), Failure> {
        self.held_bytes += bytes;
        if self.held_bytes > self.room_bytes {
            return Err(Failure::Damaged);
        }
        Ok(())
    }

    fn forget(&mut self, runs: impl IntoIterator<Item = Arc<Run>>) {
        runs.into_iter().for_each(|run| self.held_bytes -= run.held_bytes());
    }

    /// Applies an entry.
    fn change(&mut self) -> Result<(), Failure> {
        let mut payload = self.payload();
        let kind = payload.u32()?;
        if kind == CLEAR {
            (self.held_bytes, self.leaves) = (0, Leaves::new());
            return self.add(SuperLeaf {
                from: Arc::from([]),
                runs: Vec::new(),
            });
        }
        let (epoch, from) = (payload.u32()?, payload.bytes(MAX_KEY_BYTES)?);
        match kind {
            REPLACE => {
                let newest = payload.u32()? as usize;
                let with = take_option(&mut payload)?;
                with.iter().try_for_each(|run| self.count(run))?;
                let runs = self.runs_of(&from)?;
                if newest > runs.len() {
                    return Err(Failure::Damaged);
                }
                runs.try_room(1)?;
                let gone: Vec<Arc<Run>> = runs.splice(0..newest, with).collect();
                if runs.len() > MAX_RUNS {
                    return Err(Failure::Damaged);
                }
                self.forget(gone);
            }
            SPLIT => {
                let key = payload.bytes(MAX_KEY_BYTES)?;
                let (low, high) = (take_option(&mut payload)?, take_option(&mut payload)?);
                [&low, &high]
                    .into_iter()
                    .flatten()
                    .try_for_each(|run| self.count(run))?;
                self.split(&from, &key, low, high)?;
            }
            FORGET_FROM => {
                let run = payload.u32()? as usize;
                let runs = self.runs_of(&from)?;
                let gone = runs.split_off(run.min(runs.len()));
                self.forget(gone);
            }
            _ => return Err(Failure::Damaged),
        }
        self.epoch = self.epoch.max(epoch);
        Ok(())
    }

    fn runs_of(&mut self, from: &[u8]) -> Result<&mut Vec<Arc<Run>>, Failure> {
        self.leaves.get_mut(from).ok_or(Failure::Damaged)
    }

    fn split(&mut self, from: &[u8], key: &[u8], low: Option<Arc<Run>>, high: Option<Arc<Run>>) -> Result<(), Failure> {
        // The key must belong to the leaf.
        let mut before = self.leaves.range::<[u8], _>((Bound::Unbounded, Bound::Included(key)));
        if before.next_back().is_none_or(|(last, _)| **last != *from) {
            return Err(Failure::Damaged);
        }
        let mut runs = room_for(1)?;
        runs.extend(high);
        let of_low = self.runs_of(from)?;
        of_low.try_room(1)?;
        let gone: Vec<Arc<Run>> = of_low.splice(.., low).collect();
        self.forget(gone);
        self.add(SuperLeaf {
            from: Arc::from(key),
            runs,
        })
    }
}

fn take_option(payload: &mut Payload<'_>) -> Result<Option<Arc<Run>>, Failure> {
    match payload.u32()? {
        0 => Ok(None),
        _ => Ok(Some(Arc::new(payload.run()?))),
    }
}

#[cfg(all(test, not(any(miri, shuttle))))]
mod tests {
    use super::super::run_log::RunLog;
    use super::super::stale_epochs::{self, StaleEpochTable, StoredEpochTable};
    use super::*;
    use crate::cache::disk::batch::MAX_EPOCH;
    use crate::cache::disk::change::Change;
    use crate::cache::disk::filter::FilterBuilder;
    use crate::cache::disk::state::SuperLeaf;

    const KIND: Kind = Kind {
        codec: 1,
        blocks: 1 << 20,
        has_epochs: true,
    };
    const HEADER: SideFileHeader = SideFileHeader {
        kind: KIND,
        tier: 2,
        session: 3,
        previous: 4,
        own: [0, 1 << 15, 0, 0],
    };

    fn run(number: u32) -> Option<Arc<Run>> {
        let mut filter = FilterBuilder::new(1).unwrap();
        filter.push(7).unwrap();
        Some(Arc::new(Run {
            position: number.into(),
            blocks: 1,
            records: 1,
            filter: filter.finish().unwrap(),
            pages: vec![0],
            starts: Vec::new(),
            chunks: vec![number],
        }))
    }

    /// Replays a log of `changes` entries with a memory limit.
    fn replayed<'c>(changes: u32, change: impl Fn(u32) -> Change<'c>, room_bytes: usize) -> Option<Replayed> {
        let directory = tempfile::tempdir().unwrap();
        let at = |name| directory.path().join(name);
        let epochs = StaleEpochTable::create(&at("epochs"), HEADER, &stale_epochs::fresh(1 << 15).unwrap(), 0).unwrap();
        let empty = [SuperLeaf {
            from: Arc::from([]),
            runs: Vec::new(),
        }];
        let mut log = RunLog::create(at("runs"), Arc::new(epochs), HEADER, &empty, 0, 1, 0).unwrap();
        (0..changes).for_each(|number| log.append(&change(number), &[], 1).unwrap());
        replay(&at("runs"), KIND, HEADER.tier, HEADER.session, changes, room_bytes).unwrap()
    }

    /// The table stores only some low bits of the number.
    #[test]
    fn entries_are_numbered_on_when_the_notes_begin_again_at_0() {
        let add = |number| Change::Replace {
            leaf: 0,
            newest: 0,
            with: run(number),
        };
        let most = u64::from(MAX_EPOCH);
        for first in [0, most - 9, most - 1, most, most + 1, 7 * (most + 1) - 3] {
            let directory = tempfile::tempdir().unwrap();
            let at = |name| directory.path().join(name);
            let table = stale_epochs::fresh(1 << 15).unwrap();
            let epochs = StaleEpochTable::create(&at("epochs"), HEADER, &table, stale_epochs::low_bits(first)).unwrap();
            let empty = [SuperLeaf {
                from: Arc::from([]),
                runs: Vec::new(),
            }];
            let mut log = RunLog::create(at("runs"), Arc::new(epochs), HEADER, &empty, 0, 1, first).unwrap();
            let there = || {
                let table = StoredEpochTable::read(&at("epochs"), KIND, HEADER.tier, HEADER.session, 1 << 15).unwrap();
                let committed = table.unwrap().committed.unwrap();
                replay(&at("runs"), KIND, HEADER.tier, HEADER.session, committed, 4 << 20)
                    .unwrap()
                    .unwrap()
            };
            for number in 0..12 {
                log.append(&add(number), &[], 1).unwrap();
                assert_eq!(there().leaves[0].runs.len() as u32, number + 1);
            }
            // A process killed between the new log and its first entry recovers all of it.
            log.rewrite(&there().leaves, there().head, 1).unwrap();
            assert_eq!(there().leaves[0].runs.len(), 12);
            for number in 12..24 {
                log.append(&add(number), &[], 1).unwrap();
                assert_eq!(there().leaves[0].runs.len() as u32, number + 1);
            }
        }
    }

    /// A merge takes no more sources than a leaf has runs.
    #[test]
    fn a_leaf_has_no_more_runs_than_a_tier_gives_it() {
        let add = |number| Change::Replace {
            leaf: 0,
            newest: 0,
            with: run(number),
        };
        let most = u32::try_from(MAX_RUNS).unwrap();
        let there = replayed(most, add, 4 << 20).unwrap();
        assert_eq!((there.leaves[0].runs.len(), there.head), (MAX_RUNS, most.into()));
        assert!(replayed(most + 1, add, 4 << 20).is_none());
    }

    /// Descending keys: each splits the first leaf again.
    fn falling(number: u32) -> Vec<u8> {
        let mut key = (u32::MAX - number).to_be_bytes().to_vec();
        key.resize(1000, 9);
        key
    }

    #[test]
    fn leaves_without_runs_take_memory_too() {
        let keys: Vec<Vec<u8>> = (0..200).map(falling).collect();
        let split = |number| Change::Split {
            leaf: 0,
            key: &keys[number as usize],
            low: None,
            high: None,
        };
        assert_eq!(replayed(90, split, 100 << 10).unwrap().leaves.len(), 91);
        assert!(replayed(110, split, 100 << 10).is_none());
    }

    /// A key that is a leaf's first key, or belongs to another leaf, cannot split a leaf.
    #[test]
    fn what_no_tier_does_is_refused() {
        let split = |key: &'static [u8]| Change::Split {
            leaf: 0,
            key,
            low: None,
            high: None,
        };
        let keys: [&[u8]; 3] = [b"m", b"m", b"x"];
        assert!(replayed(1, |number| split(keys[number as usize]), 1 << 20).is_some());
        assert!(replayed(2, |number| split(keys[number as usize]), 1 << 20).is_none());
        // The first leaf ends at m.
        assert!(replayed(2, |number| split(keys[2 * number as usize]), 1 << 20).is_none());
        assert!(replayed(1, |_| split(b""), 1 << 20).is_none());
    }
}
