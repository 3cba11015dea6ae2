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

/// Records that are read at a time, and their bytes.
const MAX_RECORDS: usize = 256;
const MAX_BYTES: usize = 1 << 20;
/// Keys that are counted from one look for signals to the next.
const MAX_COUNTED: usize = 1 << 16;

type Record = (Vec<u8>, Vec<u8>);
/// From where to where a scan goes.
type Ends = (End<Vec<u8>>, End<Vec<u8>>);

/// What of a scan was not read yet.
enum Rest {
    /// Of a cache without a disk tier.
    InMemory(Ends),
    InTiers(Option<Box<ScanPosition>>),
}

/// Where a scan is.
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

/// What an iterator gives of each record.
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
            // A value of another form is not there.
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
    /// The next record.
    fn record(&self, py: Python<'_>) -> PyResult<Option<Record>> {
        // A thread that holds the lock for longer than this needs the interpreter's lock to go on, so it must not be waited for under that.
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
    /// Reads some records. After an error a scan of both tiers is over.
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

/// The next records, as many as are read at a time.
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

/// What comes behind every key with a prefix.
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
        // A closed cache says so at once.
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
    /// How many keys there are. Without a disk tier, those in memory, those included whose time is over and that have not left yet, which is
    /// told at once. With a disk tier, those in memory and on disk whose time is not over: all of the disk tier is read for that. stats() says
    /// without reading it how many records each tier holds, where a key may be in both.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        if !self.has_disk {
            return self.with(|cache| Ok(cache.len()));
        }
        let mut count = 0;
        let mut position = self.with(|cache| Ok(cache.scan(..).keys_only().into_position()))?;
        loop {
            // Pressing Ctrl-C ends it.
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

    /// Whether there is any record. With a disk tier not all of it is read, as for len().
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

    /// The keys from minimum to maximum, in order: SortedDict's word. Those in memory and on disk; it counts for none of them as a
    /// read, and none is brought back to memory. What is on disk is read in parts, of which each takes up to 4 MiB.
    ///
    /// A key that is there from the scan's start to its end is seen exactly once, whether its record moves between memory and disk or not.
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

    /// The keys that begin with prefix, in order. A tuple as prefix means tuples that begin with its elements.
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

    /// The keys, in memory and on disk, in order: what iter() gives.
    ///
    /// >>> cache = Cache(encoding="utf-8")
    /// >>> cache.set_many({"a": "x", "b": "y"})
    /// >>> list(cache.keys())
    /// ['a', 'b']
    fn keys(this: &Bound<'_, Self>) -> PyResult<CacheIterator> {
        Self::__iter__(this)
    }

    /// The values, in memory and on disk, in the order of their keys.
    ///
    /// >>> cache = Cache(encoding="utf-8")
    /// >>> cache.set_many({"a": "x", "b": "y"})
    /// >>> list(cache.values())
    /// ['x', 'y']
    fn values(this: &Bound<'_, Self>) -> PyResult<CacheIterator> {
        Self::scan(this, (End::Unbounded, End::Unbounded), false, Part::Values)
    }

    /// Pairs of key and value, in the order of the keys: of all keys, of those from minimum to maximum, or of those with a prefix. What is
    /// said of irange holds.
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
