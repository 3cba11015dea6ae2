//! Reads by async tasks: the device is read by threads of the cache, and tasks wait without blocking theirs.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use leafpress::Cache;
use leafpress::cache::{CacheError, Disk, InsertOptions, ManualClock};
use leafpress::store::{MemoryStore, PageRead, PageStore};

use crate::disk::fill;
use crate::tasks::block_on;
use crate::{key, noise, small};

const RECORDS: u64 = 15_000;

/// A store whose reads wait while its gate is closed, and which panics on request.
struct Gated {
    inner: MemoryStore,
    is_closed: Mutex<bool>,
    opened: Condvar,
    panics: AtomicBool,
    batches: AtomicU64,
    reads: AtomicU64,
}

impl Gated {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            inner: MemoryStore::new(4096).unwrap(),
            is_closed: Mutex::new(false),
            opened: Condvar::new(),
            panics: AtomicBool::new(false),
            batches: AtomicU64::new(0),
            reads: AtomicU64::new(0),
        })
    }

    fn set_closed(&self, is_closed: bool) {
        *self.is_closed.lock().unwrap() = is_closed;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let mut is_closed = self.is_closed.lock().unwrap();
        while *is_closed {
            is_closed = self.opened.wait(is_closed).unwrap();
        }
        drop(is_closed);
        assert!(!self.panics.swap(false, Ordering::SeqCst), "the store panics");
    }
}

impl PageStore for Gated {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn page_bytes(&self, page: u64) -> io::Result<usize> {
        self.inner.page_bytes(page)
    }

    fn max_page_bytes(&self) -> usize {
        self.inner.max_page_bytes()
    }

    fn read(&self, page: u64, into: &mut [u8]) -> io::Result<()> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.pass();
        self.inner.read(page, into)
    }

    fn read_batch(&self, reads: &mut [PageRead<'_>]) {
        self.batches.fetch_add(1, Ordering::SeqCst);
        self.reads.fetch_add(reads.len() as u64, Ordering::SeqCst);
        self.pass();
        self.inner.read_batch(reads);
    }

    fn write(&self, page: u64, bytes: &[u8]) -> io::Result<()> {
        self.inner.write(page, bytes)
    }

    fn remove(&self, page: u64) -> io::Result<()> {
        self.inner.remove(page)
    }
}

/// A cache whose reads of the device the test holds up. Its field order has the gate opened before the cache ends.
struct Held {
    gate: Gate,
    cache: Cache,
}

struct Gate(Arc<Gated>);

impl Drop for Gate {
    fn drop(&mut self) {
        self.0.set_closed(false);
    }
}

/// Most of its records are on disk, and its threads have nothing left to do.
fn held() -> Held {
    let store = Gated::new();
    let cache = small().disk(Disk::store(store.clone(), 64 << 20)).build().unwrap();
    fill(&cache, 0..RECORDS, 400);
    cache.settle().unwrap();
    Held {
        gate: Gate(store),
        cache,
    }
}

impl Held {
    /// Numbers of records that are not in memory, spread over all.
    fn on_disk(&self, count: usize) -> Vec<u64> {
        let is_on_disk = |n: &u64| {
            let in_memory = self.cache.get_in_memory_with(&key(*n), |_| ()).unwrap();
            in_memory.is_none()
        };
        let numbers: Vec<_> = (0..RECORDS)
            .map(|n| n * 7 % RECORDS)
            .filter(is_on_disk)
            .take(count)
            .collect();
        assert_eq!(numbers.len(), count);
        numbers
    }

    fn in_memory(&self) -> u64 {
        let is_there = |n: &u64| self.cache.get_in_memory_with(&key(*n), |_| ()).unwrap().is_some();
        (0..RECORDS).rev().find(is_there).unwrap()
    }
}

type Read<'c> = Pin<Box<dyn Future<Output = Result<Option<Vec<u8>>, CacheError>> + Send + 'c>>;

fn read<'c>(cache: &'c Cache, n: u64) -> Read<'c> {
    Box::pin(async move { cache.get_async(&key(n)).await })
}

fn is_ready<F: Future + Unpin>(future: &mut F) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    Pin::new(future).poll(&mut context).is_ready()
}

