//! `leafpress pool` as a user runs it.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::{Files, assert_bad_input, assert_refused, leafpress, run, stderr, stdout, succeeded};
use tempfile::TempDir;

/// A file of 600 pages of 1 KiB that compress well, and a directory of 40 files.
fn pages() -> Files {
    let files = Files::new();
    let file: Vec<u8> = (0..600).flat_map(|page| content(page, 1024)).collect();
    std::fs::write(files.path("pages.db"), file).expect("written");
    std::fs::create_dir(files.path("pages")).expect("made");
    for page in 0..40 {
        let path = files.path(&format!("pages/p{page:03}"));
        std::fs::write(path, content(page, 600 + 100 * page)).expect("written");
    }
    files
}

/// Everything below the directory: paths and contents.
fn snapshot(files: &Files) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut left = vec![files.0.path().to_owned()];
    while let Some(path) = left.pop() {
        for entry in std::fs::read_dir(&path).expect("read").flatten() {
            if entry.path().is_dir() {
                left.push(entry.path());
            } else {
                found.push((entry.path(), std::fs::read(entry.path()).expect("read")));
            }
        }
    }
    found.sort();
    found
}

fn content(page: usize, len: usize) -> Vec<u8> {
    let words = ["alpha ", "beta ", "gamma ", "delta ", "epsilon "];
    let text = (0..).flat_map(|i: usize| words[(i * 7 + page * (i % 3)) % 5].bytes());
    text.take(len).collect()
}

/// A short run that must end well.
#[track_caller]
fn pool(arguments: &[&str]) -> String {
    let output = leafpress()
        .args([
            "pool",
            "-d",
            "0.3",
            "-w",
            "2",
            "--page-bytes",
            "1K",
            "-m",
            "128K",
            "--no-baseline",
        ])
        .args(arguments)
        .output()
        .expect("leafpress starts");
    succeeded(&output)
}

/// The number behind a label, its thousands joined.
#[track_caller]
fn figure(text: &str, label: &str) -> u64 {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(label));
    let words = line.and_then(|rest| rest.split_once(':')).map(|(_, figures)| figures);
    let word = words.and_then(|words| words.split_whitespace().next());
    word.and_then(|word| word.replace(',', "").parse().ok())
        .unwrap_or_else(|| panic!("no figure behind `{label}` in\n{text}"))
}

#[test]
fn the_report_has_what_tyche_reports_and_more() {
    let pages = pages();
    let text = pool(&["-p", &pages.text("pages.db"), "-f", "60", "-B", "20,80"]);
    let mut at = 0;
    for part in [
        "600 pages, 600K, of ",
        "Store ",
        "Choice hotset:20:80",
        "Pool of 128K · lz4 · clock · share fixed:60 · 2 workers",
        "Acquisitions ",
        " per sec).",
        "Pages in the set    : 600 (600K)",
        "Compressions ",
        "Restorations ",
        "Hit ratio ",
        "in theory ",
        "Memory ratio        : 60.0% raw",
        "Run time ",
        "Time sweeping ",
        "Rounds ",
        "Read ",
        "Updated           : 0 pages",
        "Deleted           : 0 pages",
        "us ",
        "acquire ",
        "Memory held ",
        "Raw ",
        "Compressed ",
        "Device ",
        "Costs, lately ",
        "Checked ",
        " 0 wrong",
    ] {
        let found = text[at..]
            .find(part)
            .unwrap_or_else(|| panic!("no `{part}` after byte {at} of\n{text}"));
        at += found + part.len();
    }
    assert!(figure(&text, "Acquisitions") > 0 && figure(&text, "Rounds") > 0);
    assert!(!text.contains("OVER"), "{text}");
}

#[test]
fn every_store_works_and_the_users_pages_stay_unchanged() {
    let pages = pages();
    let before = snapshot(&pages);
    let scratch = TempDir::new().expect("a temporary directory");
    let scratch_path = scratch.path().to_str().expect("UTF-8");
    for (data, store, count) in [
        ("pages.db", "file", 600),
        ("pages.db", "memory", 600),
        ("pages", "dir", 40),
        ("pages", "memory", 40),
        ("pages", "file", 80),
    ] {
        let arguments = ["-p", &pages.text(data), "--store", store, "--scratch", scratch_path];
        let text = pool(&[&arguments[..], &["-U", "20", "-D", "5", "-B", "20,80", "-M", "1,8"]].concat());
        assert_eq!(figure(&text, "Pages in the set"), count, "{data} {store}:\n{text}");
        assert!(
            figure(&text, "Updated") > 0 && figure(&text, "Deleted") > 0,
            "{data} {store}:\n{text}"
        );
        assert!(
            text.contains(&format!("({count} of them read back")),
            "{data} {store}:\n{text}"
        );
        assert!(text.contains(" 0 wrong"), "{data} {store}:\n{text}");
        assert!(snapshot(&pages) == before, "{data} {store}: the user's pages changed");
        assert_eq!(
            std::fs::read_dir(scratch.path()).expect("read").count(),
            0,
            "{data} {store}: scratch is left"
        );
    }
}

