//! The child's side of every command: selects the implementation of the job that a process was started for.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::core::LabError;
use crate::eval;
use crate::harness::Phase;
use crate::harness::child::{Job, serve};

/// Serves one run: reads its request from stdin, writes its answer to stdout and its progress to stderr.
///
/// An executable must call this under [`CHILD_SUBCOMMAND`](crate::CHILD_SUBCOMMAND) and end with the code it returns.
pub fn child_main() -> ExitCode {
    serve(|job, cancel, progress| {
        answer(
            job,
            #[cfg(feature = "bench")]
            None,
            cancel,
            progress,
        )
    })
}

/// Serves as [`child_main`] does, in an executable that can load shared libraries for the index benchmark.
#[cfg(feature = "bench")]
pub fn child_main_with(library: crate::bench::OpenLibrary) -> ExitCode {
    serve(|job, cancel, progress| answer(job, Some(library), cancel, progress))
}

/// Does a job; the answer is any of the laboratory's results.
fn answer(
    job: Job<String, Value>,
    #[cfg(feature = "bench")] library: Option<crate::bench::OpenLibrary>,
    cancel: &Arc<AtomicBool>,
    progress: &mut dyn FnMut(Phase, f64),
) -> Result<Value, LabError> {
    match job.name.as_str() {
        eval::RUN => to_json(&eval::driver::run(&from_json(job.request)?, cancel, progress)?),
        eval::WEIGH => to_json(&eval::driver::weigh(&from_json(job.request)?, cancel)?),
        eval::ENGINE => {
            let spec: eval::RunSpec = from_json(job.request)?;
            to_json(&spec.builder()?.build()?.stats().engine_name)
        }
        #[cfg(feature = "peers")]
        crate::peers::SAMPLE => to_json(&crate::peers::run_sample(&from_json(job.request)?, cancel, progress)?),
        #[cfg(feature = "peers")]
        crate::peers::WEIGH => to_json(&crate::peers::weigh_sample(&from_json(job.request)?, cancel)?),
        #[cfg(feature = "bench")]
        crate::bench::RUN => {
            use crate::bench::{Event, run};
            to_json(&run(&from_json(job.request)?, library, cancel, &mut |event| {
                if let Event::Progress(phase, done) = event {
                    progress(phase, done);
                }
            })?)
        }
        #[cfg(feature = "bench")]
        crate::bench::WEIGH => to_json(&crate::bench::weigh_here(&from_json(job.request)?, cancel)?),
        #[cfg(feature = "cache")]
        crate::cache::FILL => to_json(&crate::cache::fill(&from_json(job.request)?, cancel, progress)?),
        #[cfg(feature = "cache")]
        crate::cache::MEASURE => to_json(&crate::cache::measure(&from_json(job.request)?, cancel, progress)?),
        #[cfg(feature = "pool")]
        crate::pool::RUN => {
            use crate::pool::{Event, run};
            to_json(&run(&from_json(job.request)?, cancel, &mut |event| {
                if let Event::Progress(phase, done) = event {
                    progress(phase, done);
                }
            })?)
        }
        unknown => Err(LabError::System(format!("unknown job `{unknown}`"))),
    }
}

fn from_json<T: DeserializeOwned>(request: Value) -> Result<T, LabError> {
    serde_json::from_value(request).map_err(|e| LabError::System(format!("bad request: {e}")))
}

fn to_json(answer: &impl Serialize) -> Result<Value, LabError> {
    serde_json::to_value(answer).map_err(|e| LabError::System(e.to_string()))
}
