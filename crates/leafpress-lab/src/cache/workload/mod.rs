//! Workloads: keys, the value of each version, and the order of requests.

mod cachebench;
mod keys;
mod made;
mod trace;
mod trace_file;
mod values;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rand_xoshiro::Xoshiro256PlusPlus;

use self::cachebench::CacheBench;
pub(crate) use self::cachebench::check_scale;
pub use self::cachebench::{CacheBenchDefaults, cachebench_defaults};
use self::keys::Keys;
use self::made::Made;
use self::trace::Trace;
pub use self::trace::TraceFormat;
use self::values::{Lengths, Values};
use super::{Options, PaperObjects, Work};
use crate::core::corpus::{Corpus, Cut, Pairing, RecordFormat, Records, Source};
use crate::core::keys::{Chooser, Permutation, mix};
use crate::core::{Bytes, LabError, about};
use crate::report::numbers::thousands;

/// Requests that a thread takes from a trace at a time: the order stays nearly the trace's.
const BATCH: u64 = 32;
/// Most keys of a working set.
pub(crate) const MAX_WORKING_SET_KEYS: u64 = 1 << 30;
/// Source of values of given lengths if no records are requested.
const PIECES: Cut = Cut::Fixed(1024);

/// A workload.
pub(super) struct Workload {
    keys: Keys,
    /// Number of keys.
    count: u64,
    values: Values,
    plan: Plan,
    /// Its description, a line each.
    pub(super) description: Vec<String>,
    /// Fields of its file that have no meaning here.
    pub(super) unused: Vec<String>,
}

enum Plan {
    Draw {
        chooser: Chooser,
        /// The distribution after the hot set has moved.
        moved: Option<Box<Chooser>>,
        /// An order of all keys that is independent of their popularity.
        scatter: Permutation,
    },
    Trace {
        requests: Vec<u32>,
        next: AtomicU64,
    },
    CacheBench {
        cachebench: Arc<CacheBench>,
        /// As above.
        scatter: Permutation,
    },
}

/// The operation on a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Action {
    /// Looks aside: reads, and inserts what was not there.
    Read,
    /// Reads, and leaves it at that.
    Look,
    /// Overwrites with a new version.
    Write,
    /// Inserts a missing key.
    Add,
    /// Overwrites an existing key.
    Update,
    /// Removes: what the backend has is new.
    Remove,
}

/// One operation of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) id: u64,
    pub(super) action: Action,
    /// Whether the key occurs in no other request, and has only its first version.
    pub(super) is_lone: bool,
}

/// Where a thread is in a trace, and in the keys that it asks for once.
#[derive(Debug)]
pub(super) struct Place {
    at: u64,
    end: u64,
    lone: u64,
    has_moved: bool,
}

impl Place {
    /// Of a thread by its number.
    pub(super) fn new(thread: usize) -> Self {
        Self {
            at: 0,
            end: 0,
            lone: (thread as u64) << 36,
            has_moved: false,
        }
    }

    /// From now on other keys are hot.
    pub(super) fn move_hot_keys(&mut self) {
        self.has_moved = true;
    }

    /// Restarts a trace; keys that are requested once do not repeat.
    pub(super) fn rewind(&mut self) {
        (self.at, self.end) = (0, 0);
    }

    /// The number of a key not used by any thread before.
    fn next_lone(&mut self) -> u64 {
        self.lone += 1;
        self.lone
    }
}

