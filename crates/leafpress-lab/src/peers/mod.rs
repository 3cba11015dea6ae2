//! The tree beside the registry's uncompressed concurrent ordered maps: operations per second and core, loads, memory per record.
//!
//! Every sample is a run like any other, in a process of its own: the map is loaded, driven for a while, and in the end every key is
//! checked; of the reads, one batch in 64. Rounds go through the maps in alternating order, and medians over the rounds are told, so
//! that a disturbance hits one sample and not one map.
//!
//! All maps run in this program, with its allocator, and have the same keys and values, of their real length: arrays where all have
//! one length, boxes where they have not.

mod table;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, RwLock};

use serde::{Deserialize, Serialize};

use crate::core::LabError;
use crate::core::corpus::{Cut, RecordFormat, Source};
use crate::core::keys::{KeyShape, LoadOrder};
use crate::eval::dataset::{Dataset, Lengths};
use crate::eval::driver;
use crate::eval::matrix::RunSpec;
use crate::eval::result::RunResult;
use crate::eval::{EvalConfig, LandingBytes, Workload};
use crate::harness::Phase;
use crate::harness::child::{Job, Launcher};
use crate::harness::maps::{Key, KeyKind, MASSTREE_KEY_BYTES, Value};
use crate::harness::store::Store;

/// The job of a child that does one sample.
pub(crate) const SAMPLE: &str = "peers_sample";

/// A map of the comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Peer {
    /// Our tree with this codec.
    Leafpress(String),
    /// `masstree::MassTree15`.
    Masstree,
    /// `scc::TreeIndex`.
    TreeIndex,
    /// `crossbeam_skiplist::SkipMap`.
    SkipMap,
    /// The standard library's `BTreeMap` under a `RwLock`.
    BTreeMap,
}

impl Peer {
    /// The maps that are not ours.
    pub const OTHERS: [Self; 4] = [Self::Masstree, Self::TreeIndex, Self::SkipMap, Self::BTreeMap];

    fn make(&self, spec: &RunSpec, data: &Dataset) -> Result<Box<dyn Store>, LabError> {
        if let Self::Leafpress(_) = self {
            return Ok(Box::new(spec.builder_for(data)?.build()?));
        }
        let values = data.value_lengths().fixed();
        Ok(match KeyKind::of(data.key_lengths().fixed()) {
            KeyKind::Array8 => self.make_with_keys::<[u8; 8]>(values),
            KeyKind::Array16 => self.make_with_keys::<[u8; 16]>(values),
            KeyKind::Array32 => self.make_with_keys::<[u8; 32]>(values),
            KeyKind::Array36 => self.make_with_keys::<[u8; 36]>(values),
            KeyKind::Boxed => self.make_with_keys::<Box<[u8]>>(values),
        })
    }

    fn make_with_keys<K: Key>(&self, values: Option<usize>) -> Box<dyn Store> {
        match values {
            Some(128) => self.make_with::<K, [u8; 128]>(),
            _ => self.make_with::<K, Box<[u8]>>(),
        }
    }

    fn make_with<K: Key, V: Value>(&self) -> Box<dyn Store> {
        match self {
            Self::Masstree => Box::new(masstree::MassTree15::<V>::new()),
            Self::TreeIndex => Box::new(scc::TreeIndex::<K, V>::new()),
            Self::SkipMap => Box::new(crossbeam_skiplist::SkipMap::<K, V>::new()),
            // Our tree is made elsewhere.
            Self::BTreeMap | Self::Leafpress(_) => Box::new(RwLock::new(BTreeMap::<K, V>::new())),
        }
    }

