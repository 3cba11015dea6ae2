//! What a log of runs says that there is.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use super::run_log::{CLEAR, ENTRY_HEADER_BYTES, FORGET_FROM, MAGIC, OF_LEAVES, REPLACE, SPLIT, place};
use super::ties::{HEADER_BYTES, Ties};
use crate::cache::disk::bytes::{MOST_RUNS, Take, are_in_order};
use crate::cache::disk::failure::Failure;
use crate::cache::disk::first::{Kind, MOST_HEAD};
use crate::cache::disk::run::Run;
use crate::cache::disk::state::SuperLeaf;
use crate::io::open;
use crate::mem::room::{TryGrow, room_for};
use crate::tree::MAX_KEY_BYTES;

/// What there was when the log ended.
pub(super) struct Replayed {
    pub leaves: Vec<SuperLeaf>,
    /// No run ends behind this.
    pub head: u64,
    /// No record has a later one.
    pub epoch: u32,
}

/// An entry's payload, which was checked.
struct Payload<'p> {
    bytes: &'p [u8],
    device_blocks: u64,
    room_bytes: usize,
}

impl Take for Payload<'_> {
    fn read(&mut self, into: &mut [u8]) -> Result<(), Failure> {
        let (now, rest) = self.bytes.split_at_checked(into.len()).ok_or(Failure::Damaged)?;
        into.copy_from_slice(now);
        self.bytes = rest;
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
    ties: Ties,
    payload: Vec<u8>,
    /// Bytes of memory that all runs may take.
    room_bytes: usize,
    held_bytes: usize,
    replayed: Replayed,
}

/// What a log of this tier and session says whose entries before `committed` count; [`None`] where it is another's or damaged, or says more
/// than can be held in `room_bytes` of memory.
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
    let ties = Ties::read(&header, MAGIC, kind, tier, session).ok_or(Failure::Damaged)?;
    let [first, epoch, head, leaves] = ties.own;
    let mut replay = Replay {
        file,
        ties,
        payload: Vec::new(),
        room_bytes,
        held_bytes: 0,
        replayed: Replayed {
            leaves: Vec::new(),
            head,
            epoch: u32::try_from(epoch).map_err(|_| Failure::Damaged)?,
        },
    };
    for leaf in 0..leaves {
        replay.next(OF_LEAVES + leaf)?;
        let leaf = replay.payload().leaf()?;
        replay.count_leaf(&leaf.from)?;
        leaf.runs.iter().try_for_each(|run| replay.count(run))?;
        replay.replayed.leaves.try_push(leaf)?;
    }
    if first > committed.into() {
        return Err(Failure::Damaged);
    }
    for number in first..committed.into() {
        replay.next(number)?;
        replay.change()?;
    }
    let Replayed { leaves, head, .. } = &replay.replayed;
    if *head >= MOST_HEAD || !leaves.iter().all(|leaf| are_in_order(&leaf.runs, *head)) {
        return Err(Failure::Damaged);
    }
    Ok(replay.replayed)
}

