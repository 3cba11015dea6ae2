//! Loads a tree, runs a mix of point operations on it, and prints throughput, latency percentiles and a breakdown of
//! its memory.
//!
//! Intended for profiling: one process, one configuration, no output during the measurement. To compare codecs and
//! machines, use `leafpress eval`.
//!
//! ```text
//! cargo run --release --example breakdown -- --corpus FILE --codec zstd:1 --keys 50000 --threads 2
//! ```

mod args;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use args::{Args, Read};
use hdrhistogram::Histogram;
use leafpress::{Tree, TreeStats};

/// Distinct values that one key takes in turn.
const VERSIONS: u64 = 4;

/// The corpus, cut into values.
struct Values {
    bytes: Vec<u8>,
    value_bytes: usize,
}

impl Values {
    fn open(args: &Args) -> Result<Self, Box<dyn Error>> {
        let bytes = match &args.corpus {
            Some(path) => std::fs::read(path).map_err(|e| format!("{path}: {e}"))?,
            None => synthetic(args.seed, 8 << 20),
        };
        if bytes.len() < args.value_bytes {
            return Err("the corpus is shorter than one value".into());
        }
        Ok(Self {
            bytes,
            value_bytes: args.value_bytes,
        })
    }

    /// Returns the value of `key` at `version`: at every version, adjacent keys have adjacent cuts.
    fn of(&self, key: u64, version: u64) -> &[u8] {
        let cuts = (self.bytes.len() / self.value_bytes) as u64;
        let cut = (key + version * (cuts / VERSIONS)) % cuts;
        let start = cut as usize * self.value_bytes;
        &self.bytes[start..start + self.value_bytes]
    }

    fn may_be(&self, key: u64, value: &[u8]) -> bool {
        (0..VERSIONS).any(|version| self.of(key, version) == value)
    }
}

/// Generates words drawn from a small vocabulary, with a compressibility similar to English.
fn synthetic(seed: u64, bytes: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let words: Vec<String> = (0..2000)
        .map(|_| (0..rng.usize(2..10)).map(|_| rng.lowercase()).collect())
        .collect();
    let mut text = Vec::with_capacity(bytes + 16);
    while text.len() < bytes {
        // The smaller of two draws favours the front of the vocabulary.
        let word = rng.usize(..words.len()).min(rng.usize(..words.len()));
        text.extend_from_slice(words[word].as_bytes());
        text.push(b' ');
    }
    text.truncate(bytes);
    text
}

/// The measurements of one thread.
struct Tally {
    operations: u64,
    mismatches: u64,
    reads_ns: Histogram<u64>,
    writes_ns: Histogram<u64>,
}

impl Tally {
    fn new() -> Result<Self, Box<dyn Error + Send + Sync>> {
        Ok(Self {
            operations: 0,
            mismatches: 0,
            reads_ns: Histogram::new_with_max(60_000_000_000, 3)?,
            writes_ns: Histogram::new_with_max(60_000_000_000, 3)?,
        })
    }
}

fn load(tree: &Tree, args: &Args, values: &Values) -> Result<(), Box<dyn Error>> {
    let mut keys: Vec<u64> = (0..args.keys).collect();
    if !args.sequential {
        fastrand::Rng::with_seed(args.seed).shuffle(&mut keys);
    }
    thread::scope(|scope| {
        let loaders: Vec<_> = keys
            .chunks(keys.len().div_ceil(args.threads))
            .map(|part| {
                scope.spawn(move || {
                    part.iter()
                        .try_for_each(|&key| tree.insert(&key.to_be_bytes(), values.of(key, 0)).map(drop))
                })
            })
            .collect();
        for loader in loaders {
            loader.join().map_err(|_| "a loading thread panicked")??;
        }
        Ok(())
    })
}

