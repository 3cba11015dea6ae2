//! Measures loading records in key order: `from_sorted` vs inserting one by one, the codec alone, a `BTreeMap` under a
//! lock, and memcpy.
//!
//! `cargo bench -p leafpress-bench --bench load`, or `... -- MEGABYTES ROUNDS` (64 and 3); with `512 lz4 loads` behind
//! that, `from_sorted` alone with that length of values and codec, for a profiler. Keys are 25 bytes of text, values
//! are cut from the bundled package index. The codec alone compresses the same frames with the same dictionary, which
//! are taken from a load before. Times are processor time of the thread that loads, medians of the rounds; what other
//! threads of the tree took in addition, mostly for training the dictionary, is in a column of its own.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Instant;

use leafpress::codec::{CodecError, Dictionary, Engine, EngineOptions};
use leafpress::{Codec, Tree};

const CODECS: [&str; 3] = ["none", "lz4", "zstd:1"];
const VALUE_BYTES: [usize; 3] = [128, 512, 1024];
const KEY_BYTES: usize = 25;

fn main() {
    // Cargo's own options begin with dashes.
    let numbers: Vec<usize> = std::env::args().filter_map(|arg| arg.parse().ok()).collect();
    let (megabytes, rounds) = (
        numbers.first().copied().unwrap_or(64),
        numbers.get(1).copied().unwrap_or(3),
    );
    if std::env::args().any(|arg| arg == "loads") {
        let lengths = numbers.get(2).map_or(&VALUE_BYTES[..], std::slice::from_ref);
        return only_loads(megabytes << 20, rounds, lengths);
    }
    println!("{megabytes} MB of records, medians of {rounds}; MB/s of processor time, but for the two last columns");
    println!(
        "{:>5} {:>7} {:>11} {:>7} {:>6} {:>7} {:>6} {:>9} {:>8} {:>7} {:>6} {:>9} {:>9}",
        "value",
        "codec",
        "from_sorted",
        "codec",
        "times",
        "insert",
        "lock",
        "BTreeMap",
        "memcpy",
        "other s",
        "held",
        "1 thread",
        "2 threads"
    );
    for value_bytes in VALUE_BYTES {
        let records = Records::new(value_bytes, megabytes << 20);
        let in_map = median(rounds, || {
            let map = RwLock::new(BTreeMap::new());
            let time = timed(|| *map.write().expect("no panic") = records.boxed().collect::<BTreeMap<_, _>>());
            assert_eq!(map.read().expect("no panic").len(), records.len);
            time
        });
        let locked = median(rounds, || {
            let map = RwLock::new(BTreeMap::new());
            timed(|| {
                for (key, value) in records.boxed() {
                    map.write().expect("no panic").insert(key, value);
                }
            })
        });
        let copied = median(rounds, || {
            let mut copy = Vec::with_capacity(records.bytes());
            timed(|| {
                for (key, value) in records.each() {
                    copy.extend_from_slice(key);
                    copy.extend_from_slice(value);
                }
                black_box(&copy);
            })
        });
        for name in CODECS {
            let codec: Codec = name.parse().expect("a codec's name");
            // The codec `none` is a copy.
            let alone = match codec {
                Codec::None => copied,
                codec => codec_alone(codec, &records, rounds),
            };
            let mut held = 0.0;
            let mut other = Vec::new();
            let loaded = median(rounds, || {
                let before = cpu_seconds(libc::CLOCK_PROCESS_CPUTIME_ID);
                let mut tree = None;
                let time = timed(|| tree = Some(build(codec, 1, &records)));
                let tree = tree.expect("it was built");
                tree.settle().expect("no thread has ended");
                other.push(cpu_seconds(libc::CLOCK_PROCESS_CPUTIME_ID) - before - time);
                assert_eq!(tree.stats().bulk_loaded, records.len as u64);
                held = tree.stats().held_per_user_byte();
                time
            });
            let walls = [1, 2].map(|threads| {
                median(rounds, || {
                    let start = Instant::now();
                    black_box(build(codec, threads, &records));
                    start.elapsed().as_secs_f64()
                })
            });
            let inserted = median(1, || {
                let tree = Tree::builder().codec(codec).build().expect("the codec is compiled in");
                timed(|| {
                    for (key, value) in records.each() {
                        tree.insert(key, value).expect("insert");
                    }
                })
            });
            let speed = |seconds: f64| records.bytes() as f64 / 1e6 / seconds;
            println!(
                "{value_bytes:>5} {name:>7} {:>11.0} {:>7.0} {:>6.2} {:>7.0} {:>6.0} {:>9.0} {:>8.0} {:>7.2} \
                 {held:>6.2} {:>9.0} {:>9.0}",
                speed(loaded),
                speed(alone),
                loaded / alone,
                speed(inserted),
                speed(locked),
                speed(in_map),
                speed(copied),
                other.iter().sum::<f64>() / other.len() as f64,
                speed(walls[0]),
                speed(walls[1]),
            );
        }
    }
}

