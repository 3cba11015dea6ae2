//! A cache with memory and a disk tier: evicted records are found on disk, and the contents survive a restart.
//!
//! `cargo run --release -p leafpress --example disk [FILE]`

use leafpress::Cache;
use leafpress::cache::{CacheError, Disk};

fn open(path: &std::path::Path) -> Result<Cache, CacheError> {
    Cache::builder()
        .memory(8 << 20)
        .disk(Disk::file(path, 256 << 20))
        .build()
}

/// Returns a document of a shop, some hundred bytes long: half of it is digits, which compress little.
fn document(id: u64) -> String {
    let mut document = format!("{{\"id\":{id},\"name\":\"article {id}\"");
    let mut digits = id;
    for field in ["ean", "supplier", "stock", "price", "weight", "rating"] {
        digits = (digits ^ (digits >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5851_F42D;
        document.push_str(&format!(",\"{field}\":{}", digits >> 20));
    }
    document + "}"
}

fn main() -> Result<(), CacheError> {
    // A temporary file, removed at the end, unless a name is given.
    let named = std::env::args_os().nth(1).map(std::path::PathBuf::from);
    let path = named
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join(format!("leafpress-example-{}.cache", std::process::id())));
    let cache = open(&path)?;
    for id in 0..300_000 {
        cache.insert(&format!("article:{id:08}"), &document(id))?;
    }
    cache.settle()?;
    report("filled", &cache);
    cache.close()?;

    let cache = open(&path)?;
    for id in (0..300_000).step_by(100) {
        let found = cache.get(&format!("article:{id:08}"))?;
        assert_eq!(found.as_deref(), Some(document(id).as_bytes()));
    }
    report("opened again, and a hundredth of it read", &cache);
    drop(cache);
    if named.is_none() {
        let _ = std::fs::remove_file(&path);
    }
    Ok(())
}

fn report(what: &str, cache: &Cache) {
    let stats = cache.stats();
    let disk = stats.disk.unwrap_or_default();
    println!(
        "{what}: {} records in {:.1} of {:.0} MiB of memory; {} on disk in {:.1} MiB, known by {:.2} MiB of memory; \
         {:.2} blocks read a hit",
        stats.records,
        mib(stats.bytes_held),
        mib(stats.memory_bytes),
        disk.records,
        mib(disk.used_bytes),
        mib(disk.index_bytes),
        disk.blocks_read as f64 / disk.hits.max(1) as f64,
    );
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
