//! `leafpress advise` as a user runs it.

use crate::common::{Files, assert_bad_input, leafpress, run, run_quietly, stderr, stdout};
use tempfile::TempDir;

/// Data that compresses, data that does not, and a trace.
fn data() -> Files {
    let files = Files::new();
    let words = ["alpha ", "beta ", "gamma ", "delta ", "epsilon ", "zeta "];
    let mut random = fastrand::Rng::with_seed(1);
    let text = (0..).flat_map(|_| words[random.usize(..words.len())].bytes());
    let text: Vec<u8> = text.take(4 << 20).collect();
    std::fs::write(files.path("text"), text).expect("written");
    std::fs::write(files.path("noise"), noise(&mut random, 1 << 20)).expect("written");
    let trace = (0..20_000).map(|_| format!("{}\n", random.u64(..100) * random.u64(..100)));
    std::fs::write(files.path("trace"), trace.collect::<String>()).expect("written");
    files
}

fn noise(random: &mut fastrand::Rng, len: usize) -> Vec<u8> {
    std::iter::repeat_with(|| random.u8(..)).take(len).collect()
}

/// Adds data of which every 4 KB are half noise, and of eight in a row the last three repeat the first: long blocks
/// hold less of it.
fn repeats(files: &Files) -> String {
    let mut random = fastrand::Rng::with_seed(1);
    let mut repeats = Vec::new();
    while repeats.len() < 4 << 20 {
        let noise = noise(&mut random, 5 * 2048);
        for piece in noise.chunks(2048).chain(noise.chunks(2048).take(3)) {
            repeats.extend_from_slice(piece);
            repeats.extend([b' '; 2048]);
        }
    }
    std::fs::write(files.path("repeats"), repeats).expect("written");
    files.text("repeats")
}

/// A run that must end well.
#[track_caller]
fn advise(arguments: &[&str]) -> String {
    run_quietly(&[&["advise", "--quick", "-c", "lz4"], arguments].concat())
}

/// The text without line breaks within paragraphs.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_bundled_sample_is_advised_on() {
    let text = flat(&advise(&[
        "packages",
        "--device-us",
        "110",
        "--memory",
        "15GB",
        "--data",
        "200GB",
    ]));
    for part in [
        "Compress: give",
        "compressed by lz4 in blocks of 8K",
        "200GB of data, 15GB of memory (7.50%)",
        "Break-even: lz4",
        "Sensitivity:",
        "The access distribution was not given: hotset:20:80 was assumed.",
        "The device's latency, 110 us, was given, not measured",
        "* recommended",
        "none 8K",
    ] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    assert!(!text.contains("Assumed: "), "{text}");
}

#[test]
fn reports_assumed_sizes() {
    let data = data();
    let text = flat(&advise(&[&data.text("text"), "--device-us", "110"]));
    assert!(
        text.contains("Assumed: the sample's size for the data, 4M, and an eighth of the data for the memory, 512K."),
        "{text}"
    );
}

#[test]
fn what_does_not_pay_is_not_recommended() {
    let data = data();
    for (sample, device_us) in [("text", "0.5"), ("noise", "400")] {
        let arguments = [
            &data.text(sample),
            "--device-us",
            device_us,
            "--data",
            "20G",
            "--memory",
            "1G",
        ];
        let text = advise(&arguments.map(|word| word as &str));
        assert!(text.starts_with("Do not compress"), "{sample}: {text}");
    }
    let text = advise(&[&data.text("text"), "--device-us", "400", "--memory", "8M"]);
    assert!(text.starts_with("Do not compress: all the data fits"), "{text}");
}

#[test]
fn the_device_is_measured() {
    let data = data();
    let directory = data.text("");
    let text = advise(&[
        &data.text("text"),
        "--device",
        &directory,
        "--block-bytes",
        "8K,16K",
        "--access",
        "uniform",
    ]);
    assert!(text.contains("us per read of"), "{text}");
    assert!(
        flat(&text).contains("Blocks larger than 8K contain data that an access does not need"),
        "{text}"
    );
    let left: Vec<_> = std::fs::read_dir(data.path("")).expect("read").flatten().collect();
    assert_eq!(left.len(), 3, "the probe's file is gone: {left:?}");
}

