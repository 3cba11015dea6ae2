//! Measures the cost of recording the latency of every operation, in throughput and in CPU time, and how much of that
//! is the clock's: the processor's time-stamp counter read once for each operation, and nothing done with it.
//!
//! One index is loaded once and then run in all three ways in turn, so that they see the same memory and the same
//! disturbances. Arguments: INPUT (leafpress:lz4), records (1000000), threads (2), rounds (101), operations of a run
//! (200000), bytes of a value (8).

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use leafpress_lab::bench::{Index, IndexError, KeyOrder, Options, Outcome, Report, Spread, run_with};
use quanta::Clock;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The index, with a clock read per operation if configured.
struct Clocked {
    index: Box<dyn Index>,
    clock: Clock,
    reads_clock: AtomicBool,
}

impl Clocked {
    #[inline]
    fn then_read<R>(&self, result: R) -> R {
        if self.reads_clock.load(Ordering::Relaxed) {
            std::hint::black_box(self.clock.raw());
        }
        result
    }
}

impl Index for Clocked {
    fn find(&self, key: &[u8], value_out: &mut [u8]) -> Result<bool, IndexError> {
        self.then_read(self.index.find(key, value_out))
    }

    fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, IndexError> {
        self.then_read(self.index.insert(key, value))
    }

    fn update(&self, key: &[u8], value: &[u8]) -> Result<bool, IndexError> {
        self.then_read(self.index.update(key, value))
    }

    fn remove(&self, key: &[u8]) -> Result<bool, IndexError> {
        self.then_read(self.index.remove(key))
    }

    fn scan(&self, key: &[u8], records: usize, out: &mut Vec<u8>) -> Result<usize, IndexError> {
        self.then_read(self.index.scan(key, records, out))
    }

    fn name(&self) -> String {
        self.index.name()
    }

    fn stores(&self) -> bool {
        self.index.stores()
    }

    fn key_order(&self) -> KeyOrder {
        self.index.key_order()
    }

    fn settle(&self) -> Result<(), IndexError> {
        self.index.settle()
    }
}

/// A way to run, and its figures: operations per second and nanoseconds of CPU time per operation.
struct Way {
    name: &'static str,
    latency_sampling: f64,
    reads_clock: bool,
    figures: Vec<(f64, f64)>,
}

impl Way {
    fn new(name: &'static str, latency_sampling: f64, reads_clock: bool) -> Self {
        Self {
            name,
            latency_sampling,
            reads_clock,
            figures: Vec::new(),
        }
    }
}

fn figures(outcome: &Outcome, operations: u64) -> (f64, f64) {
    let cpu = outcome.cpu.user_seconds + outcome.cpu.system_seconds;
    (outcome.throughput(), cpu * 1e9 / operations as f64)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let input = arguments.next().unwrap_or_else(|| "leafpress:lz4".into());
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |word| word.parse());
    let (records, threads, rounds, operations) = (number(1_000_000)?, number(2)?, number(101)?, number(200_000)?);

    let mut options = Options::new(input.parse()?);
    options.records = records;
    options.operations = 0;
    options.threads = usize::try_from(threads)?;
    options.value_size = usize::try_from(number(8)?)?;
    options.hardware = false;
    let index = Arc::new(Clocked {
        index: options.input.open(&options, None)?,
        clock: Clock::new(),
        reads_clock: AtomicBool::new(false),
    });
    let run = |options: &Options| -> Result<Report, Box<dyn Error>> {
        let open = || Ok(Box::new(Arc::clone(&index)) as Box<dyn Index>);
        Ok(run_with(options, &open, &AtomicBool::new(false), &mut |_| {})?)
    };
    run(&options)?;

    options.skip_load = true;
    options.operations = operations;
    let mut ways = [
        Way::new("not measured", 0.0, false),
        Way::new("clock read", 0.0, true),
        Way::new("all measured", 1.0, false),
    ];
    for round in 0..=rounds {
        for number in 0..ways.len() {
            let way = &mut ways[(number + round as usize) % 3];
            options.latency_sampling = way.latency_sampling;
            index.reads_clock.store(way.reads_clock, Ordering::Relaxed);
            let figures = figures(&run(&options)?.outcomes[0], operations);
            // The first round warms up.
            if round > 0 {
                way.figures.push(figures);
            }
        }
    }
    let [plain, others @ ..] = &ways;
    for way in &ways {
        let median = |pick: fn(&(f64, f64)) -> f64| {
            Spread::of(way.figures.iter().map(pick)).map_or(f64::NAN, |spread| spread.median)
        };
        let (throughput, cpu) = (median(|f| f.0) / 1e6, median(|f| f.1));
        println!(
            "{:>12}: {throughput:.3} Mops/s, {cpu:.1} ns of CPU time per operation",
            way.name
        );
    }
    for way in others {
        for (name, pick) in [
            ("throughput", (|f| 1.0 / f.0) as fn(&(f64, f64)) -> f64),
            ("CPU time", |f| f.1),
        ] {
            // Round by round: what disturbs one disturbs its neighbours too.
            let pairs = way.figures.iter().zip(&plain.figures);
            let mut costs: Vec<_> = pairs
                .map(|(one, plain)| (pick(one) / pick(plain) - 1.0) * 100.0)
                .collect();
            costs.sort_by(f64::total_cmp);
            println!(
                "{:>12} costs {:.1}% of {name} (median of {rounds} rounds, quartiles {:.1}% and {:.1}%)",
                way.name,
                costs[costs.len() / 2],
                costs[costs.len() / 4],
                costs[costs.len() * 3 / 4]
            );
        }
    }
    Ok(())
}
