//! The victim cache with failing codecs, trainings and allocations, and changed by its own readers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use leafpress_codec::{Codec, CodecError, Dictionary, Engine, EngineOptions};
use leafpress_pages::victim::{Insertion, OnHit, RawShare, VictimCache};

fn text(seed: u64, len: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let words = (0..len / 10).map(|_| format!("customer-{:03}:active;", random.u16(0..1000)));
    let mut bytes = words.collect::<String>().into_bytes();
    bytes.truncate(len);
    bytes
}

/// An engine that fails occasionally.
#[derive(Debug)]
struct Faulty {
    engine: Arc<dyn Engine>,
    /// One in this many calls fails; 0 for none.
    compress_one_in: u64,
    decompress_one_in: u64,
    with_dictionary: bool,
    calls: AtomicU64,
}

impl Faulty {
    fn new(codec: &str) -> Self {
        let codec: Codec = codec.parse().unwrap();
        Self {
            engine: codec.open(&EngineOptions::default()).unwrap(),
            compress_one_in: 0,
            decompress_one_in: 0,
            with_dictionary: false,
            calls: AtomicU64::new(0),
        }
    }

    fn fails(&self, one_in: u64) -> Result<(), CodecError> {
        if one_in > 0 && self.calls.fetch_add(1, SeqCst).is_multiple_of(one_in) {
            return Err(CodecError::Corrupt {
                codec: "faulty",
                reason: "it was its turn".into(),
            });
        }
        Ok(())
    }
}

impl Engine for Faulty {
    fn codec(&self) -> Codec {
        self.engine.codec()
    }

    fn supports_dictionary(&self) -> bool {
        self.engine.supports_dictionary()
    }

    fn compress(&self, raw: &[u8], dictionary: Option<&Dictionary>, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        self.fails(self.compress_one_in)?;
        if self.with_dictionary && dictionary.is_some() {
            self.fails(1)?;
        }
        self.engine.compress(raw, dictionary, out)
    }

    fn decompress(&self, block: &[u8], dictionary: Option<&Dictionary>, raw: &mut [u8]) -> Result<(), CodecError> {
        self.fails(self.decompress_one_in)?;
        self.engine.decompress(block, dictionary, raw)
    }
}

fn shares() -> [RawShare; 4] {
    let fixed = |raw_percent| RawShare::Fixed { raw_percent };
    [RawShare::Adaptive, fixed(0), fixed(30), fixed(100)]
}

#[test]
fn a_block_that_cannot_be_compressed_is_stored_raw() {
    for share in shares() {
        let mut engine = Faulty::new("lz4");
        engine.compress_one_in = 3;
        let cache = VictimCache::builder()
            .memory(2 << 20)
            .engine(Arc::new(engine))
            .dictionary_bytes(0)
            .share(share)
            .build()
            .unwrap();
        for key in 0..3_000_u64 {
            cache.insert(&key.to_be_bytes(), &text(key, 3000));
            let found = cache.get(&key.to_be_bytes());
            assert!(found.is_none_or(|found| found == text(key, 3000)), "{share}");
        }
        cache.validate().unwrap();
        let stats = cache.stats();
        assert!(stats.hits > 300 && stats.corrupt == 0, "{share}: {stats:?}");
        if share == (RawShare::Fixed { raw_percent: 0 }) {
            assert!(stats.compressed_entries < stats.entries && stats.compressed_entries > 0);
        }
    }
}

#[test]
fn a_block_that_cannot_be_decoded_is_a_miss_and_gone() {
    for share in shares() {
        let mut engine = Faulty::new("zstd:1");
        engine.decompress_one_in = 4;
        let cache = VictimCache::builder()
            .memory(4 << 20)
            .engine(Arc::new(engine))
            .dictionary_bytes(0)
            .share(share)
            .build()
            .unwrap();
        let mut misses = 0;
        for key in 0..400_u64 {
            assert_eq!(cache.insert(&key.to_be_bytes(), &text(key, 3000)), Insertion::Inserted);
        }
        for key in 0..400_u64 {
            match cache.get(&key.to_be_bytes()) {
                Some(found) => assert!(found == text(key, 3000)),
                None => {
                    misses += 1;
                    assert!(cache.get(&key.to_be_bytes()).is_none(), "it is gone");
                }
            }
        }
        let stats = cache.stats();
        assert_eq!(stats.corrupt, misses, "{share}");
        assert_eq!(stats.entries, 400 - misses);
        cache.validate().unwrap();
    }
}

