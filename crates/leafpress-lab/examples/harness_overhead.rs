//! Measures the harness's own cost per operation, in CPU time, which a busy machine does not affect: a run on a map
//! that does nothing but return the right answer.
//!
//! `cargo run --release -p leafpress-lab --example harness_overhead`

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use leafpress::TreeError;
use leafpress_lab::core::corpus::{Assignment, Corpus, Cut, Source};
use leafpress_lab::core::keys::KeyBytes;
use leafpress_lab::eval::LandingBytes;
use leafpress_lab::eval::dataset::Dataset;
use leafpress_lab::eval::driver;
use leafpress_lab::harness::store::Store;
use leafpress_lab::{EvalConfig, LabError, RunSpec, Workload};

/// Returns the values of a map that was loaded and never written. A read copies the value, as in any map.
struct Echo {
    corpus: Arc<Corpus>,
    assignment: Assignment,
    keys: KeyBytes,
    loaded: AtomicBool,
}

impl Store for Echo {
    fn put(&self, _: &[u8], _: &[u8]) -> Result<bool, TreeError> {
        Ok(!self.loaded.load(std::sync::atomic::Ordering::Relaxed))
    }

    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, TreeError> {
        let Some(id) = self.keys.decode(key, 0) else {
            return Ok(false);
        };
        value.clear();
        value.extend_from_slice(self.corpus.get(self.assignment.value(id, 0)));
        Ok(true)
    }

    fn remove(&self, _: &[u8]) -> Result<bool, TreeError> {
        Ok(true)
    }

    fn scan(&self, _: &[u8], _: usize, _: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), TreeError> {
        Ok(())
    }

    fn len(&self) -> usize {
        0
    }

    fn settle(&self) -> Result<(), TreeError> {
        self.loaded.store(true, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }
}

fn main() -> Result<(), LabError> {
    println!(
        "{:>10} {:>10} {:>10} {:>8} {:>10} {:>10}",
        "workload", "keys", "latency", "CPU ns", "p50 ns", "p99 ns"
    );
    let corpus = Arc::new(Corpus::load(&Source::Synthetic(0.5), Cut::Fixed(128), false, 1)?);
    for keys in [50_000, 1_000_000] {
        for workload in [Workload::ReadOnly, Workload::WriteOnly] {
            for (name, measure_latency, samples) in [("every op", true, 0), ("4096", true, 4096), ("off", false, 0)] {
                let base = EvalConfig {
                    keys,
                    measure_latency,
                    seconds: 1.0,
                    latency_samples_per_thread: samples,
                    ..EvalConfig::default()
                };
                let spec = RunSpec {
                    run: "overhead".into(),
                    codec: "none".into(),
                    workload,
                    threads: 1,
                    landing_bytes: LandingBytes::Auto,
                    background: false,
                    check_one_in: 1,
                    base,
                };
                let data = Dataset::shaped(Arc::clone(&corpus), &spec.base);
                let make = || -> Result<Box<dyn Store>, LabError> {
                    let loaded = AtomicBool::new(false);
                    Ok(Box::new(Echo {
                        corpus: Arc::clone(&corpus),
                        assignment: corpus.assignment(keys, data.pairing),
                        keys: KeyBytes::new(8),
                        loaded,
                    }))
                };
                let result = driver::run_store(&spec, &data, &make, &AtomicBool::new(false), &mut |_, _| {})?;
                let latency = result.read_latency.as_ref().or(result.write_latency.as_ref());
                let ns = |figure: Option<u64>| figure.map_or_else(|| "NA".into(), |ns| ns.to_string());
                println!(
                    "{:>10} {keys:>10} {name:>10} {:>8.1} {:>10} {:>10}",
                    workload.name(),
                    1e9 / result.qps_per_core().unwrap_or(f64::NAN),
                    ns(latency.map(|l| l.p50_ns)),
                    ns(latency.map(|l| l.p99_ns)),
                );
            }
        }
    }
    Ok(())
}
