//! `leafpress device` as a user runs it.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{assert_bad_input, leafpress, run, run_quietly, stdout, succeeded};
use crate::interrupt::{wait_until, watches_for_ctrl_c};
use tempfile::TempDir;

/// A directory on a disk, if anything is: the command's own.
fn directory() -> TempDir {
    let program = Path::new(env!("CARGO_BIN_EXE_leafpress"));
    TempDir::new_in(program.parent().expect("a directory above")).expect("a temporary directory")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn entries(path: &Path) -> usize {
    fs::read_dir(path).expect("read").count()
}

/// A probe of a moment that must end well. What it says, in one line: where its lines end hangs on how long the path
/// is.
#[track_caller]
fn device(path: &Path, arguments: &[&str]) -> String {
    let moment = ["device", text(path), "--seconds", "0.05"];
    let printed = run_quietly(&[&moment[..], arguments].concat());
    printed.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_report_has_every_block_size_and_the_file_is_gone() {
    let directory = directory();
    let printed = device(directory.path(), &["--file-bytes", "4M"]);
    let mut at = 0;
    for part in [
        "a temporary file of 4M, random bytes on ",
        "one in 9 at a random offset, 88.9% sequential, as",
        "0.05 s each",
        "IOPS",
        "us per",
        "read 4K ",
        "read 8K ",
        "read 16K ",
        "read 32K ",
        "read 64K ",
        "read 128K ",
        "1 / IOPS",
        "fio's lat",
    ] {
        let found = printed[at..]
            .find(part)
            .unwrap_or_else(|| panic!("no `{part}` after byte {at} of\n{printed}"));
        at += found + part.len();
    }
    assert_eq!(entries(directory.path()), 0);
}

#[test]
fn files_are_written() {
    let directory = directory();
    let out = directory.path().join("out/deep");
    let arguments = [
        "--file-bytes",
        "4M",
        "-b",
        "4K,16K",
        "-q",
        "1,4",
        "--write",
        "--engine",
        "threads",
        "--sequential-pct",
        "0",
        "--out",
    ];
    let printed = device(directory.path(), &[&arguments[..], &[text(&out)]].concat());
    assert!(
        printed.contains("through threads") && printed.contains("fio's rw=randread "),
        "{printed}"
    );
    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let summary = read("summary.tsv");
    let rows: Vec<Vec<&str>> = summary.lines().map(|line| line.split('\t').collect()).collect();
    let head: Vec<_> = rows.iter().skip(1).map(|row| row[1..4].join(" ")).collect();
    assert_eq!(
        head,
        [
            "read 4096 1",
            "read 16384 1",
            "read 4096 4",
            "read 16384 4",
            "write 4096 1",
            "write 16384 1",
            "write 4096 4",
            "write 16384 4",
        ]
    );
    let json: serde_json::Value = serde_json::from_str(&read("results.json")).expect("JSON");
    assert_eq!(json["format"], 1);
    assert_eq!(json["measurements"].as_array().map(Vec::len), Some(8));
    assert!(json["measurements"][0]["latency"]["p999_us"].is_number());
    assert!(
        json["command_line"]
            .as_str()
            .is_some_and(|line| line.contains("--sequential-pct 0"))
    );
    let html = read("report.html");
    assert!(html.matches("<svg").count() >= 9, "{}", html.matches("<svg").count());
    assert_eq!(html.matches("http").count(), html.matches("http://www.w3.org/").count());
    assert!(printed.contains(text(&out.join("report.html"))));
    assert_eq!(entries(&out), 3);
}

#[test]
fn a_file_that_exists_is_read_and_never_written() {
    let directory = directory();
    let path = directory.path().join("table.db");
    let content: Vec<u8> = (0..1_500_000_u32).flat_map(u32::to_le_bytes).collect();
    fs::write(&path, &content).expect("written");
    let printed = device(&path, &["-b", "8K"]);
    assert!(printed.contains("6MB of the file, read only"), "{printed}");
    let printed = device(&path, &["-b", "8K", "--file-bytes", "1M", "--quick"]);
    assert!(printed.contains("1M of the file, read only"), "{printed}");
    assert_bad_input(
        &run(&["device", text(&path), "--write"]),
        &["table.db", "--write", "never written"],
    );
    assert!(fs::read(&path).expect("read") == content);
}

#[test]
fn memory_is_not_taken_for_a_device() {
    let shared = Path::new("/dev/shm");
    if !fs::read_to_string("/proc/self/mountinfo").is_ok_and(|table| table.contains(" /dev/shm ")) {
        eprintln!("skipped: no tmpfs at /dev/shm");
        return;
    }
    let directory = TempDir::new_in(shared).expect("a temporary directory");
    let printed = device(directory.path(), &["--file-bytes", "4M", "-b", "4K"]);
    assert!(
        printed.contains("! tmpfs is in memory: there is no device"),
        "{printed}"
    );
    assert!(
        printed.contains("no direct I/O (the file system is in memory)"),
        "{printed}"
    );
}

#[test]
fn what_cannot_work_is_refused_before_anything_is_written() {
    let directory = directory();
    let place = text(directory.path());
    let short = directory.path().join("short");
    fs::write(&short, "x").expect("written");
    let out = directory.path().join("out");
    let refused = |arguments: &[&str], words: &[&str]| {
        let output = run(&[&["device", "--out", text(&out)], arguments].concat());
        assert_bad_input(&output, words);
        assert!(entries(directory.path()) <= 2, "something is left by {arguments:?}");
    };
    refused(&[], &["PATH"]);
    refused(&["/no/such/place"], &["/no/such/place", "no such file or directory"]);
    refused(&["/dev/null"], &["/dev/null", "neither a directory"]);
    refused(&[text(&short)], &["short", "1 bytes long", "--block-bytes"]);
    refused(&[place, "--file-bytes", "1M"], &["--file-bytes", "1M", "128K"]);
    refused(&[place, "--file-bytes=-1"], &["--file-bytes", "500M"]);
    refused(&[place, "--file-bytes", "lots"], &["--file-bytes", "lots", "500M"]);
    refused(&[place, "--file-bytes", "4000P"], &["--file-bytes", "4000P"]);
    refused(&[place, "--file-bytes", "1000000T"], &["--file-bytes", "free"]);
    refused(&[place, "-b", "4K,"], &["--block-bytes"]);
    refused(&[place, "-b", "4000"], &["--block-bytes", "4000", "512"]);
    refused(&[place, "-b", "4K,4096"], &["--block-bytes", "twice"]);
    refused(&[place, "-q", "0"], &["--queue-depth", "1024"]);
    refused(&[place, "-q", "x"], &["--queue-depth"]);
    refused(&[place, "--seconds", "-3"], &["--seconds"]);
    refused(&[place, "--seconds", "NaN"], &["--seconds"]);
    refused(&[place, "--sequential-pct", "120"], &["--sequential-pct", "100"]);
    refused(&[place, "--engine", "libaio"], &["--engine", "libaio", "io_uring"]);
    refused(&[place, "--fio-json", "x"], &["--fio-json"]);
    refused(&["--fio-json", "x", "--write"], &["--fio-json", "--write"]);
    refused(
        &["--fio-json", "/no/such/file"],
        &["--fio-json /no/such/file", "cannot be read"],
    );
    refused(&["--fio-json", text(&short)], &["short", "--output-format=json"]);
    assert_bad_input(
        &run(&["device", place, "--file-bytes", "4M", "--out", text(&short)]),
        &["--out", "short"],
    );
}

/// A limit on the length of files ends a process that writes past it, unless it looks first.
#[test]
fn reports_a_limit_on_the_length_of_files() {
    let directory = directory();
    let script = format!(
        "ulimit -f 1024 && exec '{}' device '{}' --file-bytes 64M",
        env!("CARGO_BIN_EXE_leafpress"),
        text(directory.path())
    );
    let output = Command::new("bash").args(["-c", &script]).output().expect("bash runs");
    assert_bad_input(&output, &["--file-bytes", "64M", "ulimit -f"]);
    assert_eq!(entries(directory.path()), 0);
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../leafpress-lab/src/device/golden")
        .join(name)
}

#[test]
fn a_result_of_fio_is_the_same_table() {
    let directory = directory();
    let out = directory.path().join("out");
    let output = run(&["device", "--fio-json", text(&golden("fio3.json")), "--out", text(&out)]);
    let printed = succeeded(&output);
    let flat = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "a result of fio-3.33",
        " r4 ",
        " r8 ",
        " 40777 ",
        "w4 ran without direct=1",
    ] {
        assert!(flat.contains(words.trim()), "no `{words}` in\n{printed}");
    }
    let summary = fs::read_to_string(out.join("summary.tsv")).expect("written");
    assert!(summary.contains("r8\tread\t8192\t4\t"), "{summary}");
    assert!(summary.contains("w4\twrite\t4096\t8\t"), "two jobs of four: {summary}");
    let output = run(&["device", "--fio-json", text(&golden("fio2.json"))]);
    assert!(stdout(&output).contains(" 8642 "), "{}", stdout(&output));
}

/// Whether the process has a file below `place` open that no directory lists.
fn has_unnamed_file(process: u32, place: &Path) -> bool {
    let open = fs::read_dir(format!("/proc/{process}/fd"))
        .into_iter()
        .flatten()
        .flatten();
    open.filter_map(|file| fs::read_link(file.path()).ok())
        .any(|file| file.starts_with(place) && file.to_string_lossy().ends_with("(deleted)"))
}

/// Ctrl-C ends it soon, keeps what is whole, and leaves no file.
#[test]
fn an_interrupt_leaves_nothing_behind() {
    let directory = directory();
    let out = directory.path().join("out");
    let place = directory.path().join("place");
    fs::create_dir(&place).expect("made");
    let mut child = leafpress()
        .args([
            "device",
            text(&place),
            "--file-bytes",
            "4M",
            "-b",
            "4K,8K",
            "--seconds",
            "60",
            "--out",
            text(&out),
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("leafpress starts");
    // The handler for Ctrl-C is installed before the file that is measured is created.
    let begin = Instant::now();
    wait_until("a file without a name is open", || {
        watches_for_ctrl_c(child.id()) && has_unnamed_file(child.id(), &place)
    });
    assert_eq!(entries(&place), 0, "the file has no name while it is there");
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(status.expect("kill runs").success());
    let mut printed = String::new();
    child
        .stderr
        .take()
        .expect("piped")
        .read_to_string(&mut printed)
        .expect("UTF-8");
    let status = child.wait().expect("it ends");
    assert!(begin.elapsed() < Duration::from_secs(60), "it did not go on to its end");
    assert_eq!(status.code(), Some(130), "{printed}");
    assert_eq!(printed.lines().count(), 1, "{printed}");
    assert!(
        printed.starts_with("interrupted: nothing was measured yet"),
        "{printed}"
    );
    assert_eq!((entries(&place), entries(&out)), (0, 0));
}
