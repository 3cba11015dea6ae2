//! `leafpress cache` as a user runs it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{assert_bad_input, assert_refused, leafpress, run, stderr, stdout, succeeded, write};
use tempfile::TempDir;

/// A text wherever its lines end.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Small, and over in a moment.
const SMALL: [&str; 7] = ["cache", "-m", "8M", "--warmup", "2000", "--operations", "2000"];

fn directory() -> TempDir {
    TempDir::new().expect("a temporary directory")
}

#[test]
fn caches_are_compared_in_a_table_and_files() {
    let directory = directory();
    let out = directory.path().join("out/deep");
    let output = leafpress()
        .args(SMALL)
        .args([
            "--working-set",
            "512K",
            "--engines",
            "leafpress:lz4,quick_cache+lz4",
            "moka",
            "--writes",
            "5",
            "--out",
        ])
        .arg(&out)
        .output()
        .expect("leafpress starts");
    let text = succeeded(&output);
    for part in [
        "6,553 keys, 512K of keys and values, 0.1 times the memory; hotset:20:80",
        "memory 8M, 2 threads, 5% overwrite; 2,000 warm-up operations, measured: 2,000 operations",
        "\n leafpress:lz4 ",
        "\n quick_cache+lz4 ",
        "\n moka ",
        "report.html",
    ] {
        assert!(flat(&text).contains(&flat(part)), "no `{part}` in\n{text}");
    }
    assert!(!text.contains("MISMATCHES") && !text.contains("failed"), "{text}");
    let progress = stderr(&output);
    assert!(
        progress.contains("[1/3] leafpress:lz4") && progress.contains("[3/3] moka"),
        "{progress}"
    );
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(read("summary.tsv").lines().count(), 4);
    assert!(read("over_time.tsv").lines().count() > 6);
    assert!(read("results.json").contains("\"quick_cache+lz4\""));
    assert!(read("report.html").matches("<svg").count() >= 6);
}

#[test]
fn a_tier_on_a_disk_answers_what_memory_does_not() {
    let directory = directory();
    let out = directory.path().join("out");
    let output = leafpress()
        .args(["cache", "-m", "8M", "--working-set", "24M", "--disk", "64M"])
        .args([
            "--warmup",
            "600000",
            "--operations",
            "20000",
            "--engines",
            "leafpress",
            "--out",
        ])
        .arg(&out)
        .output()
        .expect("leafpress starts");
    assert!(output.status.success(), "{}{}", stderr(&output), stdout(&output));
    let summary = std::fs::read_to_string(out.join("summary.tsv")).expect("a summary");
    let mut lines = summary.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let (names, figures) = (lines.next().expect("names"), lines.next().expect("figures"));
    let figure = |name: &str| {
        let at = names.iter().position(|other| *other == name).expect(name);
        figures[at].parse::<f64>().unwrap_or_else(|e| panic!("{name}: {e}"))
    };
    assert!(
        figure("disk_hit_pct") > 1.0 && figure("memory_hit_pct") > 1.0,
        "{summary}"
    );
    assert!(figure("stale") + figure("wrong") == 0.0, "{summary}");
    assert!(!out.join("cache.disk").exists());
}

