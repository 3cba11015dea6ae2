//! How many raw bytes a frame has and how many user bytes a leaf, chosen by trying them on the tree's own records.
//!
//! A longer frame compresses better, since neighbours have much in common, and takes longer to read. Some runs of neighbouring leaves
//! are built anew with each length that comes into question, by the code that builds the tree's leaves, and their records are read as a
//! reader does. What a record then holds and what a read of it takes have one price, and the cheapest length is taken.

use std::hint::black_box;
use std::time::Instant;

use bumpalo::Bump;

use crate::codec::{Codec, Dictionary, Scratch};
use crate::mem::room::{TryGrow, room_for};
use crate::sync::Mutex;
use crate::tree::compact::builder::{Record, RecordValue, keep};
use crate::tree::compact::compress::{Buffers, BuiltLeaves, Compression, Settings};
use crate::tree::compact::split_hint::SplitHint;
use crate::tree::core::Core;
use crate::tree::error::Error;
use crate::tree::hash::hash;
use crate::tree::node::decoder::{Decoder, Value};
use crate::tree::node::layout::Temperature;
use crate::tree::node::leaf::Leaf;

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
const LEAST_GAIN_OF_SHORT: f64 = 4.0;
/// A length is changed when the price falls by one part in so many at least: every leaf is compressed again.
const LEAST_GAIN_IN: f64 = 8.0;
/// Past a length whose price is so much above the lowest, longer ones are not tried.
const HOPELESS: f64 = 4.0;
/// Frame lengths that are tried, but for those below the codec's own.
const FRAME_BYTES: [usize; 5] = [1, 512, 1 << 10, 2 << 10, 4 << 10];
/// A leaf has room for so many frames at least: one of few is split badly, and most of a tree's leaves are not full as those tried are.
const LEAST_FRAMES: usize = 8;
/// Leaf lengths that are tried; the first is the one to begin with.
const LEAF_BYTES: [usize; 2] = [16 << 10, 32 << 10];
/// Leaves that are sampled, in runs of neighbours.
const SAMPLE_LEAVES: usize = 16;
const RUN_LEAVES: usize = 4;
/// Fewer records say too little.
const LEAST_RECORDS: usize = 64;
/// Most records of a run that are read.
const MAX_READS: usize = 256;
/// Reads are timed so often; the least time counts, since what disturbs only adds.
const ROUNDS: usize = 3;

