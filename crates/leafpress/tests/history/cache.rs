//! A cache, in memory and with a disk: no read, load or update sees a value that was replaced, removed or has expired.
//!
//! A loaded value is as old as the beginning of its load, so it counts as written then: if a write or a removal took
//! effect since, the loaded value must not be found afterwards. One that replaces a record is written at some time
//! during its load instead, since others find the record until then.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use leafpress::Cache;
use leafpress::cache::{CacheError, CacheUpdate, Disk, InsertOptions, ManualClock, RawShare};
use leafpress::store::{FaultyStore, MemoryStore, Operation};

use crate::log::{ALL_KEYS, Event, What};
use crate::rounds::{KEYS, Subject, Worker, explore};
use crate::tasks::{Yields, block_on};
use crate::value::{number, value};

/// Longer than the longest value that a cache with this memory stores.
const NOT_KEPT_BYTES: usize = 800 << 10;
/// Initial time of the clock.
const BEGAN: u64 = 1_900_000_000;

struct Subjects {
    cache: Cache,
    /// Whether loads replace records.
    refreshes: bool,
    clock: Arc<ManualClock>,
    store: Option<Arc<FaultyStore<MemoryStore>>>,
    /// The clock's time in seconds, and the moment at which it was set.
    now: AtomicU64,
    passed: Mutex<Vec<(u64, u64)>>,
    /// Values that expire, with their latest expiry time.
    expire: Mutex<Vec<(u64, u64)>>,
    /// Values with the tag.
    tagged: Mutex<HashSet<u64>>,
    /// The begin and end of each invalidation of the tag.
    invalidated: Mutex<Vec<(u64, u64)>>,
}

const TAG: &str = "tag";

fn name(key: u32) -> String {
    format!("key:{key}")
}

fn of(key: u32) -> impl Fn(&[u8]) -> u64 {
    move |found| number(key, found)
}

impl Subjects {
    fn new(round: u64) -> Self {
        let clock = Arc::new(ManualClock::new(Duration::from_secs(BEGAN)));
        let codecs = ["lz4", "trial:memory", "zstd:1", "onpair", "none", "trial"];
        let mut builder = Cache::builder()
            .memory(4 << 20)
            .clock(Arc::clone(&clock) as Arc<dyn leafpress::cache::Clock>)
            .codec(codecs[round as usize % codecs.len()].parse().unwrap());
        if !round.is_multiple_of(3) {
            builder = builder.share(RawShare::Fixed { raw_percent: 20 });
        }
        if round % 4 >= 2 {
            builder = builder.listener(|_, _, _| thread::yield_now());
        }
        if round % 5 == 4 {
            builder = builder.time_to_idle(Duration::from_secs(20));
        }
        let refreshes = round % 5 == 3;
        if refreshes {
            // Every loading read that finds a record loads it anew.
            let hour = Duration::from_secs(3600);
            builder = builder.default_ttl(hour).refresh_ahead(hour);
        }
        let store = (!round.is_multiple_of(2)).then(|| Arc::new(FaultyStore::new(MemoryStore::new(4096).unwrap())));
        if let Some(store) = &store {
            // A small cache evicts, a large one keeps all records.
            let bytes = if round % 4 == 1 { 6 << 20 } else { 32 << 20 };
            builder = builder.disk(Disk::store(
                Arc::clone(store) as Arc<dyn leafpress::store::PageStore>,
                bytes,
            ));
            if round % 8 == 7 {
                store.fail_every(Operation::Write, 50);
                store.fail_every(Operation::Read, 100);
            }
        }
        Self {
            cache: builder.build().unwrap(),
            refreshes,
            clock,
            store,
            now: AtomicU64::new(BEGAN),
            passed: Mutex::default(),
            expire: Mutex::default(),
            tagged: Mutex::default(),
            invalidated: Mutex::default(),
        }
    }

    fn value(worker: &mut Worker<'_>, key: u32) -> (u64, Vec<u8>) {
        let fresh = worker.log.fresh();
        let len = worker.len();
        (fresh, value(key, fresh, len))
    }

