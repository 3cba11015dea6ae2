//! The metrics published through the facade `metrics`, and their documentation in docs/metrics.md.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use leafpress::Cache;
use leafpress::cache::Disk;
use leafpress::store::MemoryStore;
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};

use crate::{key, noise, small};

/// A metric's name with its labels, as `name{cache="a"}`.
type Values = BTreeMap<String, f64>;

#[derive(Default)]
struct Recorded {
    /// By name: type and unit.
    described: BTreeMap<String, (&'static str, &'static str)>,
    /// Names and label keys of metrics with a value.
    labels: BTreeMap<String, BTreeSet<String>>,
    /// For histograms: the number of values.
    values: Values,
}

/// A recorder for the whole process, since caches' threads publish too.
struct Collector;

static RECORDED: Mutex<Option<Recorded>> = Mutex::new(None);

fn recorded() -> MutexGuard<'static, Option<Recorded>> {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        *RECORDED.lock().unwrap() = Some(Recorded::default());
        metrics::set_global_recorder(Collector).unwrap();
    });
    RECORDED.lock().unwrap()
}

fn with<R>(what: impl FnOnce(&mut Recorded) -> R) -> R {
    what(recorded().as_mut().unwrap())
}

/// Returns the value that one cache has published under a name.
fn value(cache: &str, name: &str, label: &str) -> Option<f64> {
    let label = if label.is_empty() {
        String::new()
    } else {
        format!(",{label}")
    };
    with(|recorded| recorded.values.get(&format!("{name}{{cache={cache}{label}}}")).copied())
}

struct Value(String);

impl CounterFn for Value {
    fn increment(&self, value: u64) {
        with(|recorded| *recorded.values.entry(self.0.clone()).or_default() += value as f64);
    }

    fn absolute(&self, value: u64) {
        with(|recorded| recorded.values.insert(self.0.clone(), value as f64));
    }
}

impl GaugeFn for Value {
    fn increment(&self, _: f64) {
        panic!("gauges are set");
    }

    fn decrement(&self, _: f64) {
        panic!("gauges are set");
    }

    fn set(&self, value: f64) {
        with(|recorded| recorded.values.insert(self.0.clone(), value));
    }
}

impl HistogramFn for Value {
    fn record(&self, value: f64) {
        assert!(value > 0.0 && value < 60.0, "{value} seconds");
        CounterFn::increment(self, 1);
    }
}

fn note(key: &Key) -> Arc<Value> {
    let labels: Vec<_> = key
        .labels()
        .map(|label| format!("{}={}", label.key(), label.value()))
        .collect();
    with(|recorded| {
        let known = recorded.labels.entry(key.name().to_owned()).or_default();
        known.extend(key.labels().map(|label| label.key().to_owned()));
    });
    Arc::new(Value(format!("{}{{{}}}", key.name(), labels.join(","))))
}

fn describe(kind: &'static str, name: &KeyName, unit: Option<Unit>, help: &SharedString) {
    assert!(!help.is_empty());
    let about = (kind, unit.map_or("", |unit| unit.as_str()));
    let before = with(|recorded| recorded.described.insert(name.as_str().to_owned(), about));
    assert!(before.is_none_or(|before| before == about), "{name:?}");
}

