//! What a log of runs says that there is.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use super::run_log::{CLEAR, ENTRY_HEADER_BYTES, FORGET_FROM, MAGIC, OF_LEAVES, REPLACE, SPLIT, place};
use super::ties::{HEADER_BYTES, Ties};
use crate::cache::disk::bytes::{Take, are_in_order};
use crate::cache::disk::failure::Failure;
use crate::cache::disk::first::{Kind, MOST_HEAD};
use crate::cache::disk::run::Run;
use crate::cache::disk::state::SuperLeaf;
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
    let mut file = BufReader::new(File::open(path)?);
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
        self.held_bytes += run.held_bytes();
        let end = run.position.saturating_add(run.blocks.into());
        self.replayed.head = self.replayed.head.max(end);
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
                self.forget(gone);
            }
            SPLIT => {
                let key = payload.bytes(MAX_KEY_BYTES)?;
                let (low, high) = (take_option(&mut payload)?, take_option(&mut payload)?);
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
