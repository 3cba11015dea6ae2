//! RocksDB's own db_bench and our command read each other's databases.

mod common;

use std::path::Path;
use std::process::Command;

use common::{stderr, stdout, success};
use tempfile::TempDir;

#[test]
#[ignore = "compiles db_bench, which takes minutes; run with --ignored where gflags is installed"]
fn db_bench_reads_our_databases_and_we_read_its() {
    let directory = TempDir::new().unwrap();
    let db_bench = directory.path().join("db_bench");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../db_bench/build");
    let built = Command::new(script).arg(&db_bench).output().unwrap();
    if built.status.code() == Some(77) {
        eprintln!("skipped: {}", stderr(&built));
        return;
    }
    assert!(built.status.success(), "{}", stderr(&built));

    let (ours, theirs) = (directory.path().join("ours"), directory.path().join("theirs"));
    let shared = |db: &Path| {
        let db = format!("--db={}", db.display());
        let flags = [
            "--num=20000",
            "--key_size=16",
            "--value_size=100",
            "--block_size=4096",
            "--bloom_bits=10",
            "--compression_type=zstd",
        ];
        let mut all: Vec<String> = flags.map(str::to_owned).to_vec();
        all.push(db);
        all
    };
    let db_bench = |db: &Path, flags: &[&str]| {
        let output = Command::new(&db_bench).args(shared(db)).args(flags).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    let command = |db: &Path, flags: &[&str]| {
        let shared = shared(db);
        let mut all = vec!["bench", "--quiet"];
        all.extend(shared.iter().map(String::as_str));
        all.extend(flags);
        success(&all)
    };
    command(&ours, &["--benchmarks=fillseq"]);
    let text = db_bench(
        &ours,
        &["--benchmarks=readrandom", "--use_existing_db=1", "--reads=5000"],
    );
    assert!(text.contains("(5000 of 5000 found)"), "{text}");

    db_bench(&theirs, &["--benchmarks=fillseq", "--disable_wal=1"]);
    let text = command(
        &theirs,
        &["--benchmarks=readrandom", "--use_existing_db", "--reads=5000"],
    );
    assert!(text.contains("100.0%"), "{text}");
}
