//! An evaluation: runs one after the other, rows as they finish, reports at the end.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{EvalConfig, EvalOutcome, Failure, Progress, Row, Workload};
use crate::core::{LabError, resources};
use crate::eval::dataset::Dataset;
use crate::eval::matrix::{self, Configuration, RunSpec};
use crate::eval::result::{Resources, RunResult};
use crate::eval::summary::Summary;
use crate::eval::view;
use crate::harness::child::{Job, Launcher};
use crate::harness::machine_load;
use crate::harness::resident_memory::Weight;

/// Runs an evaluation: each codec and configuration in a process of its own (the current executable with the hidden
/// subcommand [`CHILD_SUBCOMMAND`](crate::CHILD_SUBCOMMAND)), a row in `out_dir/summary.tsv` as soon as it finishes,
/// then the reports. `cancel` ends the run in progress and keeps the rows finished so far; without any, it is an error
/// and there is no report.
///
/// # Errors
/// Errors of [`EvalConfig::validate`], unusable data, [`LabError::Cancelled`], or an `out_dir` that cannot be written;
/// nothing is left half-written then. A failed run is not an error but a [`Failure`].
pub fn run_eval(
    config: &EvalConfig,
    out_dir: &Path,
    cancel: &Arc<AtomicBool>,
    progress: &mut dyn FnMut(Progress),
) -> Result<EvalOutcome, LabError> {
    run_eval_with(&Launcher::current_exe()?, config, out_dir, cancel, progress)
}

/// Runs as [`run_eval`] does, with children started in another way.
///
/// # Errors
/// As [`run_eval`].
pub fn run_eval_with(
    launcher: &Launcher,
    config: &EvalConfig,
    out_dir: &Path,
    cancel: &Arc<AtomicBool>,
    progress: &mut dyn FnMut(Progress),
) -> Result<EvalOutcome, LabError> {
    config.validate()?;
    // Unusable data is reported here once, before anything is written, not by every run.
    let data = Dataset::load(config, cancel)?;
    let config = &EvalConfig {
        keys: data.keys,
        ..config.clone()
    };
    let (description, cautions) = (data.describe(config), data.cautions());
    drop(data);
    let runs = matrix::expand(config)?;
    check_preload(launcher, &runs, cancel)?;
    if cancel.load(Ordering::Relaxed) {
        return Err(LabError::Cancelled);
    }
    let logs = out_dir.join("logs");
    std::fs::create_dir_all(&logs).map_err(|e| LabError::io(&logs, e))?;
    let host = resources::host();
    let mut outcome = EvalOutcome {
        rows: Vec::new(),
        failures: Vec::new(),
        data: description,
        cautions,
        table: String::new(),
        summary_path: out_dir.join("summary.tsv"),
        json_path: out_dir.join("results.json"),
        html_path: out_dir.join("report.html"),
        mismatches: 0,
        cancelled: false,
    };
    let mut summary = Summary::create(&outcome.summary_path, host.clone())?;
    let mut weights = Weights::default();
    let total = runs.len();
    for (index, configuration) in runs.into_iter().enumerate() {
        if cancel.load(Ordering::Relaxed) {
            outcome.cancelled = true;
            break;
        }
        let (spec, preload) = (configuration.spec, configuration.preload.as_deref());
        progress(Progress::Started {
            index,
            total,
            spec: Box::new(spec.clone()),
        });
        let log = logs.join(format!("{}.log", spec.label()));
        let request = Job {
            name: super::RUN,
            request: &spec,
        };
        let mut phases = |phase, fraction| progress(Progress::Phase { phase, fraction });
        match launcher.call::<_, RunResult>(&request, preload, &log, cancel, &mut phases) {
            Ok(mut result) => {
                if result.is_little() {
                    let log = log.with_extension("weigh.log");
                    let held = result.loaded.bytes_held;
                    let weight = weights.of(&spec, |job| {
                        Weight::weigh_in_child(launcher, job, preload, Some(held), &log, cancel)
                    });
                    result.put_weight(weight);
                }
                let cpu_log = result
                    .resources
                    .as_ref()
                    .map(|cpu| write_cpu_log(&logs, &spec, cpu))
                    .transpose()?;
                let row = Row {
                    spec,
                    result,
                    log,
                    cpu_log,
                };
                summary.append(&row)?;
                outcome.mismatches += row.result.mismatches;
                outcome.rows.push(row.clone());
                progress(Progress::Finished(Box::new(row)));
            }
            Err(LabError::Cancelled) => {
                outcome.cancelled = true;
                break;
            }
            Err(error) => {
                let failure = Failure {
                    spec,
                    reason: error.to_string(),
                    log,
                };
                outcome.failures.push(failure.clone());
                progress(Progress::Failed(Box::new(failure)));
            }
        }
    }
    if outcome.cancelled && outcome.rows.is_empty() {
        // A report of nothing would look like a result.
        drop(summary);
        let _ = std::fs::remove_file(&outcome.summary_path);
        return Err(LabError::Cancelled);
    }
    let busiest = outcome.rows.iter().filter_map(|row| row.result.other_cores);
    let busy = machine_load::caution(busiest.reduce(f64::max), "bytes held");
    outcome.cautions.extend(busy);
    view::finish(config, &host, &mut outcome)?;
    Ok(outcome)
}

