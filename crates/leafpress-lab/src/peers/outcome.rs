//! Results of the comparison: medians over the rounds.

use serde::Serialize;

use super::peer::Peer;
use crate::core::statistics::median;
use crate::eval::Workload;
use crate::eval::result::RunResult;
use crate::report::verdict::{Noun, against, change, ratio};

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
    /// Background work left after the load, not included in any other figure, in seconds.
    pub settle_seconds: f64,
    /// Growth of the process's resident memory over the load, per record, in bytes; of a map that takes little, what it
    /// was weighed at in a process of its own.
    pub resident_bytes_per_record: Option<f64>,
    /// Why that is not known.
    pub resident_unknown: Option<String>,
    /// Bytes held per record by the map's own account, which only our tree gives.
    pub bytes_held_per_record: Option<f64>,
    /// The codec that our tree chose, in the last round.
    pub chosen_codec: Option<String>,
}

/// Results of the comparison.
#[derive(Debug, Clone, Serialize)]
pub struct PeersOutcome {
    /// The maps: ours first, then the others.
    pub lines: Vec<PeerLine>,
    /// Description of the data.
    pub data: String,
    /// Bytes of a record's key and value, on average.
    pub record_bytes: f64,
    /// Maps that were left out, each in one line.
    pub left_out: Vec<String>,
    /// Caveats of the figures, a sentence or two each.
    pub cautions: Vec<String>,
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

impl PeersOutcome {
    /// The fastest of the other maps.
    pub(super) fn fastest_other(&self) -> Option<&PeerLine> {
        let others = self.lines.iter().filter(|line| !line.peer.is_ours());
        others.max_by(|one, other| {
            one.operations_per_second_per_core
                .total_cmp(&other.operations_per_second_per_core)
        })
    }

    /// Compares our trees with the fastest other map, a line each.
    pub fn verdicts(&self, workload: Workload) -> Vec<String> {
        let Some(other) = self.fastest_other() else {
            return Vec::new();
        };
        let noun = match workload {
            Workload::ReadOnly => "reads per second and core",
            _ => "operations per second and core",
        };
        let figure = |of: fn(&PeerLine) -> Option<f64>, line: &PeerLine| ratio(of(line), of(other));
        let verdict = |line: &PeerLine| {
            let memory = figure(|line| line.resident_bytes_per_record, line);
            let speed = figure(|line| Some(line.operations_per_second_per_core), line);
            against(
                &line.peer.to_string(),
                &other.peer.to_string(),
                [
                    memory.map(|ratio| change(ratio, Noun::Quantity("resident memory"))),
                    speed.map(|ratio| change(ratio, Noun::Number(noun))),
                ],
            )
        };
        let ours = self.lines.iter().filter(|line| line.peer.is_ours());
        ours.filter_map(verdict).collect()
    }
}

impl PeerLine {
    /// `None` without a sample.
    pub(super) fn new(peer: Peer, samples: &[RunResult]) -> Option<Self> {
        let figures = |figure: &dyn Fn(&RunResult) -> Option<f64>| {
            let figures: Vec<_> = samples.iter().filter_map(figure).collect();
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
        let mut unknown = samples
            .iter()
            .filter_map(|result| result.loaded.rss_growth_unknown.as_ref());
        let chosen_codec = match &peer {
            Peer::Leafpress(codec) => samples.last().and_then(|last| last.loaded.chosen(codec)),
            _ => None,
        };
        Some(Self {
            chosen_codec: chosen_codec.map(str::to_owned),
            peer,
            operations_per_second_per_core: median(operations.clone())?,
            operations_range: (
                operations.iter().copied().reduce(f64::min)?,
                operations.iter().copied().reduce(f64::max)?,
            ),
            read_p99_ns: median(p99),
            loads_per_second: median(loads)?,
            settle_seconds: median(settle)?,
            resident_bytes_per_record: median(resident),
            resident_unknown: unknown.next().cloned(),
            bytes_held_per_record: median(held),
        })
    }
}
