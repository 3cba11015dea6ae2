//! Crash tests: at whatever moment a process is killed, the next one finds only the last written values on disk.
//!
//! The tests start themselves as another process that works on a cache, and kill it while it opens, works or closes.
//! Each write and removal is logged before it begins and after it has ended, in a file that outlives the process.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use leafpress::Cache;
use leafpress::cache::{CacheUpdate, Disk, InsertOptions};

use crate::{key, noise, small};

/// The environment variable, set in the child process, with the directory.
const WORKS_IN: &str = "LEAFPRESS_TEST_CRASHES_IN";
/// The environment variable with the number of child processes; more take longer.
const ROUNDS: &str = "LEAFPRESS_TEST_CRASH_ROUNDS";
const KEYS: u64 = 24_000;
const THREADS: u64 = 3;
/// Less than all records take, so that the oldest are dropped.
const DISK_BYTES: u64 = 14 << 20;

/// The values that may be found for a key besides none: those of these versions.
#[derive(Debug, Clone, Default)]
struct May {
    done: Option<u64>,
    begun: Vec<Option<u64>>,
}

/// Size of a log's entry: none spans two pages of a file, where a kill may leave its first part only.
const ENTRY_BYTES: usize = 32;

/// The step of a write in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Done = 1,
    Begun = 2,
    /// The write failed.
    Undone = 3,
}

/// Represents all keys.
const ALL: u64 = u64::MAX;

/// The log of one thread. Entries are `[step, number over all threads, key, version]`, version 0 for a removal.
struct Log<'s> {
    file: File,
    sequence: &'s AtomicU64,
}

impl<'s> Log<'s> {
    fn open(directory: &Path, thread: u64, sequence: &'s AtomicU64) -> Self {
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).open(log_of(directory, thread));
        Self {
            file: file.unwrap(),
            sequence,
        }
    }

    fn record(&mut self, step: Step, n: u64, version: Option<u64>) {
        let number = self.sequence.fetch_add(1, Ordering::SeqCst);
        let mut entry = [0; ENTRY_BYTES];
        let words = [step as u64, number, n, version.unwrap_or(0)];
        for (into, word) in entry.chunks_exact_mut(8).zip(words) {
            into.copy_from_slice(&word.to_le_bytes());
        }
        self.file.write_all(&entry).unwrap();
    }
}

fn log_of(directory: &Path, thread: u64) -> std::path::PathBuf {
    directory.join(format!("log.{thread}"))
}

/// Reads the logs: the values that may be found for each key, the last version and the last number.
fn read_logs(directory: &Path) -> (HashMap<u64, May>, u64, u64) {
    let mut entries = Vec::new();
    for thread in 0..=THREADS {
        let mut log = Vec::new();
        if let Ok(mut file) = File::open(log_of(directory, thread)) {
            file.read_to_end(&mut log).unwrap();
        }
        let number = |entry: &[u8], at: usize| u64::from_le_bytes(entry[at..at + 8].try_into().unwrap());
        let words = |entry: &[u8]| [8, 0, 16, 24].map(|at| number(entry, at));
        entries.extend(log.chunks_exact(ENTRY_BYTES).map(words));
    }
    entries.sort_unstable();
    let (mut may, mut last) = (HashMap::<u64, May>::new(), 0);
    for &[_, step, n, version] in &entries {
        last = last.max(version);
        let version = (version > 0).then_some(version);
        match (step, n) {
            (2, ALL) => {}
            (_, ALL) => may.clear(),
            (1, n) => {
                let may = may.entry(n).or_default();
                (may.done, may.begun) = (version, Vec::new());
            }
            (2, n) => may.entry(n).or_default().begun.push(version),
            (_, n) => may.entry(n).or_default().begun.retain(|begun| *begun != version),
        }
    }
    (may, last, entries.last().map_or(0, |entry| entry[0]))
}

fn now_ms() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis() as u64
}

/// A value contains its version and its expiry (in ms; 0 for never). Some are longer than a page of the disk.
fn value(n: u64, version: u64, over_ms: u64) -> Vec<u8> {
    let len = match n % 64 {
        0 => 9_000,
        1 => 30_000,
        _ => 420,
    };
    let mut value = noise(n * 1009 + version, len);
    value[..8].copy_from_slice(&version.to_le_bytes());
    value[8..16].copy_from_slice(&over_ms.to_le_bytes());
    value
}

