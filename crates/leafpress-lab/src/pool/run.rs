//! A run: pages, a pool over them, workers in step, samples, and what is proved at the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use leafpress::store::PageStore;
use leafpress_pages::PagePool;

use super::data::Data;
use super::driver::{Event, measure};
use super::ledger::Ledger;
use super::{Options, Report};
use crate::core::LabError;
use crate::core::latency::Histograms;
use crate::core::resources::{refuse_huge_pages, release_free_memory, resident_anonymous_bytes};
use crate::harness::Phase;

/// Runs the workload on a pool, in this process, which gets no transparent huge pages from then on. A cancelled run
/// ends early and says so, once its measured time has begun.
///
/// # Errors
/// Options out of bounds, unusable data, a failing store or pool; [`LabError::Cancelled`] before the measured time.
pub fn run(options: &Options, cancel: &AtomicBool, events: &mut dyn FnMut(Event<'_>)) -> Result<Report, LabError> {
    options.validate()?;
    refuse_huge_pages();
    events(Event::Progress(Phase::Corpus, 0.0));
    let data = Data::open(options)?;
    let mut ledger = Ledger::new(data.set.pages, options.verify, options.writes());
    note_pages(&data, &mut ledger, cancel, &mut |done| {
        events(Event::Progress(Phase::Corpus, done))
    })?;
    let histograms = (0..options.workers)
        .map(|_| {
            let mut histograms = Histograms::new()?;
            histograms.touch();
            Ok(histograms)
        })
        .collect::<Result<Vec<_>, LabError>>()?;
    // Memory freed before must not hide the pool's growth.
    release_free_memory();
    let resident_before = resident_anonymous_bytes();
    let pool = build(options, Arc::clone(&data.store))?;
    let pages = (data.origin.as_ref(), &ledger, data.set.pages);
    let mut outcome = measure((options, &pool), pages, histograms, resident_before, cancel, events)?;
    outcome.set = data.set.clone();
    if options.writes() {
        pool.flush()?;
        drop(pool);
        outcome.checks.read_back = read_back(&data, &ledger, &mut |done| events(Event::Progress(Phase::Verify, done)))?;
        outcome.checks.checked += outcome.checks.read_back;
    }
    (outcome.checks.wrong, outcome.checks.examples) = ledger.wrong();
    Ok(Report {
        options: options.clone(),
        host: crate::core::resources::host(),
        outcome,
    })
}

/// Checks what can be known before a run: that the pages exist and match the requested store, that the memory is enough
/// for them and that the codec is available.
///
/// # Errors
/// As [`run`], except for errors that occur only during a run.
pub fn check(options: &Options) -> Result<(), LabError> {
    options.validate()?;
    options.data.find()?;
    build(options, Data::look(options)?).map(drop)
}

fn build(options: &Options, store: Arc<dyn PageStore>) -> Result<PagePool, LabError> {
    let mut builder = PagePool::builder(store)
        .memory(options.budget_bytes as usize)
        .codec(options.codec)
        .share(options.share)
        .policy(options.policy);
    if let Some(hits) = options.promote_after_hits {
        builder = builder.promote_after_hits(hits);
    }
    if let Some(threads) = options.background_threads {
        builder = builder.background_threads(threads);
    }
    Ok(builder.build()?)
}

/// Takes down what every watched page holds.
fn note_pages(
    data: &Data,
    ledger: &mut Ledger,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Result<(), LabError> {
    let mut buffer = Vec::new();
    for page in 0..data.set.pages {
        if page % 1024 == 0 {
            if cancel.load(Ordering::Relaxed) {
                return Err(LabError::Cancelled);
            }
            progress(page as f64 / data.set.pages as f64);
        }
        if ledger.watches(page) {
            data.read_origin(page, &mut buffer)?;
            ledger.note(page, &buffer);
        }
    }
    Ok(())
}

/// Compares every watched page in the store with its expected contents after the last flush; returns how many there
/// were.
fn read_back(data: &Data, ledger: &Ledger, progress: &mut dyn FnMut(f64)) -> Result<u64, LabError> {
    let (mut buffer, mut count) = (Vec::new(), 0);
    for page in 0..data.set.pages {
        if page % 1024 == 0 {
            progress(page as f64 / data.set.pages as f64);
        }
        if !ledger.watches(page) {
            continue;
        }
        count += 1;
        let done = ledger.done(page);
        let read = data.beneath.page_bytes(page).and_then(|len| {
            buffer.resize(len, 0);
            data.beneath.read(page, &mut buffer)
        });
        match read {
            Ok(()) => {
                ledger.check(page, &buffer, done);
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                ledger.check_absent(page, done);
            }
            Err(e) => ledger.accuse(format!("page {page}: cannot be read back: {e}")),
        }
    }
    Ok(count)
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
