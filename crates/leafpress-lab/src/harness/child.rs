//! Runs in child processes: the parent's side and the child's.
//!
//! The parent starts this executable again under a hidden subcommand and writes one line of JSON, the request, to its
//! stdin, which stays open: when it closes, the parent is gone, and the child stops. The child writes its progress to
//! stderr and its answer to stdout, each as a line with a mark in front, so that whatever a preloaded library prints
//! does no harm. All the rest of both goes to the run's log.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Phase;
use crate::core::LabError;

/// The hidden subcommand under which an executable must call [`child_main`](crate::child_main).
pub const CHILD_SUBCOMMAND: &str = "__eval-run";

const PROGRESS_MARK: &str = "@progress ";
const RESULT_MARK: &str = "@result ";
/// Maximum lines of a failed child's output to report.
const TAIL_LINES: usize = 3;
/// How often the parent looks whether it was cancelled.
const POLL: Duration = Duration::from_millis(50);

/// A child's task: the job's name, which selects its implementation, and the request.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Job<Name, Request> {
    pub(crate) name: Name,
    pub(crate) request: Request,
}

/// How to start a child.
#[derive(Debug, Clone)]
pub struct Launcher {
    /// The executable.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Environment variables set on top of the parent's.
    pub envs: Vec<(OsString, OsString)>,
}

impl Launcher {
    /// Creates a launcher of this executable, under [`CHILD_SUBCOMMAND`].
    ///
    /// # Errors
    /// [`LabError::System`] when the path of this executable is unknown.
    pub fn current_exe() -> Result<Self, LabError> {
        let program =
            std::env::current_exe().map_err(|e| LabError::System(format!("cannot find this executable: {e}")))?;
        Ok(Self {
            program,
            args: vec![CHILD_SUBCOMMAND.into()],
            envs: Vec::new(),
        })
    }

    /// Runs a child to its end and returns its answer. Other output goes to `log`.
    ///
    /// # Errors
    /// [`LabError::Child`] when it cannot be started, crashes, fails, or does not answer; [`LabError::Cancelled`] when
    /// `cancel` was set, in which case it was killed, and when a Ctrl-C ended it; [`LabError::Io`] when the log cannot
    /// be written.
    pub fn call<Q: Serialize, T: DeserializeOwned>(
        &self,
        request: &Q,
        preload: Option<&Path>,
        log: &Path,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(Phase, f64),
    ) -> Result<T, LabError> {
        let mut log_file = crate::core::create_file(log).map_err(|e| LabError::io(log, e))?;
        let line = serde_json::to_string(request).map_err(|e| LabError::System(e.to_string()))?;
        let _ = writeln!(log_file, "{line}");
        let mut command = Command::new(&self.program);
        command.args(&self.args).envs(self.envs.iter().cloned());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // In its own process group, so that Ctrl-C in the terminal reaches only the parent, which ends the child
        // itself.
        command.process_group(0);
        if let Some(library) = preload {
            // The shim looks for zlib's functions when it is loaded, and this executable is not linked with zlib.
            let mut libraries = library.as_os_str().to_owned();
            libraries.push(" libz.so.1");
            command.env("LD_PRELOAD", libraries);
        }
        let child = command
            .spawn()
            .map_err(|e| child_error(format!("cannot start {}: {e}", self.program.display())))?;
        Conversation {
            child: Reaped(child),
            tail: VecDeque::new(),
            answer: None,
            log: log_file,
        }
        .finish(&line, cancel, progress)
    }
}

fn child_error(reason: impl Into<String>) -> LabError {
    LabError::Child { reason: reason.into() }
}

/// A child that does not outlive this value.
struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The parent's side of a child's life.
struct Conversation {
    child: Reaped,
    /// The last lines it wrote that were not for us.
    tail: VecDeque<String>,
    answer: Option<String>,
    log: File,
}