#[test]
fn a_result_of_fio_does_instead() {
    let data = data();
    let job = r#"{"fio version": "fio-3.36",
        "global options": {"ioengine": "libaio", "rw": "randread", "iodepth": "1", "bs": "8k"},
        "jobs": [{"jobname": "one", "job options": {},
        "read": {"total_ios": 10000, "iops": 5000.0, "bw_bytes": 40960000, "runtime": 2000,
        "slat_ns": {"mean": 1000.0}, "clat_ns": {"min": 1, "max": 900000, "mean": 199000.0,
        "percentile": {"50.000000": 190000}}},
        "write": {"total_ios": 0}}]}"#;
    std::fs::write(data.path("fio.json"), job).expect("written");
    let text = advise(&[
        &data.text("text"),
        "--fio-json",
        &data.text("fio.json"),
        "--page-bytes",
        "8K",
        "--data",
        "1G",
    ]);
    assert!(text.contains("Device 200 us per read of 8K"), "{text}");
    assert!(flat(&text).contains("fio does not distinguish random reads"), "{text}");
}

#[test]
fn what_the_probe_wrote_does_instead() {
    let data = data();
    let probed = data.text("probed");
    let words = [
        "device", "--quick", "-d", "0.1", "-Q", "1", "-b", "8K", "-s", "4M", "--out", &probed,
    ];
    let output = leafpress()
        .args(words)
        .arg(data.path(""))
        .output()
        .expect("leafpress starts");
    assert!(output.status.success(), "{}", stderr(&output));
    for path in [probed.clone(), data.text("probed/results.json")] {
        let words = [
            &data.text("text"),
            "--device-json",
            &path,
            "--page-bytes",
            "8K",
            "--data-bytes",
            "1G",
        ];
        let text = advise(&words);
        assert!(text.contains("us per read of 8K"), "{text}");
    }
}

#[test]
fn a_trace_ends_the_guessing() {
    let data = data();
    let trace = format!("trace:{}", data.text("trace"));
    let text = flat(&advise(&[
        &data.text("text"),
        "--device-us",
        "110",
        "--access",
        &trace,
        "--memory",
        "4M",
    ]));
    assert!(text.contains("exact for a single LRU list"), "{text}");
    assert!(!text.contains("was assumed"), "{text}");
}

#[test]
fn a_trace_of_records_reports_the_memory_of_their_cache() {
    let data = data();
    let trace = data.text("trace");
    let out = data.text("advised");
    let text = run_quietly(&[
        "advise",
        "--trace",
        &trace,
        "--trace-format",
        "keys",
        "--memory",
        "4M",
        "--out",
        &out,
    ]);
    assert!(
        text.contains("hit ratio by memory") && text.contains("compressed"),
        "{text}"
    );
    assert!(std::path::Path::new(&out).join("mrc.tsv").is_file());
}

#[test]
fn money_is_worked_out() {
    let arguments =
        "packages --device-us 110 --data 200GB --memory 15GB --tco --total-cost 1000000 --memory-gib-cost 40";
    let text = advise(&arguments.split(' ').collect::<Vec<_>>());
    assert!(
        text.contains("total cost of ownership over 4 years") && text.contains("lz4"),
        "{text}"
    );
}

#[test]
fn files_are_written() {
    let data = data();
    let out = data.text("out");
    std::fs::create_dir(&out).expect("made");
    std::fs::write(data.path("out/verify.tsv"), "of an earlier advice").expect("written");
    let text = advise(&[&data.text("text"), "--device-us", "110", "--data", "1G", "--out", &out]);
    assert!(!data.path("out/verify.tsv").exists(), "it would pass for this advice's");
    assert!(text.contains("summary ") && text.contains("report "), "{text}");
    let summary = std::fs::read_to_string(data.path("out/summary.tsv")).expect("summary.tsv");
    let mut lines = summary.lines();
    assert_eq!(
        lines.next(),
        Some(
            "codec\tblock_bytes\tdata_bytes\tmemory_bytes\taccess_bytes\taccess\tworkers\t\
             ratio\tcompress_us\tdecompress_us\tdevice_us\t\
             compressed_share_pct\tfits_pct\thit_pct\thit_is_compressed_pct\tcompressions_per_page\t\
             us_per_page\tpages_per_second\trecommended"
        )
    );
    let recommended = lines.filter(|line| line.ends_with("\t1")).count();
    assert_eq!(recommended, 1);
    let json = std::fs::read_to_string(data.path("out/results.json")).expect("results.json");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["format"], 1);
    assert_eq!(json["data_bytes"], 1 << 30);
    assert!(
        json["recommendation"]["candidates"]
            .as_array()
            .is_some_and(|all| all.len() == 2)
    );
    assert!(
        json["cold"][0]["cold"]["compress_us"]
            .as_f64()
            .is_some_and(|us| us > 0.0)
    );
    let page = std::fs::read_to_string(data.path("out/report.html")).expect("report.html");
    assert!(
        page.contains("Compress: give") || page.contains("Do not compress"),
        "the recommendation is in the page"
    );
}

