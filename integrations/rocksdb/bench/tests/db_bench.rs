//! RocksDB's own db_bench with Leafpress registered: it and our command read each other's databases, whose files are as
//! large.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use common::{stderr, stdout, success};
use tempfile::TempDir;

const KEYS: u64 = 20_000;

/// db_bench and the library that it loads, compiled where the next run finds them; none if there is no gflags.
fn built() -> Option<&'static (PathBuf, PathBuf)> {
    static BUILT: OnceLock<Option<(PathBuf, PathBuf)>> = OnceLock::new();
    let build = || {
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let (db_bench, library) = (kept.join("db_bench"), kept.join("libleafpress_rocksdb.so"));
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../db_bench/build");
        // Where this test is, the archive of RocksDB is.
        let target = kept.parent().unwrap();
        let mut command = Command::new(script);
        let output = command
            .args([&db_bench, &library])
            .env("CARGO_TARGET_DIR", target)
            .output();
        let output = output.unwrap();
        if output.status.code() == Some(77) {
            println!("skipped: {}", stderr(&output));
            return None;
        }
        assert!(output.status.success(), "{}", stderr(&output));
        Some((db_bench, library))
    };
    BUILT.get_or_init(build).as_ref()
}

/// Flags that both have.
fn flags(db: &Path) -> Vec<String> {
    [
        format!("--db={}", db.display()),
        format!("--num={KEYS}"),
        "--key_size=16".to_owned(),
        "--value_size=100".to_owned(),
        "--block_size=4096".to_owned(),
        "--bloom_bits=10".to_owned(),
        "--disable_wal=true".to_owned(),
        "--compression_ratio=0.5".to_owned(),
    ]
    .to_vec()
}

/// Runs db_bench with the options string on top of its flags.
#[track_caller]
fn db_bench(db: &Path, options: &str, more: &[&str]) -> String {
    let (program, library) = built().unwrap();
    let mut command = Command::new(program);
    command.env("LEAFPRESS_ROCKSDB_LIBRARY", library);
    command
        .args(flags(db))
        .arg(format!("--rocksdb_options={options}"))
        .args(more);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}\n{}", stdout(&output), stderr(&output));
    stdout(&output)
}

/// Runs our command.
#[track_caller]
fn ours(db: &Path, compression: &str, more: &[&str]) -> String {
    let flags = flags(db);
    let mut all = vec![
        "bench",
        "--quiet",
        "--value_src_data_type=pure_random",
        "--compression",
        compression,
    ];
    all.extend(flags.iter().map(String::as_str));
    all.extend(more);
    success(&all)
}

/// Returns the bytes of a database's files, and whether all of them, or none, say that Leafpress compressed them.
fn files(db: &Path) -> (u64, bool) {
    let (mut bytes, mut by_leafpress) = (0, Vec::new());
    for entry in std::fs::read_dir(db).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ext| ext == "sst") {
            let file = std::fs::read(&path).unwrap();
            bytes += file.len() as u64;
            // The property `rocksdb.compression_name` begins with the schema's name.
            let name = b"leafpress_rocksdb_v1;";
            by_leafpress.push(file.windows(name.len()).any(|window| window == name));
        }
    }
    assert!(!by_leafpress.is_empty(), "no files in {}", db.display());
    assert!(
        by_leafpress.iter().all(|one| *one == by_leafpress[0]),
        "{by_leafpress:?}"
    );
    (bytes, by_leafpress[0])
}

/// Returns the count of one of RocksDB's tickers in what db_bench printed.
fn ticker(text: &str, name: &str) -> u64 {
    let start = format!("{name} COUNT : ");
    let line = text.lines().find_map(|line| line.strip_prefix(&start));
    line.unwrap_or_else(|| panic!("no {name} in\n{text}")).parse().unwrap()
}

/// For db_bench, our command, and whether it is ours.
const COMPRESSIONS: [(&str, &str, bool); 3] = [
    ("compression=kZSTD", "zstd", false),
    (
        "compression_manager={id=leafpress;codec=zstd:3}",
        "leafpress:zstd:3",
        true,
    ),
    (
        "compression_manager={id=leafpress;codec=lz4:hc=5}",
        "leafpress:lz4:hc=5",
        true,
    ),
];

#[test]
fn each_reads_what_the_other_wrote() {
    if built().is_none() {
        return;
    }
    for (options, compression, leafpress) in COMPRESSIONS {
        let directory = TempDir::new().unwrap();
        let (theirs, own) = (directory.path().join("theirs"), directory.path().join("own"));
        let options = match leafpress {
            true => format!("{options};block_based_table_factory={{format_version=7}}"),
            false => options.to_owned(),
        };
        db_bench(&theirs, &options, &["--benchmarks=fillseq"]);
        ours(&own, compression, &["--benchmarks=fillseq"]);
        let (their_size, own_size) = (files(&theirs), files(&own));
        assert_eq!((their_size.1, own_size.1), (leafpress, leafpress), "{compression}");
        let ratio = own_size.0 as f64 / their_size.0 as f64;
        assert!(
            (0.97..1.03).contains(&ratio),
            "{compression}: {own_size:?} {their_size:?}"
        );

        for db in [&theirs, &own] {
            let text = db_bench(
                db,
                &options,
                &[
                    "--benchmarks=readrandom,verifychecksum",
                    "--use_existing_db=1",
                    "--reads=5000",
                ],
            );
            assert!(text.contains("(5000 of 5000 found)"), "{compression}: {text}");
            let text = ours(
                db,
                compression,
                &["--benchmarks=readrandom", "--use_existing_db", "--reads=5000"],
            );
            assert!(text.contains("100.0%"), "{compression}: {text}");
            let text = db_bench(
                db,
                &options,
                &[
                    "--benchmarks=readrandomwriterandom",
                    "--use_existing_db=1",
                    "--readwritepercent=80",
                    "--reads=5000",
                ],
            );
            assert!(text.contains("readrandomwriterandom"), "{compression}: {text}");
            assert_eq!(files(db).1, leafpress, "{compression}: what was written");
        }
    }
}

#[test]
fn db_bench_has_our_secondary_cache() {
    if built().is_none() {
        return;
    }
    let directory = TempDir::new().unwrap();
    let options = "compression_manager={id=leafpress;codec=lz4};block_based_table_factory={format_version=7}";
    db_bench(directory.path(), options, &["--benchmarks=fillseq"]);
    let text = db_bench(
        directory.path(),
        options,
        &[
            "--benchmarks=readrandom",
            "--use_existing_db=1",
            "--reads=50000",
            "--cache_size=262144",
            "--cache_type=lru_cache",
            "--cache_numshardbits=0",
            "--secondary_cache_uri=leafpress_secondary_cache://capacity=8M;codec=lz4",
            "--statistics=true",
        ],
    );
    assert!(text.contains("(50000 of 50000 found)"), "{text}");
    assert!(
        ticker(&text, "rocksdb.compressed.secondary.cache.hits") > 1000,
        "{text}"
    );
}
