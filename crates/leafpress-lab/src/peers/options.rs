//! The capacities of the comparison, and the evaluation that each sample is a run of.

use clap::Args;
use serde::{Deserialize, Serialize};

use super::peer::Peer;
use crate::core::Bytes;
use crate::core::corpus::{Cut, RecordFormat, Source};
use crate::core::keys::{KeyShape, LoadOrder};
use crate::eval::{EvalConfig, LandingBytes, RunSpec, Workload};

/// One in this many batches of reads is checked while the clock runs.
const CHECK_ONE_IN: u32 = 64;

/// The capacities of the comparison, with their flags.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Args)]
#[serde(default, deny_unknown_fields)]
pub struct PeersConfig {
    /// File, directory, archive, bundled sample, or synthetic:SHARE (compressible share, 0 to 1) [default: packages]
    #[arg(long, value_name = "DATA")]
    pub data: Source,
    /// Use the data's own records, key and value: jsonl:/POINTER, csv:COLUMN, stanzas:FIELD, tsv
    #[arg(long, value_name = "FORMAT")]
    pub records: Option<RecordFormat>,
    /// Shape of the keys: dense (the best case), scattered, text, uuid, path [default: scattered]
    #[arg(long, value_name = "SHAPE")]
    pub key_shape: KeyShape,
    /// Bytes of a dense or scattered key [default: 8]
    #[arg(long, value_name = "BYTES", value_parser = Bytes::parse_usize)]
    pub key_bytes: usize,
    /// Bytes of a value cut at a fixed size [default: 128]
    #[arg(long, value_name = "BYTES", value_parser = Bytes::parse_usize)]
    pub value_bytes: usize,
    /// How the data is cut into values: fixed:BYTES, lines, length-prefixed [default: fixed:VALUE_BYTES]
    #[arg(long, value_name = "CUT")]
    pub cut: Option<Cut>,
    /// Order in which keys are loaded: random, or sequential (of the keys) [default: random]
    #[arg(long, value_name = "ORDER")]
    pub load_order: LoadOrder,
    /// Workload after the load: read_only, read_write_8_2, write_only, ... as in `leafpress eval` [default: read_only]
    #[arg(long, value_name = "NAME")]
    pub workload: Workload,
    /// Codecs of the Leafpress tree [default: none lz4 zstd:1 trial]
    #[arg(short = 'c', long, value_name = "LIST", num_args = 1..)]
    pub codecs: Vec<String>,
    /// Number of keys [default: 1000000; with --records all there are]
    #[arg(long, value_name = "N")]
    pub keys: u64,
    /// Threads that load and run the workload [default: 1]
    #[arg(short = 't', long, value_name = "N")]
    pub threads: usize,
    /// Length of a sample's timed window [default: 2]
    #[arg(short = 'd', long)]
    pub seconds: f64,
    /// Samples of each map [default: 3]
    #[arg(long, value_name = "N")]
    pub rounds: usize,
    /// Seed of every random choice [default: 1]
    #[arg(long)]
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
            codecs: ["none", "lz4", "zstd:1", "trial"].map(String::from).to_vec(),
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
