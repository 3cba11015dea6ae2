//! How many raw bytes a frame has and how many user bytes a leaf, chosen by trying them on the tree's own records.
//!
//! A longer frame compresses better, since neighbours have much in common, and takes longer to read. Some runs of neighbouring leaves
//! are built anew with each length that comes into question, by the code that builds the tree's leaves, and their records are read as a
//! reader does. What a record then holds and what a read of it takes have one price, and the cheapest length is taken.

mod trial;

use bumpalo::Bump;

use crate::tree::compact::builder::{Record, RecordValue};
use crate::tree::compact::compress::Settings;
use crate::tree::error::TreeError;
use crate::tree::inner::TreeInner;
use crate::tree::node::decoder::{Decoder, Engines};
use crate::tree::node::leaf::Leaf;
use crate::tree::upkeep::sizing::trial::Tried;
pub(super) use crate::tree::upkeep::sizing::trial::{Bench, Trial, records_of};
use leafpress_base::mem::room::{TryGrow, copied, room_for};
use leafpress_base::sync::Mutex;
use leafpress_codec::{Codec, Dictionary, Scratch};

/// What memory is worth: a record that is shorter by 1% may take so many per cent longer to read. It is an exchange rate between memory
/// and processors, for a record that is read now and then; who chose a codec for its speed has another one than who chose it for its
/// ratio. See `docs/experiments/024-frames-for-medium-records.md`.
fn time_for_bytes(codec: Codec) -> i32 {
    match codec {
        Codec::None | Codec::Lz4 { .. } => 5,
        _ => 8,
    }
}

/// What a read takes besides, in nanoseconds: the way to the leaf, and waits for memory, which what is tried has at hand.
pub(super) const REST_OF_READ_NS: f64 = 300.0;
/// Shorter records, in user bytes, keep the codec's own frames, which were measured for them (`docs/experiments/014-frames-and-leaves.md`),
/// unless others have a price so much lower: a dictionary mostly says what neighbours would, and a write should not compress many of them.
const SHORT_RECORD_BYTES: u64 = 200;
const MIN_GAIN_OF_SHORT: f64 = 4.0;
/// A length is changed when the price falls by one part in so many at least: every leaf is compressed again.
const MIN_GAIN_IN: f64 = 8.0;
/// Past a length whose price is so much above the lowest, longer ones are not tried.
const HOPELESS: f64 = 4.0;
/// Frame lengths that are tried, but for those below the codec's own.
const FRAME_BYTES: [usize; 5] = [1, 512, 1 << 10, 2 << 10, 4 << 10];
/// A leaf has room for so many frames at least: one of few is split badly, and most of a tree's leaves are not full as those tried are.
const MIN_FRAMES: usize = 8;
/// Leaf lengths that are tried; the first is the one to begin with.
const LEAF_BYTES: [usize; 2] = [16 << 10, 32 << 10];
/// Leaves that are sampled, in runs of neighbours.
const SAMPLE_LEAVES: usize = 16;
const RUN_LEAVES: usize = 4;
/// Runs that are copied at most of a tree that grows meanwhile.
const MAX_RUNS: usize = 2 * SAMPLE_LEAVES / RUN_LEAVES;

/// The raw bytes of a frame with which a tree begins.
fn first_frame_bytes(codec: Codec) -> usize {
    match codec {
        Codec::None | Codec::Lz4 { .. } | Codec::Lz4Hc { .. } | Codec::Auto { .. } => 1,
        Codec::Zstd { .. } => 512,
        // Deflate in all its implementations.
        _ => 2 << 10,
    }
}

/// What a tree's caller says of its lengths.
#[derive(Clone, Copy)]
pub(crate) struct Given {
    pub frame_bytes: Option<usize>,
    pub leaf_bytes: Option<usize>,
    pub inline_value_bytes: usize,
    pub sub_pages: usize,
}

/// How a tree's lengths come about.
pub(crate) struct Sizing {
    /// Whether they are chosen.
    pub auto: bool,
    pub(super) rule: Rule,
    /// Why they are not chosen.
    fixed: &'static str,
    last: Mutex<Outcome>,
}

/// How lengths are chosen.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    given: Given,
    first_frame_bytes: usize,
}

/// What came of the last look at the records.
#[derive(Clone, Copy)]
pub(super) enum Outcome {
    /// There was none, or too few records.
    Untried,
    /// Records are of so many bytes, and not held in much less by other lengths.
    Short(u64),
    Tried(Choice),
}

/// A choice that was made.
#[derive(Clone, Copy)]
pub(super) struct Choice {
    records: usize,
    /// What the tree had before.
    before: Tried,
    chosen: Tried,
}

