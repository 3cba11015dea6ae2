//! Ctrl-C keeps the finished rows and says where they are.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::{leafpress, stderr};
use tempfile::TempDir;

/// An evaluation of two runs: the first is over soon, the second lasts for minutes if nobody stops it.
fn start(out: &Path) -> Child {
    leafpress()
        .args([
            "eval",
            "--keys",
            "500",
            "--seconds",
            "120",
            "--threads",
            "1",
            "--workloads",
            "read_only",
        ])
        .args(["--codecs", "none", "--data", "synthetic:0.5", "--out"])
        .arg(out)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Its own process group, as a shell gives a job: Ctrl-C goes to all of it.
        .process_group(0)
        .spawn()
        .expect("leafpress starts")
}

fn interrupt(target: &str) {
    send("-INT", target);
}

fn send(signal: &str, target: &str) {
    let status = Command::new("kill")
        .args([signal, "--", target])
        .status()
        .expect("kill runs");
    assert!(status.success());
}

fn rows(out: &Path) -> usize {
    std::fs::read_to_string(out.join("summary.tsv")).map_or(0, |text| text.lines().count().saturating_sub(1))
}

/// Waits until `done`, for as long as a very slow machine may need.
#[track_caller]
pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("never happened: {what}");
}

#[test]
fn a_group_wide_interrupt_ends_the_run() {
    let directory = TempDir::new().expect("a temporary directory");
    let out = directory.path().join("out");
    let child = start(&out);
    wait_until("the run starts", || {
        out.join("summary.tsv").exists() || children(child.id()) > 0
    });
    interrupt(&format!("-{}", child.id()));
    let output = child.wait_with_output().expect("it ends");
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(130), "{message}");
    assert!(message.contains("interrupted"), "{message}");
    assert!(!message.contains("panicked"), "{message}");
}

/// Ctrl-C, and the signal that `kill`, `timeout` and job schedulers send.
#[test]
fn finished_rows_stay() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        finished_rows_stay_after(signal, code);
    }
}

fn finished_rows_stay_after(signal: &str, code: i32) {
    let directory = TempDir::new().expect("a temporary directory");
    let out = directory.path().join("out");
    // Many short runs: the interrupt comes after the first row and long before the last.
    let child = leafpress()
        .args([
            "eval",
            "--keys",
            "500",
            "--seconds",
            "0.2",
            "--threads",
            "1",
            "--workloads",
            "read_only",
        ])
        .args(["--codecs", "none", "--data", "synthetic:0.5"])
        .arg("--landing-bytes")
        .arg((1..=600).map(|n| n.to_string()).collect::<Vec<_>>().join(","))
        .arg("--out")
        .arg(&out)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .expect("leafpress starts");
    wait_until("a row is on disk", || rows(&out) >= 1);
    send(signal, &child.id().to_string());
    let output = child.wait_with_output().expect("it ends");
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{message}");
    let kept = rows(&out);
    assert!((1..600).contains(&kept), "{kept} rows");
    let last = message.lines().last().expect("a message");
    for words in [
        "interrupted".to_owned(),
        format!("{kept} of 600 rows"),
        out.join("summary.tsv").display().to_string(),
    ] {
        assert!(last.contains(&words), "no `{words}` in {last}");
    }
}

/// Processes whose parent is `id`.
fn children(id: u32) -> usize {
    std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).map_or(0, |text| text.split_whitespace().count())
}

/// The benchmark of one index: the requested file does not exist, and nothing else is left.
#[test]
fn a_benchmark_ends_and_leaves_nothing() {
    let directory = TempDir::new().expect("a temporary directory");
    let mut child = leafpress()
        .args([
            "bench",
            "btreemap",
            "-n",
            "1000",
            "-m",
            "time",
            "--seconds",
            "600",
            "--json",
            "out.json",
        ])
        .current_dir(&directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .expect("leafpress starts");
    let mut report = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    while !line.starts_with("Load verified") {
        line.clear();
        assert!(
            report.read_line(&mut line).expect("it reports") > 0,
            "it ended before its time"
        );
    }
    assert_eq!(
        std::fs::read_dir(&directory).expect("a directory").count(),
        0,
        "nothing is there before it ends, should it be killed"
    );
    interrupt(&format!("-{}", child.id()));
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert_eq!(stderr(&output), "interrupted\n");
    let mut rest = String::new();
    report.read_to_string(&mut rest).expect("UTF-8");
    assert!(!rest.contains("Results:"), "{rest}");
    assert_eq!(std::fs::read_dir(&directory).expect("a directory").count(), 0);
}

/// A comparison keeps the finished runs, in the table and in the files.
#[test]
fn a_comparison_keeps_what_had_finished() {
    let directory = TempDir::new().expect("a temporary directory");
    // Many runs in turn, one at a time: when the third one exists, two have finished.
    let child = leafpress()
        .args(["bench", "--compare", "dummy", "btreemap", "-n", "1000", "-p", "1000"])
        .args(["--warmup", "1", "--repeat", "300", "--json", "out.json"])
        .current_dir(&directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .expect("leafpress starts");
    let mut seen = Vec::new();
    wait_until("the third run starts", || {
        if let Some(id) = child_of(child.id()).filter(|id| !seen.contains(id)) {
            seen.push(id);
        }
        seen.len() >= 3
    });
    interrupt(&format!("-{}", child.id()));
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("the table contains the finished runs"),
        "{}",
        stderr(&output)
    );
    let table = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(table.contains("cancelled: ") && table.contains("dummy"), "{table}");
    let json = std::fs::read(directory.path().join("out.json")).expect("written");
    let document: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(document["cancelled"], true);
    let outcomes = document["lines"][0]["report"]["outcomes"]
        .as_array()
        .expect("repetitions");
    assert!((1..300).contains(&outcomes.len()), "{}", outcomes.len());
}

/// A process whose parent is `id`, if there is one.
fn child_of(id: u32) -> Option<u32> {
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

/// Whether the process has its own handler for Ctrl-C.
pub fn watches_for_ctrl_c(id: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask & 2 != 0)
}

/// A run that is ended before its first row leaves no table and no page.
#[test]
fn without_rows_there_are_no_report_files() {
    let directory = TempDir::new().expect("a temporary directory");
    let out = directory.path().join("out");
    let child = start_one(&out);
    wait_until("the run starts", || children(child.id()) > 0);
    interrupt(&child.id().to_string());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("nothing was written"), "{}", stderr(&output));
    for file in ["summary.tsv", "results.json", "report.html"] {
        assert!(!out.join(file).exists(), "{file}");
    }
}

/// An evaluation of one long run.
fn start_one(out: &Path) -> Child {
    leafpress()
        .args(["eval", "--keys", "500", "--seconds", "120", "--threads", "1"])
        .args([
            "--workloads",
            "read_only",
            "--codecs",
            "none",
            "--data",
            "synthetic:0.5",
            "--out",
        ])
        .arg(out)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .expect("leafpress starts")
}
