use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use leafpress::Codec;
use leafpress::codec::EngineOptions;

use super::*;
use crate::core::LabError;
use crate::core::corpus::RecordFormat;
use crate::report::testing::has_verdict;
use crate::suite::fixtures::directory;

/// Documents that have much in common with each other, in an order that is not their keys'.
fn dump(count: usize) -> String {
    let line = |number: usize| {
        let id = (number * 7919) % count;
        format!(
            "{{\"id\":\"user-{id:06}\",\"name\":\"name of {id}\",\"tags\":[\"alpha\",\"beta\"],\"visits\":{}}}\n",
            id * 31
        )
    };
    (0..count).map(line).collect()
}

/// Options for a dump of JSON lines, and the directory that holds it.
fn options(dump: &str) -> (tempfile::TempDir, Options) {
    let directory = directory(&[("dump.jsonl", dump.as_bytes())]);
    let format: RecordFormat = "jsonl:/id".parse().unwrap();
    let codecs = ["lz4", "zstd:3", "deflate:1"].map(|name| name.parse().unwrap());
    let options = Options {
        codecs: Some(codecs.to_vec()),
        passes: 1,
        ..Options::new(directory.path().join("dump.jsonl"), format)
    };
    (directory, options)
}

fn measure(options: &Options) -> Result<Report, LabError> {
    run(options, &AtomicBool::new(false), &mut |_| {})
}

fn find<'r>(report: &'r Report, codec: &str, place: CompressionUnit, with: bool) -> &'r Row {
    let mut rows = report.rows.iter();
    rows.find(|row| row.codec == codec && row.place == place && (row.dictionary_bytes > 0) == with)
        .unwrap_or_else(|| panic!("no row of {codec} in {place}"))
}

#[test]
fn records_alone_are_what_the_codec_makes_of_each() {
    let text = dump(500);
    let (_directory, options) = options(&text);
    let report = measure(&options).unwrap();
    assert_eq!((report.records, report.raw_bytes), (500, text.len() as u64 - 500));
    assert_eq!(report.key_bytes, 500 * 11);
    let engine = "zstd:3"
        .parse::<Codec>()
        .unwrap()
        .open(&EngineOptions::default())
        .unwrap();
    let stored: usize = text
        .lines()
        .map(|line| {
            let mut out = Vec::new();
            engine
                .compress(line.as_bytes(), None, &mut out)
                .unwrap()
                .min(line.len())
        })
        .sum();
    let row = find(&report, "zstd:3", CompressionUnit::Record, false);
    assert_eq!((row.stored_bytes, row.frames), (stored as u64, 500));
    assert!(
        (row.read_us - row.decompress.us).abs() < 1e-9,
        "one record is what is read"
    );
}

#[test]
fn frames_and_dictionaries_bring_it_nearer_to_the_limit() {
    let (_directory, options) = options(&dump(4000));
    let report = measure(&options).unwrap();
    let ratio = |place, with| find(&report, "zstd:3", place, with).ratio;
    let (small, large) = (CompressionUnit::Frame(4096), CompressionUnit::Frame(16384));
    let limit = report.limit.as_ref().unwrap().ratio;
    assert!(ratio(CompressionUnit::Record, false) < ratio(small, false) && ratio(small, false) < ratio(large, false));
    assert!(ratio(CompressionUnit::Record, false) < ratio(CompressionUnit::Record, true));
    assert!(ratio(large, true) < limit && ratio(large, false) < limit);
    for place in [small, large] {
        let row = find(&report, "lz4", place, true);
        assert!(row.frames < 4000 / 10 && row.read_us > row.decompress.us, "{row:?}");
        let mean = report.raw_bytes / row.frames;
        assert!(
            (mean as usize) * 10 > options.frame_bytes[usize::from(place == large)] * 9,
            "full frames: {mean}"
        );
    }
    // memcpy, two codecs twice, one without dictionaries; by themselves and in two lengths.
    assert_eq!(report.rows.len(), 3 * 6);
    assert!(
        report.untrained.is_empty()
            && report
                .rows
                .iter()
                .all(|row| row.codec != "deflate:1" || row.dictionary_bytes == 0)
    );
}

