use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use leafpress::Codec;
use leafpress::codec::EngineOptions;
use tempfile::TempDir;

use super::fixtures::*;
use super::*;
use crate::core::LabError;
use crate::report::testing::{charts, has_verdict};

#[test]
fn ratios_are_those_of_blocks_compressed_by_themselves() {
    let data = words(50_000);
    let directory = directory(&[("a", &data)]);
    let report = measure(&options(directory.path())).unwrap();
    for (name, row) in [("lz4", 1), ("zstd:1", 2)] {
        let engine = name.parse::<Codec>().unwrap().open(&EngineOptions::default()).unwrap();
        let stored: usize = data
            .chunks(4096)
            .map(|block| {
                let mut out = Vec::new();
                engine.compress(block, None, &mut out).unwrap().min(block.len())
            })
            .sum();
        let row = &report.overall[row];
        assert_eq!((row.codec.as_str(), row.stored_bytes), (name, stored as u64));
        // The last one has 848 bytes.
        assert_eq!((row.blocks, row.raw_bytes, row.stored_blocks), (13, 50_000, 0));
        assert!((row.ratio - 50_000.0 / stored as f64).abs() < 1e-12);
    }
}

#[test]
fn blocks_of_ones_own_give_the_row_of_a_suite() {
    let data = words(50_000);
    let directory = directory(&[("a", &data)]);
    let report = measure(&options(directory.path())).unwrap();
    let engine = "lz4".parse::<Codec>().unwrap().open(&EngineOptions::default()).unwrap();
    let blocks: Vec<&[u8]> = data.chunks(4096).collect();
    let row = measure_blocks(&engine, &blocks, 2).unwrap();
    let expected = &report.overall[1];
    assert_eq!(
        (row.raw_bytes, row.stored_bytes, row.blocks),
        (expected.raw_bytes, expected.stored_bytes, expected.blocks)
    );
    assert!(measure_blocks(&engine, &[], 1).is_err() && measure_blocks(&engine, &[b""], 1).is_err());
    let reported = measure_blocks(&Faulty::engine(Fault::WritesNothing), &blocks, 1).unwrap_err();
    assert!(reported.to_string().contains("WRONG BYTES"), "{reported}");
}

#[test]
fn all_files_are_weighted_by_size() {
    let directory = directory(&[("a", &words(40_000)), ("b", &noise(10_000))]);
    let report = measure(&options(directory.path())).unwrap();
    let [a, b] = report.files.as_slice() else {
        panic!("two files: {:?}", report.files);
    };
    for ((all, a), b) in report.overall.iter().zip(&a.rows).zip(&b.rows) {
        let (raw, stored) = (a.raw_bytes + b.raw_bytes, a.stored_bytes + b.stored_bytes);
        assert_eq!((all.raw_bytes, all.stored_bytes), (raw, stored));
        assert!((all.ratio - raw as f64 / stored as f64).abs() < 1e-12);
        assert_eq!(all.blocks, a.blocks + b.blocks);
    }
    let mean = f64::midpoint(a.rows[1].ratio, b.rows[1].ratio);
    assert!(
        (report.overall[1].ratio - mean).abs() > 0.1,
        "it is not a mean of ratios"
    );
}

#[test]
fn a_block_that_does_not_shrink_is_stored_raw_and_counts_as_its_raw_bytes() {
    let directory = directory(&[("noise", &noise(20_000)), ("words", &words(20_000))]);
    let check = |report: &Report, row: usize| {
        let noise = &report.files[0].rows[row];
        assert_eq!((noise.stored_bytes, noise.ratio), (20_000, 1.0), "{noise:?}");
        assert_eq!((noise.blocks, noise.stored_blocks), (5, 5));
        let words = &report.files[1].rows[row];
        assert!(words.stored_blocks == 0 && words.ratio > 2.0, "{words:?}");
    };
    let report = measure(&options(directory.path())).unwrap();
    check(&report, 1);
    check(&report, 2);
    // The original counted 0 bytes where LZ4 gave none.
    for fault in [Fault::GivesNothing, Fault::Grows] {
        check(&with_fault(&options(directory.path()), fault).unwrap(), 1);
    }
}

