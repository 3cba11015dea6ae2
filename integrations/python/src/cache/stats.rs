//! Statistics of a cache, as `leafpress.CacheStats`.

use leafpress::cache::{CacheStats, DiskStats};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::CacheBase;
use crate::call;

/// Makes a dict of fields by their names.
macro_rules! fields {
    ($py:expr, $of:expr, $($name:ident),* $(,)?) => {{
        let fields = PyDict::new($py);
        $( fields.set_item(stringify!($name), &$of.$name)?; )*
        fields
    }};
}

fn of_disk<'py>(py: Python<'py>, stats: &DiskStats) -> PyResult<Bound<'py, PyAny>> {
    let fields = fields!(
        py,
        stats,
        place,
        capacity_bytes,
        used_bytes,
        records,
        runs,
        super_leaves,
        index_bytes,
        waiting_bytes,
        waiting_batches,
        is_stalled,
        lookups,
        hits,
        blocks_read,
        read_errors,
        damaged,
        admitted,
        admitted_bytes,
        clean,
        dropped,
        tombstones,
        written_bytes,
        write_errors,
        last_error,
        merges,
        runs_dropped,
        records_dropped,
        left_out,
        recovered_records,
        is_recoverable,
        log_errors,
        has_failed,
    );
    let class = py.import("leafpress._cache_stats")?.getattr("DiskStats")?;
    call::with_words(&class, (), Some(&fields))
}

fn of_cache<'py>(py: Python<'py>, stats: &CacheStats) -> PyResult<Bound<'py, PyAny>> {
    let fields = fields!(
        py,
        stats,
        memory_bytes,
        bytes_held,
        peak_bytes,
        eviction_bytes,
        records,
        user_bytes,
        hits,
        disk_hits,
        misses,
        stale,
        inserts,
        inserted_bytes,
        removes,
        evicted,
        expired,
        too_large,
        damaged,
        leaves_visited,
        records_visited,
        eviction_errors,
        promoted,
        background_panics,
        background_threads_ended,
    );
    let disk = stats.disk.as_ref().map(|disk| of_disk(py, disk)).transpose()?;
    fields.set_item("disk", disk)?;
    let class = py.import("leafpress._cache_stats")?.getattr("CacheStats")?;
    call::with_words(&class, (), Some(&fields))
}

#[pymethods]
impl CacheBase {
    /// Return the cache's statistics as a CacheStats. It visits every leaf.
    ///
    /// >>> cache = Cache(encoding="utf-8")
    /// >>> cache.get("absent")
    /// >>> cache.stats().misses
    /// 1
    #[pyo3(text_signature = "($self)")]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let stats = self.unlocked(py, |cache| Ok(cache.stats()))?;
        of_cache(py, &stats)
    }

    /// Return the bytes that the cache uses, in memory and on disk.
    ///
    /// >>> cache = Cache()
    /// >>> cache.volume() == cache.currsize
    /// True
    #[pyo3(text_signature = "($self)")]
    fn volume(&self, py: Python<'_>) -> PyResult<u64> {
        if !self.has_disk {
            return self.with(|cache| Ok(cache.bytes_held()));
        }
        let stats = self.unlocked(py, |cache| Ok(cache.stats()))?;
        Ok(stats.bytes_held + stats.disk.map_or(0, |disk| disk.used_bytes))
    }

    /// Check every invariant of the data in memory. No other thread may write meanwhile.
    #[pyo3(text_signature = "($self)")]
    fn validate(&self, py: Python<'_>) -> PyResult<()> {
        self.unlocked(py, leafpress::Cache::validate)
    }
}