impl Workload {
    /// Reads data and trace.
    ///
    /// # Errors
    /// Unusable data, a trace that is none, and [`LabError::Option`] of `working-set` when it has too many keys.
    pub(super) fn load(options: &Options) -> Result<Self, LabError> {
        let seed = options.seed;
        match &options.work {
            Work::Paper(objects) => {
                let keys = Keys::Numbers { seed };
                let values = Values::Made(Made::new(objects, keys.mean_bytes(), seed));
                let count = key_count(options, keys.mean_bytes() + values.mean_bytes())?;
                Ok(Self::drawn(options, keys, values, count, paper_words(objects)))
            }
            Work::Values { data, cut } => {
                let corpus = Arc::new(Corpus::load(data, *cut, false, seed)?);
                let cuts = thousands(corpus.count());
                let sampled = sampled_words(&corpus);
                let keys = Keys::Numbers { seed };
                let value_bytes = corpus.total_bytes() as f64 / corpus.count() as f64;
                let count = key_count(options, keys.mean_bytes() + value_bytes)?;
                let first = corpus.assignment(count, Pairing::Apart);
                let values = Values::Chosen { corpus, own: 0, first };
                let words = format!(
                    "keys of 16 bytes (hexadecimal), values from all over the {cuts} of {data} ({cut}{sampled})"
                );
                Ok(Self::drawn(options, keys, values, count, words))
            }
            Work::Records { data, format } => Self::of_records(options, Records::load(data, format)?, data, format),
            Work::Trace {
                path,
                format,
                requests,
                data,
                records,
            } => {
                let trace = Trace::read(path, *format, *requests)?;
                Self::traced(path, trace, data, records.as_ref(), seed)
            }
            Work::CacheBench {
                path,
                scale,
                data,
                records,
            } => Self::of_cachebench(options, CacheBench::load(path, *scale, seed)?, data, records.as_ref()),
        }
    }

    fn of_records(options: &Options, records: Records, data: &Source, format: &RecordFormat) -> Result<Self, LabError> {
        let (found, census) = (records.keys.len(), records.census);
        let bytes = records.keys.total_bytes() + records.values.total_bytes();
        let count = key_count(options, bytes as f64 / found as f64)?;
        let records = records.take(count);
        let own = records.keys.len();
        let mut words = format!(
            "{} of {} records of {data} ({format})",
            thousands(own),
            thousands(found)
        );
        if count > own {
            let times = count as f64 / own as f64;
            words += &format!(
                ", repeated {times:.1} times with a number appended to the key, and another value of the data"
            );
            if let Some(key) = keys::ambiguous(&records.keys) {
                let key = String::from_utf8_lossy(key).into_owned();
                return Err(LabError::option(
                    "working-set",
                    format!("records would repeat, which the key `{key}` does not allow: use {bytes} or less"),
                ));
            }
        }
        if let Some(left_out) = census.left_out() {
            words += &format!("; {left_out}");
        }
        let values = Values::Chosen {
            first: records.values.assignment(count, Pairing::Apart),
            corpus: records.values,
            own,
        };
        Ok(Self::drawn(options, Keys::Copies(records.keys), values, count, words))
    }

    /// This many keys by a distribution.
    fn drawn(options: &Options, keys: Keys, values: Values, count: u64, words: String) -> Self {
        let bytes = Bytes(options.working_set_bytes());
        let times = bytes.0 as f64 / options.memory_bytes as f64;
        let distribution = options.distribution();
        let chooser = Chooser::new(distribution, count, options.seed);
        let moved = options.shift_at.map(|_| {
            let mut moved = chooser.clone();
            moved.move_hot_keys();
            Box::new(moved)
        });
        let amount = format!(
            "{} keys, {bytes} of keys and values, {times:.1} times the memory; {distribution}",
            thousands(count)
        );
        Self {
            description: vec![words, amount],
            unused: Vec::new(),
            keys,
            count,
            values,
            plan: Plan::Draw {
                chooser,
                moved,
                scatter: Permutation::new(count, mix(!options.seed)),
            },
        }
    }

    fn traced(
        path: &Path,
        trace: Trace,
        data: &Source,
        records: Option<&RecordFormat>,
        seed: u64,
    ) -> Result<Self, LabError> {
        let (corpus, source) = bytes_of(data, records, seed)?;
        let (keys, requests) = (trace.keys(), trace.requests.len() as u64);
        let mut description = vec![
            format!(
                "{} ({}): {} requests, {} of them writes, {} keys; values of the traced sizes, from {source}",
                path.display(),
                trace.format,
                thousands(requests),
                thousands(trace.writes),
                thousands(keys),
            ),
            format!(
                "{} of keys and values, {:.0} bytes each on average",
                about(trace.total_bytes() as f64),
                trace.total_bytes() as f64 / keys.max(1) as f64
            ),
        ];
        description.extend(trace.left_out());
        Ok(Self {
            description,
            unused: Vec::new(),
            count: keys,
            keys: Keys::Listed {
                bytes: trace.key_bytes,
                ends: trace.key_ends,
            },
            values: Values::Pieces {
                first: corpus.assignment(keys, Pairing::Apart),
                corpus,
                lengths: Lengths::Listed(trace.lengths),
            },
            plan: Plan::Trace {
                requests: trace.requests,
                next: AtomicU64::new(0),
            },
        })
    }