#[test]
fn memcpy_is_a_row_of_its_own_and_the_first_of_each_setting() {
    let directory = directory(&[("a", &words(40_000))]);
    let report = measure(&Options {
        block_bytes: Some(vec![4096, 8192]),
        threads: vec![1, 3],
        ..options(directory.path())
    })
    .unwrap();
    let settings: Vec<_> = report
        .overall
        .iter()
        .map(|row| (row.threads, row.block_bytes, row.codec.as_str()))
        .collect();
    let mut expected = Vec::new();
    for threads in [1, 3] {
        for block_bytes in [4096, 8192] {
            expected.extend([MEMCPY, "lz4", "zstd:1"].map(|codec| (threads, block_bytes, codec)));
        }
    }
    assert_eq!(settings, expected);
    for row in &report.overall {
        for speed in [row.compress, row.decompress] {
            assert!(speed.us > 0.0 && speed.cpu_us > 0.0 && speed.mb_per_s > 0.0, "{row:?}");
            assert!(
                speed.us <= speed.median_us && speed.cpu_us <= speed.cpu_median_us,
                "{row:?}"
            );
        }
        if row.codec == MEMCPY {
            assert_eq!((row.ratio, row.stored_blocks), (1.0, row.blocks));
        }
    }
    assert_eq!(report.row("lz4", 8192, 3), Some(&report.overall[10]));
    assert_eq!(report.row("lz4", 512, 3), None);
}

#[test]
fn reports_a_wrong_byte_with_codec_file_and_block() {
    let mut data = words(50_000);
    data[8192..8196].copy_from_slice(b"HERE");
    let directory = directory(&[("good", &words(9000)), ("marked", &data)]);
    let mut options = options(directory.path());
    for threads in [1, 4] {
        options.threads = vec![threads];
        let reported = message(with_fault(&options, Fault::Flips));
        for word in ["lz4", "marked", "block 2 of 4096 bytes", "WRONG BYTES", "byte 17"] {
            assert!(reported.contains(word), "no `{word}` in {reported}");
        }
    }
    // In a sample the number is that of the block in the file.
    options.max_file_bytes = Some(4096);
    let reported = message(with_fault(&options, Fault::WritesNothing));
    assert!(
        reported.contains("block 2 of 4096") && reported.contains("WRONG BYTES"),
        "{reported}"
    );
}

#[test]
fn what_was_decoded_by_another_codec_is_not_taken_for_right() {
    let directory = directory(&[("a", &words(20_000))]);
    let good = "zstd:1"
        .parse::<Codec>()
        .unwrap()
        .open(&EngineOptions::default())
        .unwrap();
    let engines = [good, Faulty::engine(Fault::WritesNothing)];
    let result = run_engines(
        &options(directory.path()),
        &engines,
        &AtomicBool::new(false),
        &mut |_| {},
    );
    assert!(message(result).starts_with("lz4 failed on "));
}

#[test]
fn reports_an_engine_that_fails() {
    let directory = directory(&[("a", &words(50_000))]);
    let reported = message(with_fault(&options(directory.path()), Fault::Fails));
    assert!(
        reported.contains("compress: ") && reported.contains("the queue is full"),
        "{reported}"
    );
    let reported = message(with_fault(&options(directory.path()), Fault::Lies));
    assert!(reported.contains("and wrote"), "{reported}");
}