    /// Why it cannot take part with such keys.
    fn fault(&self, workload: Workload, keys: &Lengths) -> Option<String> {
        if *self != Self::Masstree {
            return None;
        }
        let longest = keys.most;
        if longest > MASSTREE_KEY_BYTES {
            return Some(format!(
                "it takes keys up to {MASSTREE_KEY_BYTES} bytes, and the longest has {longest}"
            ));
        }
        // Of version 0.9.5, found by the check of scans here.
        (workload == Workload::Scan && keys.fixed().is_none())
            .then(|| "its scans leave records out where keys differ in length".into())
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leafpress(codec) => write!(f, "leafpress {codec}"),
            Self::Masstree => f.write_str("masstree"),
            Self::TreeIndex => f.write_str("scc::TreeIndex"),
            Self::SkipMap => f.write_str("crossbeam SkipMap"),
            Self::BTreeMap => f.write_str("RwLock<BTreeMap>"),
        }
    }
}

impl FromStr for Peer {
    type Err = LabError;

    fn from_str(s: &str) -> Result<Self, LabError> {
        if let Some(codec) = s.strip_prefix("leafpress ") {
            return Ok(Self::Leafpress(codec.into()));
        }
        Self::OTHERS
            .into_iter()
            .find(|peer| peer.to_string() == s)
            .ok_or_else(|| LabError::option("peers", format!("unknown map `{s}`")))
    }
}

impl From<Peer> for String {
    fn from(peer: Peer) -> Self {
        peer.to_string()
    }
}

impl TryFrom<String> for Peer {
    type Error = LabError;

    fn try_from(s: String) -> Result<Self, LabError> {
        s.parse()
    }
}

/// The knobs of the comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PeersConfig {
    /// Where values come from, or records.
    pub data: Source,
    /// Take the data's own records, key and value, from a dump in this format.
    pub records: Option<RecordFormat>,
    /// What keys look like, where they are not the records' own. Default: scattered.
    pub key_shape: KeyShape,
    /// Length of a dense or scattered key in bytes. Default 8.
    pub key_bytes: usize,
    /// Length of a value cut at a fixed size, in bytes. Default 128.
    pub value_bytes: usize,
    /// How the data is cut into values. `None` cuts at `value_bytes`.
    pub cut: Option<Cut>,
    /// Order in which keys are loaded. Default: random.
    pub load_order: LoadOrder,
    /// What is done after the load. Default: reads.
    pub workload: Workload,
    /// Codecs of our tree.
    pub codecs: Vec<String>,
    /// Number of keys. Default 1,000,000; with `records` 0 is as many as there are.
    pub keys: u64,
    /// Threads that load and read.
    pub threads: usize,
    /// Length of a sample's timed window, in seconds.
    pub seconds: f64,
    /// Samples of each map, at least 1.
    pub rounds: usize,
    /// Seed of every random choice.
    pub seed: u64,
}

impl Default for PeersConfig {
    fn default() -> Self {
        Self {
            data: EvalConfig::default().data,
            records: None,
            key_shape: KeyShape::Scattered,
            key_bytes: 8,
            value_bytes: 128,
            cut: None,
            load_order: LoadOrder::Random,
            workload: Workload::ReadOnly,
            codecs: ["none", "lz4", "zstd:1"].map(String::from).to_vec(),
            keys: 1_000_000,
            threads: 1,
            seconds: 2.0,
            rounds: 3,
            seed: 1,
        }
    }
}

/// What a child of the comparison is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PeerSpec {
    peer: Peer,
    spec: RunSpec,
}

/// One map's medians over the rounds.
#[derive(Debug, Clone, Serialize)]
pub struct PeerLine {
    /// The map.
    pub peer: Peer,
    /// Operations per second and core's worth of CPU time.
    pub operations_per_second_per_core: f64,
    /// The least and the most of the rounds.
    pub operations_range: (f64, f64),
    /// 99% of the reads took no longer, in nanoseconds; `None` where nothing is read.
    pub read_p99_ns: Option<f64>,
    /// Records put per second of the load, on all threads.
    pub loads_per_second: f64,
    /// What was left to do in the background after the load, in no other figure, in seconds.
    pub settle_seconds: f64,
    /// Growth of the process's resident memory over the load, per record, in bytes.
    pub resident_bytes_per_record: f64,
    /// Bytes held per record by the map's own account, which only our tree gives.
    pub bytes_held_per_record: Option<f64>,
}