#[test]
fn records_and_traces_are_run() {
    let directory = directory();
    let (root, out) = (directory.path(), directory.path().join("out"));
    let dump: String = (0..300)
        .map(|at| format!("user:{at}\t{}\n", "abc ".repeat(at % 40)))
        .collect();
    write(root, "dump.tsv", &dump);
    let requests: String = (0..900)
        .map(|at| format!("{at},object{},{}\n", at % 90, 1 + at % 90 * 7))
        .collect();
    write(root, "tiny.csv", &requests);
    write(root, "cut.lis", "1 5 0 1\n3 ");
    let path = |name: &str| root.join(name).to_str().expect("UTF-8").to_owned();
    for (arguments, part) in [
        (
            &["--records", "tsv", "--distribution", "zipf:0.9"][..],
            "185 of 300 records of ",
        ),
        (
            &["--trace", &path("tiny.csv")],
            "(csv): 900 requests, 0 of them writes, 90 keys",
        ),
        (&["--cut", "fixed:32", "--ttl", "60"], "values from all over the "),
    ] {
        let data = path("dump.tsv");
        let output = leafpress()
            .args(SMALL)
            .args(["--data", &data, "--engines", "leafpress", "-t", "1"])
            .args(if arguments[0] == "--trace" {
                &[][..]
            } else {
                &["--working-set", "15K"]
            })
            .args(arguments)
            .arg("--out")
            .arg(&out)
            .output()
            .expect("leafpress starts");
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        assert!(
            flat(&stdout(&output)).contains(&flat(part)),
            "{arguments:?}: no `{part}` in\n{}",
            stdout(&output)
        );
    }
    let cut = leafpress()
        .args(SMALL)
        .args(["--trace", &path("cut.lis")])
        .output()
        .expect("leafpress starts");
    assert_bad_input(&cut, &["cut.lis", "line 2", "two numbers"]);
}

/// A CacheBench file with the files it refers to.
fn write_cachebench(root: &Path, ratios: &str) -> String {
    write(
        root,
        "pop.json",
        r#"{ "popularityBuckets": [1, 99], "popularityWeights": [1, 1] }"#,
    );
    write(
        root,
        "sizes.json",
        r#"{ "valSizeRange": [40, 400], "valSizeRangeProbability": [3, 1] }"#,
    );
    let text = format!(
        r#"// A few keys.
        {{ "cache_config": {{ "cacheSizeMB": 80, "htBucketPower": 22 }}, "test_config": {{
            "numKeys": 20000, "numOps": 40000, "numThreads": 2, "enableLookaside": true, {ratios},
            "keySizeRange": [8, 24], "keySizeRangeProbability": [1], "opDelayNs": 100,
            "popDistFile": "pop.json", "valSizeDistFile": "sizes.json" }} }}"#
    );
    write(root, "config.json", &text);
    root.join("config.json").to_str().expect("UTF-8").to_owned()
}