fn work(
    tree: &Tree,
    args: &Args,
    values: &Values,
    thread: usize,
    start: &Barrier,
    stop: &AtomicBool,
) -> Result<Tally, Box<dyn Error + Send + Sync>> {
    let mut tally = Tally::new()?;
    let mut rng = fastrand::Rng::with_seed(args.seed.wrapping_mul(1000).wrapping_add(thread as u64));
    let mut buffer = Vec::with_capacity(args.value_bytes);
    start.wait();
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..64 {
            let timed = tally.operations.is_multiple_of(args.sample).then(Instant::now);
            let key = rng.u64(..args.keys);
            if rng.u64(..100) < args.read_pct {
                let absent = args.miss_pct > 0 && rng.u64(..100) < args.miss_pct;
                // One byte longer than a loaded key: absent, but between two present ones.
                let mut bytes = [0u8; 9];
                bytes[..8].copy_from_slice(&key.to_be_bytes());
                let right = read(
                    tree,
                    args.read,
                    &bytes[..8 + usize::from(absent)],
                    &mut buffer,
                    |value| values.may_be(key, value),
                )?;
                if let Some(timed) = timed {
                    tally.reads_ns.saturating_record(timed.elapsed().as_nanos() as u64);
                }
                tally.mismatches += u64::from(right == absent);
            } else {
                let new = tree.insert(&key.to_be_bytes(), values.of(key, rng.u64(..VERSIONS)))?;
                if let Some(timed) = timed {
                    tally.writes_ns.saturating_record(timed.elapsed().as_nanos() as u64);
                }
                tally.mismatches += u64::from(new);
            }
            tally.operations += 1;
        }
    }
    Ok(tally)
}

/// Reads by `kind`; returns whether the key was present with a correct value.
fn read(
    tree: &Tree,
    kind: Read,
    key: &[u8],
    buffer: &mut Vec<u8>,
    right: impl Fn(&[u8]) -> bool,
) -> Result<bool, leafpress::TreeError> {
    Ok(match kind {
        Read::Get => tree.get(key)?.is_some_and(|value| right(&value)),
        Read::GetInto => tree.get_into(key, buffer)? && right(buffer),
        Read::GetWith => tree.get_with(key, |value| right(value))?.unwrap_or(false),
    })
}

/// Runs the measurement; returns its tallies and duration.
fn run(tree: &Tree, args: &Args, values: &Values) -> Result<(Tally, Duration), Box<dyn Error>> {
    let stop = AtomicBool::new(false);
    let start = Barrier::new(args.threads + 1);
    thread::scope(|scope| {
        let (stop, start) = (&stop, &start);
        let workers: Vec<_> = (0..args.threads)
            .map(|thread| scope.spawn(move || work(tree, args, values, thread, start, stop)))
            .collect();
        start.wait();
        let begin = Instant::now();
        thread::sleep(Duration::from_secs_f64(args.seconds));
        stop.store(true, Ordering::Relaxed);
        let mut sum = Tally::new().map_err(|e| e.to_string())?;
        for worker in workers {
            let tally = worker
                .join()
                .map_err(|_| "a thread panicked")?
                .map_err(|e| e.to_string())?;
            sum.operations += tally.operations;
            sum.mismatches += tally.mismatches;
            sum.reads_ns.add(&tally.reads_ns)?;
            sum.writes_ns.add(&tally.writes_ns)?;
        }
        Ok((sum, begin.elapsed()))
    })
}

/// Returns the resident bytes of this process, where the system reports them.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok()? * 1024)
}

fn print_latency(name: &str, ns: &Histogram<u64>) {
    if !ns.is_empty() {
        let us = |q: f64| ns.value_at_quantile(q) as f64 / 1e3;
        println!(
            "{name:<10} mean {:.2} us   p50 {:.2}   p99 {:.2}   p999 {:.2}   max {:.1}   ({} timed)",
            ns.mean() / 1e3,
            us(0.5),
            us(0.99),
            us(0.999),
            ns.max() as f64 / 1e3,
            ns.len()
        );
    }
}