fn only_loads(bytes: usize, rounds: usize, lengths: &[usize]) {
    for &value_bytes in lengths {
        let records = Records::new(value_bytes, bytes);
        for name in CODECS {
            if std::env::args().any(|arg| arg == name) {
                let codec: Codec = name.parse().expect("a codec's name");
                let time = median(rounds, || {
                    let mut tree = None;
                    timed(|| tree = Some(build(codec, 1, &records)))
                });
                println!("{value_bytes} {name} {:.0} MB/s", records.bytes() as f64 / 1e6 / time);
            }
        }
    }
}

fn build(codec: Codec, threads: usize, records: &Records) -> Tree {
    let builder = Tree::builder().codec(codec).load_threads(threads);
    builder.from_sorted(records.each()).expect("the records are sorted")
}

/// Records in key order.
struct Records {
    keys: Vec<u8>,
    text: Vec<u8>,
    value_bytes: usize,
    len: usize,
}

impl Records {
    fn new(value_bytes: usize, bytes: usize) -> Self {
        let len = bytes / (KEY_BYTES + value_bytes);
        let keys = (0..len).flat_map(|n| format!("catalogue/item/{n:010}").into_bytes());
        Self {
            keys: keys.collect(),
            text: leafpress_bench::sample(),
            value_bytes,
            len,
        }
    }

    fn bytes(&self) -> usize {
        self.len * (KEY_BYTES + self.value_bytes)
    }

    fn each(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let (mut n, span) = (0, self.text.len() - self.value_bytes);
        self.keys.chunks_exact(KEY_BYTES).map(move |key| {
            // Each time the text is gone through, it is cut elsewhere.
            let start = n * (self.value_bytes + 13) % span;
            n += 1;
            (key, &self.text[start..start + self.value_bytes])
        })
    }

    fn boxed(&self) -> impl Iterator<Item = (Box<[u8]>, Box<[u8]>)> {
        self.each().map(|(key, value)| (key.into(), value.into()))
    }
}

/// Processor time to compress the frames that a load compresses, with its dictionary.
fn codec_alone(codec: Codec, records: &Records, rounds: usize) -> f64 {
    let engine = codec.open(&EngineOptions::default()).expect("the codec is compiled in");
    let seen = Arc::new(Seen {
        engine,
        frames: Mutex::default(),
    });
    let builder = Tree::builder().engine(Arc::clone(&seen) as Arc<dyn Engine>);
    let tree = builder.from_sorted(records.each()).expect("the records are sorted");
    drop(tree);
    let (dictionary, raw, ends) = std::mem::take(&mut *seen.frames.lock().expect("no panic"));
    let mut block = Vec::with_capacity(64 << 10);
    median(rounds, || {
        timed(|| {
            let mut start = 0;
            for &end in &ends {
                block.clear();
                let compressed = seen.engine.compress(&raw[start..end], dictionary.as_ref(), &mut block);
                compressed.expect("it did before");
                start = end;
            }
        })
    })
}

/// An engine that remembers what it compressed since it has had a dictionary.
#[derive(Debug)]
struct Seen {
    engine: Arc<dyn Engine>,
    frames: Mutex<(Option<Dictionary>, Vec<u8>, Vec<usize>)>,
}

impl Engine for Seen {
    fn codec(&self) -> Codec {
        self.engine.codec()
    }

    fn supports_dictionary(&self) -> bool {
        self.engine.supports_dictionary()
    }

    fn compress(&self, raw: &[u8], dictionary: Option<&Dictionary>, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        // Training tries dictionaries, on a thread that has a name.
        if std::thread::current().name() == Some("main") {
            let (known, frames, ends) = &mut *self.frames.lock().expect("no panic");
            if let (Some(dictionary), None) = (dictionary, &known) {
                *known = Some(dictionary.clone());
                frames.clear();
                ends.clear();
            }
            frames.extend_from_slice(raw);
            ends.push(frames.len());
        }
        self.engine.compress(raw, dictionary, out)
    }

    fn decompress(&self, block: &[u8], dictionary: Option<&Dictionary>, raw: &mut [u8]) -> Result<(), CodecError> {
        self.engine.decompress(block, dictionary, raw)
    }
}

fn median(rounds: usize, mut measure: impl FnMut() -> f64) -> f64 {
    let mut times: Vec<f64> = (0..rounds).map(|_| measure()).collect();
    times.sort_by(f64::total_cmp);
    times[rounds / 2]
}

/// Processor time that this thread takes for `work`, in seconds.
fn timed(work: impl FnOnce()) -> f64 {
    let start = cpu_seconds(libc::CLOCK_THREAD_CPUTIME_ID);
    work();
    cpu_seconds(libc::CLOCK_THREAD_CPUTIME_ID) - start
}

fn cpu_seconds(clock: libc::clockid_t) -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes to the struct that it is given.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
