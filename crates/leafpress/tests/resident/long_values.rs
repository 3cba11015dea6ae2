//! A cache's budget bounds the growth of the process with long values too: those that are moved, and those that several
//! threads insert at once, up to the longest that is kept.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::resident_bytes;
use leafpress::Cache;

const THREADS: u64 = 4;
const MEMORY: u64 = 32 << 20;
/// Duration of a run: several times as many values are inserted as are kept.
const RUN: Duration = Duration::from_secs(3);

/// Half of it is text that repeats, and half differs.
fn fill(value: &mut [u8], random: &mut fastrand::Rng) {
    for chunk in value.chunks_exact_mut(16) {
        chunk[..8].copy_from_slice(b"leafpres");
        chunk[8..].copy_from_slice(&random.u64(..).to_le_bytes());
    }
}

/// Inserts and reads values until stopped. The buffers belong to the program, and are touched before the measurement.
fn use_it(cache: &OnceLock<Cache>, started: &Barrier, stop: &AtomicBool, len: usize, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut value, mut found) = (vec![1; len], vec![1; len + 64]);
    fill(&mut value, &mut random);
    started.wait();
    let cache = cache.wait();
    while !stop.load(Ordering::Relaxed) {
        let key = random.u64(..4 * MEMORY / len as u64).to_be_bytes();
        if !cache.get_into(&key, &mut found).unwrap() {
            fill(&mut value, &mut random);
            cache.insert(&key, &value).unwrap();
        }
    }
}

/// Returns the maximum growth of the process while threads use values of one length.
fn grown_by(codec: &str, len: usize) -> u64 {
    let (cache, started, stop) = (
        OnceLock::new(),
        Barrier::new(THREADS as usize + 1),
        AtomicBool::new(false),
    );
    thread::scope(|scope| {
        for seed in 0..THREADS {
            let (cache, started, stop) = (&cache, &started, &stop);
            scope.spawn(move || use_it(cache, started, stop, len, seed));
        }
        started.wait();
        let before = resident_bytes();
        let cache = cache.get_or_init(|| {
            let builder = Cache::builder().memory(MEMORY).codec(codec.parse().unwrap());
            builder.build().unwrap()
        });
        let (end, mut grown) = (Instant::now() + RUN, 0);
        // Until enough was evicted on a slow machine too.
        while Instant::now() < end || cache.stats().evicted < 30 {
            grown = grown.max(resident_bytes().saturating_sub(before) as u64);
            thread::sleep(Duration::from_millis(1));
        }
        stop.store(true, Ordering::Relaxed);
        println!("{codec}, values of {len} bytes: grew by {grown}, {:?}", cache.stats());
        grown
    })
}

#[test]
fn long_values_at_32_mib() {
    crate::alone("long_values::long_values_at_32_mib", || {
        let bound = MEMORY + MEMORY / 20 + (8 << 20);
        for codec in ["lz4", "onpair"] {
            for len in [100_000, 1_500_000, 3_900_000] {
                let grown = grown_by(codec, len);
                assert!(
                    grown <= bound,
                    "{codec}, values of {len} bytes: grew by {grown} of {bound}"
                );
            }
        }
    });
}