/// Returns the version of a value, and checks all its bytes.
fn version_of(n: u64, found: &[u8]) -> u64 {
    let word = |at: usize| u64::from_le_bytes(found[at..at + 8].try_into().unwrap());
    let (version, over_ms) = (word(0), word(8));
    assert!(found == value(n, version, over_ms), "{n}: not a written value");
    // The process may have been suspended since it was read.
    assert!(over_ms == 0 || now_ms() < over_ms + 10_000, "{n}: found after its time");
    version
}

fn build(directory: &Path, recovers: bool) -> Cache {
    let disk = Disk::file(directory.join("cache"), DISK_BYTES).recover_after_crash(recovers);
    small().disk(disk).build().unwrap()
}

/// Looks up all keys, returns how many are present, and checks each.
fn look(cache: &Cache, directory: &Path, sequence: &AtomicU64) -> u64 {
    let (may, last, number) = read_logs(directory);
    sequence.store(number + 1, Ordering::SeqCst);
    let mut log = Log::open(directory, THREADS, sequence);
    let mut found = 0;
    for n in 0..KEYS {
        let Some(there) = cache.get(&key(n)).unwrap() else {
            continue;
        };
        let version = version_of(n, &there);
        let may = may.get(&n).cloned().unwrap_or_default();
        assert!(
            may.done == Some(version) || may.begun.contains(&Some(version)),
            "{n}: version {version} was found of {may:?}"
        );
        if !may.begun.is_empty() {
            // A value that was found once is the last one from then on.
            log.record(Step::Done, n, Some(version));
        }
        found += 1;
    }
    println!("found {found}");
    last
}

/// One of the writing threads.
struct Worker<'w> {
    cache: &'w Cache,
    log: Log<'w>,
    rng: fastrand::Rng,
    version: u64,
    thread: u64,
    /// Held exclusively by a thread that clears the cache.
    alone: &'w RwLock<()>,
}

impl Worker<'_> {
    fn step(&mut self) {
        if self.thread == 0 && self.rng.u32(..60_000) == 0 {
            let _alone = self.alone.write().unwrap();
            self.log.record(Step::Begun, ALL, None);
            self.cache.clear().unwrap();
            self.log.record(Step::Done, ALL, None);
        }
        let _others = self.alone.read().unwrap();
        // Some keys are written repeatedly.
        let most = if self.rng.u8(..4) == 0 { 300 } else { KEYS / THREADS };
        let n = self.rng.u64(..most) * THREADS + self.thread;
        self.version += THREADS;
        match self.rng.u8(..16) {
            0 | 1 => self.remove(n),
            2 => self.update(n),
            3 | 4 => self.load(n),
            5 => self.expiring(n),
            _ => self.insert(n),
        }
        if self.rng.bool() {
            let n = self.rng.u64(..KEYS);
            if let Some(found) = self.cache.get(&key(n)).unwrap() {
                version_of(n, &found);
            }
        }
    }

    fn remove(&mut self, n: u64) {
        self.log.record(Step::Begun, n, None);
        match self.rng.u8(..3) {
            0 => drop(self.cache.take(&key(n)).unwrap()),
            _ => drop(self.cache.remove(&key(n)).unwrap()),
        }
        self.log.record(Step::Done, n, None);
    }

    fn insert(&mut self, n: u64) {
        self.log.record(Step::Begun, n, Some(self.version));
        self.cache.insert(&key(n), &value(n, self.version, 0)).unwrap();
        self.log.record(Step::Done, n, Some(self.version));
    }

    fn expiring(&mut self, n: u64) {
        self.log.record(Step::Begun, n, Some(self.version));
        let value = value(n, self.version, now_ms() + 1000);
        let entry = InsertOptions::ttl(Duration::from_secs(1));
        self.cache.insert_entry(&key(n), &value, entry).unwrap();
        self.log.record(Step::Done, n, Some(self.version));
    }

    fn update(&mut self, n: u64) {
        self.log.record(Step::Begun, n, Some(self.version));
        let version = self.version;
        let answer = self.cache.update_with(&key(n), |_| {
            CacheUpdate::PutWith(value(n, version, 0), InsertOptions::default())
        });
        answer.unwrap();
        self.log.record(Step::Done, n, Some(self.version));
    }

    fn load(&mut self, n: u64) {
        self.log.record(Step::Begun, n, Some(self.version));
        let version = self.version;
        let found = self.cache.get_or_insert_with(&key(n), || value(n, version, 0)).unwrap();
        let step = if version_of(n, &found) == version {
            Step::Done
        } else {
            Step::Undone
        };
        self.log.record(step, n, Some(version));
    }
}

