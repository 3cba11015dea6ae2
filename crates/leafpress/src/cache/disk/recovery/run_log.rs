//! The log of runs: which there are, as memory knows it, for who opens the tier after a crash.
//!
//! ```text
//! header   leaves, each an entry: leaf   entries
//! entry:   length u32   checksum u64   payload
//! payload: kind u32   epoch u32   leaf u32   what the change needs: counts, key, runs
//! ```
//!
//! Entries are counted over all logs of a tier, and the notes say how many count. So what a process that was killed left half written does not,
//! and a log that was written anew takes the place of the old one at once. An entry counts before the change is done.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use super::notes::{MOST, Notes};
use super::ties::Ties;
use crate::cache::disk::bytes::Put;
use crate::cache::disk::change::Change;
use crate::cache::disk::failure::Failure;
use crate::cache::disk::page::Place;
use crate::cache::disk::run::Run;
use crate::cache::disk::state::SuperLeaf;
use crate::io::at_path::at_path;
use crate::io::open;

pub(super) const MAGIC: &[u8; 16] = b"leafpress runs\0\0";
pub(super) const ENTRY_HEADER_BYTES: usize = 12;
/// Entries of the leaves that a log begins with are numbered from here on.
pub(super) const OF_LEAVES: u64 = 1 << 32;
pub(super) const REPLACE: u32 = 1;
pub(super) const SPLIT: u32 = 2;
pub(super) const FORGET_FROM: u32 = 3;
pub(super) const CLEAR: u32 = 4;
/// A log is written anew when it is so many times as long as what there is, and longer than a little.
const TIMES_LONG: u64 = 3;
const LITTLE_BYTES: u64 = 256 << 10;

/// The place that an entry's checksum knows.
pub(super) fn place(ties: &Ties, number: u64) -> Place {
    Place {
        tier: ties.tier ^ ties.session.rotate_left(17),
        position: number,
    }
}

pub(in crate::cache::disk) struct RunLog {
    path: PathBuf,
    notes: Arc<Notes>,
    ties: Ties,
    /// Where entries go; [`None`] once one could not be written.
    file: Option<File>,
    /// The number of the next entry.
    next: u32,
    bytes: u64,
}