#[test]
fn samples_and_synthetic_pages_are_opened() {
    for data in ["synthetic:0.5", "packages"] {
        let text = pool(&["-p", data, "-n", "300"]);
        assert_eq!(figure(&text, "Pages in the set"), 300, "{text}");
    }
    let text = pool(&["-p", "synthetic:0.5", "-b", "100K", "--store", "memory"]);
    assert_eq!(figure(&text, "Pages in the set"), 100, "{text}");
}

#[test]
fn every_policy_and_codec_runs() {
    let pages = pages();
    let data = pages.text("pages.db");
    for policy in ["clock", "lru", "s3-fifo"] {
        let text = pool(&["-p", &data, "--policy", policy, "-B", "20,80"]);
        assert!(text.contains(&format!(" · {policy} · ")), "{text}");
    }
    for codec in ["zstd", "zlib", "deflate:1"] {
        let text = pool(&["-p", &data, "-c", codec, "-f", "40", "--verify", "all"]);
        assert!(
            figure(&text, "Compressions") > 0 && text.contains(" 0 wrong"),
            "{codec}:\n{text}"
        );
    }
    let text = pool(&["-p", &data, "-C"]);
    assert_eq!(figure(&text, "Compressions"), 0, "{text}");
}

#[test]
fn other_pages_become_hot() {
    let pages = pages();
    pool(&[
        "-p",
        &pages.text("pages.db"),
        "--distribution",
        "self-similar",
        "--switch-at",
        "0.1",
    ]);
}

/// A gain is reported relative to an uncompressed run, which is added automatically.
#[test]
fn a_run_is_compared_with_one_without_compression() {
    let pages = pages();
    let out = pages.path("out");
    let output = leafpress()
        .args([
            "pool",
            "-d",
            "0.2",
            "-w",
            "1",
            "--page-bytes",
            "1K",
            "-m",
            "128K",
            "-f",
            "40",
            "-p",
        ])
        .arg(pages.path("pages.db"))
        .arg("--out")
        .arg(&out)
        .output()
        .expect("leafpress starts");
    let text = succeeded(&output);
    assert!(text.starts_with("lz4, 60% of the memory compressed: "), "{text}");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains(" than without compression") && text.contains("Acquisitions "),
        "{text}"
    );
    let summary = std::fs::read_to_string(out.join("summary.tsv")).expect("a table");
    let codecs: Vec<_> = summary.lines().skip(1).map(|line| line.contains("\tnone\t")).collect();
    assert_eq!(codecs, [true, false], "{summary}");
    let page = std::fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(page.contains("than without compression"));
}

#[test]
fn a_sweep_is_one_table_and_files() {
    let pages = pages();
    let out = pages.path("out/deep");
    let text = pool(&[
        "-p",
        &pages.text("pages.db"),
        "-B",
        "20,80",
        "-c",
        "lz4,none",
        "--sweep-share",
        "0,40,..,80",
        "--out",
        out.to_str().expect("UTF-8"),
    ]);
    for row in ["\n0% ", "\n40% ", "\n80% ", "\nadaptive ", "Adaptive: ", "\nnone\n"] {
        assert!(text.contains(row), "no `{row}` in\n{text}");
    }
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let summary = read("summary.tsv");
    let shares: Vec<_> = summary
        .lines()
        .skip(1)
        .map(|line| line.split('\t').nth(6).unwrap_or(""))
        .collect();
    assert_eq!(shares, ["fixed:100", "fixed:60", "fixed:20", "adaptive", "fixed:100"]);
    assert!(read("over_time.tsv").lines().count() > 5);
    let html = read("report.html");
    assert!(
        html.contains("By share") && html.matches("<svg").count() >= 7,
        "{}",
        html.len()
    );
    assert!(!html.contains("http://") || html.matches("http://").count() == html.matches("http://www.w3.org/").count());
    let json = read("results.json");
    assert!(
        json.contains("\"format\": 1") && json.contains("--sweep-share"),
        "{}",
        json.len()
    );
    assert!(text.contains(out.join("report.html").to_str().expect("UTF-8")));
}

#[test]
fn verbose_shows_progress_and_quiet_does_not() {
    let pages = pages();
    let data = pages.text("pages.db");
    let run = |flag: &str| {
        let arguments = [
            "pool",
            "-p",
            &data,
            "-d",
            "0.5",
            "--page-bytes",
            "1K",
            "-m",
            "128K",
            flag,
        ];
        let output = leafpress().args(arguments).output().expect("leafpress starts");
        assert!(output.status.success(), "{}", stderr(&output));
        stderr(&output)
    };
    let progress = run("-vv");
    assert!(
        progress.contains("% hits") && progress.contains("pages/s"),
        "{progress}"
    );
    assert_eq!(run("-q"), "");
    let arguments = [
        "pool",
        "-p",
        &data,
        "-d",
        "0.1",
        "--page-bytes",
        "1K",
        "-m",
        "128K",
        "-c",
        "lz4,none",
    ];
    let output = leafpress().args(arguments).output().expect("leafpress starts");
    let progress = stderr(&output);
    assert!(
        progress.contains("[1/2] lz4 adaptive") && progress.contains("[2/2] none"),
        "a line for each run: {progress}"
    );
}