/// Even access and a device that takes as long for any block: the longest blocks, which compress best, are best. Where
/// a tenth is hot the shortest are. Sentence, table and page are of one model.
#[test]
fn the_page_matches_the_command_for_blocks_longer_than_an_access() {
    let data = data();
    let out = data.text("out");
    for law in ["uniform", "10,90"] {
        let arguments =
            "--device-us 500 --data 1G --memory 128M --access-bytes 4K --block-bytes 4K,16K,32K --distribution";
        let mut words = vec![repeats(&data)];
        words.extend(arguments.split(' ').map(str::to_owned));
        words.extend([law.to_owned(), "--out".to_owned(), out.clone()]);
        let text = flat(&advise(&words.iter().map(String::as_str).collect::<Vec<_>>()));
        let json = std::fs::read_to_string(data.path("out/results.json")).expect("results.json");
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let (raw, best) = (&json["recommendation"]["raw"], &json["recommendation"]["best"]);
        let longer = best["block_bytes"].as_u64() > Some(4096);
        assert_eq!(longer, law == "uniform", "{text}");
        let page = std::fs::read_to_string(data.path("out/report.html")).expect("report.html");
        let input = page
            .split("id=\"input\">")
            .nth(1)
            .and_then(|rest| rest.split("</script>").next());
        let input: serde_json::Value = serde_json::from_str(input.expect("an input")).expect("JSON");
        assert_eq!(input["page_bytes"], best["block_bytes"]);
        assert_eq!(input["access_bytes"], 4096);
        assert_eq!(input["start"]["raw_page_bytes"], raw["block_bytes"]);
        for figure in ["share", "hit_ratio", "us_per_page", "pages_per_second"] {
            assert_eq!(
                input["start"]["here"][figure], best["best"][figure],
                "{figure} of {law}"
            );
            assert_eq!(
                input["start"]["raw"][figure], raw["best"][figure],
                "{figure} of {law}, raw"
            );
        }
        assert_eq!(input["start"]["worth"], json["recommendation"]["raw_memory_bytes"]);
        assert!(!page.contains("wants a whole block"), "there is nothing to caution of");
    }
}

#[test]
fn predicted_and_measured_stand_side_by_side() {
    let data = data();
    let out = data.text("out");
    let arguments = "--device-us 110 --memory 32M --data 256M --access uniform --verify --verify-shares 0,60 \
                     --verify-seconds 0.3 --page-bytes 8K";
    let mut words = vec![data.text("text")];
    words.extend(arguments.split(' ').map(str::to_owned));
    words.extend(["--out".to_owned(), out]);
    let text = advise(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(
        text.contains("Predicted and measured\n512 pages of 8K from the sample, 512K of memory"),
        "{text}"
    );
    assert!(flat(&text).contains("Measured: lz4 with "), "{text}");
    let page = std::fs::read_to_string(data.path("out/report.html")).expect("report.html");
    assert!(page.contains("Measured: lz4 with ") && page.contains("us, % off"));
    let table = std::fs::read_to_string(data.path("out/verify.tsv")).expect("verify.tsv");
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines[0][..3], ["codec", "compressed_share_pct", "held_share_pct"]);
    let shares: Vec<_> = lines[1..].iter().map(|line| (line[0], line[1])).collect();
    assert_eq!(shares, [("lz4", "0"), ("lz4", "60"), ("lz4", "adaptive")]);
    let hits: Vec<f64> = lines[1..]
        .iter()
        .map(|line| line[7].parse().expect("a number"))
        .collect();
    assert!(hits[1] > hits[0], "compressed pages hit more: {hits:?}");
}

#[test]
fn reports_bad_input_in_one_line() {
    let data = data();
    let text = data.text("text");
    let bad = |arguments: &[&str], words: &[&str]| {
        assert_bad_input(&run(&[&["advise", "--quick", "-c", "lz4"], arguments].concat()), words);
    };
    bad(&[&text], &["--device", "--device-us", "--device-json", "--fio-json"]);
    bad(
        &[&text, "--device-us", "110", "--data-bytes", "99999999P"],
        &["--data-bytes", "is too large"],
    );
    bad(
        &["/no/such/file", "--device-us", "110"],
        &["/no/such/file", "no such file"],
    );
    bad(&[&text, "--device-us", "-5"], &["--device-us", "-5"]);
    bad(
        &[&text, "--device-us", "110", "--memory", "15QB"],
        &["15QB", "--memory"],
    );
    bad(
        &[&text, "--device-us", "110", "--page-bytes", "16M"],
        &["less than one block"],
    );
    bad(
        &[&text, "--device", "/no/such/directory"],
        &["--device", "/no/such/directory"],
    );
    bad(&[&text, "--device-us", "110", "--codecs", "lz9"], &["--codecs", "lz9"]);
    bad(&[&text, "--fio-json", &text], &["--fio-json", "text"]);
    std::fs::write(data.path("tiny"), "a few bytes").expect("written");
    bad(
        &[&data.text("tiny"), "--device-us", "110"],
        &["--access-bytes", "11 bytes"],
    );
    std::fs::write(data.path("junk"), "1\n2\n-3\nfour\n").expect("written");
    let junk = format!("trace:{}", data.text("junk"));
    bad(
        &[&text, "--device-us", "110", "--access", &junk],
        &["--distribution trace:", "line 3"],
    );
    bad(
        &[&text, "--device-us", "110", "--access", "trace:/no/trace"],
        &["/no/trace"],
    );
    // An impossible verification is reported after the advice, or before if that is known.
    bad(
        &[&text, "--device-us", "110", "--access", &junk, "--verify"],
        &["--verify", "a trace"],
    );
}

