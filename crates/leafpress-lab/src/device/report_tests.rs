use super::super::fixtures::{self, measurement};
use super::super::{document, summary};
use super::*;

fn with(measurements: Vec<Measurement>) -> Report {
    Report {
        measurements,
        ..fixtures::report()
    }
}

#[test]
fn the_wait_depends_on_the_load() {
    let read = |depth, iops| measurement(Operation::Read, 8192, depth, iops);
    // Waits of 100, 200 and 400 us, of which 4.5 are the handing over.
    let report = with(vec![read(4, 20_000.0), read(1, 10_000.0), read(16, 40_000.0)]);
    let wait = |iops| report.wait_at_load_us(Operation::Read, 8192, iops);
    assert_eq!(wait(0.0), Some(100.0));
    assert_eq!(wait(10_000.0), Some(100.0));
    assert_eq!(wait(15_000.0), Some(150.0));
    assert_eq!(wait(30_000.0), Some(300.0));
    assert_eq!(wait(40_001.0), None, "the device cannot");
    assert_eq!(report.wait_at_load_us(Operation::Write, 8192, 1.0), None);
    assert_eq!(report.wait_at_load_us(Operation::Read, 4096, 1.0), None);
}

#[test]
fn excess_requests_in_flight_do_not_count_as_load() {
    let read = |depth, iops| measurement(Operation::Read, 8192, depth, iops);
    let report = with(vec![read(1, 10_000.0), read(4, 20_000.0), read(8, 19_000.0)]);
    assert_eq!(
        report.wait_at_load_us(Operation::Read, 8192, 19_999.0).map(f64::round),
        Some(200.0)
    );
}

#[test]
fn the_reciprocal_of_throughput_is_not_the_latency() {
    let report = fixtures::report();
    let m = report.find(Operation::Read, 8192, 4).unwrap();
    assert_eq!(m.us_per_block.round(), 116.0);
    assert_eq!(m.latency.mean_us.round(), 463.0);
}

#[test]
fn a_report_survives_json() {
    for report in [fixtures::report(), fixtures::suspicious()] {
        let json = serde_json::to_string(&report).unwrap();
        let read: Report = serde_json::from_str(&json).unwrap();
        // Figures lose their last digit on the way.
        let printed = |report| (summary(report), document(report).text());
        assert_eq!(printed(&read), printed(&report));
        assert_eq!((read.source, read.notes), (report.source, report.notes));
    }
}