/// The raw bytes of a frame with which a tree begins.
fn first_frame_bytes(codec: Codec) -> usize {
    match codec {
        Codec::None | Codec::Lz4 { .. } | Codec::Lz4Hc { .. } | Codec::Auto { .. } => 1,
        Codec::Zstd { .. } => 512,
        Codec::Deflate { .. } | Codec::Zlib { .. } | Codec::Qpl { .. } => 2 << 10,
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
    given: Given,
    /// Why they are not chosen.
    fixed: &'static str,
    first_frame_bytes: usize,
    last: Mutex<Outcome>,
}

/// What came of the last look at the records.
#[derive(Clone, Copy)]
enum Outcome {
    /// There was none, or too few records.
    Untried,
    /// Records are of so many bytes, and not held in much less by other lengths.
    Short(u64),
    Tried(Choice),
}

/// A choice that was made.
#[derive(Clone, Copy)]
struct Choice {
    records: usize,
    /// What the tree had before.
    before: Tried,
    chosen: Tried,
}

/// What came of trying a length.
#[derive(Clone, Copy)]
pub(super) struct Tried {
    settings: Settings,
    pub(super) bytes_per_record: f64,
    pub(super) read_ns: f64,
}

impl Tried {
    fn price(&self, codec: Codec) -> f64 {
        self.bytes_per_record.powi(time_for_bytes(codec)) * (self.read_ns + REST_OF_READ_NS)
    }
}

impl Sizing {
    /// The sizing of a tree whose caller gave these lengths, or not, and the settings to begin with.
    pub(crate) fn new(codec: Codec, given: Given) -> (Self, Settings) {
        let first_frame_bytes = first_frame_bytes(codec);
        let fixed = if given.sub_pages > 0 {
            "sub-pages take the place of frames"
        } else if given.frame_bytes.is_some() {
            "given by the caller"
        } else if codec == Codec::None {
            "without a codec neighbours save nothing"
        } else {
            ""
        };
        let sizing = Self {
            given,
            // Time says nothing under the model checkers, and what is tried there takes too much of it.
            auto: fixed.is_empty() && !cfg!(any(shuttle, miri)),
            fixed,
            first_frame_bytes,
            last: Mutex::new(Outcome::Untried),
        };
        let settings = sizing.first();
        (sizing, settings)
    }

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

impl Core {
    /// Tries lengths on records of the tree, to be compressed with `dictionary`. Returns those that are worth a change.
    pub(super) fn better_lengths(&self, dictionary: Option<&Dictionary>) -> Result<Option<Settings>, Error> {
        let sizing = &self.sizing;
        if !sizing.auto {
            return Ok(None);
        }
        let arena = Bump::new();
        let Some(mut trial) = self.trial(&arena)? else {
            return Ok(None);
        };
        trial.dictionary = dictionary;
        let records = trial.records;
        let (now, codec) = (self.settings.now(), self.engines.warm.codec());
        // Of all records: those that are tried may be of several lengths.
        let bytes = self.user_bytes()? / (self.len() as u64).max(1);
        let before = trial.run(now)?;
        let mut best = before;
        let leaf_lengths = match sizing.given.leaf_bytes {
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
                    sizing.first_frame_bytes
                } else {
                    shortest
                };
                if settings == now || frame_bytes < least || frame_bytes * LEAST_FRAMES > leaf_bytes {
                    continue;
                }
                let tried = trial.run(settings)?;
                if tried.price(codec) < best.price(codec) {
                    best = tried;
                } else if tried.price(codec) > best.price(codec) * HOPELESS {
                    break;
                }
            }
        }
        let first = sizing.first();
        if bytes < SHORT_RECORD_BYTES
            && best.settings != first
            && best.price(codec) * LEAST_GAIN_OF_SHORT > trial.run(first)?.price(codec)
        {
            *sizing.last.lock() = Outcome::Short(bytes);
            return Ok((first != now).then_some(first));
        }
        if before.price(codec) - best.price(codec) < before.price(codec) / LEAST_GAIN_IN {
            best = before;
        }
        *sizing.last.lock() = Outcome::Tried(Choice {
            records,
            before,
            chosen: best,
        });
        Ok((best.settings != now).then_some(best.settings))
    }

    /// Records of the tree to try things on, if there are enough.
    pub(super) fn trial<'r>(&self, arena: &'r Bump) -> Result<Option<Trial<'_, 'r>>, Error> {
        let runs = self.runs(arena)?;
        let records = runs.iter().map(Vec::len).sum();
        Ok((records >= LEAST_RECORDS).then(|| Trial {
            core: self,
            runs,
            records,
            temperature: Temperature::Warm,
            dictionary: None,
            buffers: Buffers::default(),
            scratch: Scratch::default(),
        }))
    }

    /// The records of runs of leaves spread over the tree, in key order. What landed on a leaf, and what of it cannot be decoded, is not
    /// among them.
    fn runs<'b>(&self, arena: &'b Bump) -> Result<Vec<Vec<Record<'b>>>, Error> {
        let mut leaves = 0;
        self.for_each_leaf(&self.memory.enter()?, |_| leaves += 1);
        let period = (leaves / (SAMPLE_LEAVES / RUN_LEAVES)).max(RUN_LEAVES);
        let mut scratch = Scratch::default();
        let mut runs: Vec<Vec<Record<'b>>> = Vec::new();
        let mut seen = 0;
        self.for_each_leaf_in_turn(|leaf| {
            let in_run = seen % period;
            seen += 1;
            if in_run >= RUN_LEAVES {
                return Ok(());
            }
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

/// The records of a leaf, or none if a frame of it is damaged. Large values are not in frames.
pub(super) fn records_of<'b>(
    leaf: Leaf<'_>,
    decoder: &mut Decoder<'_>,
    arena: &'b Bump,
) -> Result<Vec<Record<'b>>, Error> {
    let sections = leaf.sections();
    let (mut records, mut key_buffer) = (room_for(leaf.count())?, Vec::new());
    for frame in 0..leaf.frames() {
        let visited = leaf.visit_frame(&sections, frame, decoder, &mut key_buffer, |_, key, value| {
            let value = match value {
                Value::Inline(value) => keep(arena, value)?,
                Value::Large(_) => &[],
            };
            // Room for all is there; what a damaged leaf says of itself is no reason to end.
            records.try_push(Record {
                key: keep(arena, key)?,
                value: RecordValue::Inline(value),
                mark: 0,
            })?;
            Ok(())
        });
        match visited {
            Ok(()) => {}
            Err(error @ Error::OutOfMemory { .. }) => return Err(error),
            Err(_) => return Ok(Vec::new()),
        }
    }
    Ok(records)
}