#[test]
fn archives_are_opened_unless_raw_and_what_cannot_be_read_is_skipped() {
    let (long, more) = (words(30_000), words(9000));
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in [("one.txt", &long), ("deep/two.txt", &more), ("none.txt", &Vec::new())] {
        zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    let zip = zip.finish().unwrap().into_inner();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&long).unwrap();
    let gzip = gzip.finish().unwrap();
    let zst = zstd::encode_all(long.as_slice(), 1).unwrap();
    let directory = directory(&[
        ("a/x.zip", &zip),
        ("a/b/y.gz", &gzip),
        ("a/b/z.zst", &zst),
        ("broken.gz", &gzip[..gzip.len() / 2]),
        ("broken.zip", &zip[..40]),
        ("empty", b""),
        ("plain", &long.iter().rev().copied().collect::<Vec<_>>()),
    ]);
    std::os::unix::fs::symlink(directory.path(), directory.path().join("a/loop")).unwrap();
    let root = directory.path().display().to_string();
    let name = |name: &str| format!("{root}/{name}");
    let mut options = options(directory.path());
    // A file named twice counts once.
    options.paths.push(directory.path().join("plain"));
    let report = measure(&options).unwrap();
    let files: Vec<_> = report
        .files
        .iter()
        .map(|file| (file.file.clone(), file.file_bytes))
        .collect();
    assert_eq!(
        files,
        [
            (name("a/b/y.gz"), 30_000),
            (name("a/b/z.zst"), 30_000),
            (name("a/x.zip:one.txt"), 30_000),
            (name("a/x.zip:deep/two.txt"), 9000),
            (name("plain"), 30_000),
        ]
    );
    let skipped: Vec<_> = report.skipped.iter().map(|skipped| skipped.file.clone()).collect();
    assert_eq!(
        skipped,
        [
            name("a/x.zip:none.txt"),
            name("broken.gz"),
            name("broken.zip"),
            name("empty")
        ]
    );
    assert!(
        report.skipped[1].reason.contains("unreadable gzip"),
        "{:?}",
        report.skipped
    );
    let shown = document(&report).text();
    assert!(
        shown.contains("Skipped 4 files:") && shown.contains("empty: empty"),
        "{shown}"
    );

    options.raw = true;
    options.block_bytes = Some(vec![64]);
    let raw = measure(&options).unwrap();
    let packed = raw.files.iter().find(|file| file.file.ends_with("y.gz")).unwrap();
    assert_eq!(packed.file_bytes, gzip.len() as u64);
}

