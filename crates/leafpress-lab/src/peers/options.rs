//! The knobs of the comparison, and the evaluation that each sample is a run of.

use serde::{Deserialize, Serialize};

use super::peer::Peer;
use crate::core::corpus::{Cut, RecordFormat, Source};
use crate::core::keys::{KeyShape, LoadOrder};
use crate::eval::{EvalConfig, LandingBytes, RunSpec, Workload};

/// One in this many batches of reads is checked while the clock runs.
const CHECK_ONE_IN: u32 = 64;

/// The knobs of the comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PeersConfig {
    /// Source of values, or records.
    pub data: Source,
    /// Use the data's own records, key and value, from a dump in this format.
    pub records: Option<RecordFormat>,
    /// Shape of the keys, if they are not the records' own. Default: scattered.
    pub key_shape: KeyShape,
    /// Length of a dense or scattered key in bytes. Default 8.
    pub key_bytes: usize,
    /// Length of a value cut at a fixed size, in bytes. Default 128.
    pub value_bytes: usize,
    /// How the data is cut into values. `None` cuts at `value_bytes`.
    pub cut: Option<Cut>,
    /// Order in which keys are loaded. Default: random.
    pub load_order: LoadOrder,
    /// The workload after the load. Default: reads.
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

impl PeersConfig {
    /// The evaluation of all that is the same for every map.
    pub(super) fn evaluation(&self) -> EvalConfig {
        EvalConfig {
            data: self.data.clone(),
            codecs: self.codecs.clone(),
            workloads: vec![self.workload],
            threads: vec![self.threads],
            keys: self.keys,
            records: self.records.clone(),
            key_shape: self.key_shape,
            key_bytes: self.key_bytes,
            value_bytes: self.value_bytes,
            cut: self.cut,
            load_order: self.load_order,
            seconds: self.seconds,
            seed: self.seed,
            ..EvalConfig::default()
        }
    }

    /// The run that a sample of `peer` is.
    pub(super) fn run_of(&self, peer: &Peer) -> RunSpec {
        let codec = if let Peer::Leafpress(codec) = peer {
            codec.as_str()
        } else {
            "none"
        };
        RunSpec {
            run: "peers".into(),
            codec: codec.into(),
            workload: self.workload,
            threads: self.threads,
            landing_bytes: LandingBytes::Auto,
            background: false,
            check_one_in: CHECK_ONE_IN,
            base: self.evaluation(),
        }
    }
}
