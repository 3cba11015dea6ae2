//! Rounds: threads operate on one structure, and their history is checked when all have ended.

use std::thread;
use std::time::{Duration, Instant};

use crate::log::{Clock, Event, Recorder};
use crate::zones::violations;

/// Environment variable with the number of seconds that each test runs; without it the number of rounds is fixed.
const SECONDS: &str = "LEAFPRESS_HISTORY_SECONDS";
const THREADS: u64 = 6;
const OPERATIONS: u64 = 1500;
/// Number of keys that most operations use, and of all keys.
const HOT: u32 = 12;
pub const KEYS: u32 = 1200;

/// State of a thread.
pub struct Worker<'c> {
    pub random: fastrand::Rng,
    pub log: Recorder<'c>,
}

impl Worker<'_> {
    pub fn key(&mut self) -> u32 {
        let keys = if self.random.u8(..) < 180 { HOT } else { KEYS };
        self.random.u32(..keys)
    }

    /// Returns a length that is valid for values of any structure.
    pub fn len(&mut self) -> usize {
        match self.random.u8(..) {
            0..6 => self.random.usize(5000..30_000),
            6..100 => self.random.usize(400..4000),
            _ => self.random.usize(16..400),
        }
    }
}

/// The subject of a round: `step` does one operation, `end` is called when all threads have ended.
pub trait Subject: Sync {
    fn step(&self, worker: &mut Worker<'_>);

    fn end(&self, _worker: &mut Worker<'_>) {}

    /// Returns violations of the structure's guarantees other than the order of values.
    fn more_violations(&self, _events: &[Event]) -> Vec<String> {
        Vec::new()
    }
}

/// Runs at least `least` rounds, each with a subject that `make` creates from its number. Panics if there are
/// violations.
pub fn explore<S: Subject>(name: &str, least: u64, make: impl Fn(u64) -> S) {
    let seconds: Option<u64> = std::env::var(SECONDS)
        .ok()
        .map(|seconds| seconds.parse().expect(SECONDS));
    let time = Duration::from_secs(seconds.unwrap_or(0));
    let began = Instant::now();
    let (mut operations, mut found, mut rounds) = (0, Vec::new(), 0);
    while rounds < least || began.elapsed() < time {
        let clock = Clock::default();
        let subject = make(rounds);
        let work = |thread: u64| {
            let mut worker = Worker {
                random: fastrand::Rng::with_seed(rounds * 1000 + thread),
                log: Recorder::new(&clock, thread),
            };
            for _ in 0..OPERATIONS {
                subject.step(&mut worker);
            }
            worker
        };
        let mut workers: Vec<Worker<'_>> = thread::scope(|scope| {
            let work = &work;
            let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || work(thread))).collect();
            let joined = threads.into_iter().map(|thread| thread.join().expect("no panic"));
            joined.collect()
        });
        subject.end(&mut workers[0]);
        operations += workers.iter().map(|worker| worker.log.operations).sum::<u64>();
        let events: Vec<Event> = workers.into_iter().flat_map(|worker| worker.log.events).collect();
        let of_round = violations(&events).into_iter().chain(subject.more_violations(&events));
        found.extend(of_round.map(|violation| format!("round {rounds}, {violation}")));
        rounds += 1;
    }
    let took = began.elapsed().as_secs_f64() / 60.0;
    println!(
        "{name}: {rounds} rounds of {THREADS} threads, {operations} operations in {took:.2} minutes, {} violations",
        found.len()
    );
    assert!(
        found.is_empty(),
        "{name}: {} violations:\n{}",
        found.len(),
        found[..found.len().min(20)].join("\n")
    );
}
