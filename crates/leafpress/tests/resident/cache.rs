//! A cache's budget bounds the growth of the process at every moment: while it fills, evicts, follows a moving hot set,
//! trains dictionaries, and is resized.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::keys::mix;
use crate::resident_bytes;
use leafpress::Cache;
use leafpress::cache::Disk;

/// Duration of each load.
const LOAD: Duration = Duration::from_secs(2);

/// A realistic record: a document of 100 bytes to 2 KB, and one in a hundred much longer.
fn fill(value: &mut Vec<u8>, n: u64) {
    let mut state = mix(n);
    let len = match state % 100 {
        0 => 40_000,
        long => 100 + long as usize * 20,
    };
    value.clear();
    while value.len() < len {
        state = mix(state);
        let word = ["active", "suspended", "closed", "pending"][(state & 3) as usize];
        write!(
            value,
            "{{\"id\":{n},\"state\":\"{word}\",\"balance\":{}}},",
            state >> 44
        )
        .unwrap();
    }
    value.truncate(len);
}

/// Reads, and inserts on a miss, until stopped. Most reads are of a part of the keys that moves with `round`.
fn use_it(cache: &Cache, stop: &AtomicBool, round: &AtomicU64, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut value = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let base = round.load(Ordering::Relaxed) * 20_000;
        let n = if random.u8(..10) < 8 {
            base + random.u64(..20_000)
        } else {
            random.u64(..2_000_000)
        };
        fill(&mut value, n);
        let found = cache
            .get_with(&mix(n).to_be_bytes(), |found| assert_eq!(found, value))
            .unwrap();
        if found.is_none() {
            cache.insert(&mix(n).to_be_bytes(), &value).unwrap();
        }
    }
}

fn check(codec: &str, megabytes: u64) {
    check_with(codec, megabytes, || None);
}

/// About once in thirty runs on a busy machine a training was measured that transiently takes more (108% of the bound).
/// That is allowed; but not in each of two runs.
fn check_with(codec: &str, megabytes: u64, disk: impl Fn() -> Option<Disk>) {
    let first = worst_of(codec, megabytes, disk());
    let worst = if first > 1000 {
        first.min(worst_of(codec, megabytes, disk()))
    } else {
        first
    };
    assert!(
        worst <= 1000,
        "{codec}, {megabytes} MiB: {worst} thousandths of the bound"
    );
}

/// Returns the maximum growth of the process, in thousandths of the bound.
fn worst_of(codec: &str, megabytes: u64, disk: Option<Disk>) -> u64 {
    let before = resident_bytes();
    let budget = AtomicU64::new(megabytes << 20);
    let mut builder = Cache::builder().memory(megabytes << 20).codec(codec.parse().unwrap());
    if let Some(disk) = disk {
        builder = builder.disk(disk);
    }
    let cache = builder.build().unwrap();
    let (stop, done, round) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
    let (worst, samples) = (AtomicU64::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for seed in 0..2 {
            let (cache, stop, round) = (&cache, &stop, &round);
            scope.spawn(move || use_it(cache, stop, round, seed));
        }
        // A hundred times per second.
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let bound = budget.load(Ordering::SeqCst);
                let grown = resident_bytes().saturating_sub(before) as u64;
                // Not while the budget is being changed.
                if budget.load(Ordering::SeqCst) == bound {
                    worst.fetch_max((grown * 1000) / (bound + bound / 20 + (8 << 20)), Ordering::Relaxed);
                    samples.fetch_add(1, Ordering::Relaxed);
                }
                thread::sleep(Duration::from_millis(10));
            }
        });
        let began = Instant::now();
        for part in [1, 2, 4, 1] {
            // Smaller: the memory held is within the budget when that returns. Larger: the bound is valid from now on.
            let memory = (megabytes << 20) / part;
            if memory > cache.memory() {
                budget.store(memory, Ordering::SeqCst);
                cache.set_memory(memory).unwrap();
            } else {
                cache.set_memory(memory).unwrap();
                budget.store(memory, Ordering::SeqCst);
            }
            round.fetch_add(1, Ordering::Relaxed);
            thread::sleep(LOAD);
            // The least memory is filled, however slow the machine is.
            while part == 4 && cache.stats().evicted <= 1000 && began.elapsed() < Duration::from_secs(600) {
                thread::sleep(LOAD / 10);
            }
        }
        assert!(began.elapsed() >= 4 * LOAD);
        stop.store(true, Ordering::Relaxed);
        done.store(true, Ordering::Relaxed);
    });
    let stats = cache.stats();
    let (worst, samples) = (worst.into_inner(), samples.into_inner());
    println!(
        "{codec}, {megabytes} MiB: at most {}.{} % of the bound in {samples} samples",
        worst / 10,
        worst % 10
    );
    assert!(samples > 100, "{samples}");
    assert!(stats.evicted > 1000 && stats.background_panics == 0, "{stats:?}");
    worst
}

