//! Lookups of several keys whose pages are read in one batch.

use std::sync::Arc;

use super::counters::Count;
use super::key_hash::DiskHash;
use super::lookup::{PageBuffers, Side};
use super::page::BLOCK_BYTES;
use super::run::Run;
use super::tier::Tier;
use crate::cache::observer::Observer;
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::{TryGrow, collected};

/// Maximum blocks (1 MiB) that a batch reads, unless a single page is longer.
const MAX_BLOCKS: usize = 256;

/// Result of a key's lookup in a batch.
pub(in crate::cache) enum Located<'r> {
    Found(&'r [u8]),
    Absent,
    /// The first page that the key may be in does not tell: the key has to be looked up alone.
    Unknown,
}

/// The page that a key is first looked up in.
struct Probe {
    /// Index of the key.
    index: usize,
    run: Arc<Run>,
    /// The first block, relative to the run's, and the number of blocks.
    blocks: (u64, usize),
    /// Whether the key can be in no other run.
    is_only: bool,
}

impl Probe {
    fn position(&self) -> u64 {
        self.run.position + self.blocks.0
    }
}

impl Tier {
    /// Looks up several keys, and calls `found` once for each with its index, in the order in which they are located.
    /// The pages are read by one batch, or by several if they are long, each once.
    pub(in crate::cache) fn find_many(
        &self,
        keys: &[(DiskHash, &[u8])],
        mut found: impl FnMut(usize, Located<'_>) -> Result<(), OutOfMemory>,
    ) -> Result<(), OutOfMemory> {
        if self.has_failed() {
            return (0..keys.len()).try_for_each(|index| found(index, Located::Absent));
        }
        let mut probes = self.probes(keys, &mut found)?;
        probes.sort_unstable_by_key(Probe::position);
        let pages = collected(probes.chunk_by(|one, other| one.position() == other.position()))?;
        let mut rest = &pages[..];
        while !rest.is_empty() {
            let mut blocks = 0;
            let fits = rest.iter().take_while(|page| {
                blocks += page[0].blocks.1;
                blocks <= MAX_BLOCKS
            });
            // A page that is larger alone is read alone.
            let (now, later) = rest.split_at(fits.count().max(1));
            self.find_in_pages(now, keys, &mut found)?;
            rest = later;
        }
        Ok(())
    }

    /// Returns the pages to read for the keys that the tier may have.
    fn probes(
        &self,
        keys: &[(DiskHash, &[u8])],
        found: &mut impl FnMut(usize, Located<'_>) -> Result<(), OutOfMemory>,
    ) -> Result<Vec<Probe>, OutOfMemory> {
        let (mut probes, mut others) = (Vec::new(), Vec::new());
        {
            let state = self.state.read();
            for (index, (hash, key)) in keys.iter().enumerate() {
                if state.on_its_way(hash.0, key).is_some() {
                    others.try_push((index, Located::Unknown))?;
                    continue;
                }
                let candidates = state.candidates(hash.0, key)?;
                let is_only = candidates.len() == 1;
                match candidates.into_iter().next() {
                    None => others.try_push((index, Located::Absent))?,
                    Some((run, pages)) => {
                        let blocks = run.page(pages.start + (pages.len() - 1) / 2);
                        probes.try_push(Probe {
                            index,
                            blocks,
                            is_only,
                            run,
                        })?;
                    }
                }
            }
        }
        // Without the lock, since the caller stores what is found.
        let absent = others
            .iter()
            .filter(|(_, located)| matches!(located, Located::Absent))
            .count();
        self.counters.add(Count::Lookups, absent as u64);
        others
            .into_iter()
            .try_for_each(|(index, located)| found(index, located))?;
        Ok(probes)
    }

    /// Reads pages, each of them for one or more keys, and looks the keys up in them.
    fn find_in_pages(
        &self,
        pages: &[&[Probe]],
        keys: &[(DiskHash, &[u8])],
        found: &mut impl FnMut(usize, Located<'_>) -> Result<(), OutOfMemory>,
    ) -> Result<(), OutOfMemory> {
        let blocks = pages.iter().map(|page| page[0].blocks.1).sum();
        let read = self.device.buffer(blocks).and_then(|mut buffer| {
            let blocks = pages.iter().flat_map(|page| {
                let (first, count) = page[0].blocks;
                page[0].run.blocks_from(first).take(count)
            });
            let began = Observer::begin_disk_read();
            self.device.read(blocks, buffer.bytes_mut())?;
            self.observer.end_disk_read(began);
            Ok(buffer)
        });
        // A lookup of each key alone finds out which page failed, and whether its run was overwritten.
        let Ok(buffer) = read else {
            let mut probes = pages.iter().copied().flatten();
            return probes.try_for_each(|probe| found(probe.index, Located::Unknown));
        };
        self.counters.add(Count::BlocksRead, blocks as u64);
        let (mut buffers, mut bytes) = (PageBuffers::default(), buffer.bytes());
        for page in pages {
            let (own, rest) = bytes.split_at(page[0].blocks.1 * BLOCK_BYTES);
            bytes = rest;
            let (run, first) = (&page[0].run, page[0].blocks.0);
            let decoded = self.decode_page(run, first, own, &mut buffers);
            for probe in *page {
                let (hash, key) = keys[probe.index];
                let located = match decoded {
                    Ok(()) => match self.side_of(run, (hash.0, key), &buffers) {
                        Side::Found(record) => Located::Found(record),
                        Side::Absent if probe.is_only => Located::Absent,
                        _ => Located::Unknown,
                    },
                    Err(_) => Located::Unknown,
                };
                self.counters
                    .add(Count::Lookups, u64::from(!matches!(located, Located::Unknown)));
                found(probe.index, located)?;
            }
        }
        Ok(())
    }
}
