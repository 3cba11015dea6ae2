//! Hit ratios that the cache would have with other sizes.

use pyo3::prelude::*;

use super::{CacheBase, options};

/// Hit ratios of caches of other sizes with the same reads, from Cache.advice().
#[pyclass(name = "CacheAdvice", module = "leafpress", frozen)]
pub struct CacheAdvice(leafpress::cache::Advice);

#[pymethods]
impl CacheAdvice {
    /// The memory of the cache, in bytes.
    #[getter]
    fn memory(&self) -> u64 {
        self.0.memory_bytes
    }

    /// Reads that the advice is based on; earlier ones count less.
    #[getter]
    fn reads(&self) -> u64 {
        self.0.reads
    }

    /// The share of them that the memory answered, measured.
    #[getter]
    fn memory_hit_ratio(&self) -> f64 {
        self.0.memory_hit_ratio
    }

    /// Keys in the sample.
    #[getter]
    fn sampled_keys(&self) -> u64 {
        self.0.sampled_keys
    }

    /// Return the share of the reads, 0 to 1, that a cache with this memory and this disk tier answers. Sizes are
    /// numbers of bytes or text like "64MiB".
    #[pyo3(signature = (memory, disk=None), text_signature = "($self, memory, disk=0)")]
    fn hit_ratio(&self, memory: &Bound<'_, PyAny>, disk: Option<&Bound<'_, PyAny>>) -> PyResult<f64> {
        let memory = options::bytes("memory", memory)?;
        let disk = disk.map_or(Ok(0), |disk| options::bytes("disk", disk))?;
        Ok(self.0.hit_ratio_with_disk(memory, disk))
    }

    /// Return the least memory, in bytes, with which a cache answers this share of the reads; None if no memory is
    /// enough.
    #[pyo3(text_signature = "($self, hit_ratio)")]
    fn memory_for(&self, hit_ratio: f64) -> Option<u64> {
        self.0.memory_for(hit_ratio)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<leafpress.CacheAdvice: {}>", self.0)
    }
}

#[pymethods]
impl CacheBase {
    /// Return the hit ratios that the cache would have with other sizes, as a CacheAdvice, from a sample of its own
    /// reads. None before there were enough, and without advice=True.
    ///
    /// >>> cache = Cache("4MiB", encoding="utf-8", advice=True)
    /// >>> for number in range(20_000):
    /// ...     _ = cache.get(str(number % 5_000)) or cache.set(str(number % 5_000), "a value")
    /// >>> cache.advice().hit_ratio("8MiB") > 0.5
    /// True
    #[pyo3(text_signature = "($self)")]
    fn advice(&self, py: Python<'_>) -> PyResult<Option<CacheAdvice>> {
        let advice = self.unlocked(py, leafpress::Cache::advice)?;
        Ok(advice.map(CacheAdvice))
    }
}