/// Records to try lengths on, and what that needs.
pub(super) struct Trial<'c, 'r> {
    core: &'c Core,
    runs: Vec<Vec<Record<'r>>>,
    records: usize,
    temperature: Temperature,
    dictionary: Option<&'c Dictionary>,
    buffers: Buffers,
    scratch: Scratch,
}

impl<'c> Trial<'c, '_> {
    /// User bytes of a record, on average.
    pub(super) fn user_bytes_per_record(&self) -> f64 {
        self.runs.iter().flatten().map(Record::inline_bytes).sum::<usize>() as f64 / self.records as f64
    }

    /// Builds the records' leaves as the tree's of this temperature, with this dictionary, and reads them.
    pub(super) fn run_as(
        &mut self,
        temperature: Temperature,
        dictionary: Option<&'c Dictionary>,
    ) -> Result<Tried, Error> {
        (self.temperature, self.dictionary) = (temperature, dictionary);
        let arena = Bump::new();
        let settings = self
            .core
            .compression_for(temperature, &mut self.buffers, &arena)
            .settings;
        self.run(settings)
    }

    /// Builds the records' leaves with these settings, and reads them.
    fn run(&mut self, settings: Settings) -> Result<Tried, Error> {
        let core = self.core;
        let (mut bytes, mut reads, mut ns) = (0, 0, 0);
        for run in &self.runs {
            let arena = Bump::new();
            let mut compression = Compression {
                settings,
                dictionary: self.dictionary,
                ..core.compression_for(self.temperature, &mut self.buffers, &arena)
            };
            compression.begin();
            // They are freed when this drops them.
            let built = compression.compress_all(run.clone(), SplitHint::Within)?;
            bytes += built
                .leaves
                .iter()
                .map(|leaf| leaf.leaf().header().node.asked())
                .sum::<usize>();
            let step = run.len().div_ceil(MAX_READS).max(1);
            reads += run.len().div_ceil(step);
            let mut least = u64::MAX;
            for _ in 0..ROUNDS {
                let start = Instant::now();
                for record in run.iter().step_by(step) {
                    read(&built, record.key, &mut Decoder::new(&core.engines, &mut self.scratch))?;
                }
                least = least.min(start.elapsed().as_nanos() as u64);
            }
            ns += least;
        }
        Ok(Tried {
            settings,
            bytes_per_record: bytes as f64 / self.records as f64,
            read_ns: ns as f64 / f64::from(reads.max(1) as u32),
        })
    }
}

/// Reads `key` from the leaf that has it.
fn read(built: &BuiltLeaves, key: &[u8], decoder: &mut Decoder<'_>) -> Result<(), Error> {
    let index = built
        .separators
        .partition_point(|separator| separator.as_slice() <= key);
    if let Some(leaf) = built.leaves.get(index) {
        let leaf = leaf.leaf();
        let sections = leaf.sections();
        if let Some(place) = leaf.locate(&sections, key, hash(key), None, decoder)?
            && let Value::Inline(value) = leaf.value(&sections, place, decoder)?
        {
            black_box(value);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
