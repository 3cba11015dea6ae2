//! The end of a run and its counts.

use std::time::{Duration, Instant};

use super::*;
use crate::bench::{Mode, Ratios};

/// PiBench's time mode lasts a whole number of sampling windows, and at least one.
#[test]
fn time_mode_ends_on_time() {
    for (sampling_ms, rate) in [(10, None), (3_600_000, None), (70, Some(3.0))] {
        let mut options = options(1000, 0, 2);
        (options.mode, options.seconds, options.sampling_ms, options.rate) = (Mode::Time, 0.25, sampling_ms, rate);
        let started = Instant::now();
        let outcome = outcome(&options);
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "sampling of {sampling_ms} ms"
        );
        // The length is exact from below; threads may wake up late in it.
        let (length, run) = (outcome.cpu.wall_seconds, outcome.run_milliseconds / 1000.0);
        assert!(length >= 0.25 && run <= length, "{run} of {length} s");
        let counted: u64 = outcome.samples.iter().map(|sample| sample.operations).sum();
        assert_eq!(counted, outcome.total().completed);
    }
}

#[test]
fn samples_add_up_to_the_operations() {
    let mut options = options(1000, 100_001, 2);
    options.sampling_ms = 5;
    let outcome = outcome(&options);
    assert_eq!(
        outcome.samples.iter().map(|sample| sample.operations).sum::<u64>(),
        100_001
    );
    assert!(outcome.samples.windows(2).all(|pair| pair[0].end_ms < pair[1].end_ms));
}

/// PiBench reads the first of no latencies.
#[test]
fn no_latency_sample_is_an_outcome() {
    let mut options = options(100, 3, 1);
    options.latency_sampling = 1e-9;
    let latencies = outcome(&options).latencies.unwrap();
    assert_eq!((latencies.all, latencies.windows.len()), (None, 0));
    options.operations = 0;
    options.latency_sampling = 1.0;
    let none = outcome(&options);
    assert_eq!((none.total().completed, none.throughput()), (0, 0.0));
    assert_eq!(none.latencies.unwrap().all, None);
}

#[test]
fn measures_the_configured_share_of_operations() {
    let mut options = options(100, 40_000, 2);
    for (share, least, most) in [(1.0, 40_000, 40_000), (0.25, 9_400, 10_600)] {
        options.latency_sampling = share;
        options.ratios = Ratios {
            read: 0.5,
            update: 0.5,
            ..Ratios::NONE
        };
        let latencies = outcome(&options).latencies.unwrap();
        let samples = latencies.all.unwrap().samples;
        assert!((least..=most).contains(&samples), "{samples} of {share}");
        assert_eq!(
            latencies
                .by_operation
                .iter()
                .map(|(_, latency)| latency.samples)
                .sum::<u64>(),
            samples
        );
        assert_eq!(
            latencies.windows.iter().map(|window| window.samples).sum::<u64>(),
            samples
        );
    }
}

/// A stall of the index delays, in an open loop, every operation that was meant to start meanwhile; a closed loop sees
/// one slow operation: coordinated omission.
#[test]
fn an_open_loop_shows_what_a_closed_one_hides() {
    const STALL: Duration = Duration::from_millis(300);
    let mut options = options(10, 1000, 1);
    options.latency_sampling = 1.0;
    let stalling = || Faulty {
        stall: Some(STALL),
        stalls_at: 300,
        ..Faulty::default()
    };
    let closed = run_on(stalling(), &options).1.unwrap().outcomes.remove(0);
    // 1000 operations in a second: 300 of them are meant to start during the stall.
    options.rate = Some(1000.0);
    let open = run_on(stalling(), &options).1.unwrap().outcomes.remove(0);
    let closed = closed.latencies.unwrap();
    let open = open.latencies.unwrap();
    let (closed_all, open_all, service) = (closed.all.unwrap(), open.all.unwrap(), open.service.unwrap());
    let stall = STALL.as_nanos() as u64;
    assert!(closed_all.max_ns >= stall && open_all.max_ns >= stall && service.max_ns >= stall);
    // Half of those 300, 15% of all, are late by more than half the stall.
    assert!(open_all.p90_ns >= stall / 4, "open: {open_all:?}");
    assert!(closed_all.p90_ns < stall / 4, "closed: {closed_all:?}");
    assert!(
        service.p90_ns < stall / 4,
        "service times of the open loop: {service:?}"
    );
    assert!(closed.service.is_none());
}

#[test]
fn a_warm_up_is_in_no_figure() {
    let mut options = options(100, 5000, 2);
    options.warmup_seconds = 0.05;
    options.latency_sampling = 1.0;
    options.ratios = Ratios {
        read: 0.5,
        insert: 0.5,
        ..Ratios::NONE
    };
    let outcome = outcome(&options);
    let total = outcome.total();
    assert_eq!(
        (total.completed, total.succeeded),
        (5000, 5000),
        "keys of the warm-up are not inserted again"
    );
    assert_eq!(outcome.latencies.unwrap().all.unwrap().samples, 5000);
    assert_eq!(
        outcome.samples.iter().map(|sample| sample.operations).sum::<u64>(),
        5000
    );
}

#[test]
fn repetitions_start_anew() {
    let mut options = options(100, 1000, 1);
    options.input = "skiplist".parse().unwrap();
    options.ratios = Ratios {
        insert: 1.0,
        ..Ratios::NONE
    };
    options.repeat = 3;
    let mut repetitions = Vec::new();
    let report = run(&options, None, &AtomicBool::new(false), &mut |event| {
        if let Event::Repetition(number) = event {
            repetitions.push(number);
        }
    })
    .unwrap();
    assert_eq!(repetitions, [0, 1, 2]);
    assert_eq!(report.outcomes.len(), 3);
    assert!(report.outcomes.iter().all(|outcome| outcome.total().succeeded == 1000));
    let spread = report.throughput().unwrap();
    assert!(spread.least <= spread.median && spread.median <= spread.most);
}
