//! The tree beside the registry's uncompressed concurrent ordered maps: reads per second and core, and memory per record.
//!
//! Every sample is a run like any other, in a process of its own: the map is loaded, read at random for a while, and in the end
//! every key is checked; of the reads, one batch in 64. Rounds go through the maps in alternating order, and medians over the rounds are told, so that a disturbance hits
//! one sample and not one map.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, RwLock};

use comfy_table::{CellAlignment, Table};
use serde::{Deserialize, Serialize};

use crate::core::corpus::{Corpus, Cut, Source};
use crate::core::{LabError, resources};
use crate::eval::driver;
use crate::eval::matrix::RunSpec;
use crate::eval::result::RunResult;
use crate::eval::{EvalConfig, Workload};
use crate::harness::Phase;
use crate::harness::child::{Job, Launcher};
use crate::harness::store::Store;
use crate::report::TABLE_STYLE;

/// The job of a child that does one sample.
pub(crate) const SAMPLE: &str = "peers_sample";

/// Length of a key of the comparison in bytes.
pub const KEY_BYTES: usize = 8;
/// Length of a value of the comparison in bytes.
pub const VALUE_BYTES: usize = 128;

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

    fn make(&self, spec: &RunSpec) -> Result<Box<dyn Store>, LabError> {
        Ok(match self {
            Self::Leafpress(_) => Box::new(spec.builder()?.build()?),
            Self::Masstree => Box::new(masstree::MassTree15::<[u8; VALUE_BYTES]>::new()),
            Self::TreeIndex => Box::new(scc::TreeIndex::<[u8; KEY_BYTES], [u8; VALUE_BYTES]>::new()),
            Self::SkipMap => Box::new(crossbeam_skiplist::SkipMap::<[u8; KEY_BYTES], [u8; VALUE_BYTES]>::new()),
            Self::BTreeMap => Box::new(RwLock::new(std::collections::BTreeMap::<
                [u8; KEY_BYTES],
                [u8; VALUE_BYTES],
            >::new())),
        })
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
    /// Where values come from; they are cut at [`VALUE_BYTES`].
    pub data: Source,
    /// Codecs of our tree.
    pub codecs: Vec<String>,
    /// Number of keys. Default 1,000,000.
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
    /// Reads per second and core's worth of CPU time.
    pub reads_per_second_per_core: f64,
    /// The least and the most of the rounds.
    pub reads_range: (f64, f64),
    /// 99% of the reads took no longer, in nanoseconds.
    pub read_p99_ns: f64,
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
    base_config(config).validate()?;
    Corpus::load(&config.data, Cut::Fixed(VALUE_BYTES), false, config.seed)?;
    std::fs::create_dir_all(out_dir).map_err(|e| LabError::io(out_dir, e))?;
    let ours = config.codecs.iter().map(|codec| Peer::Leafpress(codec.clone()));
    let peers: Vec<_> = ours.chain(Peer::OTHERS).collect();
    let mut samples: Vec<Vec<RunResult>> = vec![Vec::new(); peers.len()];
    let mut outcome = PeersOutcome {
        lines: Vec::new(),
        table: String::new(),
        mismatches: 0,
        failures: Vec::new(),
        cancelled: false,
    };
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
    outcome.table = table(config, &outcome);
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
        workloads: vec![Workload::ReadOnly],
        threads: vec![config.threads],
        keys: config.keys,
        key_bytes: KEY_BYTES,
        value_bytes: VALUE_BYTES,
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
        workload: Workload::ReadOnly,
        threads: config.threads,
        landing_bytes: 512,
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
    let base = &sample.spec.base;
    let corpus = Corpus::load(&base.data, Cut::Fixed(VALUE_BYTES), false, base.seed)?;
    driver::run_store(
        &sample.spec,
        Arc::new(corpus),
        &|| sample.peer.make(&sample.spec),
        cancel,
        progress,
    )
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
        let reads = figures(&RunResult::qps_per_core);
        let p99 = figures(&|result| result.read_latency.as_ref().map(|latency| latency.p99_ns as f64));
        let resident = figures(&|result| per_record(result.loaded.rss_growth_bytes? as f64, result));
        let held = figures(&|result| match result.loaded.bytes_held {
            0 => None,
            held => per_record(held as f64, result),
        });
        Some(Self {
            peer,
            reads_per_second_per_core: median(&reads)?,
            reads_range: (*reads.first()?, *reads.last()?),
            read_p99_ns: median(&p99)?,
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

fn table(config: &PeersConfig, outcome: &PeersOutcome) -> String {
    let others = outcome
        .lines
        .iter()
        .filter(|line| !matches!(line.peer, Peer::Leafpress(_)));
    let fastest = others.reduce(|best, line| {
        if line.reads_per_second_per_core > best.reads_per_second_per_core {
            line
        } else {
            best
        }
    });
    let mut table = Table::new();
    table.load_style(TABLE_STYLE).set_header([
        "map",
        "Mreads/s\nper core",
        "least-most",
        "of the\nfastest",
        "read\np99 us",
        "resident\nB/record",
        "held\nB/record",
        "memory of\nthe fastest",
    ]);
    for line in &outcome.lines {
        let ratio = |figure: &dyn Fn(&PeerLine) -> f64| {
            fastest.map_or_else(
                || "NA".into(),
                |fastest| format!("{:.2}x", figure(line) / figure(fastest)),
            )
        };
        let (least, most) = line.reads_range;
        table.add_row([
            line.peer.to_string(),
            format!("{:.2}", line.reads_per_second_per_core / 1e6),
            format!("{:.2}-{:.2}", least / 1e6, most / 1e6),
            ratio(&|line| line.reads_per_second_per_core),
            format!("{:.2}", line.read_p99_ns / 1e3),
            format!("{:.0}", line.resident_bytes_per_record),
            line.bytes_held_per_record
                .map_or_else(|| "NA".into(), |held| format!("{held:.0}")),
            ratio(&|line| line.resident_bytes_per_record),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut text = format!(
        "{} keys of {KEY_BYTES} + {VALUE_BYTES} bytes from {}, {} thread{}, medians of {} rounds of {} s, {}\n{table}\n",
        config.keys,
        config.data,
        config.threads,
        if config.threads == 1 { "" } else { "s" },
        config.rounds,
        config.seconds,
        resources::host(),
    );
    text += "Resident: growth of the process over the load, with this program's allocator. The others have keys and values as arrays of\n\
             fixed length. Choosing keys is in all figures alike; every key is checked after the timed reads, and some of the reads.\n";
    for failure in &outcome.failures {
        text += &format!("failed: {failure}\n");
    }
    if outcome.mismatches > 0 {
        text += &format!("MISMATCHES: {}\n", outcome.mismatches);
    }
    if outcome.cancelled {
        text += "cancelled: the figures are of the samples finished until then\n";
    }
    text
}

#[cfg(test)]
mod tests;