/// An archive next to its extracted files: the same bytes count once, and that is reported.
#[test]
fn what_is_packed_and_unpacked_too_is_taken_once() {
    let (long, more) = (words(30_000), words(9000));
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in [("one.txt", &long), ("two.txt", &more)] {
        zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    let zst = zstd::encode_all(more.as_slice(), 1).unwrap();
    let directory = directory(&[
        ("a.zip", &zip.finish().unwrap().into_inner()),
        ("b", &long),
        ("c.txt.zst", &zst),
        ("c.txt", &more),
    ]);
    let mut options = options(directory.path());
    let report = measure(&options).unwrap();
    let files: Vec<_> = report.files.iter().map(|file| file.file_bytes).collect();
    assert_eq!(files, [30_000, 9000]);
    let root = directory.path().display().to_string();
    let skipped: Vec<_> = report.skipped.iter().map(|skipped| skipped.reason.clone()).collect();
    let same = |name: &str| format!("a duplicate of {root}/{name}");
    assert_eq!(skipped, [same("b"), same("c.txt"), same("c.txt")]);
    assert!(
        document(&report)
            .text()
            .contains(&format!("{root}/a.zip:one.txt: {}", same("b")))
    );

    options.raw = true;
    assert_eq!(measure(&options).unwrap().files.len(), 4);
}

#[test]
fn reports_unusable_data() {
    let directory = directory(&[("empty", b""), ("short", &words(5000))]);
    let of = |name: &str| options(&directory.path().join(name));
    assert!(message(measure(&of("absent"))).contains("no such file"));
    assert!(message(measure(&of("empty"))).contains("cannot be used: empty"));
    let mut short = of("short");
    short.block_bytes = Some(vec![4096, 8192]);
    let reported = message(measure(&short));
    assert!(
        reported.contains("short, has 5000 bytes") && reported.contains("8192"),
        "{reported}"
    );
    short.block_bytes = None;
    assert_eq!(measure(&short).unwrap().block_bytes, [4096], "those that the data has");
    std::fs::write(directory.path().join("short"), b"tiny").unwrap();
    assert!(message(measure(&short)).contains("less than one block of 4096"));
    let nowhere = TempDir::new().unwrap();
    assert!(message(measure(&options(nowhere.path()))).contains("it contains no file"));
    let nonesuch = Options::new(vec![PathBuf::from("nonesuch")]);
    assert!(message(measure(&nonesuch)).contains("not a bundled sample"));
}

#[test]
fn codecs_that_are_not_here_are_left_out_or_refused() {
    // Not a codec of every machine; where it is, there is nothing to see.
    let codec: Codec = "qpl:hardware:fixed".parse().unwrap();
    if codec.open(&EngineOptions::default()).is_ok() {
        return;
    }
    let directory = directory(&[("a", &words(20_000))]);
    let mut options = options(directory.path());
    options.codecs = Some(vec![codec]);
    let reported = message(measure(&options));
    assert!(
        reported.contains("codecs") && reported.contains("qpl:hardware:fixed"),
        "{reported}"
    );
    options.codecs = None;
    let report = measure(&options).unwrap();
    let absent = report.absent.iter().find(|absent| absent.codec == codec.to_string());
    assert!(absent.is_some_and(|absent| !absent.reason.is_empty()));
    assert!(report.codecs.iter().all(|measured| measured.codec != "none"));
    assert!(document(&report).text().contains("Not available: "));
}

#[test]
fn a_sample_is_evenly_spread_and_reported() {
    // The first half compresses, the second does not.
    let data = [words(1 << 20), noise(1 << 20)].concat();
    let directory = directory(&[("a", &data), ("b", &words(200_000))]);
    let mut options = options(directory.path());
    let whole = measure(&options).unwrap();
    options.max_bytes = Some(128 << 10);
    let report = measure(&options).unwrap();
    assert!(report.sample.is_part() && report.sample.bytes <= 128 << 10);
    assert!(report.sample.bytes > 120 << 10, "{:?}", report.sample);
    assert_eq!(report.sample.found_bytes, data.len() as u64 + 200_000);
    let (part, all) = (report.overall[2].ratio, whole.overall[2].ratio);
    assert!((part / all - 1.0).abs() < 0.1, "{part} for {all}");
    let shown = document(&report).text();
    assert!(
        shown.contains("a sample of") && shown.contains("--max-bytes 128K"),
        "{shown}"
    );
    options.max_bytes = Some(1000);
    assert!(message(measure(&options)).contains("max-bytes"));
}

#[test]
fn a_small_sample_is_gone_through_often_and_counted_once() {
    let directory = directory(&[("a", &words(5000))]);
    let report = measure(&options(directory.path())).unwrap();
    let row = &report.overall[1];
    assert_eq!((row.raw_bytes, row.blocks), (5000, 2));
    // Two blocks, the second a fifth of one.
    assert!((row.total_us(&row.compress) / row.compress.us - 5000.0 / 4096.0).abs() < 1e-9);
}

#[test]
fn a_suite_that_is_cancelled_keeps_whole_passes() {
    let directory = directory(&[("a", &words(20_000))]);
    let options = Options {
        passes: 3,
        ..options(directory.path())
    };
    let cancel = AtomicBool::new(true);
    let result = run(&options, &cancel, &mut |_| {});
    assert!(matches!(result, Err(LabError::Cancelled)), "{result:?}");
    let cancel = AtomicBool::new(false);
    let mut shares = Vec::new();
    let report = run(&options, &cancel, &mut |progress| {
        shares.push(progress.share);
        if progress.what.starts_with("pass 2/3  zstd") {
            cancel.store(true, Ordering::Relaxed);
        }
    })
    .unwrap();
    assert!(report.interrupted && report.passes == 1);
    assert!(
        report
            .overall
            .iter()
            .all(|row| row.ratio >= 1.0 && row.compress.us > 0.0)
    );
    assert!(document(&report).text().contains("INTERRUPTED"));
    assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{shares:?}");
}

#[test]
fn files_have_the_documented_shapes() {
    let directory = directory(&[("a\tb<c>", &words(30_000)), ("z", &noise(9000))]);
    let options = Options {
        block_bytes: Some(vec![4096, 8192]),
        threads: vec![1, 2],
        ..options(directory.path())
    };
    let report = measure(&options).unwrap();
    let out = TempDir::new().unwrap();
    let files = document(&report).write("leafpress suite 'a&b'", out.path()).unwrap();
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();

    let wide = read(&out.path().join("suite_wide_2t.tsv"));
    let header = "file\tsize_bytes\tblock_bytes\tblocks\tmemcpy_compressed_bytes\tlz4_compressed_bytes\t\
                  zstd:1_compressed_bytes\tmemcpy_compress_us\tlz4_compress_us\tzstd:1_compress_us\t\
                  memcpy_decompress_us\t\
                  lz4_decompress_us\tzstd:1_decompress_us";
    assert_eq!(wide.lines().next(), Some(header));
    assert_eq!(wide.lines().count(), 1 + 2 * 2);
    let line: Vec<_> = wide.lines().nth(2).unwrap().split('\t').collect();
    let name = format!("{}/a b<c>", directory.path().display());
    assert_eq!(line[..5], [name.as_str(), "30000", "8192", "4", "30000"]);
    assert_eq!(line[6], report.files[0].rows[11].stored_bytes.to_string());
    assert_eq!(line.len(), 13);

    let summary = read(files.path("summary"));
    assert_eq!(summary.lines().count(), 1 + 2 * 3 * 2 * 2);
    assert!(summary.starts_with("file\tfile_bytes\tcodec\tblock_bytes\tthreads\traw_bytes\tblocks\tstored_bytes\t"));
    assert!(summary.lines().all(|line| line.split('\t').count() == 20));
    let overall = read(files.path("overall"));
    assert_eq!(overall.lines().count(), 1 + 3 * 2 * 2);
    assert!(overall.lines().all(|line| line.split('\t').count() == 18));

    let json: serde_json::Value = serde_json::from_str(&read(files.path("json"))).unwrap();
    assert_eq!(json["format"], 1);
    assert_eq!(json["options"]["codecs"], serde_json::json!(["lz4", "zstd:1"]));
    assert_eq!(json["overall"][0]["codec"], MEMCPY);
    assert!(json["files"][1]["rows"][1]["compress"]["mb_per_s"].as_f64().unwrap() > 0.0);

    let html = read(files.path("report"));
    assert!(has_verdict(&html), "{html}");
    assert!(charts(&html) >= 5 + 3 + 2, "{}", charts(&html));
    assert!(html.contains("a\tb&lt;c&gt;") && html.contains("&#39;a&amp;b") || html.contains("'a&amp;b'"));
    assert_eq!(
        html.matches("http://").count(),
        html.matches("http://www.w3.org/").count()
    );
}

#[test]
fn reports_options_out_of_bounds() {
    let refused = |change: fn(&mut Options), words: &[&str]| {
        let mut options = Options::new(vec![PathBuf::from("a")]);
        change(&mut options);
        let reported = options.validate().unwrap_err().to_string();
        for word in words {
            assert!(reported.contains(word), "no `{word}` in {reported}");
        }
    };
    assert!(Options::new(vec![PathBuf::from("a")]).validate().is_ok());
    refused(|o| o.paths.clear(), &["paths"]);
    refused(|o| o.codecs = Some(vec![]), &["codecs", "empty"]);
    refused(
        |o| o.block_bytes = Some(vec![4096, 4096]),
        &["block-bytes", "4K", "twice"],
    );
    refused(|o| o.block_bytes = Some(vec![63]), &["block-bytes", "63", "16M"]);
    refused(|o| o.threads = vec![], &["threads", "empty"]);
    refused(|o| o.threads = vec![1025], &["threads", "1025", "1024"]);
    refused(|o| o.passes = 0, &["passes", "0"]);
}