    fn of_cachebench(
        options: &Options,
        mut cachebench: CacheBench,
        data: &Source,
        records: Option<&RecordFormat>,
    ) -> Result<Self, LabError> {
        let (corpus, source) = bytes_of(data, records, options.seed)?;
        let (mut description, unused) = (
            std::mem::take(&mut cachebench.description),
            std::mem::take(&mut cachebench.unused),
        );
        let (count, (key, value)) = (cachebench.keys(), cachebench.mean_bytes);
        let bytes = count as f64 * (key + value);
        description.push(format!(
            "{} of keys and values, {:.1} times the memory; keys of {key:.1} bytes on average, values of {value:.0}, \
             from {source}",
            about(bytes),
            bytes / options.memory_bytes as f64
        ));
        let cachebench = Arc::new(cachebench);
        Ok(Self {
            description,
            unused,
            count,
            keys: Keys::Drawn(cachebench.clone()),
            values: Values::Pieces {
                first: corpus.assignment(count, Pairing::Apart),
                corpus,
                lengths: Lengths::Drawn(cachebench.clone()),
            },
            plan: Plan::CacheBench {
                cachebench,
                scatter: Permutation::new(count, mix(!options.seed)),
            },
        })
    }

    /// Number of keys.
    pub(super) fn keys(&self) -> u64 {
        self.count
    }

    /// Requests of the trace.
    pub(super) fn trace_requests(&self) -> Option<u64> {
        match &self.plan {
            Plan::Draw { .. } | Plan::CacheBench { .. } => None,
            Plan::Trace { requests, .. } => Some(requests.len() as u64),
        }
    }

    /// Mean bytes of a key and its value.
    pub(super) fn record_bytes(&self) -> f64 {
        self.keys.mean_bytes() + self.values.mean_bytes()
    }

    /// Length of the longest value, in bytes.
    pub(super) fn longest_value(&self) -> usize {
        self.values.longest()
    }

    /// Length of what a key holds before it is overwritten, in bytes.
    pub(super) fn value_bytes(&self, id: u64) -> u64 {
        self.values.len(id)
    }

    /// A caveat if values repeat, and so compress better than the data; `None` if they do not.
    pub(super) fn repeated_values(&self) -> Option<String> {
        match &self.values {
            Values::Made(_) => None,
            Values::Chosen { corpus, .. } => corpus.repeats(self.count).map(|repeats| repeats.to_string()),
            Values::Pieces { corpus, .. } if corpus.is_synthetic() => None,
            Values::Pieces { corpus, lengths, .. } => {
                let (wanted, there) = (lengths.mean() * self.count as f64, corpus.total_bytes());
                (wanted > there as f64).then(|| {
                    format!(
                        "The values have {} in total and are cut from {}, so each byte of the data is stored {:.1} \
                         times. Repeated values compress better than the data does; use more data for representative \
                         ratios.",
                        about(wanted),
                        about(there as f64),
                        wanted / there as f64
                    )
                })
            }
        }
    }

    /// Of how many lengths the paper's objects are; 0 of other work.
    pub(super) fn kinds(&self) -> usize {
        match &self.values {
            Values::Made(made) => made.kinds(),
            _ => 0,
        }
    }

    /// Which of those a key's value has.
    #[inline]
    pub(super) fn kind(&self, id: u64) -> usize {
        match &self.values {
            Values::Made(made) => made.kind(id),
            _ => 0,
        }
    }

    /// Replaces `key` by the bytes of a key.
    #[inline]
    pub(super) fn key(&self, id: u64, key: &mut Vec<u8>) {
        self.keys.write(id, key);
    }