#[test]
fn a_read_is_the_time_of_one_thread() {
    let measured = suite_row(2);
    let row = Row::new(&measured, CompressionUnit::Frame(4096), 0, 1000);
    // 100 frames in 100 times 5 us of two threads side by side, ten records each.
    assert!(
        (row.read_us - 10.0).abs() < 1e-9 && (row.decompress.us - 0.5).abs() < 1e-9,
        "{row:?}"
    );
    let row = Row::new(&suite_row(1), CompressionUnit::Frame(4096), 0, 1000);
    assert!(
        (row.read_us - 5.0).abs() < 1e-9 && (row.decompress.us - 0.5).abs() < 1e-9,
        "{row:?}"
    );
}

/// A hundred full frames, decoded in 5 us each.
fn suite_row(threads: usize) -> crate::suite::Row {
    let speed = crate::suite::Speed {
        us: 5.0,
        ..crate::suite::Speed::default()
    };
    crate::suite::Row {
        codec: "lz4".into(),
        block_bytes: 4096,
        threads,
        raw_bytes: 409_600,
        stored_bytes: 100_000,
        blocks: 100,
        stored_blocks: 0,
        ratio: 4.096,
        compress: speed,
        decompress: speed,
    }
}

#[test]
fn a_dictionary_counts_among_what_is_stored() {
    let (_directory, options) = options(&dump(4000));
    let report = measure(&options).unwrap();
    let row = find(&report, "zstd:3", CompressionUnit::Frame(16384), true);
    assert!(row.dictionary_bytes > 1000 && row.stored_bytes > row.dictionary_bytes);
    assert!((row.ratio - report.raw_bytes as f64 / row.stored_bytes as f64).abs() < 1e-12);
    let none = measure(&Options {
        dictionary_bytes: 0,
        ..options
    });
    assert!(none.unwrap().rows.iter().all(|row| row.dictionary_bytes == 0));
}

#[test]
fn too_few_records_for_a_dictionary_are_measured_without() {
    let (_directory, options) = options(&dump(5));
    let report = measure(&options).unwrap();
    let codecs: Vec<&str> = report.untrained.iter().map(|one| one.codec.as_str()).collect();
    assert_eq!(codecs, ["lz4", "zstd:3"]);
    let report_text = document(&report).text();
    assert!(
        report_text.contains("No dictionary for lz4: ") && report_text.contains("5 samples are too few"),
        "{report_text}"
    );
}

#[test]
fn a_sample_has_neighbours_and_is_reported_as_a_sample() {
    let (_directory, mut options) = options(&dump(40_000));
    options.codecs = Some(vec!["lz4".parse().unwrap()]);
    options.max_bytes = Some(600 << 10);
    let report = measure(&options).unwrap();
    assert!(report.records < report.census.records && report.census.records == 40_000);
    assert!(
        (300 << 10..=700 << 10).contains(&report.raw_bytes),
        "{}",
        report.raw_bytes
    );
    let report_text = document(&report).text();
    assert!(
        report_text.contains(" of 40,000 records of ")
            && report_text.contains("(--max-bytes 600K), in runs of neighbours"),
        "{report_text}"
    );
    // Keys of neighbours differ in little: the sample's frames are as compressible as those of the whole.
    options.max_bytes = None;
    let whole = measure(&options).unwrap();
    let ratio = |report: &Report| find(report, "lz4", CompressionUnit::Frame(16384), false).ratio;
    assert!(
        (ratio(&report) / ratio(&whole) - 1.0).abs() < 0.05,
        "{} {}",
        ratio(&report),
        ratio(&whole)
    );
}