impl Conversation {
    fn finish<T: DeserializeOwned>(
        mut self,
        request: &str,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(Phase, f64),
    ) -> Result<T, LabError> {
        let child = &mut self.child.0;
        let (Some(mut stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(child_error("its pipes are missing"));
        };
        let (send, lines) = mpsc::channel();
        forward(stdout, send.clone());
        forward(stderr, send);
        // A child that dies at once closes the pipe; its exit status is more informative than the write's error.
        let _ = writeln!(stdin, "{request}").and_then(|()| stdin.flush());
        loop {
            if cancel.load(Ordering::Relaxed) {
                return Err(LabError::Cancelled);
            }
            match lines.recv_timeout(POLL) {
                Ok(line) => self.take(line, progress),
                Err(RecvTimeoutError::Timeout) => {}
                // Both pipes are closed.
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let status = self.wait(cancel)?;
        drop(stdin);
        // A Ctrl-C that came before the child had a group of its own went to both, and this process may not have heard
        // of it yet.
        if status.signal() == Some(nix::sys::signal::Signal::SIGINT as i32) {
            return Err(LabError::Cancelled);
        }
        let answer = self.answer.take().filter(|_| status.success());
        let Some(answer) = answer else {
            return Err(child_error(self.obituary(status)));
        };
        serde_json::from_str(&answer).map_err(|e| child_error(format!("its answer cannot be read: {e}")))
    }

    fn wait(&mut self, cancel: &AtomicBool) -> Result<ExitStatus, LabError> {
        loop {
            match self.child.0.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if cancel.load(Ordering::Relaxed) => return Err(LabError::Cancelled),
                Ok(None) => std::thread::sleep(POLL),
                Err(e) => return Err(child_error(e.to_string())),
            }
        }
    }

    fn take(&mut self, line: String, progress: &mut dyn FnMut(Phase, f64)) {
        if let Some(json) = line.strip_prefix(PROGRESS_MARK) {
            if let Ok((phase, fraction)) = serde_json::from_str(json) {
                progress(phase, fraction);
            }
            return;
        }
        // The log is a help, not a result: a full disk shows when the row is written.
        let _ = writeln!(self.log, "{line}");
        if let Some(json) = line.strip_prefix(RESULT_MARK) {
            self.answer = Some(json.to_owned());
        } else if !line.trim().is_empty() {
            if self.tail.len() == TAIL_LINES {
                self.tail.pop_front();
            }
            self.tail.push_back(line.trim().to_owned());
        }
    }

    /// How it ended, with its last output, in one line.
    fn obituary(&self, status: ExitStatus) -> String {
        let end = match (status.signal(), status.code()) {
            (Some(signal), _) => {
                let name = nix::sys::signal::Signal::try_from(signal).map_or("unknown", |signal| signal.as_str());
                format!("killed by signal {signal} ({name})")
            }
            (_, Some(0)) => "it ended without an answer".to_owned(),
            (_, code) => format!("exit code {}", code.unwrap_or(-1)),
        };
        let tail: Vec<_> = self.tail.iter().map(String::as_str).collect();
        if tail.is_empty() {
            end
        } else {
            format!("{end}: {}", tail.join(" | "))
        }
    }
}

/// Sends a pipe's lines to a channel until the pipe or the channel closes.
fn forward(pipe: impl Read + Send + 'static, to: mpsc::Sender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n') {
            let Ok(line) = line else { return };
            if to.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
}

/// Serves one run of any kind: reads a request from stdin, does the work, writes its answer to stdout and its
/// progress to stderr. An executable must call this under the subcommand that its [`Launcher`] names, and end with the
/// code it returns.
///
/// The work is cancelled when the parent is gone.
pub fn serve<Q, A, E>(work: impl FnOnce(Q, &Arc<AtomicBool>, &mut dyn FnMut(Phase, f64)) -> Result<A, E>) -> ExitCode
where
    Q: DeserializeOwned,
    A: Serialize,
    E: std::fmt::Display,
{
    match child(work) {
        Ok(answer) => {
            let mut stdout = std::io::stdout().lock();
            match writeln!(stdout, "{RESULT_MARK}{answer}").and_then(|()| stdout.flush()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            }
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn child<Q, A, E>(
    work: impl FnOnce(Q, &Arc<AtomicBool>, &mut dyn FnMut(Phase, f64)) -> Result<A, E>,
) -> Result<String, String>
where
    Q: DeserializeOwned,
    A: Serialize,
    E: std::fmt::Display,
{
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line);
    read.map_err(|e| format!("cannot read the request: {e}"))?;
    let request = serde_json::from_str(&line).map_err(|e| format!("bad request: {e}"))?;
    let cancel = Arc::new(AtomicBool::new(false));
    let orphaned = Arc::clone(&cancel);
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        orphaned.store(true, Ordering::Relaxed);
    });
    let mut progress = |phase: Phase, fraction: f64| {
        if let Ok(json) = serde_json::to_string(&(phase, fraction)) {
            let _ = writeln!(std::io::stderr(), "{PROGRESS_MARK}{json}");
        }
    };
    let answer = work(request, &cancel, &mut progress).map_err(|e| e.to_string())?;
    serde_json::to_string(&answer).map_err(|e| e.to_string())
}
