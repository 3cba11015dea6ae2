//! `leafpress peers`: compares the tree with the registry's uncompressed concurrent ordered maps.

use std::path::{Path, PathBuf};

use clap::Args;
use leafpress_console::given::Given;
use leafpress_console::words::list;
use leafpress_lab::core::keys::KeyShape;
use leafpress_lab::peers::{PeersConfig, PeersOutcome, run_peers};
use leafpress_lab::{LabError, Phase};

use crate::failure::Failure;
use crate::progress::Bar;
use crate::{interrupt, output, records};

/// Arguments of `leafpress peers`.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub struct PeersArgs {
    #[command(flatten)]
    given: Given<PeersConfig>,
    /// Directory for peers.json, report.html and logs [default: leafpress-results/peers/TIMESTAMP]
    #[arg(short = 'o', long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub fn run(args: &PeersArgs) -> Result<(), Failure> {
    let config = config(&args.given)?;
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

fn config(given: &Given<PeersConfig>) -> Result<PeersConfig, Failure> {
    let mut config = PeersConfig::default();
    given.set(&mut config);
    config.codecs = list(&config.codecs);
    let records = config.records.is_some();
    // Key shapes are for generated keys.
    if records && !given.has("key-shape") {
        config.key_shape = KeyShape::Dense;
    }
    if records && !given.has("keys") {
        config.keys = 0;
    }
    records::check(records, config.key_shape, given)?;
    Ok(config)
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