#[test]
fn a_cachebench_file_is_run_at_its_own_pace_and_at_a_rate() {
    let directory = directory();
    let (root, out) = (directory.path(), directory.path().join("out"));
    let config = write_cachebench(
        root,
        r#""getRatio": 0.8, "setRatio": 0.1, "delRatio": 0.05, "loneGetRatio": 0.05"#,
    );
    let run = |arguments: &[&str]| {
        let output = leafpress()
            .args(["cache", "--cachebench", &config, "--scale", "0.1"])
            .args(["--data", "synthetic:0.5", "--engines", "leafpress", "--out"])
            .arg(&out)
            .args(arguments)
            .output()
            .expect("leafpress starts");
        succeeded(&output)
    };
    let text = run(&[]);
    for part in [
        "2,000 keys, 0.1 times 20,000",
        "80.0% gets, 10.0% sets, 5.0% deletes, 5.0% gets of keys used only once; keys by 2 popularity buckets",
        "ignored fields: test_config.opDelayNs, cache_config.htBucketPower",
        "memory 8M, 2 threads; no warm-up, measured: 8,000 operations; a miss costs",
    ] {
        assert!(flat(&text).contains(&flat(part)), "no `{part}` in\n{text}");
    }
    for name in ["results.json", "report.html"] {
        let file = std::fs::read_to_string(out.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(file.contains("cache_config.htBucketPower"), "{name}");
    }
    let text = run(&["--rate", "20000", "--operations", "2000"]);
    assert!(
        flat(&text).contains("at 20,000 requests per second") && text.contains("back-"),
        "{text}"
    );
    let text = run(&["--rate", "1e8", "--seconds", "0.2"]);
    assert!(text.contains("FELL BEHIND: leafpress: "), "{text}");
    let summary = std::fs::read_to_string(out.join("summary.tsv")).expect("a summary");
    assert!(
        summary.contains("\tbacklog\t") && summary.contains("\t100000000\t"),
        "{summary}"
    );
}

#[test]
fn curves_take_one_pass_and_are_shown_next_to_caches() {
    let directory = directory();
    let root = directory.path();
    let requests: String = (0..60_000_u64)
        .map(|at| {
            format!(
                "{at},object{},{}\n",
                at * at % 7919 % 3000,
                10_000 + at * at % 7919 % 300
            )
        })
        .collect();
    write(root, "tiny.csv", &requests);
    for (engines, out) in [(&[][..], "alone"), (&["--engines", "leafpress:lz4"], "both")] {
        let out = root.join(out);
        let output = leafpress()
            .args(["cache", "--mrc", "-m", "4M", "--trace"])
            .arg(root.join("tiny.csv"))
            .args(engines)
            .arg("--out")
            .arg(&out)
            .output()
            .expect("leafpress starts");
        let text = succeeded(&output);
        for part in [
            "LRU by SHARDS on ",
            "of those requested)",
            "% hits compressed",
            "mrc.tsv",
        ] {
            assert!(flat(&text).contains(&flat(part)), "no `{part}` in\n{text}");
        }
        assert_eq!(text.contains("Mops/s"), !engines.is_empty(), "{text}");
        assert_eq!(out.join("summary.tsv").exists(), !engines.is_empty());
        let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        let lines = read("mrc.tsv");
        let ratios: Vec<f64> = lines
            .lines()
            .skip(1)
            .filter_map(|line| line.split('\t').nth(1)?.parse().ok())
            .collect();
        assert!(
            ratios.len() >= 10 && ratios.is_sorted_by(|one, next| one >= next),
            "{lines}"
        );
        // No cache of ours is smaller.
        assert!(
            lines.lines().nth(1).is_some_and(|line| line.starts_with("4194304\t")),
            "{lines}"
        );
        assert!(read("results.json").contains("\"lru_compressed\""));
        assert!(read("report.html").contains("Hit ratio by cache size"));
    }
}

#[test]
fn reports_a_figure_next_to_the_papers_results() {
    let directory = directory();
    let out = directory.path().join("out");
    let output = leafpress()
        .args(["cache", "--paper", "fig12", "-m", "4M", "--scale", "1"])
        .args(["--warmup", "2000", "--operations", "20000", "--out"])
        .arg(&out)
        .output()
        .expect("leafpress starts");
    let (text, progress) = (stdout(&output), stderr(&output));
    assert!(output.status.success(), "{progress}{text}");
    for part in [
        "Figure 12 of the ZipCache paper",
        "\n GET:PUT 30:70 ",
        "\n GET:PUT 70:30 ",
        " leafpress:auto ",
        " leafpress:lz4 ",
        "GET p50 -76%, p90 -70%,",
        "16 threads on a machine with 384 GB",
    ] {
        assert!(flat(&text).contains(&flat(part)), "no `{part}` in\n{text}");
    }
    assert!(
        progress.contains("[1/4] GET:PUT 30:70") && progress.contains("[4/4] GET:PUT 70:30"),
        "{progress}"
    );
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let summary = read("summary.tsv");
    let rows: Vec<Vec<&str>> = summary.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows.len(), 5, "{summary}");
    for name in ["stale", "wrong", "expired"] {
        let at = rows[0].iter().position(|other| *other == name).expect(name);
        assert!(rows[1..].iter().all(|row| row[at] == "0"), "{name}: {summary}");
    }
    assert!(rows[1..].iter().all(|row| row[0] == "fig12"), "{summary}");
    assert!(read("results.json").contains("\"figure\": \"fig12\""));
    assert!(read("report.html").contains("Figure 12 of the ZipCache paper"));
    assert!(!out.join("cache.disk").exists());
}