    /// Records that a value written by now expires after this time.
    fn note_expiry(&self, number: u64, seconds: u64) {
        let until = self.now.load(Ordering::SeqCst) + seconds;
        self.expire.lock().unwrap().push((number, until));
    }

    /// Adds the tag to some values' options.
    fn tagged(&self, number: u64, entry: InsertOptions) -> InsertOptions {
        if !number.is_multiple_of(3) {
            return entry;
        }
        self.tagged.lock().unwrap().insert(number);
        entry.tag(TAG).tag(number.to_le_bytes())
    }

    fn note_write(worker: &mut Worker<'_>, key: u32, begin: u64, fresh: u64, result: Result<(), CacheError>) {
        match result {
            Ok(()) => worker.log.note(key, begin, What::Write(fresh)),
            Err(_) => worker.log.note_until(key, begin, u64::MAX, What::Write(fresh)),
        }
    }

    fn read(&self, worker: &mut Worker<'_>, key: u32) {
        let begin = worker.log.begin();
        let found = match worker.random.u8(..10) {
            0 => {
                let mut bytes = Vec::new();
                self.cache
                    .get_into(&name(key), &mut bytes)
                    .unwrap()
                    .then(|| number(key, &bytes))
            }
            1 => self.cache.get(&name(key)).unwrap().map(|found| number(key, &found)),
            2..5 => block_on(self.cache.get_with_async(&name(key), of(key))).unwrap(),
            _ => self.cache.get_with(&name(key), of(key)).unwrap(),
        };
        if let Some(found) = found {
            worker.log.note(key, begin, What::Read(found));
        }
    }

    fn read_many(&self, worker: &mut Worker<'_>) {
        let keys: Vec<u32> = (0..8).map(|_| worker.key()).collect();
        let names: Vec<String> = keys.iter().map(|key| name(*key)).collect();
        let begin = worker.log.begin();
        let found = match worker.random.bool() {
            true => self.cache.get_many(&names).unwrap(),
            false => block_on(self.cache.get_many_async(&names)).unwrap(),
        };
        for (key, found) in keys.into_iter().zip(found) {
            if let Some(found) = found {
                worker.log.note(key, begin, What::Read(number(key, &found)));
            }
        }
    }

    fn scan(&self, worker: &mut Worker<'_>) {
        let begin = worker.log.begin();
        for record in self.cache.prefix("key:1").take(20) {
            let (found, bytes) = record.unwrap();
            let key: u32 = std::str::from_utf8(&found[4..]).unwrap().parse().unwrap();
            worker.log.note(key, begin, What::Read(number(key, &bytes)));
        }
    }

    fn insert(&self, worker: &mut Worker<'_>, key: u32) {
        let (fresh, new) = Self::value(worker, key);
        let begin = worker.log.begin();
        match worker.random.u8(..20) {
            0 => {
                // The refused insertion removes the key's old value.
                self.cache.insert(&name(key), &vec![0; NOT_KEPT_BYTES]).unwrap();
                worker.log.note(key, begin, What::Remove);
            }
            1..5 => {
                let seconds = worker.random.u64(1..30);
                let entry = self.tagged(fresh, InsertOptions::ttl(Duration::from_secs(seconds)));
                let result = self.cache.insert_entry(&name(key), &new, entry);
                self.note_expiry(fresh, seconds);
                Self::note_write(worker, key, begin, fresh, result);
            }
            5 => {
                // Refused without any effect.
                let entry = InsertOptions::ttl(Duration::from_micros(1));
                assert!(self.cache.insert_entry(&name(key), &new, entry).is_err());
            }
            6 => {
                let entry = self.tagged(fresh, InsertOptions::default());
                let result = self.cache.insert_entry(&name(key), &new, entry);
                Self::note_write(worker, key, begin, fresh, result);
            }
            7..9 => {
                let old = self.cache.swap(&name(key), &new).unwrap();
                worker.log.note_consumed(key, begin, old.map(|old| number(key, &old)));
                worker.log.note(key, begin, What::Write(fresh));
            }
            _ => {
                let result = self.cache.insert(&name(key), &new);
                Self::note_write(worker, key, begin, fresh, result);
            }
        }
    }

