//! Runs, each in a process of its own.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use leafpress_lab::{Launcher, Phase, serve};

use crate::{BenchError, Outcome, Run, run};

/// The hidden subcommand under which an executable must call [`child_main`].
pub use leafpress_rocksdb_arguments::CHILD_SUBCOMMAND;

/// Starts runs.
#[derive(Debug)]
pub struct Session {
    launcher: Launcher,
    logs: PathBuf,
    started: usize,
}

impl Session {
    /// Runs of this executable; what they write besides goes to `logs`, which exists.
    ///
    /// # Errors
    /// [`BenchError::Lab`] if the system does not report this process's executable.
    pub fn new(logs: PathBuf) -> Result<Self, BenchError> {
        let mut launcher = Launcher::current_exe()?;
        launcher.args = vec![CHILD_SUBCOMMAND.into()];
        Ok(Self {
            launcher,
            logs,
            started: 0,
        })
    }

    /// Does one run in a process of its own, to its end.
    ///
    /// # Errors
    /// As [`run()`], but that most of it comes as [`LabError::Child`](leafpress_lab::LabError::Child);
    /// [`LabError::Cancelled`](leafpress_lab::LabError::Cancelled) when `cancel` was set.
    pub fn run(
        &mut self,
        request: &Run,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(Phase, f64),
    ) -> Result<Outcome, BenchError> {
        request.validate()?;
        let log = self.logs.join(format!("run-{}.log", self.started));
        self.started += 1;
        let outcome = self
            .launcher
            .call::<Run, Outcome>(request, None, &log, cancel, progress);
        if request.on_copy {
            // A process that was ended from outside cannot clean up behind itself.
            remove_copies(&request.directory);
        }
        Ok(outcome?)
    }
}

fn remove_copies(directory: &std::path::Path) {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with("copy-")) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Runs the process of one run. An executable must call this under [`CHILD_SUBCOMMAND`] and end with the code it
/// returns.
pub fn child_main() -> ExitCode {
    serve(|request: Run, cancel, progress| run(&request, cancel, progress))
}