#[test]
fn reports_options_that_cannot_work() {
    let (_directory, options) = options(&dump(20));
    let refused = |change: &dyn Fn(&mut Options), words: &[&str]| {
        let mut options = options.clone();
        change(&mut options);
        let message = measure(&options).unwrap_err().to_string();
        for word in words {
            assert!(
                message.contains(word) && !message.contains('\n'),
                "no `{word}` in {message}"
            );
        }
    };
    refused(&|o| o.path = PathBuf::from("/no/such"), &["/no/such", "no such file"]);
    refused(&|o| o.path = PathBuf::from("nonesuch"), &["nonesuch", "packages"]);
    refused(&|o| o.records = RecordFormat::Tsv, &["line 1: no tab", "--records tsv"]);
    refused(&|o| o.frame_bytes = vec![10], &["block-bytes", "10"]);
    refused(
        &|o| o.dictionary_bytes = 255,
        &["dictionary-bytes", "255", "256", "1M", "0 for none"],
    );
    refused(&|o| o.max_bytes = Some(5000), &["max-bytes", "16K"]);
    let (_directory, mut empty) = self::options("a\t\nb\t\n");
    empty.records = RecordFormat::Tsv;
    let message = measure(&empty).unwrap_err().to_string();
    assert!(message.contains("have no bytes"), "{message}");
}

#[test]
fn one_that_is_cancelled_keeps_whole_passes() {
    let (_directory, options) = options(&dump(300));
    let cancelled = run(&options, &AtomicBool::new(true), &mut |_| {});
    assert!(matches!(cancelled, Err(LabError::Cancelled)));
    let cancel = AtomicBool::new(false);
    let report = run(&options, &cancel, &mut |progress| {
        cancel.fetch_or(progress.what.contains("16K"), Ordering::Relaxed);
    });
    let report = report.unwrap();
    assert!(report.interrupted && report.limit.is_none());
    assert_eq!(report.rows.len(), 2 * 6);
    assert!(document(&report).text().contains("INTERRUPTED"));
}

#[test]
fn what_is_written_has_the_rows_and_the_limit() {
    let (directory, options) = options(&dump(2000));
    let report = measure(&options).unwrap();
    let files = document(&report)
        .write("leafpress suite <dump>", directory.path())
        .unwrap();
    let read = |path: &std::path::Path| std::fs::read_to_string(path).unwrap();
    let tsv = read(files.path("records"));
    let rows: Vec<Vec<&str>> = tsv.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows.len(), 1 + report.rows.len() + 1);
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{tsv}");
    let last = rows.last().unwrap();
    assert_eq!((last[1], last[4], last[5]), ("jsonl:/id", "all", "zstd:19"));
    let json: serde_json::Value = serde_json::from_str(&read(files.path("json"))).unwrap();
    assert_eq!(json["options"]["records"], "jsonl:/id");
    assert_eq!(
        (&json["rows"][0]["place"], &json["rows"][7]["place"]),
        (&"record".into(), &4096.into())
    );
    assert!(json["limit"]["ratio"].as_f64().unwrap() > 1.0);
    let page = read(files.path("report"));
    for part in [
        "<svg",
        "zstd:19 of all in one piece",
        "leafpress suite &lt;dump&gt;",
        "◆",
        "frames of 16K",
    ] {
        assert!(page.contains(part), "no `{part}`");
    }
    assert!(has_verdict(&page), "{page}");
    let report_text = document(&report).text();
    assert!(report_text.starts_with("Each record alone: "), "{report_text}");
    assert!(
        report_text.lines().all(|line| line.chars().count() <= 140),
        "{report_text}"
    );
    for part in [
        "2,000 records of ",
        "zstd:3 + dictionary",
        "one piece\n",
        "each alone\n",
        "◆",
    ] {
        assert!(report_text.contains(part), "no `{part}` in\n{report_text}");
    }
}
