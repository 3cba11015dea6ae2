//! Records of a dump and the shapes of keys, in every command that takes them.

use std::path::Path;

use crate::common::{assert_bad_input, leafpress, run, stderr, stdout, write};
use tempfile::TempDir;

const DUMP: &str =
    "{\"id\":\"a\",\"n\":1}\n{\"id\":\"b\",\"n\":2}\n{\"n\":3}\n{\"id\":\"a\",\"n\":4}\n{\"id\":\"c\",\"n\":5}\n";

fn directory() -> TempDir {
    let directory = TempDir::new().expect("a temporary directory");
    write(directory.path(), "dump.jsonl", DUMP);
    write(directory.path(), "broken.jsonl", "{\"id\":1}\n{\"id\":\n");
    write(directory.path(), "empty.jsonl", "");
    write(directory.path(), "rows.csv", "id,name\n1,ada\n2,\"bob, the second\"\n");
    write(directory.path(), "pairs.tsv", "k1\tv1\nk2\tv2\n");
    write(
        directory.path(),
        "stanzas",
        "Name: x\nSize: 1\n\nName: y\nSize: 2\n more\n",
    );
    directory
}

fn path(directory: &TempDir, name: &str) -> String {
    directory.path().join(name).display().to_string()
}

/// Runs a short evaluation and hands out its standard output and its `summary.tsv`.
#[track_caller]
fn eval(out: &Path, arguments: &[&str]) -> (String, String) {
    let output = leafpress()
        .args([
            "eval",
            "--codecs",
            "lz4",
            "--threads",
            "1",
            "--seconds",
            "0.05",
            "--out",
        ])
        .arg(out)
        .args(arguments)
        .output()
        .expect("leafpress starts");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let summary = std::fs::read_to_string(out.join("summary.tsv")).expect("summary.tsv");
    (stdout(&output), summary)
}

/// A column of every row.
fn column(summary: &str, name: &str) -> Vec<String> {
    let at = summary
        .lines()
        .next()
        .and_then(|header| header.split('\t').position(|column| column == name));
    let at = at.unwrap_or_else(|| panic!("no column {name}"));
    let rows = summary.lines().skip(1);
    rows.map(|row| row.split('\t').nth(at).expect("a cell").to_owned())
        .collect()
}

#[test]
fn every_format_is_evaluated_and_every_answer_checked() {
    let directory = directory();
    for (name, format, records) in [
        ("dump.jsonl", "jsonl:/id", 3),
        ("rows.csv", "csv:id", 2),
        ("pairs.tsv", "tsv", 2),
        ("stanzas", "stanzas:name", 2),
    ] {
        let out = directory.path().join(format!("out-{name}"));
        let data = path(&directory, name);
        let workloads = ["--workloads", "read_only,read_write_5_5,crud,scan"];
        let (printed, summary) = eval(
            &out,
            &[&["--data", &data, "--records", format], &workloads[..]].concat(),
        );
        assert!(
            printed.contains(&format!("{records} records of {data} ({format}): keys of ")),
            "{printed}"
        );
        assert_eq!(column(&summary, "mismatches"), ["0"; 4], "{format}");
        assert_eq!(column(&summary, "key_shape"), [format; 4]);
    }
}

#[test]
fn reports_records_omitted_from_a_dump() {
    let directory = directory();
    let data = path(&directory, "dump.jsonl");
    let arguments = ["--data", &data, "--records", "jsonl:/id", "--workloads", "read_only"];
    let (printed, summary) = eval(&directory.path().join("out"), &arguments);
    let flat = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("skipped: 1 with a duplicate key (the last one counts), 1 without a key"),
        "{printed}"
    );
    // The last record of key a counts, and values are the lines: 16 bytes each, with keys of 1.
    assert_eq!(column(&summary, "user_bytes"), ["51"]);
}

#[test]
fn the_bundled_samples_have_records() {
    let directory = directory();
    for (sample, format, words) in [
        (
            "packages",
            "stanzas:Package",
            "3280 records of packages (stanzas:Package): keys of 3 to 57 ",
        ),
        (
            "characters",
            "jsonl:/code",
            "34924 records of characters (jsonl:/code): keys of 6 to 8 ",
        ),
        ("characters", "jsonl:/name", "skipped: 64 with a duplicate key"),
    ] {
        let out = directory.path().join(format!("{sample}-{}", format.len()));
        let arguments = ["--data", sample, "--records", format, "--workloads", "read_write_8_2"];
        let (printed, summary) = eval(&out, &arguments);
        assert!(printed.contains(words), "{printed}");
        assert_eq!(column(&summary, "mismatches"), ["0"]);
    }
    let some = [
        "--data",
        "packages",
        "--records",
        "stanzas:Package",
        "--keys",
        "500",
        "--workloads",
        "scan",
    ];
    let (printed, _) = eval(&directory.path().join("some"), &some);
    assert!(printed.contains("500 of 3280 records of packages"), "{printed}");
}

