//! Spans and events for `tracing`, and their documentation in docs/metrics.md.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once};
use std::time::{Duration, Instant};

use leafpress::Cache;
use leafpress::cache::Disk;
use leafpress::store::{FaultyStore, MemoryStore, Operation, PageStore, PageWrite};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::{key, noise, small};

/// A span or an event: `debug` or `warn`, its name or message, and all its fields as text.
type Seen = (Level, String, String);

static SEEN: Mutex<Vec<Seen>> = Mutex::new(Vec::new());

fn seen() -> MutexGuard<'static, Vec<Seen>> {
    static INSTALLED: Once = Once::new();
    // For the whole process: most of it comes from caches' threads.
    INSTALLED.call_once(|| tracing::subscriber::set_global_default(Collector(AtomicU64::new(1))).unwrap());
    SEEN.lock().unwrap()
}

struct Collector(AtomicU64);

#[derive(Default)]
struct Fields {
    message: String,
    others: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            name => self.others += &format!("{name}={value:?};"),
        }
    }
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "leafpress"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::default();
        span.record(&mut fields);
        let metadata = span.metadata();
        SEEN.lock()
            .unwrap()
            .push((*metadata.level(), metadata.name().to_owned(), fields.others));
        Id::from_u64(self.0.fetch_add(1, Ordering::Relaxed))
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        SEEN.lock()
            .unwrap()
            .push((*event.metadata().level(), fields.message, fields.others));
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Returns how often a span or event was seen whose fields contain `of`.
fn count(name: &str, of: &str) -> usize {
    let seen = seen();
    seen.iter()
        .filter(|(_, seen, fields)| seen == name && fields.contains(of))
        .count()
}

fn wait_for(name: &str, of: &str) {
    let began = Instant::now();
    while count(name, of) == 0 {
        assert!(
            began.elapsed() < Duration::from_secs(600),
            "{name} of {of} was not seen"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn on(store: &Arc<impl PageStore + 'static>, name: &str) -> Cache {
    drop(seen());
    small()
        .name(name)
        .disk(Disk::store(store.clone(), 64 << 20))
        .build()
        .unwrap()
}

fn fill(cache: &Cache) {
    for n in 0..30_000 {
        cache.insert(&key(n), &noise(n, 400)).unwrap();
    }
}

/// Checks that everything seen is in the page's table, with its level.
fn check_the_page() {
    let page = include_str!("../../../../docs/metrics.md");
    let rows = page
        .lines()
        .filter(|line| line.starts_with("| `") && !line.starts_with("| `leafpress_cache_"));
    let documented: BTreeSet<(String, String)> = rows
        .map(|row| {
            let cells: Vec<_> = row.split('|').map(|cell| cell.trim().replace('`', "")).collect();
            (cells[2].clone(), cells[1].clone())
        })
        .collect();
    for (level, name, fields) in seen().iter() {
        let row = (level.to_string().to_lowercase(), name.clone());
        assert!(
            documented.contains(&row),
            "{row:?} with {fields} is not in docs/metrics.md"
        );
    }
}

#[test]
fn what_a_cache_does_is_seen() {
    let store = Arc::new(MemoryStore::new(4096).unwrap());
    let cache = on(&store, "works");
    fill(&cache);
    cache.set_memory(5 << 20).unwrap();
    cache.settle().unwrap();
    for n in 0..1000 {
        cache.get(&key(n)).unwrap();
    }
    cache.close().unwrap();
    // A cache that is dropped before its warming has begun does not report the end of one.
    let again = on(&store, "opened again");
    wait_for("warm again", "cache=opened again;");
    drop(again);
    for name in [
        "leafpress_build",
        "leafpress_set_memory",
        "leafpress_upkeep",
        "leafpress_disk_write",
        "leafpress_disk_merge",
        "leafpress_close",
        "moved to disk",
    ] {
        assert!(count(name, "cache=works;") > 0, "{name}");
    }
    assert!(count("leafpress_train", "") > 0 && count("training ended", "") > 0);
    assert_eq!(count("opened", "cache=opened again;disk_records=0;"), 0);
    assert_eq!(count("opened", "cache=opened again;"), 1);
    check_the_page();
}

#[test]
fn logs_errors_of_a_failing_device() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new(4096).unwrap()));
    let cache = on(&store, "reads fail");
    fill(&cache);
    cache.spill().unwrap();
    store.fail_every(Operation::Read, 1);
    for n in 0..100 {
        assert_eq!(cache.get(&key(n)).unwrap(), None);
    }
    let errors = cache.stats().disk.unwrap().read_errors;
    let logged = count("disk read failed", "cache=reads fail;");
    // The first, the second, the fourth and so on.
    assert!(
        errors >= 64 && (7..=errors.ilog2() as usize + 1).contains(&logged),
        "{logged} of {errors}"
    );

    let store = Arc::new(FaultyStore::new(MemoryStore::new(4096).unwrap()));
    let cache = on(&store, "writes fail");
    store.fail_every(Operation::Write, 1);
    fill(&cache);
    cache.settle().unwrap();
    assert!(cache.stats().disk.unwrap().has_failed);
    assert!(count("disk write failed", "cache=writes fail;") >= 8);
    assert_eq!(count("disk given up", "cache=writes fail;"), 1);
    check_the_page();
}

/// Panics on writes of batches if enabled.
struct Panics(MemoryStore);

impl PageStore for Panics {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn page_bytes(&self, page: u64) -> io::Result<usize> {
        self.0.page_bytes(page)
    }

    fn check_write(&self, page: u64, len: usize) -> io::Result<()> {
        self.0.check_write(page, len)
    }

    fn max_page_bytes(&self) -> usize {
        self.0.max_page_bytes()
    }

    fn read(&self, page: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.read(page, into)
    }

    fn write(&self, page: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write(page, bytes)
    }

    fn remove(&self, page: u64) -> io::Result<()> {
        self.0.remove(page)
    }

    fn write_batch(&self, _: &mut [PageWrite<'_>]) {
        panic!("the store panics");
    }
}

#[test]
fn logs_panics_of_background_work() {
    let cache = on(&Arc::new(Panics(MemoryStore::new(4096).unwrap())), "panics");
    fill(&cache);
    wait_for("background thread ended", "leafpress-disk");
    assert!(count("background work panicked", "the store panics") > 0);
    assert_eq!(count("disk given up", "cache=panics;"), 1);
    drop(cache);
    check_the_page();
}
