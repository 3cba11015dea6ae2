//! Opening of a tier: from the image of a closed one, from the side files of a killed one, or empty.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::Arc;

use super::replay::{Replayed, replay};
use super::run_log::RunLog;
use super::side_file_header::SideFileHeader;
use super::stale_epochs::{self, StaleEpochTable, StaleFilter, StoredEpochTable};
use super::{Recovery, boot_id, with_suffix};
use crate::cache::disk::batch::MAX_EPOCH;
use crate::cache::disk::device::Device;
use crate::cache::disk::failure::Failure;
use crate::cache::disk::image::{self, Kept};
use crate::cache::disk::state::TierState;
use crate::cache::disk::superblock::{self, Kind, RecoveryStamp, Superblock, SuperblockState};
use leafpress_base::io::at_path::at_path;
use leafpress_base::sync::plain::Mutex;

/// Minimum gap of positions after a crash: the killed process may have used some behind the last one known.
const POSITIONS_LEFT_OUT: u64 = 1 << 40;
/// A tier that has reached this epoch is not continued: its records would soon all have the last epoch, and none would
/// be valid after a crash.
const LATE_EPOCH: u32 = MAX_EPOCH / 4 * 3;

/// Parameters of an opening.
pub(in crate::cache::disk) struct Opening<'o> {
    pub device: &'o Device,
    pub kind: Kind,
    pub most_chunks: u32,
    /// The cache's memory, which is still empty.
    pub memory_bytes: u64,
}

/// A tier's initial state.
pub(in crate::cache::disk) struct Opened {
    pub id: u64,
    pub head: u64,
    pub state: TierState,
    pub kept: Kept,
    pub recovery: Option<Recovery>,
    /// Records of runs recovered after a crash.
    pub recovered: u64,
}

/// The recovered contents, and the numbers to continue from.
struct RecoveredTier {
    opened: Opened,
    session: u64,
    table: Vec<u32>,
    /// Upper bound of the records' epochs.
    epoch: u32,
    judged_before: u64,
    /// Low bits of the number of committed log entries.
    entries: u32,
}

/// Returns a number that is unique among tiers and openings.
fn new_id() -> u64 {
    RandomState::new().hash_one(std::time::SystemTime::now()).max(1)
}

