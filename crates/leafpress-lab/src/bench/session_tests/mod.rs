//! Runs as a whole, and among them everything that PiBench gets wrong.

mod failing;
mod faulty;
mod load;
mod measuring;
mod operations;

use std::sync::Arc;

use self::faulty::Faulty;
use super::*;

fn options(records: u64, operations: u64, threads: usize) -> Options {
    let mut options = Options::new("btreemap".parse().unwrap());
    (options.records, options.operations, options.threads) = (records, operations, threads);
    options.hardware = false;
    options
}

fn run_on(index: Faulty, options: &Options) -> (Arc<Faulty>, Result<Report, LabError>) {
    let index = Arc::new(index);
    let open = || Ok(Box::new(Arc::clone(&index)) as Box<dyn Index>);
    let report = run_with(options, &open, &AtomicBool::new(false), &mut |_| {});
    (Arc::clone(&index), report)
}

fn outcome(options: &Options) -> Outcome {
    let (_, report) = run_on(Faulty::default(), options);
    report.unwrap().outcomes.remove(0)
}