#[test]
fn a_training_that_fails_leaves_blocks_without_a_dictionary() {
    let mut engine = Faulty::new("zstd:1");
    engine.with_dictionary = true;
    let cache = VictimCache::builder()
        .memory(8 << 20)
        .engine(Arc::new(engine))
        .dictionary_bytes(2048)
        .build()
        .unwrap();
    let fill = |cache: &VictimCache| {
        for key in 0..1_000_u64 {
            cache.insert(&key.to_be_bytes(), &text(key, 1500));
        }
        cache.settle().unwrap();
        (0..1_000_u64)
            .filter(|key| {
                cache
                    .get(&key.to_be_bytes())
                    .is_some_and(|found| found == text(*key, 1500))
            })
            .count()
    };
    assert_eq!(fill(&cache), 1_000);
    assert_eq!(
        (cache.stats().dictionary_versions, cache.stats().dictionary_bytes),
        (0, 0)
    );
    // Nor if no dictionary could be trained.
    let cache = VictimCache::builder()
        .memory(8 << 20)
        .codec("zstd:1".parse().unwrap())
        .dictionary_bytes(2048)
        .build()
        .unwrap();
    for key in 0..200_u64 {
        cache.insert(&key.to_be_bytes(), &[0; 1500]);
    }
    cache.settle().unwrap();
    assert_eq!(cache.stats().dictionary_versions, 0);
    assert!((0..200_u64).all(|key| cache.get(&key.to_be_bytes()).unwrap() == [0; 1500]));
}

#[test]
fn a_reader_may_change_the_capacity() {
    for share in shares() {
        let cache = VictimCache::builder()
            .memory(4 << 20)
            .shard_bits(0)
            .share(share)
            .build()
            .unwrap();
        for key in 0..500_u64 {
            cache.insert(&key.to_be_bytes(), &text(key, 4000));
        }
        let read = cache.read(&7_u64.to_be_bytes(), OnHit::Keep, |found| {
            // The block being read cannot be evicted yet, and nothing waits for that.
            cache.set_memory(0);
            assert!(found.bytes == text(7, 4000));
            cache.shrink_by(1 << 20);
            cache.grow_back(1 << 20);
            assert_eq!(cache.memory(), 0);
            Ok::<_, ()>(())
        });
        assert_eq!(read, Some(Ok(())));
        let stats = cache.stats();
        assert_eq!(stats.entries, 0, "{share}");
        assert!(stats.bytes_held < 24 << 10, "{share}: {stats:?}");
        cache.set_memory(4 << 20);
        assert_eq!(cache.insert(b"key", b"block"), Insertion::Inserted);
        cache.validate().unwrap();
    }
}

#[test]
fn a_reader_that_panics_has_changed_the_capacity_all_the_same() {
    let cache = VictimCache::builder()
        .memory(8 << 20)
        .codec("zstd:1".parse().unwrap())
        .shard_bits(0)
        .dictionary_bytes(16 << 10)
        .share(RawShare::Fixed { raw_percent: 0 })
        .build()
        .unwrap();
    for key in 0..3000_u64 {
        cache.insert(&key.to_be_bytes(), &text(key, 2000));
    }
    cache.settle().unwrap();
    assert!(cache.stats().dictionary_versions > 0);
    cache.insert(b"with a dictionary", &text(1, 2000));
    let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        cache.read(b"with a dictionary", OnHit::Keep, |_| -> Result<(), ()> {
            // Its dictionary exceeds the limit now, and is freed when it has no reader any more: then there is room for
            // blocks again.
            cache.set_memory(512 << 10);
            panic!("a bug of the reader");
        })
    }));
    assert!(read.is_err());
    assert_eq!(cache.insert(b"key", &text(2, 2000)), Insertion::Inserted);
    assert_eq!(cache.get(b"key"), Some(text(2, 2000)));
    let stats = cache.stats();
    assert!(stats.bytes_held <= 512 << 10, "{stats:?}");
    cache.validate().unwrap();
}