fn print_memory(stats: &TreeStats, resident_growth: Option<u64>) {
    let user = stats.user_bytes.max(1) as f64;
    println!(
        "memory     {} user bytes, {} held: {:.4} per user byte",
        stats.user_bytes,
        stats.bytes_held,
        stats.held_per_user_byte()
    );
    for (name, bytes) in [
        ("leaves", stats.leaf_bytes),
        ("inner nodes", stats.inner_bytes),
        ("interpolation", stats.interpolation_bytes),
        ("landing", stats.landing_bytes),
        ("large values", stats.large_value_bytes),
        ("free room", stats.free_bytes),
        ("dictionaries", stats.dictionary_bytes),
        ("retired", stats.retired_bytes),
        ("fixed", stats.fixed_bytes),
    ] {
        println!("  {name:<13} {bytes:>12}   {:.4}", bytes as f64 / user);
    }
    if let Some(growth) = resident_growth {
        println!(
            "  resident growth {growth}: {:.3} of bytes held",
            growth as f64 / stats.bytes_held.max(1) as f64
        );
    }
}

fn print_counters(before: &TreeStats, after: &TreeStats) {
    let gets = (after.gets - before.gets).max(1) as f64;
    println!(
        "gets       {:.3} frames and {:.0} raw bytes decoded per get, {:.3} answered by landing buffers",
        (after.get_frames_decoded - before.get_frames_decoded) as f64 / gets,
        (after.get_bytes_decoded - before.get_bytes_decoded) as f64 / gets,
        (after.get_landing_hits - before.get_landing_hits) as f64 / gets
    );
    let puts = (after.puts - before.puts).max(1) as f64;
    let (b, a) = (&before.engine, &after.engine);
    println!(
        "puts       {:.3} foreground compactions, {:.3} compress and {:.3} decompress calls per put (gets decode too)",
        (after.fg_sync_compactions - before.fg_sync_compactions) as f64 / puts,
        (a.compress_calls - b.compress_calls) as f64 / puts,
        (a.decompress_calls - b.decompress_calls) as f64 / puts
    );
    println!(
        "engine     {}: {:.0} ns per compress, {:.0} ns per decompress",
        after.engine_name,
        (a.compress_ns - b.compress_ns) as f64 / (a.compress_calls - b.compress_calls).max(1) as f64,
        (a.decompress_ns - b.decompress_ns) as f64 / (a.decompress_calls - b.decompress_calls).max(1) as f64
    );
    println!(
        "shape      {} leaves, {} frames, {} landing buffers, {} inner nodes, depth {}, dictionary {}",
        after.leaves, after.frames, after.landing_buffers, after.inner_nodes, after.depth, after.dictionary_id
    );
}

fn report() -> Result<bool, Box<dyn Error>> {
    let args = Args::parse()?;
    let values = Values::open(&args)?;
    let tree = args.build()?;

    let resident_before = resident_bytes();
    let begin = Instant::now();
    load(&tree, &args, &values)?;
    let loaded = begin.elapsed();
    tree.settle().unwrap();
    let settled = begin.elapsed();
    let growth = resident_before
        .zip(resident_bytes())
        .map(|(before, after)| after.saturating_sub(before));
    println!(
        "load       {} records in {:.2} s ({:.3} Mops/s), settled after {:.2} s",
        tree.len(),
        loaded.as_secs_f64(),
        args.keys as f64 / loaded.as_secs_f64() / 1e6,
        settled.as_secs_f64()
    );
    let before = tree.stats();
    print_memory(&before, growth);
    if args.seconds <= 0.0 {
        print_counters(&TreeStats::default(), &before);
        return Ok(true);
    }

    let (tally, elapsed) = run(&tree, &args, &values)?;
    let rate = tally.operations as f64 / elapsed.as_secs_f64();
    println!(
        "run        {:.3} Mops/s, {:.0} ns per operation and thread ({} threads, {}% reads, {} operations, {} \
         mismatches)",
        rate / 1e6,
        args.threads as f64 * 1e9 / rate,
        args.threads,
        args.read_pct,
        tally.operations,
        tally.mismatches
    );
    print_latency("read", &tally.reads_ns);
    print_latency("write", &tally.writes_ns);
    let after = tree.stats();
    if args.read_pct < 100 {
        print_memory(&after, None);
    }
    print_counters(&before, &after);
    Ok(tally.mismatches == 0)
}

fn main() -> ExitCode {
    match report() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("breakdown: reads found wrong or missing values");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("breakdown: {error}");
            ExitCode::FAILURE
        }
    }
}
