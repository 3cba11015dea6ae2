//! Indexes that fail, and runs that are ended.

use std::sync::atomic::Ordering;

use super::*;
use crate::bench::{Mode, Ratios};

/// An index that fails or panics in the middle ends the run with a message; the other threads end too.
#[test]
fn an_index_that_fails_or_panics_ends_the_run() {
    for (panics, words) in [(false, "an index that fails"), (true, "panicked")] {
        let index = Faulty {
            panics,
            fails_finds: !panics,
            stalls_at: 300,
            ..Faulty::default()
        };
        let (index, report) = run_on(index, &options(100, 1_000_000, 2));
        let message = report.unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
        assert_eq!(
            index.attached.load(Ordering::Relaxed),
            index.detached.load(Ordering::Relaxed)
        );
    }
    // Already while warming up.
    let index = Faulty {
        fails_finds: true,
        stalls_at: 300,
        ..Faulty::default()
    };
    let mut options = options(100, 1_000_000, 2);
    options.warmup_seconds = 60.0;
    let (_, report) = run_on(index, &options);
    assert!(report.unwrap_err().to_string().contains("an index that fails"));
}

#[test]
fn wrong_scans_are_counted() {
    let mut options = options(100, 100, 1);
    options.ratios = Ratios {
        scan: 1.0,
        ..Ratios::NONE
    };
    options.scan_size = 10;
    let right = outcome(&options);
    assert_eq!(right.scan_errors.scans, 0);
    assert!(right.scanned_records > 500);
    let (_, report) = run_on(
        Faulty {
            scans_backwards: true,
            ..Faulty::default()
        },
        &options,
    );
    let errors = report.unwrap().outcomes.remove(0).scan_errors;
    // All but those of the last record.
    assert!(
        errors.not_ascending > 90 && errors.scans <= 100 && errors.example.is_some(),
        "{errors:?}"
    );
}

#[test]
fn a_cancelled_run_ends() {
    let mut options = options(100, 0, 2);
    (options.mode, options.seconds) = (Mode::Time, 600.0);
    let cancel = AtomicBool::new(false);
    let open = || Ok(Box::new(Faulty::default()) as Box<dyn Index>);
    let result = run_with(&options, &open, &cancel, &mut |event| {
        if matches!(event, Event::Progress(Phase::Timed, _)) {
            cancel.store(true, Ordering::Relaxed);
        }
    });
    assert!(matches!(result, Err(LabError::Cancelled)), "{result:?}");
}