impl Sizing {
    /// The sizing of a tree whose caller gave these lengths, or not, and the settings to begin with.
    pub(crate) fn new(codec: Codec, given: Given) -> (Self, Settings) {
        let fixed = if given.sub_pages > 0 {
            "sub-pages take the place of frames"
        } else if given.frame_bytes.is_some() {
            "given by the caller"
        } else if codec == Codec::None {
            "without a codec neighbours save nothing"
        } else {
            ""
        };
        let rule = Rule {
            given,
            first_frame_bytes: first_frame_bytes(codec),
        };
        let sizing = Self {
            rule,
            // Time says nothing under the model checkers, and what is tried there takes too much of it.
            auto: fixed.is_empty() && !cfg!(any(shuttle, miri)),
            fixed,
            last: Mutex::new(Outcome::Untried),
        };
        (sizing, rule.first())
    }

    /// What came of the last look.
    pub(super) fn note(&self, outcome: Outcome) {
        *self.last.lock() = outcome;
    }

    /// Why frames and leaves are as long as they are, in words.
    pub(crate) fn reason(&self) -> String {
        if !self.fixed.is_empty() {
            return self.fixed.to_owned();
        }
        let (records, before, chosen) = match *self.last.lock() {
            Outcome::Untried => return "the codec's own until there are enough records to try others".to_owned(),
            Outcome::Short(bytes) => {
                return format!("the codec's own: others would save little of records of {bytes} bytes");
            }
            Outcome::Tried(Choice {
                records,
                before,
                chosen,
            }) => (records, before, chosen),
        };
        let lengths = |tried: &Tried| {
            let Tried {
                settings,
                bytes_per_record,
                read_ns,
            } = tried;
            let frame = match settings.frame_bytes {
                1 => "one record".to_owned(),
                bytes => format!("{bytes} bytes"),
            };
            format!(
                "frames of {frame} in leaves of {} KiB hold {bytes_per_record:.0} bytes a record, read in {read_ns:.0} ns",
                settings.leaf_bytes >> 10
            )
        };
        if chosen.settings == before.settings {
            return format!("by {records} records: {}", lengths(&chosen));
        }
        format!(
            "by {records} records: {}; before, {}",
            lengths(&chosen),
            lengths(&before)
        )
    }
}

impl Rule {
    /// The settings to begin with.
    fn first(&self) -> Settings {
        let frame_bytes = self.given.frame_bytes.unwrap_or(self.first_frame_bytes);
        let [short, long] = LEAF_BYTES;
        let leaf_bytes = self
            .given
            .leaf_bytes
            .unwrap_or(if frame_bytes > short { long } else { short });
        Settings {
            leaf_bytes,
            frame_bytes: frame_bytes.min(leaf_bytes),
            sub_pages: self.given.sub_pages,
            inline_value_bytes: self.given.inline_value_bytes,
        }
    }

    /// Tries lengths on records of a tree, which has so many user bytes a record on average. Returns those that are worth a change, and what
    /// came of it; nothing where it `is_stopped`.
    pub(super) fn choose(
        &self,
        trial: &mut Trial<'_, '_>,
        user_bytes_per_record: u64,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Option<(Option<Settings>, Outcome)>, TreeError> {
        let Bench { now, engines, .. } = trial.bench();
        let (records, codec) = (trial.records, engines.warm.codec());
        let before = trial.run(now)?;
        let mut best = before;
        let leaf_lengths = match self.given.leaf_bytes {
            Some(_) => &[now.leaf_bytes][..],
            None => &LEAF_BYTES[..],
        };
        for &leaf_bytes in leaf_lengths {
            let shortest = best.settings.frame_bytes;
            for frame_bytes in FRAME_BYTES {
                let settings = Settings {
                    leaf_bytes,
                    frame_bytes,
                    ..now
                };
                // In longer leaves no shorter frames than in shorter ones.
                let least = if leaf_bytes == leaf_lengths[0] {
                    self.first_frame_bytes
                } else {
                    shortest
                };
                if settings == now || frame_bytes < least || frame_bytes * MIN_FRAMES > leaf_bytes {
                    continue;
                }
                if is_stopped() {
                    return Ok(None);
                }
                let tried = trial.run(settings)?;
                if tried.price(codec) < best.price(codec) {
                    best = tried;
                } else if tried.price(codec) > best.price(codec) * HOPELESS {
                    break;
                }
            }
        }
        let first = self.first();
        if user_bytes_per_record < SHORT_RECORD_BYTES
            && best.settings != first
            && best.price(codec) * MIN_GAIN_OF_SHORT > trial.run(first)?.price(codec)
        {
            let outcome = Outcome::Short(user_bytes_per_record);
            return Ok(Some(((first != now).then_some(first), outcome)));
        }
        if before.price(codec) - best.price(codec) < before.price(codec) / MIN_GAIN_IN {
            best = before;
        }
        let outcome = Outcome::Tried(Choice {
            records,
            before,
            chosen: best,
        });
        Ok(Some(((best.settings != now).then_some(best.settings), outcome)))
    }
}

impl TreeInner {
    /// Tries lengths on records of the tree, to be compressed with `dictionary`. Returns those that are worth a change.
    pub(super) fn better_lengths(&self, dictionary: Option<&Dictionary>) -> Result<Option<Settings>, TreeError> {
        if !self.sizing.auto {
            return Ok(None);
        }
        let arena = Bump::new();
        let Some(mut trial) = self.trial(&arena)? else {
            return Ok(None);
        };
        trial.dictionary = dictionary;
        // Of all records: those that are tried may be of several lengths.
        let bytes = self.user_bytes()? / (self.len() as u64).max(1);
        let Some((lengths, outcome)) = self.sizing.rule.choose(&mut trial, bytes, &|| false)? else {
            return Ok(None);
        };
        self.sizing.note(outcome);
        Ok(lengths)
    }