impl Opening<'_> {
    fn room_bytes(&self) -> usize {
        usize::try_from(self.memory_bytes).unwrap_or(usize::MAX)
    }

    fn nothing(&self) -> Opened {
        Opened {
            id: new_id(),
            head: 0,
            state: TierState::new(self.most_chunks),
            kept: Kept::default(),
            recovery: None,
            recovered: 0,
        }
    }

    fn image(&self, superblock: Superblock) -> Result<Option<Opened>, Failure> {
        let read = image::read(self.device, superblock, self.most_chunks, self.room_bytes())?;
        Ok(read.map(|(state, kept)| Opened {
            id: superblock.tier,
            // If two processes open the tier at once, their positions differ nevertheless.
            head: superblock.head + (new_id() >> 24),
            state,
            kept,
            recovery: None,
            recovered: 0,
        }))
    }

    /// Opens a tier without crash recovery.
    pub(in crate::cache::disk) fn open(&self) -> Result<Opened, Failure> {
        let opened = match superblock::read(self.device, self.kind)? {
            SuperblockState::Closed(superblock) => self.image(superblock),
            SuperblockState::Open { .. } | SuperblockState::Nothing => Ok(None),
        };
        // Until this is written, the last tier's contents are valid. From then on they would be outdated.
        let opened = opened?.unwrap_or_else(|| self.nothing());
        superblock::mark_open(self.device, self.kind, opened.id, None)?;
        Ok(opened)
    }

    /// Opens a tier with crash recovery, by side files next to `path`.
    pub(in crate::cache::disk) fn open_with_side_files(&self, path: &Path) -> Result<Opened, Failure> {
        let boot = boot_id().map_err(|error| at_path(path, "read the boot id", error))?;
        self.open_in(boot, path)
    }

    fn open_in(&self, boot: u64, path: &Path) -> Result<Opened, Failure> {
        let (epochs, runs) = (with_suffix(path, ".epochs"), with_suffix(path, ".runs"));
        let found = match superblock::read(self.device, self.kind)? {
            SuperblockState::Closed(superblock) => self.closed(superblock, &epochs)?,
            SuperblockState::Open { tier, session } => self.killed(tier, session, boot, &epochs, &runs)?,
            SuperblockState::Nothing => None,
        };
        let found = match found.filter(|found| found.epoch < LATE_EPOCH) {
            Some(found) => found,
            None => RecoveredTier {
                opened: self.nothing(),
                session: new_id(),
                table: stale_epochs::fresh(self.slots())?,
                epoch: 0,
                judged_before: 0,
                entries: 0,
            },
        };
        self.begin(found, boot, &epochs, &runs)
    }

    fn slots(&self) -> usize {
        stale_epochs::slots_for(self.memory_bytes)
    }

    /// Restores a closed tier.
    fn closed(&self, superblock: Superblock, epochs: &Path) -> Result<Option<RecoveredTier>, Failure> {
        let Some(RecoveryStamp {
            session,
            mut judged_before,
            epoch,
        }) = superblock.epochs
        else {
            return Ok(None);
        };
        let Some(mut opened) = self.image(superblock)? else {
            return Ok(None);
        };
        let table = StoredEpochTable::read(epochs, self.kind, superblock.tier, session, self.slots())?;
        let table = match table {
            Some(table) => table.into_values(),
            None => {
                // Without the table the validity of their records is unknown.
                forget_before(&mut opened.state, judged_before);
                judged_before = 0;
                stale_epochs::fresh(self.slots())?
            }
        };
        Ok(Some(RecoveredTier {
            opened,
            session,
            epoch: epoch.max(stale_epochs::latest(&table)),
            table,
            judged_before,
            entries: 0,
        }))
    }

    /// Recovers the tier of a killed process.
    fn killed(
        &self,
        tier: u64,
        session: u64,
        boot: u64,
        epochs: &Path,
        runs: &Path,
    ) -> Result<Option<RecoveredTier>, Failure> {
        let table = StoredEpochTable::read(epochs, self.kind, tier, session, self.slots())?;
        let Some(table) = table.filter(|table| table.header.own[0] == boot) else {
            return Ok(None);
        };
        let Some(entries) = table.committed else {
            return Ok(None);
        };
        let replayed = replay(runs, self.kind, tier, session, entries, self.room_bytes())?;
        let Some(Replayed { leaves, head, epoch }) = replayed else {
            return Ok(None);
        };
        let mut state = TierState::new(self.most_chunks);
        if !state.restore(leaves)? {
            return Ok(None);
        }
        let table = table.into_values();
        let opened = Opened {
            id: tier,
            head: head + POSITIONS_LEFT_OUT + (new_id() >> 24),
            recovered: state.records,
            state,
            kept: Kept::default(),
            recovery: None,
        };
        Ok(Some(RecoveredTier {
            judged_before: opened.head,
            session,
            epoch: epoch.max(stale_epochs::latest(&table)),
            table,
            opened,
            entries,
        }))
    }

    /// Rewrites the side files, and block 0 last: until then the previous contents are valid.
    fn begin(&self, found: RecoveredTier, boot: u64, epochs_at: &Path, runs_at: &Path) -> Result<Opened, Failure> {
        let RecoveredTier {
            mut opened,
            session: previous,
            table,
            epoch,
            judged_before,
            entries,
        } = found;
        let epoch = epoch.saturating_add(1).min(MAX_EPOCH);
        opened.state.open.epoch = epoch;
        let header = SideFileHeader {
            kind: self.kind,
            tier: opened.id,
            session: new_id(),
            previous,
            own: [boot, table.len() as u64, 0, 0],
        };
        let new = with_suffix(epochs_at, ".new");
        let epochs = Arc::new(StaleEpochTable::create(&new, header, &table, entries)?);
        // The log first: the old table is valid with the new log, but not the other way round.
        let log = RunLog::create(
            runs_at.to_owned(),
            Arc::clone(&epochs),
            header,
            opened.state.leaves(),
            opened.head,
            epoch,
            entries.into(),
        )?;
        std::fs::rename(&new, epochs_at)
            .map_err(|error| at_path(epochs_at, "replace the table of stale epochs", error))?;
        superblock::mark_open(self.device, self.kind, opened.id, Some(header.session))?;
        let has_judged = |run: &Arc<_>| is_before(run, judged_before);
        let is_judged = opened
            .state
            .leaves()
            .iter()
            .any(|leaf| leaf.runs.iter().any(has_judged));
        opened.recovery = Some(Recovery {
            epochs,
            log: Mutex::new(log),
            stale_filter: is_judged.then(|| StaleFilter::new(judged_before, table)),
            session: header.session,
        });
        Ok(opened)
    }
}

fn is_before(run: &Arc<crate::cache::disk::run::Run>, position: u64) -> bool {
    run.position < position
}

/// Drops runs before a position. They are the oldest of each leaf.
fn forget_before(state: &mut TierState, position: u64) {
    for leaf in 0..state.leaves().len() {
        let runs = &state.leaves()[leaf].runs;
        let first = runs.iter().position(|run| is_before(run, position));
        if let Some(first) = first {
            state.forget_from(leaf, first);
        }
    }
}

#[cfg(all(test, target_os = "linux", not(any(miri, shuttle))))]
mod tests {
    use super::*;
    use leafpress_base::store::MemoryStore;
    use leafpress_codec::Codec;

    #[test]
    fn what_was_killed_is_found_in_the_same_boot_only() {
        let directory = tempfile::tempdir().unwrap();
        let device = Device::new(Arc::new(MemoryStore::new(4096).unwrap()), 4000);
        let opening = Opening {
            device: &device,
            kind: Kind::of(Codec::None, &device, true),
            most_chunks: 500,
            memory_bytes: 4 << 20,
        };
        let path = directory.path().join("cache");
        let id = |boot| opening.open_in(boot, &path).unwrap().id;
        let first = id(1);
        assert_eq!([id(1), id(1)], [first; 2]);
        let second = id(2);
        assert_ne!(second, first);
        assert_eq!(id(2), second);
        // Epochs are not exhausted for good.
        let note = |epoch| opening.open_in(2, &path).unwrap().recovery.unwrap().note(77, epoch);
        note(LATE_EPOCH - 2);
        assert_eq!(id(2), second);
        note(LATE_EPOCH);
        let third = opening.open_in(2, &path).unwrap();
        assert!(third.id != second && third.state.open.epoch == 1);
        assert_eq!(id(2), third.id);
    }
}