#[test]
fn trial_at_64_mib() {
    crate::alone("cache::trial_at_64_mib", || check("trial:memory", 64));
}

#[test]
fn onpair_at_64_mib() {
    crate::alone("cache::onpair_at_64_mib", || check("onpair", 64));
}

#[test]
fn auto_at_32_mib() {
    crate::alone("cache::auto_at_32_mib", || check("auto", 32));
}

#[test]
fn lz4_at_256_mib() {
    crate::alone("cache::lz4_at_256_mib", || check("lz4", 256));
}

#[test]
fn a_disk_at_64_mib() {
    crate::alone("cache::a_disk_at_64_mib", || {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let disk = || Some(Disk::file(directory.path().join("cache"), 1 << 30));
        check_with("trial:memory", 64, disk);
    });
}

/// Inserts and reads records by several threads. Returns the maximum growth of the process during their lifetime, and
/// the mean number of records kept once the cache is full: at a single moment, nodes that a preempted thread still
/// reads may take the memory of a tenth of the records.
fn used_by(threads: u64, memory: u64, codec: &str, disk: Option<Disk>) -> (usize, u64) {
    const INSERTS: u64 = 120_000;
    let gates: [Barrier; 3] = std::array::from_fn(|_| Barrier::new(threads as usize + 1));
    let cache = OnceLock::<Cache>::new();
    thread::scope(|scope| {
        for thread in 0..threads {
            let (gates, cache) = (&gates, &cache);
            let work = move || {
                // The threads' stacks belong to the program.
                std::hint::black_box([1_u8; 128 << 10]);
                gates[0].wait();
                gates[1].wait();
                let (cache, mut value) = (cache.get().unwrap(), Vec::new());
                let mut random = fastrand::Rng::with_seed(thread);
                for n in (thread..INSERTS).step_by(threads as usize) {
                    value.clear();
                    value.extend(std::iter::repeat_with(|| random.u8(..)).take(100));
                    cache.insert(&mix(n).to_be_bytes(), &value).unwrap();
                    cache.get(&mix(n / 2).to_be_bytes()).unwrap();
                }
                gates[2].wait();
            };
            let builder = thread::Builder::new().stack_size(256 << 10);
            builder.spawn_scoped(scope, work).unwrap();
        }
        gates[0].wait();
        let before = resident_bytes();
        let mut builder = Cache::builder().memory(memory).codec(codec.parse().unwrap());
        if let Some(disk) = disk {
            builder = builder.disk(disk);
        }
        let cache = cache.get_or_init(|| builder.build().unwrap());
        gates[1].wait();
        let done = AtomicBool::new(false);
        let (grown, records) = thread::scope(|scope| {
            let sampler = scope.spawn(|| {
                let (mut grown, mut records) = (0, Vec::new());
                loop {
                    grown = grown.max(resident_bytes().saturating_sub(before));
                    let stats = cache.stats();
                    if stats.evicted > 0 {
                        records.push(stats.records);
                    }
                    if done.load(Ordering::Relaxed) {
                        return (grown, records);
                    }
                    thread::sleep(Duration::from_millis(5));
                }
            });
            gates[2].wait();
            done.store(true, Ordering::Relaxed);
            sampler.join().unwrap()
        });
        let kept = records.iter().sum::<u64>() / records.len() as u64;
        let stats = cache.stats();
        println!(
            "{threads} threads, {codec}: grew by {grown}, {} held, {} at most, {} records at the end, {kept} in the \
             mean of {} samples",
            stats.bytes_held,
            stats.peak_bytes,
            stats.records,
            records.len()
        );
        assert!(stats.evicted > 1000, "{stats:?}");
        (grown, kept)
    })
}