/// What the comparison leaves.
#[derive(Debug, Clone, Serialize)]
pub struct PeersOutcome {
    /// The maps: ours first, then the others.
    pub lines: Vec<PeerLine>,
    /// What was stored, in words.
    pub data: String,
    /// Bytes of a record's key and value, on average.
    pub record_bytes: f64,
    /// Maps that were left out, each in one line.
    pub left_out: Vec<String>,
    /// The table for people, ready to print.
    #[serde(skip)]
    pub table: String,
    /// Wrong answers of all samples together; must be 0.
    pub mismatches: u64,
    /// Samples that failed, each in one line.
    pub failures: Vec<String>,
    /// Whether it was cancelled before the last sample.
    pub cancelled: bool,
}

/// Compares the maps; logs and `peers.json` go to `out_dir`. `progress` is told the sample's number, the number of samples, its map,
/// and what the sample is doing.
///
/// # Errors
/// Options out of bounds, unusable data, an `out_dir` that cannot be written. A sample that fails is told in the outcome.
pub fn run_peers(
    config: &PeersConfig,
    out_dir: &Path,
    cancel: &Arc<AtomicBool>,
    progress: &mut dyn FnMut(usize, usize, &Peer, Phase, f64),
) -> Result<PeersOutcome, LabError> {
    run_peers_with(&Launcher::current_exe()?, config, out_dir, cancel, progress)
}

/// [`run_peers`] with children started in another way.
///
/// # Errors
/// As [`run_peers`].
pub fn run_peers_with(
    launcher: &Launcher,
    config: &PeersConfig,
    out_dir: &Path,
    cancel: &Arc<AtomicBool>,
    progress: &mut dyn FnMut(usize, usize, &Peer, Phase, f64),
) -> Result<PeersOutcome, LabError> {
    if config.rounds == 0 {
        return Err(LabError::option("rounds", "0 is not at least 1"));
    }
    let base = base_config(config);
    base.validate()?;
    let data = Dataset::load(&base)?;
    let config = &PeersConfig {
        keys: data.keys,
        ..config.clone()
    };
    std::fs::create_dir_all(out_dir).map_err(|e| LabError::io(out_dir, e))?;
    let ours = config.codecs.iter().map(|codec| Peer::Leafpress(codec.clone()));
    let (mut peers, mut left_out) = (Vec::new(), Vec::new());
    for peer in ours.chain(Peer::OTHERS) {
        match peer.fault(config.workload, &data.key_lengths()) {
            Some(fault) => left_out.push(format!("{peer}: {fault}")),
            None => peers.push(peer),
        }
    }
    let mut samples: Vec<Vec<RunResult>> = vec![Vec::new(); peers.len()];
    let mut outcome = PeersOutcome {
        lines: Vec::new(),
        data: data.describe(&base),
        record_bytes: data.key_lengths().mean + data.value_lengths().mean,
        left_out,
        table: String::new(),
        mismatches: 0,
        failures: Vec::new(),
        cancelled: false,
    };
    drop(data);
    let total = peers.len() * config.rounds;
    for number in 0..total {
        let (round, place) = (number / peers.len(), number % peers.len());
        let index = if round.is_multiple_of(2) {
            place
        } else {
            peers.len() - 1 - place
        };
        let peer = &peers[index];
        let request = Job {
            name: SAMPLE,
            request: PeerSpec {
                peer: peer.clone(),
                spec: spec_of(config, peer),
            },
        };
        let log = out_dir.join(format!("peers-{number:03}.log"));
        let mut phases = |phase, fraction| progress(number, total, peer, phase, fraction);
        match launcher.call::<_, RunResult>(&request, None, &log, cancel, &mut phases) {
            Ok(result) => {
                outcome.mismatches += result.mismatches;
                samples[index].push(result);
            }
            Err(LabError::Cancelled) => {
                outcome.cancelled = true;
                break;
            }
            Err(error) => outcome
                .failures
                .push(format!("{peer}: {error} (log: {})", log.display())),
        }
    }
    outcome.lines = peers
        .into_iter()
        .zip(&samples)
        .filter_map(|(peer, samples)| PeerLine::new(peer, samples))
        .collect();
    outcome.table = table::text(config, &outcome);
    let path = out_dir.join("peers.json");
    let json = serde_json::to_string_pretty(&outcome).map_err(|e| LabError::System(e.to_string()))?;
    std::fs::write(&path, json).map_err(|e| LabError::io(&path, e))?;
    Ok(outcome)
}