#[test]
fn readers_and_others_may_change_the_capacity_at_once() {
    let cache = VictimCache::builder().memory(4 << 20).shard_bits(1).build().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let cache = &cache;
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                for _ in 0..2_000 {
                    let key = random.u64(0..300);
                    cache.insert(&key.to_be_bytes(), &text(key, 2000));
                    let bytes = random.usize(0..4) << 20;
                    if thread == 0 {
                        cache.set_memory(bytes);
                        continue;
                    }
                    let read = cache.read(
                        &key.to_be_bytes(),
                        if random.bool() { OnHit::Promote } else { OnHit::Keep },
                        |found| {
                            if random.u8(0..8) == 0 {
                                cache.set_memory(bytes);
                            }
                            assert!(found.bytes == text(key, 2000));
                            Ok::<_, ()>(())
                        },
                    );
                    assert!(read.is_none_or(|read| read.is_ok()));
                }
            });
        }
    });
    cache.set_memory(1 << 20);
    let stats = cache.stats();
    assert!(stats.bytes_held <= 1 << 20, "{stats:?}");
    cache.validate().unwrap();
}

#[cfg(target_os = "linux")]
mod memory {
    use std::process::Command;

    use super::*;

    const CHILD: &str = "LEAFPRESS_TEST_WITHOUT_MEMORY";

    /// The cache maps its memory itself. For small allocations, which cannot fail in Rust, glibc's allocator has a
    /// reserve of its own from the start, in one arena that it does not return.
    const RESERVE: [(&str, &str); 4] = [
        ("MALLOC_ARENA_MAX", "1"),
        ("MALLOC_TOP_PAD_", "67108864"),
        ("MALLOC_TRIM_THRESHOLD_", "1073741824"),
        ("MALLOC_MMAP_THRESHOLD_", "33554432"),
    ];

    /// Limits the process to this much more memory.
    fn limit(more_bytes: u64) {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmSize:")).unwrap();
        let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        let bytes = (kib << 10) + more_bytes;
        let limit = libc::rlimit {
            rlim_cur: bytes,
            rlim_max: bytes,
        };
        // SAFETY: the limit is a local value that outlives the call.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
    }

    fn child() {
        for share in shares() {
            let cache = VictimCache::builder()
                .memory(1 << 30)
                .codec("lz4".parse().unwrap())
                .share(share)
                .build()
                .unwrap();
            cache.insert(b"warm", &text(0, 4000));
            drop(cache.get(b"warm"));
            if share == RawShare::Adaptive {
                limit(96 << 20);
            }
            let (mut random, mut inserted) = (fastrand::Rng::with_seed(1), 0);
            for key in 0..30_000_u64 {
                let bytes = if key % 3 == 0 {
                    text(key, 4000)
                } else {
                    (0..4000).map(|_| random.u8(..)).collect()
                };
                inserted += u64::from(cache.insert(&key.to_be_bytes(), &bytes) == Insertion::Inserted);
                if key % 3 == 0 {
                    let found = cache.get(&key.to_be_bytes());
                    assert!(found.is_none_or(|found| found == bytes));
                }
            }
            let stats = cache.stats();
            assert!(stats.bytes_held < 128 << 20, "{stats:?}");
            assert!(inserted > 5_000 && stats.no_room + stats.evicted > 0, "{stats:?}");
            cache.validate().unwrap();
        }
    }

    /// Runs in a process of its own, which cannot get the memory that the cache may use.
    #[test]
    fn without_memory_blocks_are_refused_and_nothing_else_happens() {
        if std::env::var_os(CHILD).is_some() {
            child();
            return;
        }
        let child = Command::new(std::env::current_exe().unwrap())
            .args([
                "faults::memory::without_memory_blocks_are_refused_and_nothing_else_happens",
                "--exact",
            ])
            .args(["--nocapture", "--test-threads", "1"])
            .env(CHILD, "1")
            .envs(RESERVE)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&child.stderr).into_owned();
        assert!(child.status.success(), "{errors}");
    }
}