    fn remove(&self, worker: &mut Worker<'_>, key: u32) {
        let begin = worker.log.begin();
        if worker.random.bool() {
            self.cache.remove(&name(key)).unwrap();
        } else {
            let old = self.cache.take(&name(key)).unwrap();
            worker.log.note_consumed(key, begin, old.map(|old| number(key, &old)));
        }
        worker.log.note(key, begin, What::Remove);
    }

    fn update(&self, worker: &mut Worker<'_>, key: u32) {
        let (fresh, new) = Self::value(worker, key);
        let (begin, kind) = (worker.log.begin(), worker.random.u8(..10));
        let (mut seen, mut answered) = (None, begin);
        let (log, rests) = (&worker.log, worker.random.bool());
        let answer = self.cache.update_with(&name(key), |found| {
            seen = found.map(of(key));
            if rests {
                // Gives other threads a chance to write the key.
                thread::yield_now();
            }
            // The result is applied after this moment.
            answered = log.tick();
            match kind {
                0..4 => CacheUpdate::Put(new.clone()),
                4 => CacheUpdate::PutWith(new.clone(), InsertOptions::ttl(Duration::from_secs(5))),
                5 => CacheUpdate::Put(vec![0; NOT_KEPT_BYTES]),
                6..9 => CacheUpdate::Remove,
                _ => CacheUpdate::Keep,
            }
        });
        answer.unwrap();
        match kind {
            0..5 => {
                if kind == 4 {
                    self.note_expiry(fresh, 5);
                }
                worker.log.note_consumed(key, begin, seen);
                worker.log.note(key, answered, What::Write(fresh));
            }
            5..9 => {
                worker.log.note_consumed(key, begin, seen);
                worker.log.note(key, answered, What::Remove);
            }
            _ => seen
                .into_iter()
                .for_each(|seen| worker.log.note(key, begin, What::Read(seen))),
        }
    }

    fn compare_and_swap(&self, worker: &mut Worker<'_>, key: u32) {
        let (fresh, new) = Self::value(worker, key);
        let expected = self.cache.get(&name(key)).unwrap();
        let begin = worker.log.begin();
        let puts = worker.random.bool();
        let new = puts.then_some(new.as_slice());
        if self
            .cache
            .compare_and_swap(&name(key), expected.as_deref(), new)
            .unwrap()
        {
            worker.log.note_consumed(key, begin, expected.as_deref().map(of(key)));
            let what = if puts { What::Write(fresh) } else { What::Remove };
            worker.log.note(key, begin, what);
        }
    }

    fn load(&self, worker: &mut Worker<'_>, key: u32) {
        let (fresh, new) = Self::value(worker, key);
        let (kind, rests) = (worker.random.u8(..10), worker.random.u8(..4));
        let begin = worker.log.begin();
        let (mut loaded, log) = (None, &worker.log);
        let (expires, fails) = (kind.is_multiple_of(2), kind == 9);
        let entry = if expires {
            InsertOptions::ttl(Duration::from_secs(5))
        } else {
            InsertOptions::default()
        };
        let entry = self.tagged(fresh, entry);
        let mut load = || {
            loaded = Some(log.tick());
            if fails {
                Err("not today")
            } else {
                Ok((new.clone(), entry))
            }
        };
        let found = if kind < 5 {
            block_on(self.cache.get_or_fetch_entry(&name(key), async {
                let loaded = load();
                for _ in 0..rests {
                    Yields::default().await;
                    thread::yield_now();
                }
                loaded
            }))
        } else {
            self.cache.try_get_or_insert_entry_with(&name(key), || {
                let loaded = load();
                (0..rests).for_each(|_| thread::yield_now());
                loaded
            })
        };
        if let Some(at) = loaded {
            match self.refreshes {
                false => worker.log.note_until(key, begin, at, What::Load(fresh)),
                // The record that it replaces was found while it ran.
                true if !fails => worker.log.note(key, begin, What::Load(fresh)),
                true => (),
            }
            if expires {
                self.note_expiry(fresh, 5);
            }
        }
        if let Ok(found) = found {
            let found = number(key, &found);
            if loaded.is_none() {
                worker.log.note(key, begin, What::Read(found));
            }
        }
    }
}