/// Works on the cache until its standard input ends, and closes it then.
fn work(directory: &Path, recovers: bool) {
    let cache = build(directory, recovers);
    let sequence = AtomicU64::new(0);
    let last = look(&cache, directory, &sequence);
    let (is_over, alone) = (AtomicBool::new(false), RwLock::new(()));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let mut worker = Worker {
                cache: &cache,
                log: Log::open(directory, thread, &sequence),
                rng: fastrand::Rng::new(),
                version: (last / THREADS + 1) * THREADS + thread,
                thread,
                alone: &alone,
            };
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    worker.step();
                }
            });
        }
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        is_over.store(true, Ordering::Relaxed);
    });
    cache.close().unwrap();
}

fn start(directory: &Path, name: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(WORKS_IN, directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Returns how many keys the process has found, once it has looked up all; [`None`] if it ended before.
fn found(child: &mut Child) -> Option<u64> {
    let out = BufReader::new(child.stdout.as_mut().unwrap());
    let mut lines = out.lines().map_while(Result::ok);
    lines.find_map(|line| line.split("found ").nth(1)?.parse().ok())
}

/// Waits for the process's end, and checks that it reported no error. A killed one may have been about to report one.
fn end(mut child: Child, is_killed: bool) {
    let _ = std::io::copy(child.stdout.as_mut().unwrap(), &mut std::io::sink());
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() || is_killed && !errors.contains("panicked"),
        "{}: {errors}",
        output.status
    );
}

/// Results of all rounds: the maximum after a close, and after a kill the maximum, the sum and the count.
#[derive(Debug, Default)]
struct Seen {
    most_after_close: u64,
    most_after_kill: u64,
    sum_after_kill: u64,
    kills: u64,
}

/// Starts processes and kills most of them. Each checks what the one before left.
fn kill_again_and_again(name: &str, least_rounds: u32) -> Seen {
    let rounds = std::env::var(ROUNDS).ok().and_then(|rounds| rounds.parse().ok());
    let directory = tempfile::tempdir().unwrap();
    let mut rng = fastrand::Rng::new();
    let pause = |rng: &mut fastrand::Rng, most_ms| thread::sleep(Duration::from_millis(rng.u64(..most_ms)));
    let (mut seen, mut was_killed) = (Seen::default(), None);
    let mut note = |found: Option<u64>, was_killed: Option<bool>| match (found, was_killed) {
        (Some(found), Some(true)) => {
            seen.most_after_kill = seen.most_after_kill.max(found);
            seen.sum_after_kill += found;
            seen.kills += 1;
        }
        (Some(found), Some(false)) => seen.most_after_close = seen.most_after_close.max(found),
        _ => {}
    };
    for round in 0..rounds.unwrap_or(least_rounds) {
        let mut child = start(directory.path(), name);
        let closes = round % 4 == 0;
        if closes || rng.u8(..5) > 0 {
            note(found(&mut child), was_killed);
            pause(&mut rng, 900);
        } else {
            // During its opening.
            pause(&mut rng, 100);
        }
        let mut is_killed = !closes;
        if closes {
            drop(child.stdin.take());
            is_killed = rng.u8(..4) == 0;
            if is_killed {
                // During its work.
                pause(&mut rng, 60);
            }
        }
        if is_killed {
            child.kill().unwrap();
        }
        end(child, is_killed);
        was_killed = Some(is_killed);
    }
    // The last two are not killed: the second has what the first closed.
    for _ in 0..2 {
        let mut child = start(directory.path(), name);
        note(found(&mut child), was_killed);
        thread::sleep(Duration::from_millis(500));
        drop(child.stdin.take());
        end(child, false);
        was_killed = Some(false);
    }
    seen
}

#[test]
fn what_is_found_after_a_crash_is_what_was_written_last() {
    if let Some(directory) = std::env::var_os(WORKS_IN) {
        return work(Path::new(&directory), false);
    }
    let seen = kill_again_and_again("crash::what_is_found_after_a_crash_is_what_was_written_last", 12);
    println!("{seen:?}");
    assert!(seen.most_after_close > KEYS / 200, "{seen:?}");
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "only Linux has what it needs")]
fn a_cache_that_was_killed_is_found_again_without_what_was_replaced() {
    if let Some(directory) = std::env::var_os(WORKS_IN) {
        return work(Path::new(&directory), true);
    }
    let seen = kill_again_and_again(
        "crash::a_cache_that_was_killed_is_found_again_without_what_was_replaced",
        20,
    );
    println!("{seen:?}");
    assert!(seen.most_after_close > KEYS / 200, "{seen:?}");
    assert!(seen.most_after_kill > KEYS / 200, "{seen:?}");
}
