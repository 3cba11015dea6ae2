//! The command itself: help, version, mistakes, and readers that go away.

use std::io::Read;
use std::process::Stdio;

use crate::common::{assert_bad_input, leafpress, run, stderr, stdout};

#[test]
fn help_works_everywhere() {
    for arguments in [
        &["--help"][..],
        &["eval", "--help"],
        &["codecs", "--help"],
        &["doctor", "--help"],
        &["peers", "--help"],
        &["cache", "--help"],
        &["pool", "--help"],
        &["help"],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(stdout(&output).contains("Usage: leafpress"), "{arguments:?}");
        assert_eq!(stderr(&output), "");
        assert!(!stdout(&output).contains("__"), "hidden commands stay hidden");
    }
    assert_eq!(
        stdout(&run(&["--version"])),
        format!("leafpress {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn mistakes_are_one_line() {
    assert_bad_input(&run(&["evil"]), &["evil", "--help"]);
    assert_bad_input(&run(&["doctor", "--jsn"]), &["--jsn", "--json"]);
    assert_bad_input(&run(&["codecs", "--frame-bytes"]), &["--frame-bytes"]);
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(2), "no command is a mistake too");
    assert!(stderr(&output).contains("Usage: leafpress"));
}

#[test]
fn survives_a_reader_that_closes_its_pipe() {
    for arguments in [&["eval", "--help"][..], &["doctor"], &["codecs", "--codecs", "none"]] {
        let mut child = leafpress()
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("leafpress starts");
        drop(child.stdout.take());
        let mut message = String::new();
        child
            .stderr
            .take()
            .expect("piped")
            .read_to_string(&mut message)
            .expect("UTF-8");
        let status = child.wait().expect("it ends");
        assert_eq!((status.code(), message.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn a_run_without_its_configuration_fails_in_words() {
    for input in ["", "not a configuration\n", "{}\n"] {
        let directory = tempfile::TempDir::new().expect("a temporary directory");
        let path = directory.path().join("input");
        std::fs::write(&path, input).expect("written");
        let output = leafpress()
            .arg("__eval-run")
            .stdin(std::fs::File::open(&path).expect("opened"))
            .output()
            .expect("leafpress starts");
        assert_ne!(output.status.code(), Some(0));
        assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
    }
}

#[test]
fn the_comparison_runs_every_map_and_refuses_bad_input() {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let output = leafpress()
        .args([
            "peers",
            "--keys",
            "2000",
            "--seconds",
            "0.1",
            "--rounds",
            "1",
            "--codecs",
            "lz4",
            "--out",
        ])
        .arg(directory.path())
        .output()
        .expect("leafpress starts");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for map in ["leafpress lz4", "masstree", "TreeIndex", "SkipMap", "BTreeMap"] {
        assert!(stdout(&output).contains(map), "no {map} in {}", stdout(&output));
    }
    let json = std::fs::read(directory.path().join("peers.json")).expect("peers.json");
    let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    // A small map is weighed separately: its resident memory is its own.
    for line in json["lines"].as_array().expect("lines") {
        let resident = line["resident_bytes_per_record"].as_f64();
        let Some(resident) = resident else {
            let why = line["resident_unknown"].as_str().expect("it is said why");
            assert!(
                why.contains("too small to separate") && stdout(&output).contains("no resident memory of "),
                "{line}"
            );
            continue;
        };
        // Maps without their own accounting have keys, values and pointers.
        let held = line["bytes_held_per_record"].as_f64().unwrap_or(200.0);
        assert!((resident - held).abs() * 2000.0 < f64::from(1 << 20), "{line}");
    }

    let out = directory.path().join("none");
    for (flag, value) in [
        ("--codecs", "lz5"),
        ("--rounds", "0"),
        ("--keys", "0"),
        ("--data", "nonesuch"),
        ("--threads", "0"),
    ] {
        let output = leafpress()
            .args(["peers", flag, value, "--out"])
            .arg(&out)
            .output()
            .expect("leafpress starts");
        assert_bad_input(&output, &[flag, value]);
        assert!(!out.exists(), "nothing is left behind");
    }
}