#[track_caller]
fn refused(arguments: &[&str], words: &[&str]) {
    let files = Files::new();
    let mut command = leafpress();
    command.args(["pool", "-d", "0.1"]).args(arguments);
    assert_refused(&mut command, &files.path("out"), words);
}

#[test]
fn what_cannot_work_is_refused_before_anything_is_written() {
    let pages = pages();
    let (file, directory) = (pages.text("pages.db"), pages.text("pages"));
    refused(&["-B", "120,5"], &["--bias", "120,5", "20,80"]);
    refused(&["-f", "101"], &["--fixed", "between 0 and 100"]);
    refused(&["-c", "brotli"], &["--codec", "brotli", "lz4", "zstd"]);
    refused(&["-m", "1K"], &["--memory", "1K", "64K"]);
    refused(&["-m", "lots"], &["--memory", "lots", "500M"]);
    refused(
        &["-p", &file, "-m", "128K", "--page-bytes", "64K"],
        &["--memory", "too little"],
    );
    refused(
        &["-p", &file, "--page-bytes", "1M", "-m", "8M"],
        &["pages.db", "smaller than a page"],
    );
    refused(&["-p", "/no/such/file"], &["--data", "/no/such/file", "no such file"]);
    refused(&["-p", "nonesuch"], &["nonesuch", "packages"]);
    refused(&["-p", &file, "--store", "dir"], &["--store", "directory"]);
    refused(&["-p", &directory, "-b", "1"], &["--data", "pages"]);
    refused(&["-p", &file, "-b", "1"], &["--bytes", "first page"]);
    refused(&["--sweep-share", "0,200"], &["--sweep-share", "0,10,..,90"]);
    refused(&["-C", "-c", "lz4"], &["--no-compression", "--codec"]);
    let empty = pages.path("empty");
    std::fs::create_dir(&empty).expect("made");
    refused(&["-p", empty.to_str().expect("UTF-8")], &["empty", "no file in it"]);
}

#[test]
fn reports_a_path_that_cannot_be_written() {
    let pages = pages();
    let data = pages.text("pages.db");
    let scratch = [
        "pool",
        "-p",
        &data,
        "-d",
        "0.1",
        "-U",
        "5",
        "--scratch",
        "/no/such/directory",
    ];
    assert_bad_input(&run(&scratch), &["/no/such/directory", "--scratch"]);
    assert_bad_input(
        &run(&["pool", "-p", &data, "-d", "0.1", "--out", &data]),
        &["--out", "pages.db"],
    );
}

/// A run of a minute unless it is ended, with a progress line every quarter of a second.
fn long_run(data: &Path, arguments: &[&str]) -> Child {
    leafpress()
        .args([
            "pool",
            "-d",
            "60",
            "-w",
            "1",
            "--page-bytes",
            "1K",
            "-m",
            "96K",
            "--no-baseline",
            "-vv",
            "-p",
        ])
        .arg(data)
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("leafpress starts")
}

/// Sends what Ctrl-C sends.
fn interrupt(child: &Child) {
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(status.expect("kill runs").success());
}

#[test]
fn a_page_that_changes_under_the_run_is_a_wrong_byte() {
    let pages = pages();
    let path = pages.path("pages.db");
    let mut child = long_run(&path, &["--verify", "all"]);
    let mut progress = BufReader::new(child.stderr.take().expect("piped"))
        .lines()
        .map_while(Result::ok);
    progress.find(|line| line.contains(" pages/s")).expect("the run starts");
    // Only a part of the pages fits, so the others are read again and again.
    let mut file = OpenOptions::new().write(true).open(&path).expect("opened");
    file.write_all(&vec![b'?'; 600 * 1024]).expect("written");
    assert_eq!(progress.by_ref().take(4).count(), 4, "the run goes on");
    interrupt(&child);
    let errors: Vec<String> = progress.collect();
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(
        errors.iter().any(|line| line.starts_with("error: WRONG BYTES")),
        "{errors:?}"
    );
    assert!(
        stdout(&output).contains("bytes that match no version"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn an_interrupt_keeps_what_was_measured() {
    let pages = pages();
    let out = pages.path("out");
    let mut child = long_run(&pages.path("pages.db"), &["--out", out.to_str().expect("UTF-8")]);
    let mut progress = BufReader::new(child.stderr.take().expect("piped"))
        .lines()
        .map_while(Result::ok);
    progress.find(|line| line.contains(" pages/s")).expect("the run starts");
    interrupt(&child);
    let errors: Vec<String> = progress.collect();
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{errors:?}");
    assert!(stdout(&output).contains("INTERRUPTED"), "{}", stdout(&output));
    assert!(
        errors.iter().any(|line| line.starts_with("interrupted: ")),
        "{errors:?}"
    );
    assert!(out.join("report.html").exists());
}
