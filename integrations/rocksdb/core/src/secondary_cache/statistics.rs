//! Statistics of the secondary caches of this process.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use leafpress_pages::victim::{VictimCache, VictimStats};

use super::options::{SecondaryCacheOptionError, SecondaryCacheOptions};

/// A secondary cache with its options.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) cache: VictimCache,
    options: SecondaryCacheOptions,
}

static INSTANCES: Mutex<Vec<Weak<Instance>>> = Mutex::new(Vec::new());
static NUMBERS: AtomicU64 = AtomicU64::new(1);

impl Instance {
    /// Makes a cache that the statistics know.
    pub(super) fn new(mut options: SecondaryCacheOptions) -> Result<Arc<Self>, SecondaryCacheOptionError> {
        let cache = options.build()?;
        if options.name.is_empty() {
            options.name = NUMBERS.fetch_add(1, Relaxed).to_string();
        }
        let instance = Arc::new(Self { cache, options });
        let mut instances = INSTANCES.lock().unwrap_or_else(PoisonError::into_inner);
        instances.retain(|other| other.strong_count() > 0);
        instances.push(Arc::downgrade(&instance));
        Ok(instance)
    }

    /// Returns whether a block leaves when RocksDB takes it for good.
    pub(super) fn is_exclusive(&self) -> bool {
        self.options.exclusive
    }

    /// Returns the current options.
    pub(super) fn options(&self) -> SecondaryCacheOptions {
        SecondaryCacheOptions {
            capacity_bytes: self.cache.memory(),
            ..self.options.clone()
        }
    }

    /// Returns a line `name COUNT : n` for each ticker.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for (name, n) in tickers(&self.cache.stats()) {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "leafpress.secondary_cache.{}.{name} COUNT : {n}",
                self.options.name
            );
        }
        text
    }
}

/// Statistics of a secondary cache.
#[derive(Debug, Clone)]
pub struct SecondaryCacheStatistics {
    /// Its name, or its number where it has none.
    pub name: String,
    /// Its options.
    pub options: SecondaryCacheOptions,
    /// Counts since it was made, and what it holds now.
    pub stats: VictimStats,
}

fn instances() -> Vec<Arc<Instance>> {
    let instances = INSTANCES.lock().unwrap_or_else(PoisonError::into_inner);
    instances.iter().filter_map(Weak::upgrade).collect()
}

/// Returns the statistics of each secondary cache of this process, in the order in which they were made.
pub fn secondary_cache_statistics() -> Vec<SecondaryCacheStatistics> {
    let of = |instance: Arc<Instance>| SecondaryCacheStatistics {
        name: instance.options.name.clone(),
        options: instance.options(),
        stats: instance.cache.stats(),
    };
    instances().into_iter().map(of).collect()
}

/// Returns the statistics as text: a line `leafpress.secondary_cache.NAME.TICKER COUNT : n` for each.
pub fn secondary_cache_statistics_text() -> String {
    instances().iter().map(|instance| instance.text()).collect()
}

fn tickers(stats: &VictimStats) -> [(&'static str, u64); 34] {
    [
        ("capacity.bytes", stats.budget_bytes),
        ("held.bytes", stats.bytes_held),
        ("entries", stats.entries),
        ("entries.compressed", stats.compressed_entries),
        ("raw.bytes", stats.raw_bytes),
        ("stored.bytes", stats.stored_bytes),
        // Raw bytes held per 100 bytes of memory.
        ("ratio.pct", (stats.ratio() * 100.0) as u64),
        ("lookups", stats.lookups),
        ("hits", stats.hits),
        ("hits.raw", stats.raw_hits),
        ("hits.compressed", stats.compressed_hits),
        ("misses", stats.misses),
        ("taken", stats.taken),
        ("returned", stats.returned),
        ("inserts", stats.inserted),
        ("inserts.replaced", stats.replaced),
        ("rejected", stats.rejected),
        ("rejected.no_room", stats.no_room),
        ("rejected.failed", stats.failed_insertions),
        ("evicted", stats.evicted),
        ("erased", stats.erased),
        ("corrupt", stats.corrupt),
        ("hits.failed", stats.failed_hits),
        // The search of the share, and its value.
        ("share.raw.pct", stats.raw_share_pct.round() as u64),
        ("kept_raw.entries", stats.kept_raw_entries),
        ("kept_raw.bytes", stats.kept_raw_bytes),
        ("compressed.later", stats.compressed_later),
        ("restored", stats.restored),
        ("decode.ns", stats.decode_ns),
        ("compress.ns", stats.compress_ns),
        ("miss.ns", stats.miss_ns),
        ("deciding.ns", stats.deciding_ns),
        ("dictionary.versions", stats.dictionary_versions),
        ("dictionary.bytes", stats.dictionary_bytes),
    ]
}
