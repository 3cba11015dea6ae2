//! Lookup of a key: in the batches, then in pages.

use std::sync::Arc;

use super::counters::Count;
use super::failure::Failure;
use super::key_hash::DiskHash;
use super::page::{self, BLOCK_BYTES, ChecksumSeed, MAX_RAW_BYTES, Records};
use super::recovery::split_epoch;
use super::run::Run;
use super::state::Candidates;
use super::tier::Tier;
use crate::cache::observer::Observer;
use leafpress_base::io::aligned::AlignedBuffer;
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::TryGrow;
use leafpress_base::sync::per_core::PerCore;
use leafpress_codec::Scratch;

/// Maximum retries of a lookup whose run was moved before it could be read.
const MAX_LOOKUPS: usize = 8;

/// Buffers to decode pages with.
#[derive(Default)]
pub(super) struct PageBuffers {
    raw: Vec<u8>,
    scratch: Scratch,
}

impl PageBuffers {
    /// Frees the buffers of a long value.
    fn trim(&mut self) {
        if self.raw.capacity() > 2 * MAX_RAW_BYTES {
            *self = Self::default();
        }
    }
}

/// Buffers to read pages with.
struct ReadBuffers {
    block: AlignedBuffer,
    page: PageBuffers,
}

static BUFFERS: PerCore<Option<ReadBuffers>> = PerCore::new();

/// Position of a key's record relative to a page.
pub(super) enum Side<'p> {
    Found(&'p [u8]),
    /// The key would be in this page, and is not.
    Absent,
    Before,
    Behind,
}

/// Outcome of a lookup that read pages.
enum Read {
    Found,
    Absent,
    /// A page of this run could not be read or is damaged.
    Failed(Arc<Run>, Failure),
}

impl Tier {
    /// Copies the newest record of a key into `into`; returns true if there is one. An unreadable record counts as
    /// absent.
    pub(in crate::cache) fn find(&self, hash: DiskHash, key: &[u8], into: &mut Vec<u8>) -> Result<bool, OutOfMemory> {
        if self.has_failed() {
            return Ok(false);
        }
        let hash = hash.0;
        self.counters.add(Count::Lookups, 1);
        for _ in 0..MAX_LOOKUPS {
            let candidates = {
                let state = self.state.read();
                if let Some(record) = state.on_its_way(hash, key) {
                    into.clear();
                    into.try_append(self.without_epoch(record))?;
                    return Ok(true);
                }
                state.candidates(hash, key)?
            };
            if candidates.is_empty() {
                return Ok(false);
            }
            match self.read_candidates(&candidates, hash, key, into)? {
                Read::Found => return Ok(true),
                Read::Absent => return Ok(false),
                Read::Failed(run, failure) => {
                    // The run was overwritten: it has moved, or is gone.
                    if !self.state.read().has_run(key, &run) {
                        continue;
                    }
                    self.count_read_failure(&failure);
                    if let Failure::OutOfMemory { bytes } = failure {
                        return Err(OutOfMemory { bytes });
                    }
                    // Older runs may have the key as well, but their record is outdated.
                    return Ok(false);
                }
            }
        }
        Ok(false)
    }

    pub(super) fn count_read_failure(&self, failure: &Failure) {
        match failure {
            Failure::Damaged => _ = self.counters.add(Count::Damaged, 1),
            Failure::Io(_) => _ = self.counters.add(Count::ReadErrors, 1),
            Failure::Codec(_) | Failure::OutOfMemory { .. } => {}
        }
        let failures = self.counters.sum(Count::Damaged) + self.counters.sum(Count::ReadErrors);
        warn_event_by_count!(failures, cache = %self.observer.name, error = %failure, "disk read failed");
    }

