//! `leafpress codecs`: the list, the self-test, the sample, bad input.

use crate::common::{assert_bad_input, leafpress, run, stderr, stdout};
use serde_json::Value;

fn lines(arguments: &[&str]) -> Vec<Value> {
    let output = run(&[&["codecs", "--json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn every_codec_is_measured_or_has_a_reason() {
    let lines = lines(&[]);
    for family in [
        "none",
        "lz4",
        "zstd",
        "deflate",
        "zlib",
        "qpl:software",
        "qpl:hardware",
        "qpl:auto",
    ] {
        let of_family = |line: &&Value| line["codec"].as_str().is_some_and(|codec| codec.starts_with(family));
        assert!(lines.iter().filter(of_family).count() > 0, "no line for {family}");
    }
    for line in &lines {
        if line["available"] == true {
            assert_eq!(line["self_test"], "ok", "{line}");
            if line["codec"].as_str().is_some_and(|codec| codec.starts_with("onpair")) {
                assert!(
                    line["speed"].is_null(),
                    "it compresses nothing without a dictionary: {line}"
                );
                continue;
            }
            for figure in ["compress_mb_per_s", "decompress_mb_per_s", "ratio"] {
                assert!(
                    line["speed"][figure].as_f64().is_some_and(|value| value > 0.0),
                    "{line}"
                );
            }
        } else {
            assert!(
                line["reason"].as_str().is_some_and(|reason| !reason.is_empty()),
                "{line}"
            );
        }
    }
}

#[test]
fn the_bundled_samples_compress_and_their_packed_bytes_do_not() {
    for sample in ["packages", "unicode", "licences"] {
        let ratio = |raw: &[&str]| {
            let line = &lines(&[&["--codecs", "zstd:1", "--frame-bytes", "4096", "--data", sample], raw].concat())[0];
            line["speed"]["ratio"].as_f64().expect("a number")
        };
        assert!(ratio(&[]) > 1.5, "{sample}");
        assert!(ratio(&["--raw"]) < 1.05, "{sample}");
    }
}

#[test]
fn a_dictionary_helps_small_frames() {
    for codec in ["lz4", "zstd:1"] {
        let line = &lines(&["--codecs", codec, "--frame-bytes", "256"])[0];
        let (plain, with) = (line["speed"]["ratio"].as_f64(), line["dictionary_ratio"].as_f64());
        assert!(with > plain, "{line}");
    }
}

#[test]
fn the_table_has_a_line_per_codec_and_names_the_data() {
    let text = stdout(&run(&["codecs", "--codecs", "none,lz4 zstd:1"]));
    for word in ["none", "lz4", "zstd:1", "packages", "frames of 1K", "MB/s"] {
        assert!(text.contains(word), "no {word} in {text}");
    }
}

#[test]
fn a_verdict_comes_first() {
    for (codecs, verdict) in [
        ("none,lz4,zstd:1", "zstd:1 compresses best: "),
        ("zstd:1", "zstd:1: "),
        ("none", "none only copies, at "),
    ] {
        let text = stdout(&run(&["codecs", "--codecs", codecs]));
        assert!(text.starts_with(verdict), "{codecs}:\n{text}");
        let first = text.split("\n\n").next().unwrap_or_default();
        let first = first.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            first.contains("MB/s") && first.contains("frames of 1K, one thread"),
            "{codecs}:\n{text}"
        );
    }
}

/// Of long data a sample is taken, and that is said.
#[test]
fn long_data_is_sampled() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("long");
    let file = std::fs::File::create(&path).expect("a file");
    file.set_len(100 << 20).expect("it has room");
    let path = path.to_str().expect("a name");
    let output = run(&["codecs", "--codecs", "none", "--frame-bytes", "65536", "--data", path]);
    // Wherever its lines end.
    let text = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("a sample of") && text.contains("evenly spread over 100M"),
        "{text}"
    );
}

#[test]
fn absent_qpl_is_reported_with_the_reason() {
    let output = leafpress()
        .env("LEAFPRESS_QPL", "/no/such/libqpl.so")
        .args(["codecs", "--json", "--codecs", "qpl:software:fixed"])
        .output()
        .expect("leafpress starts");
    let lines: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(lines[0]["available"], false);
    assert!(
        lines[0]["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("/no/such/libqpl.so")),
        "{lines:?}"
    );
    assert_eq!(
        output.status.code(),
        Some(0),
        "an absent library does not fail the list"
    );
}

#[test]
fn bad_input_is_one_line() {
    assert_bad_input(&run(&["codecs", "--codecs", "lz5"]), &["lz5", "zstd"]);
    assert_bad_input(&run(&["codecs", "--codecs", ","]), &["--codecs", "empty"]);
    assert_bad_input(
        &run(&["codecs", "--data", "/no/such/file"]),
        &["--data", "/no/such/file"],
    );
    assert_bad_input(&run(&["codecs", "--frame-bytes", "0"]), &["--frame-bytes", "64"]);
}