    /// Replaces `value` by what the key holds in a version.
    #[inline]
    pub(super) fn fill(&self, id: u64, version: u32, value: &mut Vec<u8>) {
        self.values.write(id, version, value);
    }

    /// Whether this is what the key holds in a version.
    #[inline]
    pub(super) fn holds(&self, id: u64, version: u32, value: &[u8]) -> bool {
        self.values.holds(id, version, value)
    }

    /// The next request. All threads together replay a trace once, then from its start again.
    #[inline]
    pub(super) fn next(&self, rng: &mut Xoshiro256PlusPlus, place: &mut Place) -> Request {
        match &self.plan {
            Plan::Draw { chooser, moved, .. } => {
                let chooser = moved.as_deref().filter(|_| place.has_moved).unwrap_or(chooser);
                Request {
                    id: chooser.read(rng),
                    action: Action::Read,
                    is_lone: false,
                }
            }
            Plan::CacheBench { cachebench, .. } => cachebench.next(rng, place),
            Plan::Trace { requests, next } => {
                if place.at == place.end {
                    place.at = next.fetch_add(BATCH, Ordering::Relaxed);
                    place.end = place.at + BATCH;
                }
                let request = requests[(place.at % requests.len() as u64) as usize];
                place.at += 1;
                Trace::request(request)
            }
        }
    }

    /// Begins a trace again.
    pub(super) fn rewind(&self) {
        if let Plan::Trace { next, .. } = &self.plan {
            next.store(0, Ordering::Relaxed);
        }
    }

    /// The key that a cache may be filled with at this place below the number of keys: scattered, and of a trace as
    /// they come.
    pub(super) fn in_filling_order(&self, at: u64) -> u64 {
        match &self.plan {
            Plan::Draw { scatter, .. } | Plan::CacheBench { scatter, .. } => scatter.apply(at),
            Plan::Trace { .. } => at,
        }
    }
}

/// The paper's objects in words.
fn paper_words(objects: &PaperObjects) -> String {
    let lengths: Vec<_> = objects.value_bytes.iter().map(ToString::to_string).collect();
    let random = |bytes: u32| {
        format!(
            "{} random, {} zeros",
            objects.random_bytes(bytes),
            bytes - objects.random_bytes(bytes)
        )
    };
    let what = match objects.value_bytes[..] {
        [bytes] => random(bytes),
        _ => format!(
            "equal bytes of each, {}% of a value random, the rest zeros",
            objects.incompressible_pct
        ),
    };
    format!(
        "keys of 16 bytes (hexadecimal), values of {} bytes: {what}",
        lengths.join(", ")
    )
}

/// Note on sampling, to follow the source.
fn sampled_words(corpus: &Corpus) -> String {
    corpus
        .sampled()
        .map_or_else(String::new, |sampled| format!(", {sampled}"))
}

/// The source of values of given lengths, and its description.
fn bytes_of(data: &Source, records: Option<&RecordFormat>, seed: u64) -> Result<(Arc<Corpus>, String), LabError> {
    let (corpus, source) = match records {
        Some(format) => (
            Records::load(data, format)?.values,
            format!("records of {data} ({format})"),
        ),
        None => {
            let corpus = Corpus::load(data, PIECES, false, seed)?;
            let sampled = sampled_words(&corpus);
            (corpus.into(), format!("{data}{sampled}"))
        }
    };
    if corpus.longest() == 0 {
        return Err(LabError::data(
            data.to_string(),
            "its values are empty: no others can be derived from them",
        ));
    }
    Ok((corpus, source))
}

/// Keys of a working set.
fn key_count(options: &Options, record_bytes: f64) -> Result<u64, LabError> {
    let bytes = options.working_set_bytes();
    let count = ((bytes as f64 / record_bytes) as u64).max(1);
    if count > MAX_WORKING_SET_KEYS {
        return Err(LabError::option(
            "working-set",
            format!("{} needs {count} keys, more than {MAX_WORKING_SET_KEYS}", Bytes(bytes)),
        ));
    }
    Ok(count)
}

#[cfg(test)]
mod tests;