#[test]
fn a_task_that_reads_the_disk_does_not_block_its_thread() {
    let held = held();
    let (cache, store) = (&held.cache, &held.gate.0);
    let (there, below) = (held.in_memory(), held.on_disk(1)[0]);
    let before = cache.stats();
    store.set_closed(true);
    let mut waits = read(cache, below);
    assert!(!is_ready(&mut waits));
    // Other tasks of the thread go on.
    let name = key(there);
    let mut found = pin!(cache.get_with_async(&name, |value| value == noise(there, 400)));
    let mut context = Context::from_waker(Waker::noop());
    assert!(matches!(found.as_mut().poll(&mut context), Poll::Ready(Ok(Some(true)))));
    // The filters take a few absent keys in 100 for present.
    let absent = (0..100).filter(|n| is_ready(&mut read(cache, RECORDS + n))).count();
    assert!(absent > 50, "{absent}");
    let loads = |n: u64| {
        let name = key(2 * RECORDS + n);
        is_ready(&mut Box::pin(
            cache.get_or_fetch(&name, async { Ok::<_, ()>("loaded") }),
        ))
    };
    assert!((0..100).any(loads));
    assert!(!is_ready(&mut waits));
    store.set_closed(false);
    assert_eq!(block_on(waits).unwrap(), Some(noise(below, 400)));
    let after = cache.stats();
    assert_eq!(after.disk.unwrap().hits - before.disk.unwrap().hits, 1);
    // The look-ups of the absent keys that the filter took for present are counted once they are made.
    assert_eq!(after.hits - before.hits, 2);
    assert!(after.misses - before.misses > absent as u64, "and the loaded key");
}

/// Wakes the thread that polls.
struct Unparks(thread::Thread);

impl Wake for Unparks {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[test]
fn reads_of_concurrent_tasks_are_batched() {
    const TASKS: usize = 1000;
    let held = held();
    let (cache, store) = (&held.cache, &held.gate.0);
    let numbers = held.on_disk(TASKS);
    store.set_closed(true);
    let mut tasks: Vec<_> = numbers.iter().map(|n| Some(read(cache, *n))).collect();
    let waker = Waker::from(Arc::new(Unparks(thread::current())));
    let mut context = Context::from_waker(&waker);
    let batches = store.batches.load(Ordering::SeqCst);
    let mut left = TASKS;
    let mut is_first = true;
    while left > 0 {
        for (n, task) in numbers.iter().zip(&mut tasks) {
            let Some(Poll::Ready(value)) = task.as_mut().map(|task| task.as_mut().poll(&mut context)) else {
                continue;
            };
            assert_eq!(value.unwrap(), Some(noise(*n, 400)), "{n}");
            *task = None;
            left -= 1;
        }
        if is_first {
            assert_eq!(left, TASKS);
            store.set_closed(false);
            is_first = false;
        }
        if left > 0 {
            thread::park();
        }
    }
    // A small batch for each of the four readers, then 64 keys at a time; and merges of runs read as well.
    let batches = store.batches.load(Ordering::SeqCst) - batches;
    assert!(batches <= TASKS as u64 / 5, "{batches}");
}

#[test]
fn a_dropped_read_is_not_made() {
    let held = held();
    let (cache, store) = (&held.cache, &held.gate.0);
    let numbers = held.on_disk(1000);
    store.set_closed(true);
    let before = store.reads.load(Ordering::SeqCst);
    let mut tasks: Vec<_> = numbers.iter().map(|n| read(cache, *n)).collect();
    assert!(tasks.iter_mut().all(|task| !is_ready(task)));
    let last = tasks.pop().unwrap();
    drop(tasks);
    store.set_closed(false);
    assert_eq!(block_on(last).unwrap(), Some(noise(numbers[999], 400)));
    // What the four readers had taken before, and the last one; and merges of runs read as well.
    let reads = store.reads.load(Ordering::SeqCst) - before;
    assert!(reads <= 700, "{reads}");
}

#[test]
fn a_load_reads_the_disk_without_blocking_and_does_not_load_what_is_there() {
    let held = held();
    let (cache, store) = (&held.cache, &held.gate.0);
    let below = held.on_disk(1)[0];
    store.set_closed(true);
    let name = key(below);
    let load = async { unreachable!("it is on disk") };
    let mut fetches = Box::pin(cache.get_or_fetch::<Vec<u8>, ()>(&name, load));
    assert!(!is_ready(&mut fetches));
    store.set_closed(false);
    assert_eq!(block_on(fetches).unwrap(), noise(below, 400));
}

#[test]
fn a_cache_that_is_closed_leaves_no_task_waiting() {
    let held = held();
    let (cache, store) = (&held.cache, &held.gate.0);
    let numbers = held.on_disk(300);
    store.set_closed(true);
    let mut tasks: Vec<_> = numbers.iter().map(|n| read(cache, *n)).collect();
    assert!(tasks.iter_mut().all(|task| !is_ready(task)));
    thread::scope(|scope| {
        let closing = scope.spawn(|| cache.close());
        // The queued requests are handed back, so that these tasks make their reads, or learn that the cache is closed.
        store.set_closed(false);
        for (n, task) in numbers.iter().zip(tasks) {
            match block_on(task) {
                Ok(found) => assert!(found.is_none_or(|value| value == noise(*n, 400)), "{n}"),
                Err(error) => assert!(matches!(error, CacheError::Closed), "{error}"),
            }
        }
        closing.join().unwrap().unwrap();
    });
}

/// The last handle may be dropped by the task that a reader wakes.
#[test]
fn the_last_handle_may_end_in_a_reader() {
    struct Task(Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>);
    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            // An executor that polls in the thread that wakes.
            let mut task = self.0.lock().unwrap();
            let waker = Waker::from(Arc::clone(&self));
            let mut context = Context::from_waker(&waker);
            if task
                .as_mut()
                .is_some_and(|task| task.as_mut().poll(&mut context).is_ready())
            {
                *task = None;
            }
        }
    }
    let Held { gate, cache } = held();
    let below = {
        let held = Held {
            gate: Gate(gate.0.clone()),
            cache: cache.clone(),
        };
        held.on_disk(1)[0]
    };
    gate.0.set_closed(true);
    let (done, is_done) = std::sync::mpsc::channel();
    let future = async move {
        let found = cache.get_async(&key(below)).await.unwrap();
        drop(cache);
        done.send(found).unwrap();
    };
    let task = Arc::new(Task(Mutex::new(Some(Box::pin(future)))));
    Waker::from(Arc::clone(&task)).wake();
    gate.0.set_closed(false);
    assert_eq!(is_done.recv().unwrap(), Some(noise(below, 400)));
}