#[test]
fn an_interrupt_keeps_the_caches_that_have_finished() {
    let directory = directory();
    let mut child = leafpress()
        .args([
            "cache",
            "-m",
            "64M",
            "--warmup",
            "0",
            "--operations",
            "100",
            "--engines",
            "leafpress,moka",
            "--out",
        ])
        .arg(directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("leafpress starts");
    let mut progress = BufReader::new(child.stderr.take().expect("piped"))
        .lines()
        .map_while(Result::ok);
    // The other one is then filled for seconds.
    progress.find(|line| line.starts_with("[1/2]")).expect("one finishes");
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(status.expect("kill runs").success());
    let rest: Vec<String> = progress.collect();
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{rest:?}");
    assert!(
        rest.iter().any(|line| line.contains("1 of 2 caches finished")),
        "{rest:?}"
    );
    assert!(stdout(&output).contains("\nleafpress "), "{}", stdout(&output));
    let summary = std::fs::read_to_string(directory.path().join("summary.tsv")).expect("summary.tsv");
    assert_eq!(summary.lines().count(), 2, "{summary}");
}

#[test]
fn what_cannot_work_is_refused_before_anything_is_written() {
    let directory = directory();
    let out = directory.path().join("out");
    for (arguments, words) in [
        (
            &["--engines", "memcached"][..],
            &["--engines", "memcached", "quick_cache"][..],
        ),
        (&["-m", "1K"], &["--memory", "4M"]),
        (&["-m", "lots"], &["--memory", "lots", "500M"]),
        (&["--disk", "1G", "--engines", "moka"], &["--disk", "no listed cache"]),
        (&["--disk-path", "x"], &["--disk"]),
        (&["--paper", "--trace", "x.lis"], &["--paper", "--trace"]),
        (&["--paper", "fig99"], &["--paper", "fig99", "fig16"]),
        (&["--paper", "fig8", "--data", "x"], &["--paper", "--data"]),
        (&["--paper", "fig8", "--scale", "0.01"], &["--memory", "--scale 0.01"]),
        (&["--trace", "/no/such.lis"], &["/no/such.lis", "no such file"]),
        (&["--trace", "/no/such.name"], &["--trace", "no such file"]),
        (&["--data", "/no/such/file"], &["/no/such/file", "no such file"]),
        (&["--data", "nonesuch", "--records", "tsv"], &["nonesuch", "packages"]),
        (&["--working-set", "15T"], &["--working-set", "keys"]),
        (&["--writes", "-1"], &["--writes", "between 0 and 100"]),
        (&["--sec", "5"], &["--sec", "--help"]),
        (&["--mrc-rate", "0.1"], &["--mrc"]),
        (&["--mrc", "--mrc-rate", "2"], &["--mrc-rate", "at most 1"]),
        (&["--mrc", "--trace", "/no/such.lis"], &["/no/such.lis", "no such file"]),
    ] {
        assert_refused(leafpress().arg("cache").args(arguments), &out, words);
    }
    for (ratios, words) in [
        (r#""getRatio": -1"#, &["config.json", "getRatio", "-1"][..]),
        (r#""getRatio": 0"#, &["config.json", "the workload is empty"]),
        (r#""getRatio": 1,"#, &["config.json", "not valid JSON"]),
        (
            r#""getRatio": 1, "generator": "replay""#,
            &["config.json", "generator", "--trace"],
        ),
    ] {
        let config = write_cachebench(directory.path(), ratios);
        let output = leafpress()
            .args(["cache", "--cachebench", &config, "--out"])
            .arg(&out)
            .output()
            .expect("leafpress starts");
        assert_bad_input(&output, words);
    }
    let config = write_cachebench(directory.path(), r#""getRatio": 1"#);
    std::fs::remove_file(directory.path().join("sizes.json")).expect("it is there");
    assert_bad_input(
        &run(&["cache", "--cachebench", &config]),
        &["sizes.json", "no such file"],
    );
    assert!(!out.exists());
    write(directory.path(), "file", "text");
    let taken = directory.path().join("file");
    assert_bad_input(
        &run(&["cache", "--trace", taken.to_str().expect("UTF-8")]),
        &["--trace-format", "oracle"],
    );
    assert_bad_input(
        &run(&["cache", "--out", taken.to_str().expect("UTF-8")]),
        &["file", "--out"],
    );
}
