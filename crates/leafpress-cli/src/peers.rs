//! `leafpress peers`: compares the tree with the registry's uncompressed concurrent ordered maps.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use leafpress_console::words::size;
use leafpress_lab::core::corpus::Source;
use leafpress_lab::core::keys::KeyShape;
use leafpress_lab::peers::{PeersConfig, PeersOutcome, run_peers};
use leafpress_lab::{LabError, Phase};

use crate::eval::words::list;
use crate::failure::Failure;
use crate::progress::Bar;
use crate::{interrupt, output, records};

/// Arguments of `leafpress peers`.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub struct PeersArgs {
    /// File, directory, archive, bundled sample, or synthetic:SHARE (compressible share, 0 to 1) [default: packages]
    #[arg(long, value_name = "DATA")]
    data: Option<OsString>,
    /// Use the data's own records, key and value: jsonl:/POINTER, csv:COLUMN, stanzas:FIELD, tsv
    #[arg(long, value_name = "FORMAT")]
    records: Option<String>,
    /// Shape of the keys: dense (the best case), scattered, text, uuid, path [default: scattered]
    #[arg(long, value_name = "SHAPE")]
    key_shape: Option<String>,
    /// Bytes of a dense or scattered key [default: 8]
    #[arg(long, value_name = "BYTES", value_parser = size)]
    key_bytes: Option<usize>,
    /// Bytes of a value cut at a fixed size [default: 128]
    #[arg(long, value_name = "BYTES", value_parser = size)]
    value_bytes: Option<usize>,
    /// How the data is cut into values: fixed:BYTES, lines, length-prefixed [default: fixed:VALUE_BYTES]
    #[arg(long, value_name = "CUT")]
    cut: Option<String>,
    /// Order in which keys are loaded: random, or sequential (of the keys) [default: random]
    #[arg(long, value_name = "ORDER")]
    load_order: Option<String>,
    /// Workload after the load: read_only, read_write_8_2, write_only, ... as in `leafpress eval` [default: read_only]
    #[arg(long, value_name = "NAME")]
    workload: Option<String>,
    /// Codecs of the Leafpress tree [default: none lz4 zstd:1]
    #[arg(short = 'c', long, value_name = "LIST", num_args = 1..)]
    codecs: Option<Vec<String>>,
    /// Number of keys [default: 1000000; with --records all there are]
    #[arg(long, value_name = "N")]
    keys: Option<u64>,
    /// Threads that load and run the workload [default: 1]
    #[arg(short = 't', long, value_name = "N")]
    threads: Option<usize>,
    /// Length of a sample's timed window [default: 2]
    #[arg(short = 'd', long)]
    seconds: Option<f64>,
    /// Samples of each map [default: 3]
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// Seed of every random choice [default: 1]
    #[arg(long)]
    seed: Option<u64>,
    /// Directory for peers.json, report.html and logs [default: leafpress-results/peers/TIMESTAMP]
    #[arg(short = 'o', long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub fn run(args: &PeersArgs) -> Result<(), Failure> {
    let config = config(args)?;
    let out_dir = args.out.clone().unwrap_or_else(|| output::default_directory("peers"));
    let cancel = interrupt::flag()?;
    let mut bar = Bar::new();
    let mut current = usize::MAX;
    let outcome = run_peers(
        &config,
        &out_dir,
        &cancel,
        &mut |index, total, peer, phase, fraction| {
            if current != index {
                current = index;
                bar.start(index, total, peer.to_string());
            }
            let (before, length) = match phase {
                Phase::Corpus => (0.0, 0.02),
                Phase::Load => (0.02, 0.38),
                Phase::WarmUp => (0.4, 0.05),
                Phase::Timed => (0.45, 0.5),
                Phase::Verify => (0.95, 0.05),
            };
            bar.advance(before + length * fraction);
        },
    );
    bar.finish();
    let outcome = outcome.map_err(|e| match e {
        LabError::Cancelled => Failure::Interrupted("interrupted: no sample finished".into()),
        LabError::Option { option, reason } => {
            // The evaluation's lists are single values here.
            let option = if option == "workloads" { "workload" } else { option };
            Failure::bad_input(format!("--{option}: {reason}"))
        }
        LabError::Data { .. } => Failure::bad_input(format!("--{e}")),
        LabError::Io { .. } => output::unwritable(&e),
        LabError::Tree(leafpress::TreeError::Codec(e)) => Failure::bad_input(e.to_string()),
        e => Failure::failed(e.to_string()),
    })?;
    report(&outcome, &out_dir)
}

fn config(args: &PeersArgs) -> Result<PeersConfig, Failure> {
    let mut config = PeersConfig::default();
    if let Some(data) = &args.data {
        config.data = Source::named(data).map_err(|e| Failure::bad_input(format!("--{e}")))?;
    }
    if let Some(codecs) = &args.codecs {
        config.codecs = list(codecs);
    }
    if let Some(records) = &args.records {
        config.records = Some(option("records", records)?);
        config.keys = 0;
        // Key shapes are for generated keys.
        config.key_shape = KeyShape::Dense;
    }
    if let Some(shape) = &args.key_shape {
        config.key_shape = option("key-shape", shape)?;
    }
    if let Some(cut) = &args.cut {
        config.cut = Some(option("cut", cut)?);
    }
    if let Some(order) = &args.load_order {
        config.load_order = option("load-order", order)?;
    }
    if let Some(workload) = &args.workload {
        config.workload = option("workload", workload)?;
    }
    let given = [
        ("key-shape", args.key_shape.is_some()),
        ("key-bytes", args.key_bytes.is_some()),
        ("value-bytes", args.value_bytes.is_some()),
    ];
    let given: Vec<_> = given
        .iter()
        .filter(|(_, given)| *given)
        .map(|(name, _)| *name)
        .collect();
    records::lengths(config.records.is_some(), config.key_shape, &given)?;
    config.key_bytes = args.key_bytes.unwrap_or(config.key_bytes);
    config.value_bytes = args.value_bytes.unwrap_or(config.value_bytes);
    config.keys = args.keys.unwrap_or(config.keys);
    config.threads = args.threads.unwrap_or(config.threads);
    config.seconds = args.seconds.unwrap_or(config.seconds);
    config.rounds = args.rounds.unwrap_or(config.rounds);
    config.seed = args.seed.unwrap_or(config.seed);
    Ok(config)
}

fn option<T>(name: &str, word: &str) -> Result<T, Failure>
where
    T: FromStr<Err = LabError>,
{
    word.parse().map_err(|e| match e {
        LabError::Option { reason, .. } => Failure::bad_input(format!("--{name}: {reason}")),
        e => Failure::bad_input(e.to_string()),
    })
}

fn report(outcome: &PeersOutcome, out_dir: &Path) -> Result<(), Failure> {
    let json = out_dir.join("peers.json").display().to_string();
    let page = out_dir.join("report.html").display().to_string();
    let printed = if outcome.lines.is_empty() {
        Ok(())
    } else {
        output::print_report(&format!(
            "{}\n\njson    {json}\nreport  {page}\n",
            outcome.table.trim_end()
        ))
    };
    if outcome.cancelled {
        return Err(Failure::Interrupted(format!(
            "interrupted: finished samples are in {json}"
        )));
    }
    if let Some(failure) = outcome.failures.first() {
        return Err(Failure::failed(format!(
            "{} sample(s) failed; the first: {failure}",
            outcome.failures.len()
        )));
    }
    if outcome.mismatches > 0 {
        return Err(Failure::failed(format!(
            "{} reads returned wrong values",
            outcome.mismatches
        )));
    }
    printed
}
