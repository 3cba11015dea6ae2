//! Crash recovery: restores the disk tier after the process was killed.
//!
//! Two files are kept next to the tier's: `run_log` is the log of runs, and `stale_epochs` a table of the epochs up to
//! which their records are stale. `side_file_header` is the header of both. Three rules ensure that no record is
//! recovered that a write or a removal had replaced:
//!
//! 1. **Epochs.** A record that leaves memory carries the epoch of its batch, in 4 bytes at its end. Epochs increase
//!    with each batch.
//! 2. **Marking.** A thread that writes or removes a key of which a record may be on disk or in a batch stores the
//!    current epoch in the key's slot of the table, after the tree was changed and before the operation returns. Every
//!    record that left memory before has at most that epoch.
//! 3. **Filtering.** After a crash a record is valid exactly if its epoch is later than its slot's. This is checked
//!    whenever a record is found in a run from before the crash: `StaleFilter` keeps the table of that time. The live
//!    table starts from the same contents, so that what is refused once is refused for good.
//!
//! A write of a key of which memory lists nothing on disk is not marked, so that filling a cache invalidates nothing.
//! The log must therefore not have a run that memory does not list: a change of runs is logged before it is applied,
//! see `change`.
//!
//! The writes of a killed process are in the system's page cache, which is lost if the machine goes down. So the table
//! has the id of the boot in which it was written. A closed tier has an image, and needs its table only for runs that
//! are still filtered; the table is synced before.

mod opening;
mod replay;
mod run_log;
mod side_file_header;
mod stale_epochs;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use leafpress_base::sync::plain::{Mutex, MutexGuard};

pub(super) use self::opening::{Opened, Opening};
use self::run_log::RunLog;
use self::stale_epochs::StaleEpochTable;
pub(super) use self::stale_epochs::StaleFilter;
use super::run::Run;

/// Size of the epoch at the end of a record.
const EPOCH_BYTES: usize = size_of::<u32>();

/// State of a tier with crash recovery.
pub(super) struct Recovery {
    epochs: Arc<StaleEpochTable>,
    log: Mutex<RunLog>,
    stale_filter: Option<StaleFilter>,
    session: u64,
}

impl Recovery {
    /// Locks the log of runs. Lock order: the log before the tier's state.
    pub(super) fn log(&self) -> MutexGuard<'_, RunLog> {
        self.log.lock()
    }

    /// Marks records of a key up to an epoch as stale.
    pub(super) fn note(&self, hash: u64, epoch: u32) {
        self.epochs.mark_stale_up_to(hash, epoch);
    }

    /// Returns true if a record of a run, as stored on disk, may be stale.
    pub(super) fn refuses(&self, run: &Run, hash: u64, record: &[u8]) -> bool {
        let stale_filter = self
            .stale_filter
            .as_ref()
            .filter(|stale_filter| run.position < stale_filter.before);
        stale_filter
            .is_some_and(|stale_filter| split_epoch(record).is_none_or(|(_, epoch)| stale_filter.refuses(hash, epoch)))
    }

    pub(super) fn session(&self) -> u64 {
        self.session
    }

    /// Returns the position before which runs are filtered; 0 if none is.
    pub(super) fn judged_before(&self) -> u64 {
        self.stale_filter.as_ref().map_or(0, |stale_filter| stale_filter.before)
    }

    /// Syncs the table of stale epochs, which filters runs after the tier was closed.
    pub(super) fn sync_notes(&self) -> std::io::Result<()> {
        self.epochs.sync()
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.epochs.held_bytes() + self.stale_filter.as_ref().map_or(0, StaleFilter::held_bytes)
    }
}

/// Splits a record into its bytes and its epoch.
pub(super) fn split_epoch(record: &[u8]) -> Option<(&[u8], u32)> {
    let (record, epoch) = record.split_last_chunk::<EPOCH_BYTES>()?;
    Some((record, u32::from_le_bytes(*epoch)))
}

/// Appends a suffix to the file name of a path.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// Returns an id of the machine's current boot.
fn boot_id() -> std::io::Result<u64> {
    let id = std::fs::read("/proc/sys/kernel/random/boot_id")?;
    Ok(crate::tree::hash::hash(&id))
}
