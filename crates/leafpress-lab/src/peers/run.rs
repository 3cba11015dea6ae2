//! The samples of the comparison, interleaved, each in its own process.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::document::document;
use super::options::PeersConfig;
use super::outcome::{PeerLine, PeersOutcome};
use super::peer::Peer;
use super::{SAMPLE, WEIGH};
use crate::core::LabError;
use crate::eval::dataset::Dataset;
use crate::eval::result::RunResult;
use crate::eval::{RunSpec, driver};
use crate::harness::Phase;
use crate::harness::child::{Job, Launcher};
use crate::harness::machine_load;
use crate::harness::resident_memory::{self, Weight};
use crate::report::write;

/// The task of a child.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PeerSpec {
    pub(super) peer: Peer,
    pub(super) spec: RunSpec,
}

/// Compares the maps; logs and `peers.json` go to `out_dir`. `progress` receives the sample's number, the number of
/// samples, its map, and what the sample is doing.
///
/// # Errors
/// Options out of bounds, unusable data, an `out_dir` that cannot be written. A failed sample is reported in the
/// outcome.
pub fn run_peers(
    config: &PeersConfig,
    out_dir: &Path,
    cancel: &Arc<AtomicBool>,
    progress: &mut dyn FnMut(usize, usize, &Peer, Phase, f64),
) -> Result<PeersOutcome, LabError> {
    run_peers_with(&Launcher::current_exe()?, config, out_dir, cancel, progress)
}

/// Runs as [`run_peers`] does, with children started in another way.
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
        return Err(LabError::option("rounds", "0 must be at least 1"));
    }
    let base = config.evaluation();
    base.validate()?;
    let data = Dataset::load(&base, cancel)?;
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
    let mut weights: Vec<Option<Weight>> = vec![None; peers.len()];
    let mut outcome = PeersOutcome {
        lines: Vec::new(),
        data: data.describe(&base),
        record_bytes: data.key_lengths().mean + data.value_lengths().mean,
        left_out,
        cautions: data.cautions(),
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
                spec: config.run_of(peer),
            },
        };
        let log = out_dir.join(format!("peers-{number:03}.log"));
        let mut phases = |phase, fraction| progress(number, total, peer, phase, fraction);
        match launcher.call::<_, RunResult>(&request, None, &log, cancel, &mut phases) {
            Ok(mut result) => {
                outcome.mismatches += result.mismatches;
                if result.is_little() {
                    // Every round loads alike.
                    let weight = weights[index].get_or_insert_with(|| {
                        let job = Job {
                            name: WEIGH,
                            request: request.request,
                        };
                        let held = Some(result.loaded.bytes_held).filter(|held| *held > 0);
                        let log = log.with_extension("weigh.log");
                        Weight::weigh_in_child(launcher, &job, None, held, &log, cancel)
                    });
                    result.put_weight(weight);
                }
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
    let busiest = samples.iter().flatten().filter_map(|sample| sample.other_cores);
    let busy = machine_load::caution(busiest.reduce(f64::max), "bytes per record");
    outcome.cautions.extend(busy);
    outcome.lines = peers
        .into_iter()
        .zip(&samples)
        .filter_map(|(peer, samples)| PeerLine::new(peer, samples))
        .collect();
    let report = document(config, &outcome);
    let (text, page) = (report.text(), report.page("")?);
    drop(report);
    outcome.table = text;
    let path = out_dir.join("peers.json");
    let json = serde_json::to_string_pretty(&outcome).map_err(|e| LabError::System(e.to_string()))?;
    write(&path, &json)?;
    write(&out_dir.join("report.html"), &page)?;
    Ok(outcome)
}

/// The child's side of a sample.
pub(crate) fn run_sample(
    sample: &PeerSpec,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(Phase, f64),
) -> Result<RunResult, LabError> {
    progress(Phase::Corpus, 0.0);
    let data = Dataset::load(&sample.spec.base, cancel)?;
    let make = || sample.peer.make(&sample.spec, &data);
    driver::run_store(&sample.spec, &data, &make, cancel, progress)
}

/// The child's side of a weight.
pub(crate) fn weigh_sample(sample: &PeerSpec, cancel: &AtomicBool) -> Result<Weight, LabError> {
    resident_memory::prepare();
    let data = Dataset::load(&sample.spec.base, cancel)?;
    driver::weigh_store(&sample.spec, &data, &|| sample.peer.make(&sample.spec, &data), cancel)
}
