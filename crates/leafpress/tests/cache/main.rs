//! Tests of the cache, one module per behaviour.

mod bounds;
#[cfg(feature = "bytes")]
mod bytes;
mod crash;
#[cfg(target_os = "linux")]
mod crash_model;
mod damage;
mod disk;
mod disk_faults;
mod disk_files;
mod eviction;
mod expiry;
mod in_memory;
mod listener;
mod loading;
mod memory;
#[cfg(feature = "metrics")]
mod metrics;
mod model;
#[cfg(target_os = "linux")]
mod recovery;
mod scans;
mod scans_of_tiers;
#[path = "../support/tasks.rs"]
mod tasks;
mod threads;
#[cfg(feature = "tracing")]
mod tracing;
mod typed;
mod updates;

use leafpress::Cache;
use leafpress::cache::CacheBuilder;

/// The minimum budget.
fn small() -> CacheBuilder {
    Cache::builder().memory(4 << 20)
}

/// SplitMix64's finaliser (Steele, Lea, Flood, OOPSLA 2014): bijective, and without order.
fn scattered(n: u64) -> u64 {
    let mut z = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn key(n: u64) -> String {
    format!("item:{:016x}", scattered(n))
}

/// Incompressible bytes that identify their key.
fn noise(n: u64, len: usize) -> Vec<u8> {
    let words = (0..).map(|at| scattered(n * 1_000_003 + at).to_le_bytes());
    words.flatten().take(len).collect()
}
