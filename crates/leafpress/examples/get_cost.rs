//! Measures the time of a hit in memory, to compare builds with and without the feature `metrics`.
//!
//! `cargo run --release -p leafpress --example get_cost [--features metrics]`

use std::hint::black_box;
use std::time::Instant;

use leafpress::Cache;
use leafpress::cache::CacheError;
use leafpress::codec::Codec;

const RECORDS: usize = 100_000;
const ROUNDS: usize = 40;

fn key(n: usize) -> [u8; 8] {
    (n as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

fn main() -> Result<(), CacheError> {
    // Without decoding, the relative cost of metrics is highest.
    let cache = Cache::builder().memory(64 << 20).codec(Codec::None).build()?;
    for n in 0..RECORDS {
        cache.insert(&key(n), &[n as u8; 100])?;
    }
    cache.settle()?;
    // The minimum of many rounds is disturbed least by other programs.
    let mut best_ns = f64::MAX;
    for _ in 0..ROUNDS {
        let began = Instant::now();
        for n in 0..RECORDS {
            black_box(cache.get_with(&key(n), |value| value.len())?);
        }
        best_ns = best_ns.min(began.elapsed().as_nanos() as f64 / RECORDS as f64);
    }
    let metrics = if cfg!(feature = "metrics") { "with" } else { "without" };
    println!("{best_ns:.1} ns per hit, {metrics} the feature `metrics`");
    Ok(())
}
