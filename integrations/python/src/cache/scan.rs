//! Scans: keys, or keys and values, in the order of the keys' bytes.

use std::collections::VecDeque;
use std::ops::Bound as End;

use crate::lock::Mutex;
use leafpress::cache::ScanPosition;
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::CacheBase;
use crate::errors::Class;

/// Maximum of records per read, and of their bytes.
const MAX_RECORDS: usize = 256;
const MAX_BYTES: usize = 1 << 20;
/// Keys that are counted between two checks for signals.
const MAX_COUNTED: usize = 1 << 16;

type Record = (Vec<u8>, Vec<u8>);
/// The bounds of a scan.
type Ends = (End<Vec<u8>>, End<Vec<u8>>);

/// The unread part of a scan.
enum Rest {
    /// Of a cache without a disk tier.
    InMemory(Ends),
    InTiers(Option<Box<ScanPosition>>),
}

/// The state of a scan.
struct Scan {
    rest: Rest,
    read: VecDeque<Record>,
    is_over: bool,
}

/// An iterator over keys, or pairs of key and value. Threads may share it: each record goes to one of them.
#[pyclass(name = "CacheIterator", module = "leafpress._leafpress", frozen)]
pub struct CacheIterator {
    cache: Py<CacheBase>,
    scan: Mutex<Scan>,
    is_backwards: bool,
    part: Part,
}

/// The part of each record that an iterator returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Keys,
    Values,
    Items,
}

#[pymethods]
impl CacheIterator {
    fn __iter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.cache)
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let cache = self.cache.bind(py).get();
        while let Some((key, value)) = self.record(py)? {
            if self.part == Part::Keys {
                return cache.keys.output(py, &key).map(Some);
            }
            // A value of another form is ignored.
            let Some(value) = cache.values.output(py, &value)? else {
                continue;
            };
            if self.part == Part::Values {
                return Ok(Some(value));
            }
            let key = cache.keys.output(py, &key)?;
            return Ok(Some(PyTuple::new(py, [key, value])?.into_any()));
        }
        Ok(None)
    }
}

impl CacheIterator {
    /// Returns the next record.
    fn record(&self, py: Python<'_>) -> PyResult<Option<Record>> {
        // A thread that holds the lock for longer needs the interpreter's lock to continue, so no thread may wait for
        // it while holding the interpreter's lock.
        if let Some(mut scan) = self.scan.try_lock() {
            if let Some(record) = scan.read.pop_front() {
                return Ok(Some(record));
            }
            if scan.is_over {
                return Ok(None);
            }
        }
        self.cache.bind(py).get().unlocked(py, |cache| {
            let mut scan = self.scan.lock();
            if scan.read.is_empty() && !scan.is_over {
                scan.read_more(cache, self.is_backwards)?;
            }
            Ok(scan.read.pop_front())
        })
    }
}

impl Scan {
    /// Reads some records. After an error a scan of both tiers ends.
    fn read_more(&mut self, cache: &leafpress::Cache, is_backwards: bool) -> Result<(), leafpress::CacheError> {
        match &mut self.rest {
            Rest::InMemory(ends) => {
                // The library refuses such a range, which is empty.
                if !is_empty(ends) {
                    let mut records = cache.range(ends.clone());
                    let next = || {
                        if is_backwards {
                            records.next_back()
                        } else {
                            records.next()
                        }
                    };
                    self.read = some(next)?;
                }
                if let Some((last, _)) = self.read.back() {
                    let end = End::Excluded(last.clone());
                    if is_backwards {
                        ends.1 = end;
                    } else {
                        ends.0 = end;
                    }
                }
            }
            Rest::InTiers(position) => {
                if let Some(at) = position.take() {
                    let mut scan = cache.resume_scan(*at)?;
                    self.read = some(|| scan.next()).inspect_err(|_| self.is_over = true)?;
                    *position = Some(Box::new(scan.into_position()));
                }
            }
        }
        self.is_over = self.read.is_empty();
        Ok(())
    }
}