#[test]
fn a_read_that_panics_in_a_reader_is_made_by_the_task() {
    let held = held();
    let (cache, store) = (&held.cache, &held.gate.0);
    for n in held.on_disk(3) {
        store.panics.store(true, Ordering::SeqCst);
        assert_eq!(block_on(cache.get_async(&key(n))).unwrap(), Some(noise(n, 400)), "{n}");
    }
    // The task may go on before the panic is counted.
    while cache.stats().background_panics < 3 {
        thread::yield_now();
    }
    assert_eq!(cache.stats().background_panics, 3);
}

#[test]
fn several_keys_have_the_values_that_get_many_finds() {
    for to_idle in [false, true] {
        let clock = Arc::new(ManualClock::new(Duration::from_secs(2_000_000_000)));
        let disk = Disk::store(Arc::new(MemoryStore::new(4096).unwrap()), 64 << 20);
        let mut builder = small().clock(clock.clone()).disk(disk);
        if to_idle {
            builder = builder.time_to_idle(Duration::from_secs(100));
        }
        let cache = builder.build().unwrap();
        for n in 0..RECORDS {
            let options = match n % 7 {
                0 => InsertOptions::ttl(Duration::from_secs(2)),
                _ => InsertOptions::default(),
            };
            cache.insert_entry(&key(n), &noise(n, 400), options).unwrap();
        }
        for n in (0..RECORDS).step_by(5) {
            cache.remove(&key(n)).unwrap();
        }
        cache.settle().unwrap();
        clock.advance(Duration::from_secs(3));
        let expected = |n: u64| (n < RECORDS && !n.is_multiple_of(7) && !n.is_multiple_of(5)).then(|| noise(n, 400));
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..60 {
            let numbers: Vec<_> = (0..random.usize(..200)).map(|_| random.u64(..RECORDS + 500)).collect();
            let keys: Vec<_> = numbers.iter().map(|n| key(*n)).collect();
            let before = cache.stats();
            let values = block_on(cache.get_many_async(&keys)).unwrap();
            let after = cache.stats();
            assert_eq!(
                (after.hits + after.misses) - (before.hits + before.misses),
                keys.len() as u64
            );
            for (n, value) in numbers.into_iter().zip(values) {
                assert_eq!(value, expected(n), "{n}");
                assert_eq!(block_on(cache.get_async(&key(n))).unwrap(), expected(n), "{n}");
            }
        }
        cache.validate().unwrap();
    }
}

#[test]
fn without_a_disk_tier_every_read_is_ready_at_once() {
    let cache = small().build().unwrap();
    cache.insert("key", "value").unwrap();
    let mut found = Box::pin(cache.get_async("key"));
    assert!(is_ready(&mut found));
    let values = pin!(cache.get_many_async(&["absent", "key"]));
    let mut context = Context::from_waker(Waker::noop());
    let Poll::Ready(values) = values.poll(&mut context) else {
        panic!("it is ready");
    };
    assert_eq!(values.unwrap(), [None, Some(b"value".to_vec())]);
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.misses), (2, 1));
}