impl Replay {
    /// Reads the next entry's payload.
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
        // As much as there is, and not what a length says that is damaged.
        self.payload.clear();
        let mut part = [0; 4096];
        while self.payload.len() < len {
            let part = &mut part[..(len - self.payload.len()).min(4096)];
            self.file.read_exact(part)?;
            self.payload.try_append(part)?;
        }
        if checksum == place(&self.ties, number).checksum(&self.payload) {
            Ok(())
        } else {
            Err(Failure::Damaged)
        }
    }

    fn payload(&self) -> Payload<'_> {
        Payload {
            bytes: &self.payload,
            device_blocks: self.ties.kind.blocks,
            room_bytes: self.room_bytes - self.held_bytes,
        }
    }

    fn count(&mut self, run: &Run) -> Result<(), Failure> {
        let end = run.position.saturating_add(run.blocks.into());
        self.replayed.head = self.replayed.head.max(end);
        self.hold(run.held_bytes())
    }

    fn count_leaf(&mut self, from: &[u8]) -> Result<(), Failure> {
        self.hold(size_of::<SuperLeaf>() + from.len())
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

    /// Does what the entry says.
    fn change(&mut self) -> Result<(), Failure> {
        let mut payload = self.payload();
        let kind = payload.u32()?;
        if kind == CLEAR {
            self.held_bytes = 0;
            self.replayed.leaves = vec![SuperLeaf {
                from: Arc::from([]),
                runs: Vec::new(),
            }];
            return Ok(());
        }
        let (epoch, index) = (payload.u32()?, payload.u32()? as usize);
        match kind {
            REPLACE => {
                let newest = payload.u32()? as usize;
                let with = take_option(&mut payload)?;
                with.iter().try_for_each(|run| self.count(run))?;
                let leaf = self.replayed.leaves.get_mut(index).ok_or(Failure::Damaged)?;
                if newest > leaf.runs.len() {
                    return Err(Failure::Damaged);
                }
                leaf.runs.try_room(1)?;
                let gone: Vec<Arc<Run>> = leaf.runs.splice(0..newest, with).collect();
                if leaf.runs.len() > MOST_RUNS {
                    return Err(Failure::Damaged);
                }
                self.forget(gone);
            }
            SPLIT => {
                let key = payload.bytes(MAX_KEY_BYTES)?;
                let (low, high) = (take_option(&mut payload)?, take_option(&mut payload)?);
                self.count_leaf(&key)?;
                [&low, &high]
                    .into_iter()
                    .flatten()
                    .try_for_each(|run| self.count(run))?;
                self.split(index, &key, low, high)?;
            }
            FORGET_FROM => {
                let run = payload.u32()? as usize;
                let leaf = self.replayed.leaves.get_mut(index).ok_or(Failure::Damaged)?;
                let gone = leaf.runs.split_off(run.min(leaf.runs.len()));
                self.forget(gone);
            }
            _ => return Err(Failure::Damaged),
        }
        self.replayed.epoch = self.replayed.epoch.max(epoch);
        Ok(())
    }

    fn split(
        &mut self,
        index: usize,
        key: &[u8],
        low: Option<Arc<Run>>,
        high: Option<Arc<Run>>,
    ) -> Result<(), Failure> {
        let leaves = &mut self.replayed.leaves;
        leaves.try_room(1)?;
        let leaf = leaves.get_mut(index).ok_or(Failure::Damaged)?;
        let mut runs = room_for(1)?;
        runs.extend(high);
        leaf.runs.try_room(1)?;
        let gone: Vec<Arc<Run>> = leaf.runs.splice(.., low).collect();
        let from = Arc::from(key);
        leaves.insert(index + 1, SuperLeaf { from, runs });
        self.forget(gone);
        Ok(())
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
    use super::super::notes::{self, Notes};
    use super::super::run_log::RunLog;
    use super::*;
    use crate::cache::disk::change::Change;
    use crate::cache::disk::filter::FilterBuilder;
    use crate::cache::disk::state::SuperLeaf;

    const KIND: Kind = Kind {
        codec: 1,
        blocks: 1 << 20,
        has_epochs: true,
    };
    const TIES: Ties = Ties {
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

    /// What a log of so many changes says to who has so much memory.
    fn replayed<'c>(
        changes: u32,
        change: impl Fn(u32, &'c [u8]) -> Change<'c>,
        key: &'c [u8],
        room_bytes: usize,
    ) -> Option<Replayed> {
        let directory = tempfile::tempdir().unwrap();
        let at = |name| directory.path().join(name);
        let notes = Notes::create(&at("notes"), TIES, &notes::fresh(1 << 15).unwrap(), 0).unwrap();
        let empty = [SuperLeaf {
            from: Arc::from([]),
            runs: Vec::new(),
        }];
        let mut log = RunLog::create(at("runs"), Arc::new(notes), TIES, &empty, 0, 1, 0).unwrap();
        (0..changes).for_each(|number| log.append(&change(number, key), 1).unwrap());
        replay(&at("runs"), KIND, TIES.tier, TIES.session, changes, room_bytes).unwrap()
    }

    /// A merge takes no more sources than a leaf has runs.
    #[test]
    fn a_leaf_has_no_more_runs_than_a_tier_gives_it() {
        let add = |number, _| Change::Replace {
            leaf: 0,
            newest: 0,
            with: run(number),
        };
        let most = u32::try_from(MOST_RUNS).unwrap();
        let there = replayed(most, add, &[], 4 << 20).unwrap();
        assert_eq!((there.leaves[0].runs.len(), there.head), (MOST_RUNS, most.into()));
        assert!(replayed(most + 1, add, &[], 4 << 20).is_none());
    }

    #[test]
    fn leaves_without_runs_take_memory_too() {
        let key = [9; 1000];
        let split = |_, key| Change::Split {
            leaf: 0,
            key,
            low: None,
            high: None,
        };
        assert_eq!(replayed(90, split, &key, 100 << 10).unwrap().leaves.len(), 91);
        assert!(replayed(110, split, &key, 100 << 10).is_none());
    }
}
