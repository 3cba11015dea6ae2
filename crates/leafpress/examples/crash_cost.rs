//! The cost of crash recovery of a cache's disk tier, and the fraction recovered: docs/experiments/036.
//!
//! `cargo run --release -p leafpress --example crash_cost -- DIRECTORY [MEMORY_MIB [UPDATES_PCT]]`. The disk tier has
//! 16 times the memory. With UPDATES_PCT only the fraction recovered with that share of updates is measured.

use std::path::PathBuf;
use std::time::Instant;

use leafpress::Cache;
use leafpress::cache::Disk;

const THREADS: u64 = 2;
/// Number of keys that are looked up before and after.
const SAMPLE: u64 = 20_000;

/// How often the image of a killed process is opened.
const OPENINGS: usize = 5;

/// The configuration under test: a cache with this memory, at this path.
struct Setup {
    path: PathBuf,
    memory_bytes: u64,
}

impl Setup {
    fn open(&self, recovers: bool) -> Cache {
        let disk = Disk::file(&self.path, 16 * self.memory_bytes).recover_after_crash(recovers);
        let cache = Cache::builder().memory(self.memory_bytes).disk(disk).build();
        cache.expect("a cache in the directory")
    }

    fn open_empty(&self, recovers: bool) -> Cache {
        let _ = std::fs::remove_file(&self.path);
        self.open(recovers)
    }

    fn log_bytes(&self) -> u64 {
        let log = self.path.with_extension("cache.runs").metadata();
        log.map_or(0, |about| about.len())
    }

    /// Number of keys: with values of 300 bytes, half of them noise, they fill about half of the disk.
    fn keys(&self) -> u64 {
        self.memory_bytes * 16 / 400
    }
}

/// Returns the processor time of the process, in microseconds: Linux counts it in hundredths of a second.
fn processor_us() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let behind_name = stat.rsplit(") ").next().unwrap_or_default();
    let ticks = behind_name.split(' ').skip(11).take(2);
    ticks.map(|ticks| ticks.parse::<f64>().unwrap_or(0.0) * 10_000.0).sum()
}

fn key(n: u64) -> [u8; 16] {
    let mut key = *b"item:___00000000";
    key[8..].copy_from_slice(&n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
    key
}

fn value(n: u64, value: &mut [u8; 300]) {
    let mut rng = fastrand::Rng::with_seed(n);
    rng.fill(&mut value[..150]);
    value[150..].fill(b'-');
}

/// Calls `step` `operations` times, in all threads together; returns microseconds of processor time per call.
fn in_threads(operations: u64, step: impl Fn(&mut fastrand::Rng, &mut [u8; 300], u64) + Sync) -> f64 {
    let began = processor_us();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let step = &step;
            scope.spawn(move || {
                let (mut rng, mut bytes) = (fastrand::Rng::with_seed(thread), [0; 300]);
                (0..operations / THREADS).for_each(|n| step(&mut rng, &mut bytes, n * THREADS + thread));
            });
        }
    });
    (processor_us() - began) / operations as f64
}

fn put(cache: &Cache, n: u64, bytes: &mut [u8; 300]) {
    value(n, bytes);
    cache.insert(&key(n), bytes).expect("a put");
}

/// Returns a key by popularity (a Zipf distribution with an exponent of about 1), scattered over all keys.
fn popular(rng: &mut fastrand::Rng, keys: u64) -> u64 {
    let rank = (keys as f64).powf(rng.f64()) as u64;
    rank.wrapping_mul(0x2545_F491_4F6C_DD1D) % keys
}

/// Measures an insertion, of new keys and of existing keys.
fn puts(setup: &Setup, recovers: bool) -> (f64, f64) {
    let (cache, keys) = (setup.open_empty(recovers), setup.keys());
    let new = in_threads(keys, |_, bytes, n| put(&cache, n, bytes));
    let again = in_threads(keys, |rng, bytes, _| put(&cache, rng.u64(..keys), bytes));
    (new, again)
}

/// Returns which keys of a sample are found: in memory, and overall.
fn sample(cache: &Cache, keys: u64) -> (Vec<bool>, Vec<bool>) {
    let sampled = || (0..SAMPLE).map(|n| key(n.wrapping_mul(0x9E37_79B9) % keys));
    let in_memory = sampled().map(|key| matches!(cache.get_in_memory_with(&key, |_| ()), Ok(Some(_))));
    let in_memory = in_memory.collect();
    let there = sampled().map(|key| cache.contains_key(&key).expect("a read"));
    (in_memory, there.collect())
}

/// Fills the cache by reads by popularity, of which `updates_pct` per cent are writes; then measures what is recovered
/// of the records on disk.
fn shares(setup: &Setup, updates_pct: u64) {
    let (cache, keys) = (setup.open_empty(true), setup.keys());
    in_threads(keys, |_, bytes, n| put(&cache, n, bytes));
    in_threads(keys, |rng, bytes, _| {
        let n = popular(rng, keys);
        let is_update = rng.u64(..100) < updates_pct;
        if is_update || !cache.contains_key(&key(n)).expect("a read") {
            put(&cache, n, bytes);
        }
    });
    let (in_memory, before) = sample(&cache, keys);
    let used = cache.stats().disk.map_or(0, |disk| disk.used_bytes);
    let mut cache = Some(cache);
    let mut ms = Vec::new();
    for _ in 0..OPENINGS {
        drop(cache.take());
        let began = Instant::now();
        cache = Some(setup.open(true));
        ms.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    ms.sort_by(f64::total_cmp);
    let after = cache.map_or(Vec::new(), |cache| sample(&cache, keys).1);
    let count = |those: &dyn Fn(usize) -> bool| (0..SAMPLE as usize).filter(|at| those(*at)).count() as f64;
    let on_disk = count(&|at| before[at] && !in_memory[at]);
    let again = count(&|at| before[at] && !in_memory[at] && after[at]);
    let all = count(&|at| before[at]);
    let all_again = count(&|at| before[at] && after[at]);
    println!(
        "{updates_pct}% updates: {:.1}% of what was on disk only is found again, {:.1}% of all; opened in {:.0} to \
         {:.0} ms, {} MiB on disk, a log of {:.1} MiB",
        100.0 * again / on_disk,
        100.0 * all_again / all,
        ms[0],
        ms[OPENINGS - 1],
        used >> 20,
        setup.log_bytes() as f64 / f64::from(1 << 20)
    );
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let memory_mib: u64 = arguments.next().map_or(64, |mib| mib.parse().expect("MiB of memory"));
    let setup = Setup {
        path: directory.join("crash_cost.cache"),
        memory_bytes: memory_mib << 20,
    };
    let only: Option<u64> = arguments.next().map(|pct| pct.parse().expect("percent of updates"));
    for updates_pct in only.map_or(vec![0, 10, 50], |pct| vec![pct]) {
        shares(&setup, updates_pct);
    }
    for round in 0..if only.is_some() { 0 } else { 4 } {
        for recovers in [round % 2 == 0, round % 2 == 1] {
            let (new, again) = puts(&setup, recovers);
            println!(
                "recover_after_crash({recovers}): a put of a new key {new:.2} us, of one that is there {again:.2} us"
            );
        }
    }
    for suffix in ["", ".epochs", ".runs"] {
        let _ = std::fs::remove_file(directory.join(format!("crash_cost.cache{suffix}")));
    }
}
