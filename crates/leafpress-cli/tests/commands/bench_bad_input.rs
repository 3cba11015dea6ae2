//! What `leafpress bench` says of arguments that cannot work.

use std::path::Path;

use crate::common::{assert_bad_input, leafpress, run, stderr};
use tempfile::TempDir;

#[test]
fn what_cannot_work_is_one_line_and_exit_2() {
    for (arguments, words) in [
        (["btreemap", "-k", "0"].as_slice(), ["--key_size", "between 1 and 128"]),
        (&["btreemap", "-v", "0"], ["--value_size", "between 1 and 1048576"]),
        (&["btreemap", "-t", "0"], ["--threads", "between 1 and 1024"]),
        (&["btreemap", "-i", "0.5"], ["--read_ratio", "sum to 1.5"]),
        (&["btreemap", "-r", "abc"], ["abc", "--read_ratio"]),
        (
            &["btreemap", "--latency_sampling", "2"],
            ["--latency_sampling", "between 0 and 1"],
        ),
        (&["btreemap", "--mode", "forever"], ["forever", "time"]),
        (&["btreemap", "--pcm=maybe"], ["maybe", "--pcm"]),
        (&["hashmap", "-r", "0", "-s", "1"], ["--scan_ratio", "unordered"]),
        (&["btreemap", "-k", "1"], ["--key_size", "255 different keys"]),
        (&["nonesuch"], ["nonesuch", "skiplist"]),
        (&["./no/such.so"], ["./no/such.so", "No such file"]),
        (
            &["btreemap", "--json", "/no/such/directory/x.json"],
            ["--json", "/no/such/directory"],
        ),
        (&["btreemap", "--html", "/"], ["--html", "directory"]),
        (&[], ["INPUT", "--compare"]),
    ] {
        let output = leafpress()
            .arg("bench")
            .args(arguments)
            .output()
            .expect("leafpress starts");
        assert_bad_input(&output, &words);
    }
}

/// A file that is not a wrapper is rejected with the loader's own message, exit 1.
#[test]
fn rejects_a_foreign_library_with_a_reason() {
    let directory = TempDir::new().expect("a temporary directory");
    let text = directory.path().join("text.so");
    std::fs::write(&text, "not a library").expect("written");
    let output = leafpress()
        .args(["bench", "-n", "10"])
        .arg(&text)
        .output()
        .expect("leafpress starts");
    assert_eq!(output.status.code(), Some(1));
    let message = stderr(&output);
    assert!(
        message.starts_with("error: ") && message.contains("text.so"),
        "{message}"
    );
    assert_eq!(message.lines().count(), 1, "{message}");
}

/// A value that is not a number, negative, or out of range is reported with the range, and not taken for an option.
#[test]
fn reports_invalid_numbers_with_their_range() {
    for (option, value, range) in [
        ("-n", "-1", "between 0 and 1099511627776"),
        ("--records", "1e6", "between 0 and 1099511627776"),
        ("-p", "-5", "between 0 and 1125899906842624"),
        ("-t", "-2", "between 1 and 1024"),
        ("-k", "-1", "between 1 and 128"),
        ("-v", "eight", "between 1 and 1048576"),
        ("-r", "-0.5", "between 0 and 1"),
        ("-i", "half", "between 0 and 1"),
        ("-u", "-0.1", "between 0 and 1"),
        ("-d", "50%", "between 0 and 1"),
        ("-s", "-1", "between 0 and 1"),
        ("--scan_size", "-1", "between 1 and 1048576"),
        ("--sampling_ms", "-1", "between 1 and 3600000"),
        ("--skew", "high", "0.5 for self-similar"),
        ("--seed", "99999999999999999999", "between 0 and 18446744073709551615"),
        ("--seconds", "ten", "at most 2592000"),
        ("--latency_sampling", "all", "between 0 and 1"),
        ("--pool_size", "-1", "invalid size `-1`"),
        ("--skew", "-1", "at least 0"),
        ("-c", "300", "0, 1 or 2"),
        ("-x", "-1", "0, 1, 2 or 3"),
        ("-g", "on", "0 or 1"),
        ("--rate", "fast", "at most 1e9"),
        ("--warmup", "long", "between 0 and 2592000"),
        ("--repeat", "-1", "between 1 and 1000"),
    ] {
        let output = run(&["bench", "dummy", option, value]);
        assert_bad_input(&output, &[value, range]);
        assert!(!stderr(&output).contains("unexpected"), "{}", stderr(&output));
    }
}

#[test]
fn reports_a_prefix_that_leaves_no_room() {
    for length in [128, 300] {
        let prefix = "x".repeat(length);
        let output = run(&["bench", "dummy", "-f", &prefix]);
        assert_bad_input(&output, &["--key_prefix", &length.to_string(), "at most 127"]);
    }
    assert_bad_input(
        &run(&["bench", "dummy", "-f", &"x".repeat(127)]),
        &["--key_size", "between 1 and 1"],
    );
}

#[test]
fn reports_names_that_are_listed_twice() {
    assert_bad_input(
        &run(&["bench", "dummy", "--ycsb", "A,C,A"]),
        &["--ycsb", "A is listed twice"],
    );
    assert_bad_input(
        &run(&["bench", "--compare", "dummy", "dummy"]),
        &["--compare", "dummy is listed twice"],
    );
    let directory = TempDir::new().expect("a temporary directory");
    for html in ["same", "./same"] {
        let output = leafpress()
            .args([
                "bench", "dummy", "-n", "10", "-p", "10", "--json", "same", "--html", html,
            ])
            .current_dir(&directory)
            .output()
            .expect("leafpress starts");
        assert_bad_input(&output, &["--html", "--json"]);
        assert!(!Path::exists(&directory.path().join("same")));
    }
}
