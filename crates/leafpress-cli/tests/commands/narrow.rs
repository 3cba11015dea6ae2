//! Every command's report is readable in 60 columns, and its tables are the same in 80.

use std::path::Path;

use tempfile::TempDir;

use crate::common::{leafpress, stderr, stdout};

/// Output of a command in a terminal of this width; 80 columns without one.
#[track_caller]
fn printed(directory: &Path, columns: &str, arguments: &str) -> (String, String) {
    let output = leafpress()
        .current_dir(directory)
        .env("COLUMNS", columns)
        .args(arguments.split(' '))
        .output()
        .expect("leafpress starts");
    assert!(output.status.success(), "{arguments}: {}", stderr(&output));
    (stdout(&output), stderr(&output))
}

/// Lines that are longer though they could be wrapped.
fn long(text: &str, columns: usize) -> Vec<&str> {
    let is_long = |line: &&str| line.chars().count() > columns && line.trim().contains(' ');
    text.lines().filter(is_long).collect()
}

#[test]
fn reports_and_progress_fit_60_columns() {
    let directory = TempDir::new().expect("a temporary directory");
    let data = directory.path().join("data");
    std::fs::create_dir(&data).expect("made");
    let text = "a few words that come again and again, as words do\n".repeat(2000);
    for name in ["short.txt", "a-name-that-goes-on-and-on-until-it-is-too-long.txt"] {
        std::fs::write(data.join(name), &text).expect("written");
    }
    std::fs::write(
        data.join("records.jsonl"),
        "{\"id\": 1, \"name\": \"a value\"}\n{\"id\": 2, \"name\": \"b\"}\n",
    )
    .expect("written");
    for arguments in [
        "advise data --device-us 110 --data-bytes 20G -m 2G --quick -c lz4 --tco --total-cost 1000000",
        "bench leafpress:lz4 -n 2000 -p 2000 --ycsb A --latency_sampling 0.5 --report table",
        "bench --report table --compare leafpress:lz4 leafpress:none btreemap -n 2000 -p 2000 --ycsb A,C \
         --latency_sampling 0.5",
        "cache -m 8M --working-set 8M -d 0.1 --engines leafpress,quick_cache+zstd:3 --mrc -o out",
        "codecs -c none,lz4 --data data",
        "codecs -c lz4 --data data",
        "device data -s 1M -d 0.05 -b 4K,8K -Q 1,4",
        "doctor",
        "eval --keys 500 --seconds 0.05 --codecs none,lz4 --workloads read_only,read_write_8_2,scan -t 1 -o out",
        "model --data-bytes 20G -m 2G",
        "model --reproduce-thesis",
        "model --reproduce-white-paper",
        "peers --keys 500 --seconds 0.02 --rounds 1 --codecs lz4 -o out",
        "pool --data data -m 1M -d 0.05 -c lz4 --sweep-share 0,50",
        "pool --data data -m 1M -d 0.05 -c lz4",
        "suite data --quick -c lz4,zstd:1",
        "suite data/records.jsonl --records jsonl:/id --quick -c lz4",
    ] {
        let (report, progress) = printed(directory.path(), "60", arguments);
        assert_eq!(long(&report, 60), Vec::<&str>::new(), "{arguments}\n{report}");
        assert_eq!(long(&progress, 60), Vec::<&str>::new(), "{arguments}\n{progress}");
        assert!(
            !report.lines().any(|line| line.ends_with(' ')),
            "{arguments}: spaces at an end\n{report}"
        );
    }
}

/// A report of what is computed, so that it can be compared: columns are where they are at any width.
#[test]
fn tables_are_the_same_at_every_width() {
    let directory = TempDir::new().expect("a temporary directory");
    let tables = |columns| {
        let (report, _) = printed(
            directory.path(),
            columns,
            "model --tco --total-cost 1000 --memory-gib-cost 4",
        );
        let mut rules = 0;
        let of_tables = report.lines().filter(|line| {
            let is_rule = line.starts_with('─');
            rules += usize::from(is_rule);
            is_rule || rules % 3 != 0
        });
        of_tables.map(str::to_owned).collect::<Vec<_>>()
    };
    let narrow = tables("60");
    assert!(narrow.len() > 10, "{narrow:?}");
    for columns in ["80", "200"] {
        assert_eq!(tables(columns), narrow, "{columns} columns");
    }
}

/// An invalid number of columns is ignored.
#[test]
fn columns_that_are_none_are_80() {
    let directory = TempDir::new().expect("a temporary directory");
    let (report, _) = printed(directory.path(), "", "model");
    for columns in ["80", "x", "0", "-1"] {
        assert_eq!(printed(directory.path(), columns, "model").0, report, "{columns}");
    }
    assert!(long(&report, 80).is_empty(), "{report}");
}
