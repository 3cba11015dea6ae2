//! A process that is killed while it compacts leaves a database that opens and has everything that was written.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use rocksdb::{DB, Options};

use crate::support::{key, options, value};

const PATH: &str = "LEAFPRESS_TEST_PATH";

fn opened(path: &std::path::Path) -> DB {
    let options: Options = options(
        "write_buffer_size=128K;target_file_size_base=256K;max_bytes_for_level_base=512K;\
         level0_file_num_compaction_trigger=2;\
         compression_manager={id=leafpress;level_codec=0:lz4,1:deflate:1,6:zstd:3;dictionary_bytes=4096}",
    );
    DB::open(&options, path).unwrap()
}

#[test]
fn a_killed_compaction_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..6_u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed::child", "--nocapture", "--ignored"])
            .env(PATH, directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut acknowledged = 0;
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            if let Some(number) = line.unwrap().strip_prefix("written ") {
                acknowledged = number.parse::<u64>().unwrap();
                if acknowledged >= (round + 1) * 12_000 {
                    std::thread::sleep(Duration::from_millis(round * 7));
                    break;
                }
            }
        }
        // SIGKILL.
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(acknowledged > 0, "the child wrote nothing");
        let db = opened(directory.path());
        for i in 0..acknowledged {
            assert_eq!(
                db.get(key(i)).unwrap().as_deref(),
                Some(value(i).as_slice()),
                "record {i} of {acknowledged}"
            );
        }
    }
}

/// Not a test by itself: what the one above kills.
#[test]
#[ignore = "run by another test"]
fn child() {
    let Some(path) = std::env::var_os(PATH) else { return };
    let db = opened(path.as_ref());
    let first = (0..)
        .step_by(1000)
        .find(|i| db.get(key(*i)).unwrap().is_none())
        .unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            loop {
                db.compact_range(None::<&[u8]>, None::<&[u8]>);
            }
        });
        // Some of these are there from the last round.
        for i in first.saturating_sub(1000).. {
            db.put(key(i), value(i)).unwrap();
            if i % 500 == 499 {
                println!("written {}", i + 1);
            }
            assert!(i < 10_000_000, "nobody kills this process");
        }
    });
}
