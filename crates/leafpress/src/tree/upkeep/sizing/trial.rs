//! Trials: records of a tree are built into leaves and read as in operation, to measure bytes and read times.

use std::hint::black_box;
use std::time::Instant;

use bumpalo::Bump;

use crate::tree::compact::builder::{Record, RecordValue, keep};
use crate::tree::compact::compress::{Buffers, BuiltLeaves, Compression};
use crate::tree::compact::settings::Settings;
use crate::tree::compact::split_hint::SplitHint;
use crate::tree::error::TreeError;
use crate::tree::hash::hash;
use crate::tree::node::decoder::{Decoder, Engines, Value};
use crate::tree::node::layout::Temperature;
use crate::tree::node::leaf::Leaf;
use crate::tree::upkeep::sizing::{Candidate, Prices, REST_OF_READ_NS};
use crate::tree::upkeep::temperature::Temperatures;
use leafpress_base::mem::room::{TryGrow, room_for};
use leafpress_base::reclaim::node_heap::NodeHeap;
use leafpress_codec::{Codec, Dictionary, Scratch};

/// Minimum number of records for a meaningful result.
const MIN_RECORDS: usize = 64;
/// Maximum number of records of a run that are read.
const MAX_READS: usize = 256;
/// Number of timings of each read; the minimum counts, since disturbances only add time.
const ROUNDS: usize = 3;

/// The result of trying a codec and lengths.
#[derive(Clone, Copy)]
pub(in crate::tree::upkeep) struct Tried {
    pub(super) codec: Codec,
    pub(super) settings: Settings,
    pub(in crate::tree::upkeep) bytes_per_record: f64,
    pub(in crate::tree::upkeep) read_ns: f64,
    /// The time to compress the records of a frame, as each write of one of them causes it sooner or later.
    pub(super) write_ns: f64,
}

impl Tried {
    /// Returns the price of a record's bytes and times.
    pub(in crate::tree::upkeep) fn price(&self, prices: Prices) -> f64 {
        self.bytes_per_record.powf(prices.time_for_bytes) * prices.of_times(self)
    }

    /// Returns the time for a read, and for what is written meanwhile.
    pub(super) fn access_ns(&self, writes_per_read: f64) -> f64 {
        self.read_ns + REST_OF_READ_NS + writes_per_read * self.write_ns
    }
}

/// Returns the records of a leaf, or none if one of its frames is corrupt, or keys decoded wrongly before have
/// disturbed its order. Large values are not in frames.
pub(in crate::tree::upkeep) fn records_of<'b>(
    leaf: Leaf<'_>,
    decoder: &mut Decoder<'_>,
    arena: &'b Bump,
) -> Result<Vec<Record<'b>>, TreeError> {
    let sections = leaf.sections();
    let (mut records, mut key_buffer) = (room_for(leaf.count())?, Vec::new());
    for frame in 0..leaf.frames() {
        let visited = leaf.visit_frame(&sections, frame, decoder, &mut key_buffer, |_, key, value| {
            let value = match value {
                Value::Inline(value) => keep(arena, value)?,
                Value::Large(_) => &[],
            };
            // There is room for all records unless the leaf's header is corrupt, which must not abort the process.
            records.try_push(Record {
                key: keep(arena, key)?,
                value: RecordValue::Inline(value),
                mark: 0,
            })?;
            Ok(())
        });
        match visited {
            Ok(()) => {}
            Err(error @ TreeError::OutOfMemory { .. }) => return Err(error),
            Err(_) => return Ok(Vec::new()),
        }
    }
    if !records.is_sorted_by(|a, b| a.key < b.key) {
        return Ok(Vec::new());
    }
    Ok(records)
}

/// What trial leaves are built with: a tree's own state or, on a thread without access to the tree, an equivalent.
#[derive(Clone, Copy)]
pub(in crate::tree::upkeep) struct Bench<'c> {
    pub engines: &'c Engines,
    pub memory: &'c NodeHeap,
    /// The tree's current settings.
    pub now: Settings,
    pub temperatures: Option<&'c Temperatures>,
    pub marks: bool,
}

/// Records to try lengths on, and the necessary buffers.
pub(in crate::tree::upkeep) struct Trial<'c, 'r> {
    bench: Bench<'c>,
    runs: Vec<Vec<Record<'r>>>,
    pub(super) records: usize,
    /// Records of the tree, which share the memory of a dictionary.
    tree_records: f64,
    temperature: Temperature,
    buffers: Buffers,
    scratch: Scratch,
}