/// Weights so far. They depend on the codec and the configuration, but not on the workload.
#[derive(Default)]
struct Weights(Vec<(RunSpec, Weight)>);

impl Weights {
    /// The weight of the data loaded by `spec`, computed once.
    fn of(&mut self, spec: &RunSpec, weigh_in_child: impl FnOnce(&Job<&str, RunSpec>) -> Weight) -> &Weight {
        let load = RunSpec {
            workload: Workload::ReadOnly,
            ..spec.clone()
        };
        let at = self.0.iter().position(|(weighed, _)| *weighed == load);
        let at = at.unwrap_or_else(|| {
            let job = Job {
                name: super::WEIGH,
                request: load,
            };
            let weight = weigh_in_child(&job);
            self.0.push((job.request, weight));
            self.0.len() - 1
        });
        &self.0[at].1
    }
}

/// Starts a process with the library that some runs preload, and checks that zlib's calls go through it. The loader
/// only warns of a library that it cannot preload, and zlib would run under another name.
fn check_preload(launcher: &Launcher, runs: &[Configuration], cancel: &AtomicBool) -> Result<(), LabError> {
    let mut preloads = runs.iter().filter_map(|run| Some((run, run.preload.as_deref()?)));
    // All of them preload the same one.
    let Some((run, library)) = preloads.next() else {
        return Ok(());
    };
    let request = Job {
        name: super::ENGINE,
        request: &run.spec,
    };
    // Its output is discarded.
    let logs = tempfile::tempdir().map_err(|e| LabError::io(std::env::temp_dir(), e))?;
    let log = logs.path().join("probe.log");
    let engine = launcher.call::<_, String>(&request, Some(library), &log, cancel, &mut |_, _| {});
    let library = library.display();
    let reason = match engine {
        Ok(engine) if engine == "zlib_accel_preload" => return Ok(()),
        Ok(_) => format!(
            "{library} was preloaded, but zlib's calls do not go through it: it is another library, or a library that \
             it needs is missing (`ldd {library}` shows which)"
        ),
        Err(LabError::Child { reason }) => format!("{library} cannot be preloaded: {reason}"),
        Err(other) => return Err(other),
    };
    Err(LabError::option("zlib-accel-so", reason))
}

/// Writes a run's CPU and memory figures, a name and a number on each line.
fn write_cpu_log(logs: &Path, spec: &RunSpec, cpu: &Resources) -> Result<PathBuf, LabError> {
    let path = logs.join(format!("{}.cpu.log", spec.label()));
    let max_rss = cpu.max_rss_kib.map_or_else(|| "NA".into(), |kib| kib.to_string());
    let text = format!(
        "timed_user_seconds {:.6}\ntimed_system_seconds {:.6}\nmax_rss_kib {max_rss}\nvoluntary_switches {}\n\
         involuntary_switches {}\n",
        cpu.user_seconds, cpu.system_seconds, cpu.voluntary_switches, cpu.involuntary_switches
    );
    crate::core::create_file(&path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|e| LabError::io(&path, e))?;
    Ok(path)
}
