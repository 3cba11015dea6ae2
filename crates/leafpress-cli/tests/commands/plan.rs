//! `leafpress advise --total` as a planner runs it.

use std::fmt::Write;

use crate::common::{Files, assert_bad_input, assert_refused, leafpress, run_quietly};

const SESSIONS: u64 = 12_000;

/// Sessions in JSON Lines.
fn sessions(files: &Files) -> String {
    let mut random = fastrand::Rng::with_seed(1);
    let mut lines = String::new();
    for _ in 0..SESSIONS {
        let items: Vec<String> = (0..random.u32(..4))
            .map(|_| {
                let (sku, quantity) = (random.u32(..100_000), random.u32(1..5));
                format!(r#"{{"sku":"P-{sku:06}","quantity":{quantity},"currency":"EUR","warehouse":"north"}}"#)
            })
            .collect();
        let _ = writeln!(
            lines,
            "{{\"session\":\"{:016x}\",\"user\":{},\"locale\":\"en-US\",\"roles\":[\"viewer\",\"editor\"],\
             \"theme\":\"dark\",\"cart\":[{}],\"expires\":\"2026-0{}-01T00:00:00Z\"}}",
            random.u64(..),
            random.u32(..100_000_000),
            items.join(","),
            random.u32(1..10)
        );
    }
    std::fs::write(files.path("sessions.jsonl"), lines).expect("written");
    files.text("sessions.jsonl")
}

/// The text without line breaks within paragraphs.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

const OF_SESSIONS: [&str; 3] = ["--records", "jsonl:/session", "--quick"];

/// The summary's alternatives of a case: their cells by the names of the columns.
fn alternatives(summary: &str, case: &str) -> Vec<Vec<String>> {
    let lines = summary
        .lines()
        .map(|line| line.split('\t').map(str::to_owned).collect());
    lines.filter(|cells: &Vec<String>| cells[0] == case).collect()
}

fn number(alternatives: &[Vec<String>], name: &str, column: usize) -> f64 {
    let row = alternatives.iter().find(|cells| cells[1] == name);
    let cell = &row.unwrap_or_else(|| panic!("no {name} in {alternatives:?}"))[column];
    cell.parse().unwrap_or_else(|e| panic!("{cell}: {e}"))
}

/// "40 GB of session JSON, 16 GB of memory: buy memory, compress, or add an SSD?"
#[test]
fn the_planners_question_is_answered() {
    let files = Files::new();
    let sample = sessions(&files);
    let out = files.text("out");
    let question = ["advise", &sample, "--total", "40G", "--memory", "16G", "--out", &out];
    let text = run_quietly(&[&question, &OF_SESSIONS[..]].concat());
    let answer = flat(text.split("\n\n").next().expect("a paragraph"));
    // The sessions shrink to less than a third, by whichever codec. The codecs that tree and cache choose depend on the
    // time that each takes, and with them which of the two is cheaper.
    assert!(
        answer.starts_with("Compress: a Tree holds all of the 40G of records in ")
            || answer.starts_with("Compress: a Cache in "),
        "{text}"
    );
    for part in [
        "the 16G of memory",
        "a month",
        "uncompressed, more memory (",
        "Uncompressed, 16G of memory answer",
        "a ratio 20% worse",
        "zipfian:0.9",
    ] {
        assert!(
            flat(&answer).to_lowercase().contains(&part.to_lowercase()),
            "no `{part}` in {answer}"
        );
    }
    let text = flat(&text);
    assert!(
        text.contains("Not given, and assumed: --distribution zipfian:0.99"),
        "{text}"
    );
    let summary = std::fs::read_to_string(files.path("out/summary.tsv")).expect("summary.tsv");
    let measured = alternatives(&summary, "as measured");
    let worse = alternatives(&summary, "a ratio 20% worse");
    let flatter = alternatives(&summary, "zipfian:0.9");
    let (memory, hits, cost) = (2, 4, 11);
    let gib = f64::from(1 << 30);
    assert!(number(&measured, "Tree", memory) < 16.0 * gib);
    assert!(number(&measured, "uncompressed, more memory", memory) > 40.0 * gib);
    let paid = |name| number(&measured, name, cost);
    assert!(
        paid("Tree") < paid("uncompressed cache") && paid("uncompressed cache") < paid("uncompressed, more memory")
    );
    let of_raw = number(&measured, "uncompressed cache", hits);
    assert!(of_raw > 0.5 && of_raw < 1.0 && number(&measured, "Tree", hits) == 1.0);
    assert!(number(&flatter, "uncompressed cache", hits) < of_raw);
    let growth = number(&worse, "Tree", memory) / number(&measured, "Tree", memory);
    assert!((growth - 1.25).abs() < 0.01, "{growth}");
    let results = std::fs::read_to_string(files.path("out/results.json")).expect("results.json");
    assert!(results.contains("\"alternatives\"") && results.contains("\"memory_gib\""));
    let page = std::fs::read_to_string(files.path("out/report.html")).expect("report.html");
    assert!(page.contains("Compress: a "));
}

/// Little memory, and an SSD at hand. Memory is too expensive for the answer to depend on the times that are
/// measured.
#[test]
fn an_ssd_is_advised_where_memory_is_short() {
    let files = Files::new();
    let sample = sessions(&files);
    let words = [
        "advise", &sample, "--total", "40G", "--memory", "1G", "--ssd", "200G", "--writes", "5",
    ];
    let more = [
        "--ops",
        "50K/s",
        "--distribution",
        "zipfian:0.8",
        "--device-us",
        "80",
        "--backend-us",
        "2000",
        "--memory-gib-cost",
        "50",
    ];
    let text = flat(&run_quietly(&[&words[..], &more, &OF_SESSIONS].concat()));
    assert!(
        text.starts_with("Compress, and add an SSD") || text.starts_with("Keep the 40G of records on an SSD"),
        "{text}"
    );
    for part in ["Cache and SSD", "page pool on SSD", "are written a day", "zipfian:0.7"] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
}

/// A trace of requests instead of a distribution.
#[test]
fn a_trace_says_what_is_requested() {
    let files = Files::new();
    let sample = sessions(&files);
    let mut random = fastrand::Rng::with_seed(1);
    let keys = (0..40_000).map(|_| format!("{}\n", random.u64(..200) * random.u64(..200)));
    std::fs::write(files.path("requests"), keys.collect::<String>()).expect("written");
    let trace = files.text("requests");
    let words = [
        "advise",
        &sample,
        "--total",
        "1G",
        "--memory",
        "64M",
        "--trace",
        &trace,
        "--trace-format",
        "keys",
    ];
    let text = flat(&run_quietly(&[&words, &OF_SESSIONS[..]].concat()));
    for part in ["40,000 requests", "the page pool is omitted", "Tree"] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
}

#[test]
fn what_cannot_be_planned_is_one_clear_line() {
    let files = Files::new();
    let bad = |words: &[&str], expected: &[&str]| {
        let mut command = leafpress();
        assert_refused(command.arg("advise").args(words), &files.path("none"), expected);
    };
    bad(
        &["characters", "--total", "40G", "--memory", "16G"],
        &["--total", "--records"],
    );
    bad(
        &["characters", "--records", "jsonl:/code", "--total", "40G"],
        &["--memory"],
    );
    bad(
        &["characters", "--device-us", "5", "--ssd", "1G"],
        &["--ssd", "--total"],
    );
    bad(
        &["characters", "--device-us", "5", "--backend-us", "9"],
        &["--backend-us", "--total"],
    );
    let question = [
        "characters",
        "--records",
        "jsonl:/code",
        "--total",
        "40G",
        "--memory",
        "16G",
    ];
    for (more, expected) in [
        (["--device", "/tmp"], ["--device", "--total"]),
        (["--codecs", "lz4"], ["--codecs", "--total"]),
        (["--ops", "fast"], ["--ops", "50K/s"]),
        (["--memory", "1K"], ["--memory", "4M"]),
        (["--distribution", "latest"], ["--distribution", "latest"]),
        (["--trace", "/missing"], ["--trace", "/missing"]),
    ] {
        bad(&[&question[..], &more].concat(), &expected);
    }
    let output = leafpress()
        .args([
            "advise",
            "characters",
            "--records",
            "jsonl:/nonesuch",
            "--total",
            "40G",
            "--memory",
            "16G",
            "-q",
        ])
        .output()
        .expect("leafpress starts");
    assert_bad_input(&output, &["characters", "no record with a key"]);
}