impl Recorder for Collector {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, help: SharedString) {
        describe("counter", &key, unit, &help);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, help: SharedString) {
        describe("gauge", &key, unit, &help);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, help: SharedString) {
        describe("histogram", &key, unit, &help);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(note(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(note(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(note(key))
    }
}

/// Returns a cache with hits in memory and on disk, and misses, enough that some of the reads were timed.
fn used(name: &str) -> Cache {
    with(|_| ());
    let disk = Disk::store(Arc::new(MemoryStore::new(4096).unwrap()), 16 << 20);
    let cache = small().name(name).disk(disk).advice(true).build().unwrap();
    for n in 0..1000 {
        cache.insert(&key(n), &noise(n, 200)).unwrap();
    }
    cache.spill().unwrap();
    for _ in 0..2 {
        // The second time from memory.
        for n in 0..1000 {
            assert!(cache.get(&key(n)).unwrap().is_some());
        }
    }
    for n in 1000..2000 {
        assert!(cache.get(&key(n)).unwrap().is_none());
    }
    assert!(cache.remove(&key(0)).unwrap());
    cache
}

/// Rows of the page's table of metrics: name, type, unit, labels.
fn documented() -> Vec<(String, String, String, BTreeSet<String>)> {
    let page = include_str!("../../../../docs/metrics.md");
    let rows = page.lines().filter(|line| line.starts_with("| `leafpress_cache_"));
    rows.map(|row| {
        let cells: Vec<_> = row.split('|').map(|cell| cell.trim().replace('`', "")).collect();
        let labels = cells[4].split([',', ' ']).filter(|label| !label.is_empty());
        // The values of a label follow it: `tier=memory/disk`.
        let labels = labels.map(|label| label.split('=').next().unwrap().to_owned());
        (cells[1].clone(), cells[2].clone(), cells[3].clone(), labels.collect())
    })
    .collect()
}

#[test]
fn what_is_published_is_what_the_page_lists() {
    let cache = used("listed");
    cache.publish_metrics();
    let documented = documented();
    with(|recorded| {
        for (name, kind, unit, labels) in &documented {
            let about = recorded
                .described
                .get(name)
                .unwrap_or_else(|| panic!("{name} is not published"));
            assert_eq!(*about, (kind.as_str(), unit.as_str()), "{name}");
            let mut expected = labels.clone();
            expected.insert("cache".to_owned());
            assert_eq!(recorded.labels.get(name), Some(&expected), "{name}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
            assert_eq!(
                unit == "bytes",
                name.trim_end_matches("_total").ends_with("_bytes"),
                "{name}"
            );
            assert_eq!(unit == "seconds", name.ends_with("_seconds"), "{name}");
        }
        let names: BTreeSet<_> = documented.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names.len(), documented.len());
        for name in recorded.labels.keys().chain(recorded.described.keys()) {
            assert!(names.contains(name.as_str()), "{name} is not in docs/metrics.md");
        }
    });
}

#[test]
fn what_is_published_is_what_happened() {
    let cache = used("counted");
    cache.publish_metrics();
    let stats = cache.stats();
    let disk = stats.disk.as_ref().unwrap();
    let value = |name: &str, label: &str| value("counted", &format!("leafpress_cache_{name}"), label).unwrap();
    assert_eq!(
        value("hits_total", "tier=memory") + value("hits_total", "tier=disk"),
        2000.0
    );
    assert_eq!(value("hits_total", "tier=disk"), stats.disk_hits as f64);
    assert!(stats.disk_hits >= 990 && stats.hits == 2000, "{stats:?}");
    assert_eq!(value("misses_total", ""), 1000.0);
    assert_eq!(value("inserts_total", ""), 1000.0);
    assert_eq!(value("removes_total", ""), 1.0);
    assert_eq!(value("memory_bytes", ""), f64::from(4 << 20));
    assert!(value("held_bytes", "") > 0.0 && value("compression_ratio", "") > 0.0);
    assert_eq!(value("disk_written_bytes_total", ""), disk.written_bytes as f64);
    assert!(disk.read_bytes() > 0 && value("disk_read_bytes_total", "") == disk.read_bytes() as f64);
    // One in 256 reads is timed, and every read of the device.
    for outcome in ["memory", "disk", "miss"] {
        let timed = value("get_duration_seconds", &format!("outcome={outcome}"));
        assert!((2.0..=6.0).contains(&timed), "{outcome}: {timed}");
    }
    assert!(value("disk_read_duration_seconds", "") > 500.0);
}

#[test]
fn the_caches_thread_publishes_by_itself() {
    with(|_| ());
    let cache = small().name("by itself").build().unwrap();
    cache.insert("key", "value").unwrap();
    let began = Instant::now();
    while value("by itself", "leafpress_cache_inserts_total", "") != Some(1.0) {
        assert!(began.elapsed() < Duration::from_secs(600), "nothing is published");
        std::thread::sleep(Duration::from_millis(50));
    }
    // Without a disk tier its metrics are not published.
    assert_eq!(value("by itself", "leafpress_cache_disk_records", ""), None);
    assert_eq!(value("by itself", "leafpress_cache_hits_total", "tier=disk"), None);
    drop(cache);
}