/// Of so many batches of reads, one is checked while the clock runs.
const CHECK_ONE_IN: u32 = 64;

fn base_config(config: &PeersConfig) -> EvalConfig {
    EvalConfig {
        data: config.data.clone(),
        codecs: config.codecs.clone(),
        workloads: vec![config.workload],
        threads: vec![config.threads],
        keys: config.keys,
        records: config.records.clone(),
        key_shape: config.key_shape,
        key_bytes: config.key_bytes,
        value_bytes: config.value_bytes,
        cut: config.cut,
        load_order: config.load_order,
        seconds: config.seconds,
        seed: config.seed,
        ..EvalConfig::default()
    }
}

fn spec_of(config: &PeersConfig, peer: &Peer) -> RunSpec {
    let codec = if let Peer::Leafpress(codec) = peer {
        codec.as_str()
    } else {
        "none"
    };
    RunSpec {
        run: "peers".into(),
        codec: codec.into(),
        workload: config.workload,
        threads: config.threads,
        landing_bytes: LandingBytes::Auto,
        background: false,
        check_one_in: CHECK_ONE_IN,
        base: base_config(config),
    }
}

/// The child's side of a sample.
pub(crate) fn run_sample(
    sample: &PeerSpec,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(Phase, f64),
) -> Result<RunResult, LabError> {
    progress(Phase::Corpus, 0.0);
    let data = Dataset::load(&sample.spec.base)?;
    let make = || sample.peer.make(&sample.spec, &data);
    driver::run_store(&sample.spec, &data, &make, cancel, progress)
}

impl PeerLine {
    /// `None` without a sample.
    fn new(peer: Peer, samples: &[RunResult]) -> Option<Self> {
        let figures = |figure: &dyn Fn(&RunResult) -> Option<f64>| {
            let mut figures: Vec<_> = samples.iter().filter_map(figure).collect();
            figures.sort_by(f64::total_cmp);
            figures
        };
        let per_record = |bytes: f64, result: &RunResult| (result.keys > 0).then(|| bytes / result.keys as f64);
        let operations = figures(&RunResult::qps_per_core);
        let loads = figures(&|result| (result.load_seconds > 0.0).then(|| result.keys as f64 / result.load_seconds));
        let settle = figures(&|result| Some(result.settle_seconds));
        let p99 = figures(&|result| result.read_latency.as_ref().map(|latency| latency.p99_ns as f64));
        let resident = figures(&|result| per_record(result.loaded.rss_growth_bytes? as f64, result));
        let held = figures(&|result| match result.loaded.bytes_held {
            0 => None,
            held => per_record(held as f64, result),
        });
        Some(Self {
            peer,
            operations_per_second_per_core: median(&operations)?,
            operations_range: (*operations.first()?, *operations.last()?),
            read_p99_ns: median(&p99),
            loads_per_second: median(&loads)?,
            settle_seconds: median(&settle)?,
            resident_bytes_per_record: median(&resident)?,
            bytes_held_per_record: median(&held),
        })
    }
}

fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        len if len.is_multiple_of(2) => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
        _ => Some(sorted[middle]),
    }
}

#[cfg(test)]
mod tests;