    /// Records of the tree to try things on, if there are enough.
    pub(super) fn trial<'r>(&self, arena: &'r Bump) -> Result<Option<Trial<'_, 'r>>, TreeError> {
        let bench = Bench {
            engines: &self.engines,
            memory: &self.memory,
            now: self.settings.now(),
            temperatures: self.temperatures.as_ref(),
            marks: self.marks,
        };
        Ok(Trial::new(bench, self.runs(arena)?))
    }

    /// The records of runs of leaves spread over the tree, in key order. What landed on a leaf, and what of it cannot be decoded, is not
    /// among them.
    fn runs<'b>(&self, arena: &'b Bump) -> Result<Vec<Vec<Record<'b>>>, TreeError> {
        let mut leaves = 0;
        self.for_each_leaf(&self.memory.enter()?, |_| leaves += 1);
        let mut places = RunPlaces::among(leaves);
        let mut scratch = Scratch::default();
        let mut runs: Vec<Vec<Record<'b>>> = Vec::new();
        self.for_each_leaf_in_turn(|leaf| {
            let Some(in_run) = places.next_leaf() else {
                return Ok(());
            };
            let records = records_of(leaf, &mut Decoder::new(&self.engines, &mut scratch), arena)?;
            match runs.last_mut() {
                // Another shard's keys need not come behind.
                Some(run)
                    if in_run > 0
                        && run
                            .last()
                            .is_none_or(|last| records.first().is_none_or(|first| last.key < first.key)) =>
                {
                    run.try_extend(records)?;
                }
                _ => runs.try_push(records)?,
            }
            Ok(())
        })?;
        runs.retain(|run| !run.is_empty());
        Ok(runs)
    }
}

/// Which leaves are sampled: runs of neighbours, spread over a tree.
struct RunPlaces {
    period: usize,
    seen: usize,
}

impl RunPlaces {
    fn among(leaves: usize) -> Self {
        Self {
            period: (leaves / (SAMPLE_LEAVES / RUN_LEAVES)).max(RUN_LEAVES),
            seen: 0,
        }
    }

    /// Has runs be twice as far apart, from the one on that has just begun.
    fn thin(&mut self) {
        self.period *= 2;
        self.seen = 1;
    }

    /// The place that the next leaf has in a run, if it is in one.
    fn next_leaf(&mut self) -> Option<usize> {
        let in_run = self.seen % self.period;
        self.seen += 1;
        (in_run < RUN_LEAVES).then_some(in_run)
    }
}

/// Records of runs of leaves, copied, for a thread that has nothing of the tree.
pub(super) struct CopiedRuns {
    places: RunPlaces,
    runs: Vec<Vec<(Vec<u8>, Vec<u8>)>>,
}

impl CopiedRuns {
    /// None yet, of a tree of so many leaves.
    pub(super) fn among(leaves: usize) -> Self {
        Self {
            places: RunPlaces::among(leaves),
            runs: Vec::new(),
        }
    }

    /// Takes the leaf's records if it is in a run. What landed on it, and what of it cannot be decoded, is not among them.
    pub(super) fn visit(&mut self, leaf: Leaf<'_>, engines: &Engines, scratch: &mut Scratch) -> Result<(), TreeError> {
        let Some(in_run) = self.places.next_leaf() else {
            return Ok(());
        };
        if in_run == 0 && self.runs.len() >= MAX_RUNS {
            // The tree has grown since its leaves were counted: of every two runs one is enough.
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
        // Another shard's keys need not come behind.
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

    /// The runs, as a trial takes them.
    pub(super) fn records(&self) -> Result<Vec<Vec<Record<'_>>>, TreeError> {
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

#[cfg(test)]
mod tests;
