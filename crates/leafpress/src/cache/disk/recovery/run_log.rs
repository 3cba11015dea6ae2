//! The log of runs: a write-ahead log of changes of the list of runs, for crash recovery.
//!
//! ```text
//! header   leaves, each an entry: leaf   entries
//! entry:   length u32   checksum u64   payload
//! payload: kind u32   epoch u32   the key that the leaf is from   what the change needs: counts, key, runs
//! ```
//!
//! Entries are numbered across all logs of a tier, and the table of stale epochs has the number of committed entries,
//! as many low bits as fit in a word. So an entry that a killed process wrote partially is not committed, and a
//! rewritten log replaces the old one atomically: the number is right for both. A log has fewer entries than those bits
//! can distinguish. An entry is committed before the change is applied.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use super::side_file_header::SideFileHeader;
use super::stale_epochs::StaleEpochTable;
use crate::cache::disk::batch::MAX_EPOCH;
use crate::cache::disk::bytes::Put;
use crate::cache::disk::change::Change;
use crate::cache::disk::failure::Failure;
use crate::cache::disk::page::ChecksumSeed;
use crate::cache::disk::run::Run;
use crate::cache::disk::state::SuperLeaf;
use leafpress_base::io::at_path::at_path;
use leafpress_base::io::open;

pub(super) const MAGIC: &[u8; 16] = b"leafpress runs\0\0";
pub(super) const ENTRY_HEADER_BYTES: usize = 12;
/// First number of the entries for the leaves with which a log begins.
pub(super) const OF_LEAVES: u64 = 1 << 32;
pub(super) const REPLACE: u32 = 1;
pub(super) const SPLIT: u32 = 2;
pub(super) const FORGET_FROM: u32 = 3;
pub(super) const CLEAR: u32 = 4;
/// A log is rewritten when it is this many times as long as its live contents, and longer than a minimum.
const COMPACTION_FACTOR: u64 = 3;
const LITTLE_BYTES: u64 = 256 << 10;
/// Maximum number of entries of one log.
const MAX_ENTRIES: u64 = MAX_EPOCH as u64;

/// Returns the position that is part of an entry's checksum.
pub(super) fn checksum_seed(header: &SideFileHeader, number: u64) -> ChecksumSeed {
    ChecksumSeed {
        tier: header.tier ^ header.session.rotate_left(17),
        position: number,
    }
}

pub(in crate::cache::disk) struct RunLog {
    path: PathBuf,
    epochs: Arc<StaleEpochTable>,
    header: SideFileHeader,
    /// The file for new entries; [`None`] once one could not be written.
    file: Option<File>,
    /// The number of the log's first entry after its leaves, and that of the next entry.
    first: u64,
    next: u64,
    bytes: u64,
}

