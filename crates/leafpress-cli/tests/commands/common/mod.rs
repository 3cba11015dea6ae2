//! Runs the command and checks its results.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// The command with no evaluation variable of the caller's environment.
pub fn leafpress() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leafpress"));
    command.env_clear();
    for name in ["PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "LLVM_PROFILE_FILE"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}

pub fn run(arguments: &[&str]) -> Output {
    leafpress().args(arguments).output().expect("leafpress starts")
}

/// Checks that the command succeeded, and returns what it printed.
#[track_caller]
pub fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{}{}", stderr(output), stdout(output));
    stdout(output)
}

/// Runs the command, which must succeed without a message on standard error: without a terminal there is no bar.
#[track_caller]
pub fn run_quietly(arguments: &[&str]) -> String {
    let output = run(arguments);
    let text = succeeded(&output);
    assert_eq!(stderr(&output), "", "{arguments:?}");
    text
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("standard output is UTF-8")
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("standard error is UTF-8")
}

/// Checks for exit code 2 and one line on standard error that contains all of `words`, with nothing on standard output.
#[track_caller]
pub fn assert_bad_input(output: &Output, words: &[&str]) {
    let message = stderr(output);
    assert_eq!(output.status.code(), Some(2), "exit code of: {message}");
    assert_eq!(stdout(output), "", "nothing is printed before the error");
    assert_eq!(message.lines().count(), 1, "one line: {message}");
    assert!(message.starts_with("error: "), "{message}");
    for word in words {
        assert!(message.contains(word), "no `{word}` in: {message}");
    }
}

/// Runs a command that has to be refused with `--out`, and checks that it made nothing there.
#[track_caller]
pub fn assert_refused(command: &mut Command, out: &Path, words: &[&str]) {
    let output = command.arg("--out").arg(out).output().expect("leafpress starts");
    assert_bad_input(&output, words);
    assert!(!out.exists(), "{command:?} left something behind");
}

/// A temporary directory with a test's files.
pub struct Files(pub TempDir);

impl Files {
    pub fn new() -> Self {
        Self(TempDir::new().expect("a temporary directory"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("UTF-8").to_owned()
    }
}

/// Makes a file and the directories above it.
pub fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().expect("a directory above")).expect("directories are made");
    std::fs::write(path, text).expect("file is written");
}