fn check_threads(codec: &str, disk: impl Fn() -> Option<Disk>) {
    let memory = 8 << 20;
    let first = disk();
    let has_disk = first.is_some();
    let (_, by_few) = used_by(2, memory, codec, first);
    for threads in [64, 256] {
        let bound = (memory + memory / 20 + (8 << 20)) as usize;
        // 0.93 of the records in the mean of many runs, and 0.88 in the worst. With a disk it depends on the device how
        // much memory waiting batches take instead of records.
        let is_kept = |(grown, records): (usize, u64)| grown <= bound && (has_disk || records * 20 >= by_few * 17);
        // A training transiently takes more: that is allowed, but not in each of three runs.
        let runs = || used_by(threads, memory, codec, disk());
        let first = runs();
        assert!(
            is_kept(first) || is_kept(runs()) || is_kept(runs()),
            "{codec}, {threads} threads: {first:?} of {bound}, {by_few} records kept by two threads"
        );
    }
}

#[test]
fn many_threads_at_8_mib() {
    crate::alone("cache::many_threads_at_8_mib", || {
        for codec in ["trial:memory", "lz4"] {
            check_threads(codec, || None);
        }
    });
}

#[test]
fn many_threads_with_a_disk() {
    crate::alone("cache::many_threads_with_a_disk", || {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let files = AtomicUsize::new(0);
        let disk = || {
            let file = files.fetch_add(1, Ordering::Relaxed);
            Some(Disk::file(directory.path().join(format!("cache-{file}")), 64 << 20))
        };
        check_threads("zstd:1", disk);
    });
}

#[test]
fn threads_that_have_ended_leave_nothing() {
    crate::alone("cache::threads_that_have_ended_leave_nothing", || {
        const THREADS: u64 = 1000;
        let memory = 16 << 20;
        let cache = Cache::builder()
            .memory(memory)
            .codec("zstd:1".parse().unwrap())
            .build()
            .unwrap();
        let run = |cache: Option<&Cache>| {
            let all = Barrier::new(THREADS as usize);
            thread::scope(|scope| {
                let start = |thread| {
                    let all = &all;
                    let work = move || {
                        // The system keeps the stacks of some exited threads.
                        std::hint::black_box([1_u8; 80 << 10]);
                        let mut value = Vec::new();
                        for n in 0..50 {
                            fill(&mut value, thread * 50 + n);
                            if let Some(cache) = cache {
                                cache.insert(&mix(thread * 50 + n).to_be_bytes(), &value).unwrap();
                                cache.get_with(&mix(n).to_be_bytes(), |_| ()).unwrap();
                            }
                        }
                        all.wait();
                    };
                    let builder = thread::Builder::new().stack_size(128 << 10);
                    builder.spawn_scoped(scope, work).unwrap()
                };
                // The end of the scope alone does not wait until the system has freed the stacks.
                let threads: Vec<_> = (0..THREADS).map(start).collect();
                threads.into_iter().for_each(|thread| thread.join().unwrap());
            });
        };
        // Baseline: memory that such threads leave without a cache.
        run(None);
        let before = resident_bytes();
        run(Some(&cache));
        // Memory that the allocator keeps after reads by a thousand concurrent threads is returned when buffers of idle
        // threads are freed.
        let limit = memory + memory / 20 + (8 << 20);
        let (end, mut left) = (Instant::now() + Duration::from_secs(600), u64::MAX);
        while left > limit && Instant::now() < end {
            left = resident_bytes().saturating_sub(before) as u64;
            thread::sleep(Duration::from_millis(10));
        }
        let stats = cache.stats();
        println!("{left} left by {THREADS} threads, {} held", stats.bytes_held);
        assert!(left <= limit, "{left}: {stats:?}");
        assert!(
            stats.tree.thread_bytes + stats.tree.retired_bytes <= memory / 8,
            "{stats:?}"
        );
    });
}