impl<'c, 'r> Trial<'c, 'r> {
    /// Creates a trial from runs of neighbours of a tree of `user_bytes`, if they have enough records.
    pub(in crate::tree::upkeep) fn new(bench: Bench<'c>, runs: Vec<Vec<Record<'r>>>, user_bytes: u64) -> Option<Self> {
        let records = runs.iter().map(Vec::len).sum();
        let bytes = runs.iter().flatten().map(Record::inline_bytes).sum::<usize>();
        (records >= MIN_RECORDS).then(|| Self {
            bench,
            runs,
            records,
            tree_records: records as f64 * (user_bytes as f64 / bytes.max(1) as f64).max(1.0),
            temperature: Temperature::Warm,
            buffers: Buffers::default(),
            scratch: Scratch::default(),
        })
    }

    pub(super) fn bench(&self) -> Bench<'c> {
        self.bench
    }

    /// Returns the average user bytes per record.
    pub(in crate::tree::upkeep) fn user_bytes_per_record(&self) -> f64 {
        self.runs.iter().flatten().map(Record::inline_bytes).sum::<usize>() as f64 / self.records as f64
    }

    /// Returns the average number of records of a frame.
    fn records_per_frame(&self, settings: Settings) -> f64 {
        (settings.frame_bytes as f64 / self.user_bytes_per_record()).max(1.0)
    }

    /// Builds leaves of the records like the tree's leaves of this temperature, with this dictionary, and reads them.
    pub(in crate::tree::upkeep) fn run_as(
        &mut self,
        temperature: Temperature,
        dictionary: Option<&Dictionary>,
    ) -> Result<Tried, TreeError> {
        self.temperature = temperature;
        let Bench {
            now,
            temperatures,
            engines,
            ..
        } = self.bench;
        let codec = engines.warm.codec();
        let settings = match (temperature, temperatures) {
            (Temperature::Cold, Some(temperatures)) => temperatures.cold_settings(now, dictionary),
            _ => now,
        };
        self.run(&Candidate { codec, dictionary }, settings)
    }

    /// Builds leaves of the records with these settings, and reads them.
    pub(super) fn run(&mut self, candidate: &Candidate<'_>, settings: Settings) -> Result<Tried, TreeError> {
        let bench = self.bench;
        let Candidate { codec, dictionary } = *candidate;
        let (temperature, engine) = match (self.temperature, bench.temperatures) {
            (Temperature::Cold, Some(_)) => (Temperature::Cold, &*bench.engines.cold),
            _ => (Temperature::Warm, &*bench.engines.warm),
        };
        let (mut bytes, mut reads, mut ns) = (0, 0, 0);
        let mut build_ns = f64::INFINITY;
        for run in &self.runs {
            let arena = Bump::new();
            let mut compression = Compression {
                settings,
                temperature,
                engine,
                dictionary,
                engines: bench.engines,
                reads: 0,
                marks: bench.marks,
                memory: bench.memory,
                buffers: &mut self.buffers,
                arena: &arena,
            };
            compression.begin();
            let records = run.clone();
            let start = Instant::now();
            // The leaves are freed when `built` is dropped.
            let built = compression.compress_all(records, SplitHint::Within)?;
            build_ns = build_ns.min(start.elapsed().as_nanos() as f64 / run.len().max(1) as f64);
            bytes += built
                .leaves
                .iter()
                .map(|leaf| leaf.leaf().header().node.requested_bytes())
                .sum::<usize>();
            let step = run.len().div_ceil(MAX_READS).max(1);
            reads += run.len().div_ceil(step);
            let mut least = u64::MAX;
            for _ in 0..ROUNDS {
                let start = Instant::now();
                for record in run.iter().step_by(step) {
                    read(&built, record.key, &mut Decoder::new(bench.engines, &mut self.scratch))?;
                }
                least = least.min(start.elapsed().as_nanos() as u64);
            }
            ns += least;
        }
        let dictionary_bytes = dictionary.map_or(0, Dictionary::held_bytes);
        Ok(Tried {
            codec,
            settings,
            bytes_per_record: bytes as f64 / self.records as f64 + dictionary_bytes as f64 / self.tree_records,
            read_ns: ns as f64 / f64::from(reads.max(1) as u32),
            write_ns: build_ns * self.records_per_frame(settings),
        })
    }
}

/// Reads `key` from its leaf.
fn read(built: &BuiltLeaves, key: &[u8], decoder: &mut Decoder<'_>) -> Result<(), TreeError> {
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
