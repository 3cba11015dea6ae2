//! `leafpress suite` as a user runs it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{Files, assert_bad_input, assert_refused, leafpress, run, run_quietly, stderr, stdout};
use tempfile::TempDir;

/// A file that compresses well and one that compresses less.
fn data() -> Files {
    let files = Files::new();
    let text = |step: usize| {
        let words = ["alpha ", "beta ", "gamma ", "delta ", "epsilon "];
        let bytes = (0..).flat_map(move |i: usize| words[(i * 7 + i / step) % 5].bytes());
        bytes.take(40_000).collect::<Vec<_>>()
    };
    std::fs::create_dir(files.path("deep")).expect("made");
    std::fs::write(files.path("even"), text(1000)).expect("written");
    std::fs::write(files.path("deep/odd"), text(3)).expect("written");
    files
}

/// A short run that must end well.
#[track_caller]
fn suite(arguments: &[&str]) -> String {
    run_quietly(&[&["suite", "-n", "1"], arguments].concat())
}

#[test]
fn the_report_has_all_files_and_each_file() {
    let data = data();
    let text = suite(&[&data.text(""), "-c", "lz4,zstd:1", "-b", "4K,8K", "-t", "1,2"]);
    for part in [
        "2 files, 78.1K\n",
        "All files, 1 thread\n",
        "All files, 2 threads\n",
        "Per file, blocks of 8K, 1 thread\n",
        "deep/odd\n",
        "even\n",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    // Where this line wraps depends on the name of the processor.
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("1 pass, every block compared"), "{text}");
    // Two tables for each number of threads.
    for length in ["blocks of 4K\n", "blocks of 8K\n"] {
        assert_eq!(
            text.matches(&format!("\n{length}  memcpy ")).count(),
            4,
            "{length} in\n{text}"
        );
    }
    // There with two lengths each, and once for each file.
    assert_eq!(text.matches("\n  lz4 ").count(), 4 * 2 + 2, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn by_default_every_codec_runs_or_has_a_reason() {
    let data = data();
    let text = suite(&[&data.text("even"), "--quick"]);
    for codec in ["memcpy", "lz4", "zstd:1", "zstd:3", "deflate:1"] {
        assert!(text.contains(&format!(" {codec} ")), "no {codec} in\n{text}");
    }
    assert!(
        text.contains("\nblocks of 32K\n") && !text.contains("blocks of 64K\n"),
        "lengths that the data has:\n{text}"
    );
    let absent = leafpress()
        .env("LEAFPRESS_QPL", "/no/such/libqpl.so")
        .args(["suite", "-b", "4K", "-t", "1", "--quick", &data.text("even")])
        .output()
        .expect("leafpress starts");
    let text = stdout(&absent);
    assert!(
        text.contains("Not available: qpl:software:fixed") && text.contains("/no/such/libqpl.so"),
        "{text}"
    );
    let named = leafpress()
        .env("LEAFPRESS_QPL", "/no/such/libqpl.so")
        .args(["suite", "-c", "qpl:software:fixed", &data.text("even")])
        .output()
        .expect("leafpress starts");
    assert_bad_input(&named, &["--codecs", "qpl:software:fixed", "/no/such/libqpl.so"]);
}

#[test]
fn writes_files_to_the_out_directory() {
    let data = data();
    let out = data.path("out/deep");
    let text = suite(&[
        &data.text("even"),
        &data.text("deep"),
        "-c",
        "lz4",
        "-b",
        "4K",
        "-t",
        "1,3",
        "--out",
        out.to_str().expect("UTF-8"),
    ]);
    for name in [
        "summary.tsv",
        "overall.tsv",
        "suite_wide_1t.tsv",
        "suite_wide_3t.tsv",
        "results.json",
        "report.html",
    ] {
        let path = out.join(name);
        assert!(path.metadata().is_ok_and(|found| found.len() > 0), "{name}");
        assert!(text.contains(path.to_str().expect("UTF-8")), "{text}");
    }
    let wide = std::fs::read_to_string(out.join("suite_wide_1t.tsv")).expect("read");
    assert!(wide.starts_with("file\tsize_bytes\tblock_bytes\tblocks\tmemcpy_compressed_bytes\tlz4_compressed_bytes\t"));
    let json = std::fs::read_to_string(out.join("results.json")).expect("read");
    assert!(json.contains("--out") && json.contains("\"format\": 1"));
}

#[test]
fn what_cannot_be_read_is_listed_and_skipped() {
    let data = data();
    std::fs::write(data.path("nothing"), b"").expect("written");
    std::fs::write(data.path("bad.zip"), b"PK\x03\x04 no zip").expect("written");
    let secret = data.path("secret");
    std::fs::write(&secret, vec![b'x'; 9000]).expect("written");
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o000)).expect("changed");
    // A privileged user can read this too.
    let skipped = if std::fs::read(&secret).is_ok() { 2 } else { 3 };
    let text = suite(&[&data.text(""), "-c", "lz4", "-b", "4K", "-t", "1"]);
    for part in [
        &format!("Skipped {skipped} files:\n"),
        "bad.zip: unreadable zip",
        "nothing: empty",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    assert_bad_input(
        &run(&["suite", &data.text("nothing")]),
        &["nothing", "cannot be used: empty"],
    );
}

#[test]
fn a_sample_is_reported_as_one() {
    let data = data();
    let text = suite(&[&data.text(""), "-c", "lz4", "-b", "4K", "-t", "1", "--max-bytes", "20K"]);
    assert!(
        text.contains("a sample of the 78.1K of 2 files (--max-bytes 20K)")
            && text.contains("pieces of 4K, evenly spread"),
        "{text}"
    );
}

#[test]
fn bundled_samples_have_names() {
    let text = suite(&["licences", "-c", "lz4", "-b", "8K", "-t", "1", "--max-bytes", "100K"]);
    assert!(text.contains("\n1 file, "), "{text}");
}

#[test]
fn what_cannot_work_is_refused_before_anything_is_written() {
    let data = data();
    let even = data.text("even");
    let out = data.path("never");
    let refused = |arguments: &[&str], words: &[&str]| {
        assert_refused(leafpress().arg("suite").args(arguments), &out, words);
    };
    refused(&[], &["PATH"]);
    refused(&["/no/such/file"], &["/no/such/file", "no such file"]);
    refused(&[&even, "/no/such/file"], &["/no/such/file", "no such file"]);
    refused(&["nonesuch"], &["nonesuch", "packages"]);
    refused(&[&even, "-c", "brotli"], &["--codecs", "brotli", "zstd"]);
    refused(&[&even, "-b", "64K"], &["--block-bytes", "40000 bytes", "65536"]);
    refused(&[&even, "-b", "4Q"], &["--block-bytes", "4Q"]);
    refused(&[&even, "-t", "0"], &["--threads", "1024"]);
    refused(&[&even, "-n", "0"], &["--passes"]);
    refused(&[&even, "-n", "-3"], &["-3"]);
    refused(&[&even, "-b", "4K", "--max-bytes", "1K"], &["--max-bytes", "4K"]);
    refused(&[&even, "--max-bytes", "-1"], &["-1"]);
    std::fs::write(data.path("tiny"), b"tiny").expect("written");
    refused(&[&data.text("tiny")], &["tiny", "4 bytes", "one block of 4096"]);
}

#[test]
fn reports_a_path_that_cannot_be_written() {
    let data = data();
    let even = data.text("even");
    assert_bad_input(&run(&["suite", &even, "--out", &even]), &["--out", "even"]);
}

/// A library preloaded over zlib whose `inflate` corrupts a byte of its output.
fn lying_zlib(directory: &Path) -> PathBuf {
    let (source, library) = (directory.join("lying.c"), directory.join("liblying.so"));
    let code = r#"
        #define _GNU_SOURCE
        #include <dlfcn.h>
        struct stream { const unsigned char *next_in; unsigned in; unsigned long total_in; unsigned char *out; };
        int deflate(struct stream *stream, int flush) {
            return ((int (*)(struct stream *, int))dlsym(RTLD_NEXT, "deflate"))(stream, flush);
        }
        int inflate(struct stream *stream, int flush) {
            static int (*real)(struct stream *, int);
            if (!real) real = (int (*)(struct stream *, int))dlsym(RTLD_NEXT, "inflate");
            unsigned char *out = stream->out;
            int status = real(stream, flush);
            out[5] ^= 1;
            return status;
        }
    "#;
    std::fs::write(&source, code).expect("written");
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([&library, &source])
        .arg("-ldl")
        .status()
        .expect("a C compiler");
    assert!(compiled.success());
    library
}

#[test]
fn a_wrong_byte_is_exit_1_with_codec_file_and_block() {
    let data = data();
    let out = data.path("out");
    let library = lying_zlib(data.0.path());
    let output = leafpress()
        .env("LD_PRELOAD", format!("{} libz.so.1", library.display()))
        .args([
            "suite",
            "-c",
            "lz4,zlib:1",
            "-b",
            "4K",
            "-t",
            "1",
            &data.text("even"),
            "--out",
        ])
        .arg(&out)
        .output()
        .expect("leafpress starts");
    let message = stderr(&output);
    // Without a zlib on this machine there is none to lie.
    if message.contains("not available") {
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    for word in [
        "error: zlib:1 failed on ",
        "even, block 0 of 4096 bytes",
        "WRONG BYTES",
        "byte 5",
    ] {
        assert!(message.contains(word), "no `{word}` in {message}");
    }
    assert_eq!(stdout(&output), "");
}

#[test]
fn an_interrupt_ends_it() {
    let data = data();
    let (even, out) = (data.text("even"), data.path("out"));
    let mut child = leafpress()
        .args([
            "suite", "-n", "1000", "-t", "1", "-c", "zlib:9", "-b", "4K", &even, "--out",
        ])
        .arg(&out)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("leafpress starts");
    // The directory is made when measuring begins.
    while !out.exists() {
        assert!(
            child.try_wait().expect("it can be asked").is_none(),
            "it ended by itself"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(status.expect("kill runs").success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).starts_with("interrupted: "), "{}", stderr(&output));
}

#[test]
fn records_are_measured_alone_in_frames_and_in_one_piece() {
    let directory = TempDir::new().expect("a temporary directory");
    let out = directory.path().join("out");
    let records = ["packages", "--records", "stanzas:Package", "-c", "lz4,zstd:3,deflate:1"];
    let text = suite(&[&records[..], &["--out", out.to_str().expect("UTF-8")]].concat());
    for part in [
        "3,280 records of packages (stanzas:Package), ",
        "1 pass, every record compared",
        "1 thread",
        "◆",
    ] {
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(part.trim()), "no `{part}` in\n{text}");
    }
    for name in ["records.tsv", "results.json", "report.html"] {
        assert!(out.join(name).metadata().is_ok_and(|found| found.len() > 0), "{name}");
        assert!(text.contains(out.join(name).to_str().expect("UTF-8")), "{text}");
    }
    let tsv = std::fs::read_to_string(out.join("records.tsv")).expect("read");
    let mut lines = tsv.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let names = lines.next().expect("names");
    let at = |name: &str| names.iter().position(|known| *known == name).expect("a column");
    let rows: Vec<_> = lines.collect();
    let ratio = |place: &str, codec: &str, with: bool| -> f64 {
        let row = rows.iter().find(|row| {
            (row[at("records_in")], row[at("codec")]) == (place, codec) && (row[at("dictionary_bytes")] != "0") == with
        });
        row.expect("a row")[at("ratio")].parse().expect("a number")
    };
    // The frontier: more neighbours and a dictionary save more, and one piece is the limit.
    let ratios = [
        ratio("record", "zstd:3", false),
        ratio("record", "zstd:3", true),
        ratio("16384", "zstd:3", true),
        ratio("all", "zstd:19", false),
    ];
    assert!(ratios.is_sorted() && ratios[0] > 1.2, "{ratios:?}");
}

#[test]
fn records_that_cannot_be_measured_are_refused() {
    let data = data();
    std::fs::write(data.path("dump.tsv"), "key\tvalue\n").expect("written");
    let (even, dump, out) = (data.text("even"), data.text("dump.tsv"), data.path("never"));
    let refused = |arguments: &[&str], words: &[&str]| {
        assert_refused(leafpress().arg("suite").args(arguments), &out, words);
    };
    refused(&[&even, "--records", "tsv"], &["even: line 1: no tab", "--records tsv"]);
    refused(&[&dump, &even, "--records", "tsv"], &["--records", "2 PATHs"]);
    refused(&[&dump, "--records", "xml"], &["--records", "`xml`", "jsonl:/POINTER"]);
    refused(&[&dump, "--records", "tsv", "--raw"], &["--raw", "omit it"]);
    refused(&[&dump, "--records", "tsv", "-b", "32"], &["--block-bytes", "32", "64"]);
    refused(
        &[&dump, "--dictionary-bytes", "8K"],
        &["--dictionary-bytes", "--records"],
    );
    refused(
        &["synthetic:0.5", "--records", "tsv"],
        &["synthetic:0.5", "no such file"],
    );
    // One short record is enough to measure, though not to train from.
    let text = suite(&[&dump, "--records", "tsv", "-c", "zstd:1"]);
    assert!(text.contains("No dictionary for zstd:1: "), "{text}");
}