impl Subject for Subjects {
    fn step(&self, worker: &mut Worker<'_>) {
        let key = worker.key();
        match worker.random.u16(..1000) {
            0..300 => self.read(worker, key),
            300..340 => self.read_many(worker),
            340..345 => self.scan(worker),
            345..550 => self.insert(worker, key),
            550..650 => self.remove(worker, key),
            650..740 => self.update(worker, key),
            740..790 => self.compare_and_swap(worker, key),
            790..985 => self.load(worker, key),
            985..990 => {
                let mut passed = self.passed.lock().unwrap();
                let now = self.now.load(Ordering::SeqCst) + worker.random.u64(1..5);
                self.clock.set(Duration::from_secs(now));
                self.now.store(now, Ordering::SeqCst);
                passed.push((now, worker.log.tick()));
            }
            990..993 => self.cache.set_memory(worker.random.u64(4..7) << 20).unwrap(),
            993..996 => self.cache.spill().unwrap_or_default(),
            996 => {
                let begin = worker.log.begin();
                self.cache.clear().unwrap();
                worker.log.note(ALL_KEYS, begin, What::Remove);
            }
            997 => {
                let begin = worker.log.begin();
                self.cache.invalidate_tag(TAG).unwrap();
                self.invalidated.lock().unwrap().push((begin, worker.log.tick()));
            }
            _ => self.cache.settle().unwrap(),
        }
    }

    fn end(&self, worker: &mut Worker<'_>) {
        (0..KEYS).for_each(|key| self.read(worker, key));
        let stats = self.cache.stats();
        assert_eq!((stats.background_panics, stats.damaged), (0, 0), "{stats:?}");
        if let Some(store) = &self.store {
            assert_eq!(stats.disk.unwrap().damaged, 0, "{:?}", store.counters());
        }
        self.cache.validate().unwrap();
    }

    fn more_violations(&self, events: &[Event]) -> Vec<String> {
        let passed = self.passed.lock().unwrap();
        let expire = self.expire.lock().unwrap();
        let over = |until: u64| passed.iter().find(|(now, _)| *now > until).map(|(_, at)| *at);
        let over: HashMap<u64, u64> = expire
            .iter()
            .filter_map(|(value, until)| Some((*value, over(*until)?)))
            .collect();
        let (tagged, invalidated) = (self.tagged.lock().unwrap(), self.invalidated.lock().unwrap());
        // When the value of each key was certainly there.
        let written: HashMap<u64, u64> = events
            .iter()
            .filter_map(|event| match event.what {
                What::Write(value) | What::Load(value) if tagged.contains(&value) => Some((value, event.end)),
                _ => None,
            })
            .collect();
        let is_invalid = |value: u64, read: u64| {
            let written = written.get(&value);
            written.is_some_and(|written| invalidated.iter().any(|(begin, end)| written < begin && *end < read))
        };
        let invalid = events.iter().filter(|event| match event.what {
            What::Read(value) => is_invalid(value, event.begin),
            _ => false,
        });
        let invalid = invalid.map(|event| format!("key {}: {:?} after its tag was invalidated", event.key, event.what));
        let late = events.iter().filter(|event| match event.what {
            What::Read(value) => over.get(&value).is_some_and(|over| event.begin > *over),
            _ => false,
        });
        late.map(|event| format!("key {}: {:?} after it had expired", event.key, event.what))
            .chain(invalid)
            .collect()
    }
}

#[test]
fn cache() {
    explore("cache", 8, Subjects::new);
}