/// Puts an entry's header in front of its payload, for which there is room.
fn seal(place: Place, entry: &mut [u8]) {
    let (header, payload) = entry.split_at_mut(ENTRY_HEADER_BYTES);
    header[..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    header[4..].copy_from_slice(&place.checksum(payload).to_le_bytes());
}

fn put_option(entry: &mut Vec<u8>, run: Option<&Arc<Run>>) -> Result<(), Failure> {
    entry.put_u32(usize::from(run.is_some()))?;
    run.map_or(Ok(()), |run| entry.put_run(run))
}

fn entry_of(change: &Change<'_>, epoch: u32) -> Result<Vec<u8>, Failure> {
    let mut entry = begin(match change {
        Change::Replace { .. } => REPLACE,
        Change::Split { .. } => SPLIT,
        Change::ForgetFrom { .. } => FORGET_FROM,
    });
    entry.put_u32(epoch as usize)?;
    match change {
        Change::Replace { leaf, newest, with } => {
            entry.put_u32(*leaf)?;
            entry.put_u32(*newest)?;
            put_option(&mut entry, with.as_ref())?;
        }
        Change::Split { leaf, key, low, high } => {
            entry.put_u32(*leaf)?;
            entry.put_bytes(key)?;
            put_option(&mut entry, low.as_ref())?;
            put_option(&mut entry, high.as_ref())?;
        }
        Change::ForgetFrom { leaf, run } => {
            entry.put_u32(*leaf)?;
            entry.put_u32(*run)?;
        }
    }
    Ok(entry)
}

fn begin(kind: u32) -> Vec<u8> {
    let mut entry = vec![0; ENTRY_HEADER_BYTES];
    entry.extend_from_slice(&kind.to_le_bytes());
    entry
}

impl RunLog {
    /// Writes a log that begins with these leaves, in the place of one that is at `path`.
    pub(super) fn create(
        path: PathBuf,
        notes: Arc<Notes>,
        ties: Ties,
        leaves: &[SuperLeaf],
        head: u64,
        epoch: u32,
        next: u32,
    ) -> Result<Self, Failure> {
        let ties = Ties {
            own: [next.into(), epoch.into(), head, leaves.len() as u64],
            ..ties
        };
        let new = super::beside(&path, ".new");
        let (file, bytes) = write_leaves(&new, &ties, leaves).map_err(|failure| match failure {
            Failure::Io(error) => at_path(&new, "write a log for after a crash", error).into(),
            other => other,
        })?;
        std::fs::rename(&new, &path).map_err(|error| at_path(&path, "put a log there", error))?;
        Ok(Self {
            path,
            notes,
            ties,
            file: Some(file),
            next,
            bytes,
        })
    }

    /// Has a change count from now on. Where that fails, nothing is found again after a crash.
    pub(in crate::cache::disk) fn append(&mut self, change: &Change<'_>, epoch: u32) -> Result<(), Failure> {
        if self.file.is_none() {
            return Ok(());
        }
        self.append_entry(entry_of(change, epoch))
    }

    /// The same for all that there is.
    pub(in crate::cache::disk) fn append_clear(&mut self) -> Result<(), Failure> {
        self.append_entry(Ok(begin(CLEAR)))
    }

    fn append_entry(&mut self, entry: Result<Vec<u8>, Failure>) -> Result<(), Failure> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let written = entry.and_then(|mut entry| {
            if self.next >= MOST {
                return Err(Failure::Io(io::Error::other("the log of runs has too many entries")));
            }
            seal(place(&self.ties, self.next.into()), &mut entry);
            file.write_all(&entry)?;
            Ok(entry.len() as u64)
        });
        match written {
            Ok(bytes) => {
                self.bytes += bytes;
                self.next += 1;
                self.notes.commit(self.next);
                Ok(())
            }
            Err(failure) => {
                self.give_up();
                Err(failure)
            }
        }
    }

    /// Nothing is found again after a crash from now on.
    pub(in crate::cache::disk) fn give_up(&mut self) {
        self.notes.invalidate();
        self.file = None;
    }

    pub(in crate::cache::disk) fn is_kept(&self) -> bool {
        self.file.is_some()
    }

    /// Whether most of it is of runs that are gone, where those that are there take so many bytes.
    pub(in crate::cache::disk) fn is_long(&self, index_bytes: u64) -> bool {
        self.is_kept() && self.bytes > LITTLE_BYTES + index_bytes * TIMES_LONG
    }

    /// Writes it anew, with these leaves alone, which are those that it has.
    pub(in crate::cache::disk) fn rewrite(
        &mut self,
        leaves: &[SuperLeaf],
        head: u64,
        epoch: u32,
    ) -> Result<(), Failure> {
        let (path, notes) = (self.path.clone(), Arc::clone(&self.notes));
        match Self::create(path, notes, self.ties, leaves, head, epoch, self.next) {
            Ok(log) => {
                *self = log;
                Ok(())
            }
            Err(failure) => {
                self.give_up();
                Err(failure)
            }
        }
    }
}

fn write_leaves(path: &std::path::Path, ties: &Ties, leaves: &[SuperLeaf]) -> Result<(File, u64), Failure> {
    let mut file = open::recreate_private(path)?;
    let header = ties.write(MAGIC);
    file.write_all(&header)?;
    let mut bytes = header.len() as u64;
    for (number, leaf) in (OF_LEAVES..).zip(leaves) {
        let mut entry = vec![0; ENTRY_HEADER_BYTES];
        entry.put_leaf(leaf)?;
        seal(place(ties, number), &mut entry);
        file.write_all(&entry)?;
        bytes += entry.len() as u64;
    }
    Ok((file, bytes))
}