#[test]
fn keys_of_every_shape_are_evaluated() {
    let directory = directory();
    for (shape, bytes) in [
        ("dense", "8"),
        ("scattered", "8"),
        ("text", "22 to 48"),
        ("uuid", "36"),
        ("path", "57 to 80"),
    ] {
        let workloads = ["--key-shape", shape, "--keys", "3000", "--workloads", "crud,scan"];
        let (printed, summary) = eval(&directory.path().join(shape), &workloads);
        let (least, most) = bytes.split_once(" to ").unwrap_or((bytes, bytes));
        let length_text = printed.split("keys of ").nth(1).expect("lengths of keys");
        let numbers: Vec<usize> = length_text
            .split(" bytes")
            .next()
            .unwrap_or_default()
            .split(' ')
            .filter_map(|word| word.parse().ok())
            .collect();
        let bounds = least.parse().unwrap()..=most.parse().unwrap();
        assert!(
            !numbers.is_empty() && numbers.iter().all(|length| bounds.contains(length)),
            "{shape}: {printed}"
        );
        assert!(printed.contains(&format!("\n3000 {shape} keys of ")), "{printed}");
        assert_eq!(column(&summary, "mismatches"), ["0"; 2], "{shape}");
    }
    let ranges = [
        "--key-shape",
        "text",
        "--keys",
        "3000",
        "--shard-by",
        "range",
        "--workloads",
        "scan",
    ];
    let (_, summary) = eval(&directory.path().join("ranges"), &ranges);
    assert_eq!(column(&summary, "mismatches"), ["0"]);
}

#[test]
fn maps_are_compared_on_records_and_on_keys_of_every_kind() {
    let directory = directory();
    let out = path(&directory, "out");
    let short = [
        "--codecs",
        "zstd:1",
        "--seconds",
        "0.05",
        "--rounds",
        "1",
        "--out",
        &out,
    ];
    for (arguments, words) in [
        (
            vec!["--data", "packages", "--records", "stanzas:Package"],
            "3280 records of packages",
        ),
        (
            vec!["--keys", "2000", "--key-shape", "path", "--workload", "read_write_8_2"],
            "Mops/s",
        ),
        (
            vec!["--keys", "2000", "--cut", "lines", "--key-bytes", "20"],
            "2000 scattered keys of 20 bytes",
        ),
        (
            vec!["--keys", "2000", "--key-shape", "dense", "--load-order", "sequential"],
            "in the order of the keys",
        ),
    ] {
        let output = run(&[&["peers"], &arguments[..], &short].concat());
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
        let printed = stdout(&output);
        assert!(printed.contains(words), "{printed}");
        for map in [
            "leafpress zstd:1",
            "masstree",
            "TreeIndex",
            "SkipMap",
            "BTreeMap",
            "not included in any",
        ] {
            assert!(printed.contains(map), "no {map} in {printed}");
        }
    }
    let long: String = (0..50)
        .map(|id| format!("{id}{}\tvalue {id}\n", "k".repeat(300)))
        .collect();
    write(directory.path(), "long.tsv", &long);
    let data = path(&directory, "long.tsv");
    let output = run(&[&["peers", "--data", &data, "--records", "tsv"], &short[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stdout(&output).contains("skipped: masstree: its keys have at most 256 bytes"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn bad_records_and_shapes_are_refused_in_one_line() {
    let directory = directory();
    let dump = path(&directory, "dump.jsonl");
    let broken = path(&directory, "broken.jsonl");
    let empty = path(&directory, "empty.jsonl");
    let out = path(&directory, "none");
    for (arguments, words) in [
        (
            vec!["--records", "json:/id"],
            vec!["--records", "`json:/id`", "jsonl:/POINTER"],
        ),
        (
            vec!["--records", "jsonl:id"],
            vec!["--records", "does not begin with a slash"],
        ),
        (vec!["--records", "csv:"], vec!["--records", "csv:COLUMN"]),
        (
            vec!["--records", "tsv"],
            vec!["dump.jsonl: line 1: no tab", "--records tsv"],
        ),
        (vec!["--records", "csv:id"], vec!["line 1: no column is named `id`"]),
        (
            vec!["--records", "stanzas:id"],
            vec!["no record with a key", "1 without a key"],
        ),
        (
            vec!["--records", "jsonl:/nothing"],
            vec!["no record with a key", "5 without a key"],
        ),
        (
            vec!["--data", &broken, "--records", "jsonl:/id"],
            vec!["broken.jsonl: line 2: not valid JSON"],
        ),
        (
            vec!["--data", &empty, "--records", "jsonl:/id"],
            vec!["empty.jsonl: it is empty"],
        ),
        (
            vec!["--data", "synthetic:0.5", "--records", "tsv"],
            vec!["--records", "synthetic:0.5 has no records"],
        ),
        (
            vec!["--data", "nonesuch", "--records", "tsv"],
            vec!["nonesuch", "characters"],
        ),
        (
            vec!["--records", "jsonl:/id", "--keys", "4"],
            vec!["--keys", "4 are requested", "3 records"],
        ),
        (
            vec!["--records", "jsonl:/id", "--cut", "lines"],
            vec!["--cut", "omit it"],
        ),
        (
            vec!["--records", "jsonl:/id", "--key-shape", "text"],
            vec!["--key-shape", "omit it"],
        ),
        (
            vec!["--records", "jsonl:/id", "--value-bytes", "64"],
            vec!["--value-bytes", "omit it"],
        ),
        (
            vec!["--key-shape", "words"],
            vec!["--key-shape", "`words`", "scattered"],
        ),
        (
            vec!["--key-shape", "uuid", "--key-bytes", "16"],
            vec!["--key-bytes", "uuid keys have their own lengths"],
        ),
        (
            vec!["--key-shape", "scattered", "--key-bytes", "7"],
            vec!["--key-bytes", "7", "8"],
        ),
        (vec!["--load-order", "backwards"], vec!["--load-order", "backwards"]),
    ] {
        for command in ["eval", "peers"] {
            let output = run(&[&[command, "--data", &dump, "--out", &out], &arguments[..]].concat());
            assert_bad_input(&output, &words);
            assert!(!directory.path().join("none").exists(), "nothing is left behind");
        }
    }
}