#[test]
fn what_cannot_be_verified_leaves_the_advice() {
    let data = data();
    let arguments = [
        &data.text("text"),
        "--device-us",
        "110",
        "--data",
        "1T",
        "--memory",
        "1G",
        "--verify",
    ];
    let output = run(&[
        &["advise", "--quick", "-c", "lz4"],
        &arguments.map(|word| word as &str)[..],
    ]
    .concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(stdout(&output).contains("Candidates"), "{}", stdout(&output));
    assert!(
        stderr(&output).contains("--verify") && stderr(&output).lines().count() == 1,
        "{}",
        stderr(&output)
    );
}

/// Of little all is taken, and of more a part.
#[test]
fn reports_how_much_of_the_sample_was_taken() {
    let data = data();
    let of_much = ["--device-us", "110", "--data-bytes", "100G", "-m", "1G"];
    let text = data.text("text");
    let whole = flat(&advise(&[&[text.as_str()], &of_much[..]].concat()));
    assert!(whole.contains("are of the whole sample of 4M: "), "{whole}");
    let part = flat(&advise(
        &[&[text.as_str(), "--sample-bytes", "1M"], &of_much[..]].concat(),
    ));
    assert!(
        part.contains("are of 1M, evenly spread over the sample's 4M: "),
        "{part}"
    );
}

/// A directory's own reports are skipped, no file counts twice, and zeros are reported.
#[test]
fn a_directory_is_sampled_with_care() {
    let directory = TempDir::new().expect("a temporary directory");
    let path = |name: &str| directory.path().join(name).to_str().expect("UTF-8").to_owned();
    let words: Vec<String> = (0..40_000)
        .map(|number| format!("word {} of many\n", number * 7919 % 10_007))
        .collect();
    std::fs::write(path("words"), words.concat()).expect("written");
    std::fs::hard_link(path("words"), path("again")).expect("linked");
    let sparse = std::fs::File::create(path("zeros")).expect("made");
    sparse.set_len(1 << 20).expect("it has room");
    let arguments = [
        &path(""),
        "--device-us",
        "110",
        "--page-bytes",
        "8K",
        "--out",
        &path("out"),
    ];
    let first = flat(&advise(&arguments));
    let second = flat(&advise(&arguments));
    for text in [&first, &second] {
        assert!(text.contains("contain only zeros"), "{text}");
        assert!(text.contains("in 2 files"), "one file has two names: {text}");
    }
    assert!(second.contains("a report of leafpress"), "{second}");
}

#[test]
fn a_server_is_named_by_a_url() {
    for (arguments, expected) in [
        (
            &["--redis", "http://user:secret@host"][..],
            "--redis: the URL cannot be read",
        ),
        (&["--redis", "rediss://host/#insecure"], "--redis-ca"),
        (&["--redis", "redis://host", "--device-us", "5"], "cannot be used with"),
        (&["--redis", "redis://host", "--sample-keys", "5"], "--sample-keys"),
        (
            &["--redis", "redis://host", "--server-cpu-pct", "0"],
            "--server-cpu-pct: must be between",
        ),
        (
            &["--redis", "redis://host", "--redis-ca", "/nowhere"],
            "--redis-ca /nowhere",
        ),
        (
            &["packages", "--device-us", "5", "--sample-keys", "500"],
            "--sample-keys: requires --redis",
        ),
    ] {
        let arguments = [&["advise"], arguments].concat();
        assert_bad_input(&run(&arguments), &[expected]);
    }
    let output = run(&["advise", "--redis", "redis://user:secret@127.0.0.1:1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("127.0.0.1:1") && !stderr(&output).contains("secret"),
        "{}",
        stderr(&output)
    );
}
