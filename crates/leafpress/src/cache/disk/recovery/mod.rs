//! Finding what is on disk again after the process was killed.
//!
//! Two files stand beside the tier's: `run_log` says which runs there are, `stale_epochs` which of their records are out of date. `side_file_header` is what both
//! begin with. Three rules see that no record is found that a write or a removal had replaced:
//!
//! 1. **Epochs.** A record that leaves memory has the epoch of the batch that takes it, 4 bytes behind its own. Epochs rise with each batch.
//! 2. **Notes.** Who writes or removes a key of which a record may be on disk, or on its way there, notes in the key's slot the epoch of that
//!    moment, after the tree was changed and before he says that it is done. What left memory before has that epoch at most.
//! 3. **Judging.** After a crash a record counts exactly if its epoch is later than its slot's. That is asked whenever one is found in a run from
//!    before: `StaleFilter` keeps the table as it was then. The table goes on as it is, so that what is refused once is refused for good.
//!
//! A write of a key that memory knows nothing of on disk is not noted: that it fills a cache loses nothing. So the log may not have a run that
//! memory does not know: a change of runs counts there before it is done, see `change`.
//!
//! What a killed process wrote is in the system's page cache, which a machine that goes down loses. So notes have the id of the boot that they
//! were written in. A tier that was closed has an image, and needs its notes only for runs that are judged; they are made to last before.

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
pub(super) use self::stale_epochs::{MAX_EPOCH, StaleFilter};
use super::run::Run;

/// Bytes of an epoch behind a record.
const EPOCH_BYTES: usize = size_of::<u32>();

/// What a tier has that is found again after a crash.
pub(super) struct Recovery {
    notes: Arc<StaleEpochTable>,
    log: Mutex<RunLog>,
    stale_filter: Option<StaleFilter>,
    session: u64,
}

impl Recovery {
    /// The log of runs. It is locked before what memory knows is.
    pub(super) fn log(&self) -> MutexGuard<'_, RunLog> {
        self.log.lock()
    }

    /// Notes that what left memory of a key up to an epoch is out of date.
    pub(super) fn note(&self, hash: u64, epoch: u32) {
        self.notes.mark_stale_up_to(hash, epoch);
    }

    /// Whether a record of a run, as it is on disk, may be out of date.
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

    /// Runs before this position are judged; 0 where none is.
    pub(super) fn judged_before(&self) -> u64 {
        self.stale_filter.as_ref().map_or(0, |stale_filter| stale_filter.before)
    }

    /// Makes the notes last, for what is judged by them after the tier was closed.
    pub(super) fn sync_notes(&self) -> std::io::Result<()> {
        self.notes.sync()
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.notes.held_bytes() + self.stale_filter.as_ref().map_or(0, StaleFilter::held_bytes)
    }
}

/// A record without its epoch, and that.
pub(super) fn split_epoch(record: &[u8]) -> Option<(&[u8], u32)> {
    let (record, epoch) = record.split_last_chunk::<EPOCH_BYTES>()?;
    Some((record, u32::from_le_bytes(*epoch)))
}

/// A path with something behind its name.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// Which boot of the machine this is.
fn boot_id() -> std::io::Result<u64> {
    let id = std::fs::read("/proc/sys/kernel/random/boot_id")?;
    Ok(crate::tree::hash::hash(&id))
}