/// Writes the header of an entry in front of its payload, which has room for it.
fn seal(seed: ChecksumSeed, entry: &mut [u8]) {
    let (header, payload) = entry.split_at_mut(ENTRY_HEADER_BYTES);
    header[..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    header[4..].copy_from_slice(&seed.checksum(payload).to_le_bytes());
}

fn put_option(entry: &mut Vec<u8>, run: Option<&Arc<Run>>) -> Result<(), Failure> {
    entry.put_u32(usize::from(run.is_some()))?;
    run.map_or(Ok(()), |run| entry.put_run(run))
}

fn entry_of(change: &Change<'_>, from: &[u8], epoch: u32) -> Result<Vec<u8>, Failure> {
    let mut entry = begin(match change {
        Change::Replace { .. } => REPLACE,
        Change::Split { .. } => SPLIT,
        Change::ForgetFrom { .. } => FORGET_FROM,
    });
    entry.put_u32(epoch as usize)?;
    entry.put_bytes(from)?;
    match change {
        Change::Replace { newest, with, .. } => {
            entry.put_u32(*newest)?;
            put_option(&mut entry, with.as_ref())?;
        }
        Change::Split { key, low, high, .. } => {
            entry.put_bytes(key)?;
            put_option(&mut entry, low.as_ref())?;
            put_option(&mut entry, high.as_ref())?;
        }
        Change::ForgetFrom { run, .. } => entry.put_u32(*run)?,
    }
    Ok(entry)
}

fn begin(kind: u32) -> Vec<u8> {
    let mut entry = vec![0; ENTRY_HEADER_BYTES];
    entry.extend_from_slice(&kind.to_le_bytes());
    entry
}

impl RunLog {
    /// Creates a log that begins with these leaves, and replaces the one at `path`.
    pub(super) fn create(
        path: PathBuf,
        epochs: Arc<StaleEpochTable>,
        header: SideFileHeader,
        leaves: &[SuperLeaf],
        head: u64,
        epoch: u32,
        next: u64,
    ) -> Result<Self, Failure> {
        let header = SideFileHeader {
            own: [next, epoch.into(), head, leaves.len() as u64],
            ..header
        };
        let new = super::with_suffix(&path, ".new");
        let (file, bytes) = write_leaves(&new, &header, leaves).map_err(|failure| match failure {
            Failure::Io(error) => at_path(&new, "write the log of runs", error).into(),
            other => other,
        })?;
        std::fs::rename(&new, &path).map_err(|error| at_path(&path, "replace the log of runs", error))?;
        Ok(Self {
            path,
            epochs,
            header,
            file: Some(file),
            first: next,
            next,
            bytes,
        })
    }

    /// Appends and commits a change of the leaf with the given first key. If that fails, nothing is recovered after a
    /// crash.
    pub(in crate::cache::disk) fn append(
        &mut self,
        change: &Change<'_>,
        from: &[u8],
        epoch: u32,
    ) -> Result<(), Failure> {
        if self.file.is_none() {
            return Ok(());
        }
        self.append_entry(entry_of(change, from, epoch))
    }

    /// Appends and commits the removal of everything.
    pub(in crate::cache::disk) fn append_clear(&mut self) -> Result<(), Failure> {
        self.append_entry(Ok(begin(CLEAR)))
    }

    fn append_entry(&mut self, entry: Result<Vec<u8>, Failure>) -> Result<(), Failure> {
        let is_full = self.entries() >= MAX_ENTRIES;
        let Some(file) = &mut self.file else { return Ok(()) };
        let written = entry.and_then(|mut entry| {
            if is_full {
                return Err(Failure::Io(io::Error::other("the log of runs has too many entries")));
            }
            seal(checksum_seed(&self.header, self.next), &mut entry);
            file.write_all(&entry)?;
            Ok(entry.len() as u64)
        });
        match written {
            Ok(bytes) => {
                self.bytes += bytes;
                self.next += 1;
                self.epochs.commit(self.next);
                Ok(())
            }
            Err(failure) => {
                self.give_up();
                Err(failure)
            }
        }
    }

    /// Disables recovery from now on.
    pub(in crate::cache::disk) fn give_up(&mut self) {
        self.epochs.invalidate();
        self.file = None;
    }

    pub(in crate::cache::disk) fn is_kept(&self) -> bool {
        self.file.is_some()
    }

    fn entries(&self) -> u64 {
        self.next - self.first
    }

    /// Returns true if the log has to be rewritten: most of it is about dropped runs, given that the live ones take
    /// `index_bytes`, or it has half of its maximum number of entries.
    pub(in crate::cache::disk) fn is_long(&self, index_bytes: u64) -> bool {
        let is_long = self.bytes > LITTLE_BYTES + index_bytes * COMPACTION_FACTOR;
        self.is_kept() && (is_long || self.entries() >= MAX_ENTRIES / 2)
    }

    /// Rewrites the log with these leaves only, which are the current ones.
    pub(in crate::cache::disk) fn rewrite(
        &mut self,
        leaves: &[SuperLeaf],
        head: u64,
        epoch: u32,
    ) -> Result<(), Failure> {
        let (path, epochs) = (self.path.clone(), Arc::clone(&self.epochs));
        match Self::create(path, epochs, self.header, leaves, head, epoch, self.next) {
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

fn write_leaves(path: &std::path::Path, header: &SideFileHeader, leaves: &[SuperLeaf]) -> Result<(File, u64), Failure> {
    let mut file = open::recreate_private(path)?;
    let written = header.write(MAGIC);
    file.write_all(&written)?;
    let mut bytes = written.len() as u64;
    for (number, leaf) in (OF_LEAVES..).zip(leaves) {
        let mut entry = vec![0; ENTRY_HEADER_BYTES];
        entry.put_leaf(leaf)?;
        seal(checksum_seed(header, number), &mut entry);
        file.write_all(&entry)?;
        bytes += entry.len() as u64;
    }
    Ok((file, bytes))
}

#[cfg(all(test, target_os = "linux", not(any(miri, shuttle))))]
mod tests {
    use super::super::stale_epochs;
    use super::*;
    use crate::cache::disk::superblock::Kind;

    /// A log with more entries than can be distinguished would be mistaken for one with few.
    #[test]
    fn a_log_is_written_anew_long_before_its_entries_are_too_many() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name| directory.path().join(name);
        let kind = Kind {
            codec: 1,
            blocks: 1 << 20,
            has_epochs: true,
        };
        let header = SideFileHeader {
            kind,
            tier: 2,
            session: 3,
            previous: 4,
            own: [0, 1 << 15, 0, 0],
        };
        let epochs = StaleEpochTable::create(&at("epochs"), header, &stale_epochs::fresh(1 << 15).unwrap(), 0).unwrap();
        let first = 5_000_000_000;
        let mut log = RunLog::create(at("runs"), Arc::new(epochs), header, &[], 0, 1, first).unwrap();
        let change = Change::ForgetFrom { leaf: 0, run: 0 };
        log.append(&change, &[], 1).unwrap();
        assert!(!log.is_long(0));
        log.next = first + MAX_ENTRIES / 2;
        assert!(log.is_long(1 << 40));
        log.rewrite(&[], 0, 1).unwrap();
        assert!(!log.is_long(0));
        log.next = log.first + MAX_ENTRIES;
        assert!(log.append(&change, &[], 1).is_err() && !log.is_kept());
    }
}
