//! Flushes, compactions, changes of the codec and reads at once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rocksdb::DB;

use crate::support::{check, key, options, value};

#[test]
fn everything_at_once_loses_nothing() {
    const RECORDS: u64 = 60_000;
    let directory = tempfile::tempdir().unwrap();
    let options = options(
        "write_buffer_size=256K;target_file_size_base=256K;max_bytes_for_level_base=1M;max_background_jobs=4;\
         level0_file_num_compaction_trigger=2;max_write_buffer_number=6;\
         compression_manager={id=leafpress;level_codec=0:lz4,2:zstd:3;verify=true;parallel_threads=2;\
         dictionary_bytes=4096};block_based_table_factory={block_size=4096;no_block_cache=true}",
    );
    let db = DB::open(&options, directory.path()).unwrap();
    let written = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (db, written, done) = (&db, &written, &done);
        for reader in 0..3_u64 {
            scope.spawn(move || {
                let mut state = reader + 1;
                while !done.load(Ordering::Acquire) {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
                    let there = written.load(Ordering::Acquire);
                    if there > 0 {
                        let i = (state >> 33) % there;
                        assert_eq!(db.get(key(i)).unwrap().unwrap(), value(i), "record {i}");
                    }
                }
            });
        }
        scope.spawn(move || {
            let managers = [
                "codec=deflate:1",
                "level_codec=0:lz4,3:zstd:6",
                "codec=zstd:1;dictionary_bytes=0",
                "codec=none",
            ];
            for manager in managers.iter().cycle() {
                if done.load(Ordering::Acquire) {
                    break;
                }
                db.set_options(&[("compression_manager", &format!("{{id=leafpress;{manager}}}"))])
                    .unwrap();
                db.compact_range(None::<&[u8]>, None::<&[u8]>);
            }
        });
        for i in 0..RECORDS {
            db.put(key(i), value(i)).unwrap();
            written.store(i + 1, Ordering::Release);
            if i % 5000 == 0 {
                db.flush().unwrap();
            }
        }
        done.store(true, Ordering::Release);
    });
    check(&db, 0..RECORDS);
}
