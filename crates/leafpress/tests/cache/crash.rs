//! Whatever moment a process ends at, what the next one finds on disk was the last that was written.
//!
//! The test starts itself as another process that works on a cache, and kills it: while it opens, works or closes. Each write and removal is in
//! a log before it begins and after it is done, which outlasts the process.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use leafpress::Cache;
use leafpress::cache::Disk;

use crate::{key, noise, small};

/// Set in the process that works on the cache: the directory.
const WORKS_IN: &str = "LEAFPRESS_TEST_CRASHES_IN";
/// How often a process is started; more take longer.
const ROUNDS: &str = "LEAFPRESS_TEST_CRASH_ROUNDS";
const KEYS: u64 = 12_000;
const THREADS: u64 = 2;
const NAME: &str = "crash::what_is_found_after_a_crash_is_what_was_written_last";

/// What may be found of a key: nothing, or values of these versions.
#[derive(Debug, Clone, Copy, Default)]
struct May {
    done: Option<u64>,
    begun: Option<u64>,
}

fn log_of(directory: &Path, thread: u64) -> std::path::PathBuf {
    directory.join(format!("log.{thread}"))
}

/// Bytes of a log's entry: none is in two pages of a file, where one who is killed may write its first part only.
const ENTRY_BYTES: usize = 32;

/// A log's entries are `[begun u64, key u64, version u64]` and nothing, version 0 for a removal.
fn entry(begun: bool, n: u64, version: u64) -> [u8; ENTRY_BYTES] {
    let mut entry = [0; ENTRY_BYTES];
    for (into, number) in entry.chunks_exact_mut(8).zip([begun.into(), n, version]) {
        into.copy_from_slice(&number.to_le_bytes());
    }
    entry
}

fn read_logs(directory: &Path) -> (HashMap<u64, May>, u64) {
    let (mut may, mut last) = (HashMap::<u64, May>::new(), 0);
    for thread in 0..THREADS {
        let mut log = Vec::new();
        if let Ok(mut file) = File::open(log_of(directory, thread)) {
            file.read_to_end(&mut log).unwrap();
        }
        for entry in log.chunks_exact(ENTRY_BYTES) {
            let number = |at: usize| u64::from_le_bytes(entry[at..at + 8].try_into().unwrap());
            let (n, version) = (number(8), number(16));
            last = last.max(version);
            let may = may.entry(n).or_default();
            let version = (version > 0).then_some(version);
            match number(0) {
                0 => {
                    *may = May {
                        done: version,
                        begun: None,
                    }
                }
                _ => may.begun = version,
            }
        }
    }
    (may, last)
}

fn value(n: u64, version: u64) -> Vec<u8> {
    let mut value = noise(n * 1009 + version, 420);
    value[..8].copy_from_slice(&version.to_le_bytes());
    value
}

/// Works on the cache until its standard input ends, and closes it then.
fn work(directory: &Path) {
    let cache: Cache = small()
        .disk(Disk::file(directory.join("cache"), 32 << 20))
        .build()
        .unwrap();
    let (may, last) = read_logs(directory);
    let mut found = 0;
    for n in 0..KEYS {
        let Some(there) = cache.get(&key(n)).unwrap() else {
            continue;
        };
        let version = u64::from_le_bytes(there[..8].try_into().unwrap());
        let may = may.get(&n).copied().unwrap_or_default();
        assert!(
            [may.done, may.begun].contains(&Some(version)),
            "{n}: version {version} was found of {may:?}"
        );
        assert!(there == value(n, version), "{n}: bytes of nobody");
        found += 1;
    }
    println!("found {found}");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (cache, is_over) = (&cache, &is_over);
            scope.spawn(move || {
                let mut log = OpenOptions::new()
                    .create(true)
                    .append(true)
                    .open(log_of(directory, thread))
                    .unwrap();
                let mut rng = fastrand::Rng::new();
                let mut version = (last / THREADS + 1) * THREADS + thread;
                while !is_over.load(Ordering::Relaxed) {
                    let n = rng.u64(..KEYS / THREADS) * THREADS + thread;
                    let is_removal = rng.u8(..) < 32;
                    version += THREADS;
                    let written = if is_removal { 0 } else { version };
                    log.write_all(&entry(true, n, written)).unwrap();
                    if is_removal {
                        cache.remove(&key(n)).unwrap();
                    } else {
                        cache.insert(&key(n), &value(n, version)).unwrap();
                    }
                    log.write_all(&entry(false, n, written)).unwrap();
                    if rng.bool() {
                        let _ = cache.get(&key(rng.u64(..KEYS))).unwrap();
                    }
                }
            });
        }
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        is_over.store(true, Ordering::Relaxed);
    });
    cache.close().unwrap();
}

fn start(directory: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(WORKS_IN, directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// How many keys the process has found, once it has looked for all; nothing if it ended before.
fn found(child: &mut Child) -> Option<u64> {
    let out = BufReader::new(child.stdout.as_mut().unwrap());
    let mut lines = out.lines().map_while(Result::ok);
    lines.find_map(|line| line.split("found ").nth(1)?.parse().ok())
}

/// Waits for its end, and sees that it found nothing wrong. One that was killed may have been about to say so.
fn end(mut child: Child, is_killed: bool) {
    let _ = std::io::copy(child.stdout.as_mut().unwrap(), &mut std::io::sink());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() || is_killed && !said.contains("panicked"),
        "{}: {said}",
        output.status
    );
}

#[test]
fn what_is_found_after_a_crash_is_what_was_written_last() {
    if let Some(directory) = std::env::var_os(WORKS_IN) {
        return work(Path::new(&directory));
    }
    let rounds = std::env::var(ROUNDS).ok().and_then(|rounds| rounds.parse().ok());
    let directory = tempfile::tempdir().unwrap();
    let mut rng = fastrand::Rng::new();
    let pause = |rng: &mut fastrand::Rng, most_ms| thread::sleep(Duration::from_millis(rng.u64(..most_ms)));
    let mut most_found = 0;
    for round in 0..rounds.unwrap_or(16) {
        let mut child = start(directory.path());
        let closes = round % 2 == 0;
        if closes || rng.u8(..4) > 0 {
            most_found = most_found.max(found(&mut child).unwrap_or_default());
            pause(&mut rng, 600);
        } else {
            // While it opens.
            pause(&mut rng, 100);
        }
        let mut is_killed = !closes;
        if closes {
            drop(child.stdin.take());
            is_killed = rng.u8(..4) == 0;
            if is_killed {
                // On its way.
                pause(&mut rng, 60);
            }
        }
        if is_killed {
            child.kill().unwrap();
        }
        end(child, is_killed);
    }
    // The last two are left alone: what one closed the other has.
    for _ in 0..2 {
        let mut child = start(directory.path());
        most_found = most_found.max(found(&mut child).unwrap_or_default());
        thread::sleep(Duration::from_millis(500));
        drop(child.stdin.take());
        end(child, false);
    }
    assert!(most_found > KEYS / 4, "{most_found} of {KEYS} were found at most");
}