    /// Returns a record without its epoch, as it left memory.
    pub(super) fn without_epoch<'r>(&self, record: &'r [u8]) -> &'r [u8] {
        match &self.recovery {
            Some(_) => split_epoch(record).map_or(record, |(record, _)| record),
            None => record,
        }
    }

    fn read_candidates(
        &self,
        candidates: &Candidates,
        hash: u64,
        key: &[u8],
        into: &mut Vec<u8>,
    ) -> Result<Read, OutOfMemory> {
        BUFFERS.with(|buffers| self.read_candidates_into(candidates, hash, key, buffers, into))
    }

    fn read_candidates_into(
        &self,
        candidates: &Candidates,
        hash: u64,
        key: &[u8],
        buffers: &mut Option<ReadBuffers>,
        into: &mut Vec<u8>,
    ) -> Result<Read, OutOfMemory> {
        let mut outcome = Read::Absent;
        'candidates: for (run, pages) in candidates {
            // A run's records are sorted, so that a binary search reads few pages even if many keys have similar
            // hashes.
            let mut pages = pages.clone();
            while !pages.is_empty() {
                let page = pages.start + (pages.len() - 1) / 2;
                match self.read_page(run, page, (hash, key), buffers, into) {
                    Ok(Side::Found(_)) => {
                        outcome = Read::Found;
                        break 'candidates;
                    }
                    Ok(Side::Absent) => break,
                    Ok(Side::Before) => pages.end = page,
                    Ok(Side::Behind) => pages.start = page + 1,
                    Err(failure) => {
                        outcome = Read::Failed(Arc::clone(run), failure);
                        break 'candidates;
                    }
                }
            }
        }
        Ok(outcome)
    }

    /// Returns true if a record from before a crash may be stale.
    pub(super) fn refuses(&self, run: &Run, hash: u64, record: &[u8]) -> bool {
        let recovery = self.recovery.as_ref();
        recovery.is_some_and(|recovery| recovery.refuses(run, hash, record))
    }

    /// Looks up a key in a page, and copies its record into `into`.
    fn read_page(
        &self,
        run: &Run,
        page: usize,
        (hash, key): (u64, &[u8]),
        buffers: &mut Option<ReadBuffers>,
        into: &mut Vec<u8>,
    ) -> Result<Side<'static>, Failure> {
        let (first, blocks) = run.page(page);
        let ReadBuffers { block, page } = match buffers {
            Some(buffers) => buffers,
            None => buffers.insert(ReadBuffers {
                block: AlignedBuffer::new(BLOCK_BYTES, BLOCK_BYTES)?,
                page: PageBuffers::default(),
            }),
        };
        self.counters.add(Count::BlocksRead, blocks as u64);
        let mut own;
        let bytes = if blocks == 1 {
            block.bytes_mut()
        } else {
            own = self.device.buffer(blocks)?;
            own.bytes_mut()
        };
        let began = Observer::begin_disk_read();
        self.device.read(run.blocks_from(first), bytes)?;
        self.observer.end_disk_read(began);
        self.decode_page(run, first, bytes, page)?;
        let side = match self.side_of(run, (hash, key), page) {
            Side::Found(record) => {
                into.clear();
                into.try_append(record)?;
                Side::Found(&[])
            }
            Side::Absent => Side::Absent,
            Side::Before => Side::Before,
            Side::Behind => Side::Behind,
        };
        page.trim();
        Ok(side)
    }

    /// Decodes the page that begins at a run's block `first`.
    pub(super) fn decode_page(
        &self,
        run: &Run,
        first: u64,
        bytes: &[u8],
        buffers: &mut PageBuffers,
    ) -> Result<(), Failure> {
        let seed = ChecksumSeed {
            tier: self.id,
            position: run.position + first,
        };
        let PageBuffers { raw, scratch } = buffers;
        page::read(bytes, seed, &*self.engine, self.device.most_raw_bytes(), raw, scratch)
    }

    /// Returns a key's record in a decoded page, or the side of the page's records on which it would be.
    pub(super) fn side_of<'p>(&self, run: &Run, (hash, key): (u64, &[u8]), page: &'p PageBuffers) -> Side<'p> {
        let raw = &page.raw[..];
        match Records(raw).find(|(found, _)| *found == key) {
            // Older records are refused too: they have earlier epochs.
            Some((_, record)) if self.refuses(run, hash, record) => return Side::Absent,
            Some((_, record)) => return Side::Found(self.without_epoch(record)),
            None => {}
        }
        let place = |of: &[u8]| self.hasher.hash(of).cmp(&hash).then_with(|| of.cmp(key));
        let (first, last) = (Records(raw).next(), Records(raw).last());
        match (first, last) {
            (Some((first, _)), _) if place(first).is_gt() => Side::Before,
            (_, Some((last, _))) if place(last).is_gt() => Side::Absent,
            _ => Side::Behind,
        }
    }
}