/// Returns the next records, one batch.
fn some(
    mut next: impl FnMut() -> Option<Result<Record, leafpress::CacheError>>,
) -> Result<VecDeque<Record>, leafpress::CacheError> {
    let (mut read, mut bytes) = (VecDeque::new(), 0);
    while read.len() < MAX_RECORDS && bytes < MAX_BYTES {
        let Some(record) = next() else { break };
        let record = record?;
        bytes += record.0.len() + record.1.len();
        read.push_back(record);
    }
    Ok(read)
}

fn is_empty(range: &Ends) -> bool {
    match range {
        (End::Included(low), End::Included(high)) => low > high,
        (End::Included(low) | End::Excluded(low), End::Included(high) | End::Excluded(high)) => low >= high,
        _ => false,
    }
}

/// Returns the end of the range of keys with a prefix.
fn behind(prefix: &[u8]) -> End<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return End::Excluded(end);
        }
    }
    End::Unbounded
}

impl CacheBase {
    fn scan(this: &Bound<'_, Self>, ends: Ends, is_backwards: bool, part: Part) -> PyResult<CacheIterator> {
        // A closed cache raises at once.
        let rest = this.get().with(|cache| {
            if !cache.has_disk() || is_empty(&ends) {
                return Ok(Rest::InMemory(ends));
            }
            let mut scan = cache.scan(ends);
            if is_backwards {
                scan = scan.backwards();
            }
            if part == Part::Keys {
                scan = scan.keys_only();
            }
            Ok(Rest::InTiers(Some(Box::new(scan.into_position()))))
        })?;
        let scan = Scan {
            rest,
            read: VecDeque::new(),
            is_over: false,
        };
        Ok(CacheIterator {
            cache: this.clone().unbind(),
            scan: Mutex::new(scan),
            is_backwards,
            part,
        })
    }

    fn bounds(
        &self,
        minimum: Option<&Bound<'_, PyAny>>,
        maximum: Option<&Bound<'_, PyAny>>,
        inclusive: (bool, bool),
        prefix: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Ends> {
        if let Some(prefix) = prefix {
            if minimum.is_some() || maximum.is_some() {
                return Err(Class::InvalidOption.error("prefix: a scan has a prefix or bounds, not both"));
            }
            let (low, high) = self.keys.prefix(prefix)?;
            let high = high.map_or_else(|| behind(&low), End::Excluded);
            return Ok((End::Included(low), high));
        }
        let end = |key: Option<&Bound<'_, PyAny>>, is_included: bool| -> PyResult<End<Vec<u8>>> {
            let Some(key) = key else { return Ok(End::Unbounded) };
            let key = self.keys.input(key)?.as_ref().to_vec();
            Ok(if is_included {
                End::Included(key)
            } else {
                End::Excluded(key)
            })
        };
        Ok((end(minimum, inclusive.0)?, end(maximum, inclusive.1)?))
    }
}

