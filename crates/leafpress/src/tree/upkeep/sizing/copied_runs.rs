//! Samples of records for trials: copies of the records of runs of neighbouring leaves, spread over the tree.

use bumpalo::Bump;

use crate::tree::compact::builder::{Record, RecordValue};
use crate::tree::error::TreeError;
use crate::tree::node::decoder::{Decoder, Engines};
use crate::tree::node::leaf::Leaf;
use crate::tree::upkeep::sizing::trial::records_of;
use leafpress_base::mem::room::{TryGrow, copied, room_for};
use leafpress_codec::Scratch;

/// Number of sampled leaves, in runs of neighbours.
const SAMPLE_LEAVES: usize = 16;
const RUN_LEAVES: usize = 4;
/// Maximum number of copied runs, of a tree that grows meanwhile.
const MAX_RUNS: usize = 2 * SAMPLE_LEAVES / RUN_LEAVES;

/// The positions of sampled leaves: runs of neighbours, spread over a tree.
pub(crate) struct RunPlaces {
    period: usize,
    seen: usize,
}

impl RunPlaces {
    pub(crate) fn among(leaves: usize) -> Self {
        Self {
            period: (leaves / (SAMPLE_LEAVES / RUN_LEAVES)).max(RUN_LEAVES),
            seen: 0,
        }
    }

    /// Doubles the distance between runs, from the one on that has just begun.
    fn thin(&mut self) {
        self.period *= 2;
        self.seen = 1;
    }

    /// Returns the position of the next leaf in a run, if it is in one.
    pub(crate) fn next_leaf(&mut self) -> Option<usize> {
        let in_run = self.seen % self.period;
        self.seen += 1;
        (in_run < RUN_LEAVES).then_some(in_run)
    }
}

/// Copied records of runs of leaves, in key order: a thread without access to the tree may have them.
pub(in crate::tree::upkeep) struct CopiedRuns {
    places: RunPlaces,
    runs: Vec<Vec<(Vec<u8>, Vec<u8>)>>,
}

impl CopiedRuns {
    /// Creates an empty collection for a tree of this number of leaves.
    pub(in crate::tree::upkeep) fn among(leaves: usize) -> Self {
        Self {
            places: RunPlaces::among(leaves),
            runs: Vec::new(),
        }
    }

    /// Adds the leaf's records if it is in a run, without those in landing buffers and those that cannot be decoded.
    pub(in crate::tree::upkeep) fn visit(
        &mut self,
        leaf: Leaf<'_>,
        engines: &Engines,
        scratch: &mut Scratch,
    ) -> Result<(), TreeError> {
        let Some(in_run) = self.places.next_leaf() else {
            return Ok(());
        };
        if in_run == 0 && self.runs.len() >= MAX_RUNS {
            // The tree has grown since its leaves were counted: every other run is dropped.
            let mut index = 0;
            self.runs.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.places.thin();
        }
        let arena = Bump::new();
        let records = records_of(leaf, &mut Decoder::new(engines, scratch), &arena)?;
        let Some(first) = records.first() else { return Ok(()) };
        // Keys of another shard need not follow in order.
        let goes_on = in_run > 0
            && self
                .runs
                .last()
                .and_then(|run| run.last())
                .is_some_and(|(last, _)| last.as_slice() < first.key);
        if !goes_on {
            self.runs.try_push(Vec::new())?;
        }
        if let Some(run) = self.runs.last_mut() {
            for record in &records {
                if let RecordValue::Inline(value) = record.value {
                    run.try_push((copied(record.key)?, copied(value)?))?;
                }
            }
        }
        Ok(())
    }

    /// Returns the runs in the form for a trial.
    pub(in crate::tree::upkeep) fn records(&self) -> Result<Vec<Vec<Record<'_>>>, TreeError> {
        let mut runs = room_for(self.runs.len())?;
        for copied in &self.runs {
            let mut run = room_for(copied.len())?;
            run.extend(copied.iter().map(|(key, value)| Record {
                key,
                value: RecordValue::Inline(value),
                mark: 0,
            }));
            runs.push(run);
        }
        Ok(runs)
    }
}
