//! Tests of the cache, one module per behaviour.

mod absent_loads;
mod advice;
mod async_reads;
mod bounds;
#[cfg(feature = "bytes")]
mod bytes;
mod closing;
mod crash;
#[cfg(target_os = "linux")]
mod crash_model;
mod damage;
mod disk;
mod disk_faults;
mod disk_files;
mod eviction;
mod expiry;
mod frozen_file;
mod hottest_keys;
mod in_memory;
#[allow(dead_code)]
#[path = "../support/keys.rs"]
mod keys;
mod listener;
mod loading;
mod many_reads;
mod memory;
#[cfg(feature = "metrics")]
mod metrics;
mod model;
mod peek;
mod raw_share;
#[cfg(target_os = "linux")]
mod recovery;
mod remove_many;
mod scans;
mod scans_of_tiers;
mod tags;
#[path = "../support/tasks.rs"]
mod tasks;
mod threads;
#[cfg(feature = "tracing")]
mod tracing;
mod typed;
mod updates;

use leafpress::Cache;
use leafpress::cache::CacheBuilder;

use crate::keys::mix;

/// The minimum budget.
fn small() -> CacheBuilder {
    Cache::builder().memory(4 << 20)
}

fn key(n: u64) -> String {
    format!("item:{:016x}", mix(n))
}

/// Incompressible bytes that identify their key.
fn noise(n: u64, len: usize) -> Vec<u8> {
    let words = (0..).map(|at| mix(n * 1_000_003 + at).to_le_bytes());
    words.flatten().take(len).collect()
}
