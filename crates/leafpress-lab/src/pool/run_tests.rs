use leafpress::Codec;
use leafpress_pages::pool::RawShare;

use super::super::{StoreKind, Verify, Warmup, document};
use super::*;
use crate::core::corpus::Source;
use crate::core::keys::Distribution;

/// A short run on half-compressible pages in memory.
fn options() -> Options {
    let mut options = Options::new(Source::Synthetic(0.5));
    options.store = Some(StoreKind::Memory);
    options.page_bytes = 1024;
    options.max_pages = Some(800);
    options.budget_bytes = 256 << 10;
    options.seconds = 0.3;
    options.workers = 2;
    options.distribution = Distribution::HotSet {
        keys_pct: 20.0,
        operations_pct: 80.0,
    };
    options
}

fn run_of(options: &Options) -> Report {
    run(options, &AtomicBool::new(false), &mut |_| {}).unwrap()
}

/// Invariants of every run.
#[track_caller]
fn assert_sound(report: &Report) {
    let outcome = &report.outcome;
    let work = &outcome.work;
    assert!(work.acquisitions > 0 && work.rounds > 0, "{work:?}");
    assert_eq!(outcome.hits() + outcome.misses(), work.acquisitions);
    assert_eq!(outcome.checks.wrong, 0, "{:?}", outcome.checks.examples);
    let latency = outcome.acquire.as_ref().unwrap();
    assert_eq!(
        latency.samples,
        work.acquisitions - work.creates,
        "every page got is measured"
    );
    assert!(outcome.most_over_budget(&report.options) <= 0, "{:?}", outcome.held);
    assert!(outcome.seconds > 0.0 && !outcome.interrupted && !outcome.samples.is_empty());
    let measured = outcome.samples.iter().filter(|sample| sample.measured);
    assert_eq!(
        measured.map(|sample| sample.acquisitions).sum::<u64>(),
        work.acquisitions
    );
}

#[test]
fn reads_only() {
    let mut options = options();
    options.share = RawShare::Fixed { raw_percent: 50 };
    options.verify = Verify::OneIn(1);
    let report = run_of(&options);
    assert_sound(&report);
    let outcome = &report.outcome;
    assert_eq!(outcome.set.pages, 800);
    assert_eq!(
        (outcome.work.updates, outcome.work.deletes, outcome.work.creates),
        (0, 0, 0)
    );
    assert!(
        outcome.checks.checked >= outcome.work.acquisitions,
        "{:?}",
        outcome.checks
    );
    assert!(
        outcome.counters.compressions > 0 && outcome.counters.misses > 0,
        "{:?}",
        outcome.counters
    );
    assert!(outcome.full);
    assert_eq!(
        outcome.misses(),
        outcome.counters.misses,
        "the workers and the pool count alike"
    );
}

#[test]
fn updates_and_deletes_with_many_workers() {
    for (codec, share) in [
        (Codec::Lz4 { acceleration: 1 }, RawShare::Adaptive),
        (Codec::Zstd { level: 1 }, RawShare::Fixed { raw_percent: 30 }),
        (Codec::None, RawShare::Fixed { raw_percent: 100 }),
    ] {
        let mut options = options();
        (options.codec, options.share) = (codec, share);
        (options.update_pct, options.delete_pct) = (30.0, 10.0);
        (options.workers, options.round_pages) = (8, (1, 10));
        options.verify = Verify::OneIn(1);
        let report = run_of(&options);
        assert_sound(&report);
        let outcome = &report.outcome;
        assert!(outcome.work.updates > 0 && outcome.work.deletes > 0 && outcome.work.creates > 0);
        assert_eq!(outcome.checks.read_back, 800, "every page is read back");
        assert!(outcome.counters.store_write_bytes > 0);
    }
}

#[test]
fn a_pool_that_is_all_pinned_cuts_rounds_short() {
    let mut options = options();
    options.budget_bytes = 80 << 10;
    options.round_pages = (40, 60);
    options.workers = 4;
    (options.update_pct, options.delete_pct) = (10.0, 2.0);
    options.verify = Verify::OneIn(1);
    options.warmup = Warmup::Seconds(0.0);
    let report = run_of(&options);
    assert_eq!(report.outcome.checks.wrong, 0, "{:?}", report.outcome.checks.examples);
    assert!(report.outcome.work.rounds_cut > 0, "{:?}", report.outcome.work);
}

#[test]
fn everything_is_hit_when_everything_fits() {
    let mut options = options();
    options.budget_bytes = 4 << 20;
    options.distribution = Distribution::Uniform;
    options.warmup = Warmup::Full;
    let report = run_of(&options);
    assert_sound(&report);
    assert!(report.outcome.hit_ratio() > 0.999, "{}", report.outcome.hit_ratio());
    assert_eq!(report.outcome.theory(&options), Some(1.0));
}

#[test]
fn a_device_that_is_slower_is_slower() {
    let mut options = options();
    options.device_latency_us = 3000;
    let report = run_of(&options);
    assert_sound(&report);
    let slowest = report.outcome.acquire.as_ref().unwrap().max_ns;
    assert!(slowest >= 3_000_000, "{slowest}");
}

#[test]
fn what_cannot_run_is_found_out_before() {
    check(&options()).unwrap();
    let refused = |change: &dyn Fn(&mut Options)| {
        let mut options = options();
        change(&mut options);
        check(&options).unwrap_err().to_string()
    };
    assert!(
        refused(&|o| o.page_bytes = 128 << 10).contains("memory"),
        "eight pages do not fit"
    );
    assert!(refused(&|o| o.data = Source::Sample("nonesuch".into())).contains("nonesuch"));
    assert!(refused(&|o| o.data = Source::Path("/no/such".into())).contains("no such file"));
    assert!(refused(&|o| o.store = Some(StoreKind::Dir)).contains("store"));
}

#[test]
fn a_cancelled_run_returns_an_error() {
    let cancel = AtomicBool::new(true);
    assert!(matches!(
        run(&options(), &cancel, &mut |_| {}),
        Err(LabError::Cancelled)
    ));
    let mut options = options();
    options.seconds = 600.0;
    let cancel = AtomicBool::new(false);
    let report = run(&options, &cancel, &mut |event| {
        if let Event::Progress(Phase::Timed, _) = event {
            cancel.store(true, Ordering::Relaxed);
        }
    });
    let report = report.unwrap();
    assert!(report.outcome.interrupted && report.outcome.seconds < 500.0);
}

#[test]
fn what_was_measured_survives_the_way_to_another_process_and_to_files() {
    let report = run_of(&options());
    let json = serde_json::to_string(&report).unwrap();
    let read: Report = serde_json::from_str(&json).unwrap();
    assert_eq!(read.outcome.work, report.outcome.work);
    assert_eq!(read.outcome.samples.len(), report.outcome.samples.len());
    let directory = tempfile::tempdir().unwrap();
    let sweep = super::super::Sweep::of(report);
    let files = document(&sweep, true)
        .write("leafpress pool", directory.path())
        .unwrap();
    for path in ["summary", "over time", "json", "report"].map(|what| files.path(what)) {
        assert!(std::fs::metadata(path).unwrap().len() > 100, "{}", path.display());
    }
}