#[pymethods]
impl CacheBase {
    /// Returns the number of keys. Without a disk tier, those in memory, including expired ones that have not been
    /// removed yet, which is immediate. With a disk tier, those in memory and on disk that have not expired: this reads
    /// the whole disk tier. stats() reports the number of records of each tier without reading it; a key may be in
    /// both.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        if !self.has_disk {
            return self.with(|cache| Ok(cache.len()));
        }
        let mut count = 0;
        let mut position = self.with(|cache| Ok(cache.scan(..).keys_only().into_position()))?;
        loop {
            // Ctrl-C interrupts it.
            py.check_signals()?;
            let (more, rest) = self.unlocked(py, |cache| {
                let mut scan = cache.resume_scan(position)?;
                let mut more = 0;
                for key in scan.by_ref().take(MAX_COUNTED) {
                    key?;
                    more += 1;
                }
                Ok((more, scan.into_position()))
            })?;
            if more == 0 {
                return Ok(count);
            }
            (count, position) = (count + more, rest);
        }
    }

    /// Returns whether there is any record. Unlike len(), it does not read all of a disk tier.
    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        if !self.has_disk {
            return Ok(self.__len__(py)? > 0);
        }
        self.unlocked(py, |cache| {
            if let Some(record) = cache.range(..).next() {
                return record.map(|_| true);
            }
            cache
                .scan(..)
                .keys_only()
                .next()
                .map_or(Ok(false), |key| key.map(|_| true))
        })
    }

    fn __iter__(this: &Bound<'_, Self>) -> PyResult<CacheIterator> {
        Self::scan(this, (End::Unbounded, End::Unbounded), false, Part::Keys)
    }

    fn __reversed__(this: &Bound<'_, Self>) -> PyResult<CacheIterator> {
        Self::scan(this, (End::Unbounded, End::Unbounded), true, Part::Keys)
    }

    /// Return an iterator over the keys from minimum to maximum, in order, as SortedDict does: those in memory and on
    /// disk. It does not count as a read of the records, and no record returns to memory. The disk is read in parts of
    /// up to 4 MiB.
    ///
    /// A key that exists from the scan's start to its end is returned exactly once, whether its record moves between
    /// memory and disk or not.
    ///
    /// >>> cache = Cache(serializer="json")
    /// >>> cache.set_many((n, n * n) for n in range(10))
    /// >>> list(cache.irange(3, 6, inclusive=(True, False)))
    /// [3, 4, 5]
    #[pyo3(signature = (minimum=None, maximum=None, inclusive=(true, true), reverse=false))]
    fn irange(
        this: &Bound<'_, Self>,
        minimum: Option<&Bound<'_, PyAny>>,
        maximum: Option<&Bound<'_, PyAny>>,
        inclusive: (bool, bool),
        reverse: bool,
    ) -> PyResult<CacheIterator> {
        let bounds = this.get().bounds(minimum, maximum, inclusive, None)?;
        Self::scan(this, bounds, reverse, Part::Keys)
    }

    /// Return an iterator over the keys that begin with prefix, in order. A tuple as prefix selects tuples that begin
    /// with its elements.
    ///
    /// >>> cache = Cache(serializer="json")
    /// >>> cache.set_many({("user", 1): "Ada", ("user", 2): "Grace", "x": 1})
    /// >>> list(cache.prefix(("user",)))
    /// [('user', 1), ('user', 2)]
    #[pyo3(signature = (prefix, reverse=false))]
    fn prefix(this: &Bound<'_, Self>, prefix: &Bound<'_, PyAny>, reverse: bool) -> PyResult<CacheIterator> {
        let bounds = this.get().bounds(None, None, (true, true), Some(prefix))?;
        Self::scan(this, bounds, reverse, Part::Keys)
    }

    /// Return an iterator over the keys, in memory and on disk, in order, as iter() does.
    ///
    /// >>> cache = Cache(encoding="utf-8")
    /// >>> cache.set_many({"a": "x", "b": "y"})
    /// >>> list(cache.keys())
    /// ['a', 'b']
    fn keys(this: &Bound<'_, Self>) -> PyResult<CacheIterator> {
        Self::__iter__(this)
    }

    /// Return an iterator over the values, in memory and on disk, in the order of their keys.
    ///
    /// >>> cache = Cache(encoding="utf-8")
    /// >>> cache.set_many({"a": "x", "b": "y"})
    /// >>> list(cache.values())
    /// ['x', 'y']
    fn values(this: &Bound<'_, Self>) -> PyResult<CacheIterator> {
        Self::scan(this, (End::Unbounded, End::Unbounded), false, Part::Values)
    }

    /// Return an iterator over pairs of key and value, in the order of the keys: of all keys, of those from minimum to
    /// maximum, or of those with a prefix. The notes on irange apply.
    ///
    /// >>> cache = Cache(encoding="utf-8")
    /// >>> cache.set_many({"a:1": "x", "b:1": "y"})
    /// >>> list(cache.items(prefix="b:"))
    /// [('b:1', 'y')]
    #[pyo3(signature = (minimum=None, maximum=None, inclusive=(true, true), reverse=false, *, prefix=None))]
    fn items(
        this: &Bound<'_, Self>,
        minimum: Option<&Bound<'_, PyAny>>,
        maximum: Option<&Bound<'_, PyAny>>,
        inclusive: (bool, bool),
        reverse: bool,
        prefix: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<CacheIterator> {
        let bounds = this.get().bounds(minimum, maximum, inclusive, prefix)?;
        Self::scan(this, bounds, reverse, Part::Items)
    }
}

/// Adds the class.
///
/// # Errors
/// Where it cannot be added.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<CacheIterator>()
}