/// Returns the number of threads of the process.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

#[test]
fn many_caches_share_few_threads_and_take_little() {
    crate::alone("cache::many_caches_share_few_threads_and_take_little", || {
        const CACHES: usize = 1000;
        let fill_one = |_| {
            let cache = Cache::builder().memory(16 << 20).build().unwrap();
            let mut value = Vec::new();
            for n in 0..10_u64 {
                fill(&mut value, n);
                cache.insert(&n.to_be_bytes(), &value).unwrap();
            }
            cache
        };
        // Baseline: one-time allocations.
        let first = fill_one(0);
        let before = resident_bytes();
        let caches: Vec<_> = (0..CACHES).map(fill_one).collect();
        let grown = resident_bytes().saturating_sub(before) / CACHES;
        println!("{grown} bytes for each of {CACHES} caches, {} threads", threads());
        assert!(grown <= 200 << 10, "{grown}");
        let cores = thread::available_parallelism().unwrap().get();
        assert!(threads() <= 2 + cores.max(4), "{}", threads());
        for cache in &caches {
            assert!(cache.get_with(&7_u64.to_be_bytes(), |_| ()).unwrap().is_some());
        }
        drop(caches);
        drop(first);
        // Their threads are joined by the thread that drops the last one.
        assert!(threads() <= 2, "{}", threads());
    });
}

#[test]
fn what_is_cleared_goes_back_to_the_system() {
    crate::alone("cache::what_is_cleared_goes_back_to_the_system", || {
        for with_disk in [false, true] {
            let build = || {
                let store = Arc::new(leafpress::store::MemoryStore::new(4096).unwrap());
                let builder = Cache::builder().memory(16 << 20);
                let builder = match with_disk {
                    false => builder,
                    true => builder.disk(Disk::store(store, 64 << 20)),
                };
                builder.build().unwrap()
            };
            let load = |cache: &Cache, records: u64| {
                let mut value = Vec::new();
                for n in 0..records {
                    fill(&mut value, n);
                    cache.insert(&mix(n).to_be_bytes(), &value).unwrap();
                }
                cache.settle().unwrap();
            };
            // Allocations for the life of the process.
            load(&build(), 5000);
            let before = resident_bytes();
            let cache = build();
            let empty = cache.stats().bytes_held;
            load(&cache, 100_000);
            let (loaded, grown) = (cache.stats().bytes_held, resident_bytes() - before);
            assert!(
                cache.stats().evicted > 0 && loaded > 8 << 20,
                "{loaded} loaded: {:?}",
                cache.stats()
            );
            cache.clear().unwrap();
            let held = cache.stats().bytes_held;
            assert!(
                held < empty + (loaded - empty) / 20,
                "{empty} at first, {loaded} loaded, {held} cleared: {:?}",
                cache.stats()
            );
            // The disk's pages are in memory here.
            let disk = if with_disk { 64 << 20 } else { 0 };
            // A training leaves up to a megabyte in the program's allocator, and may end only after the clear.
            let limit = disk + grown / 10 + (1 << 20);
            let (end, mut left) = (Instant::now() + Duration::from_secs(600), usize::MAX);
            while left >= limit && Instant::now() < end {
                left = resident_bytes().saturating_sub(before);
                thread::sleep(Duration::from_millis(10));
            }
            assert!(left < limit, "{left} of {grown}: {:?}", cache.stats());
            cache.insert("key", "value").unwrap();
            cache.validate().unwrap();
        }
    });
}
