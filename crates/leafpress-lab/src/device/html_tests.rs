use super::super::fixtures;
use super::*;
use crate::report::testing::kept;

fn page_of(report: &Report) -> String {
    kept(page(report, "leafpress device '/mnt/a<b'").unwrap())
}

#[test]
fn a_probe_has_its_charts() {
    let html = page_of(&fixtures::report());
    assert_eq!(
        html.matches("<svg").count(),
        4 + 1 + 1,
        "IOPS, bandwidth, p50 and p99; the reciprocal beside the latency; the distribution"
    );
    assert!(html.contains("/mnt/a&lt;b") && !html.contains("a<b"));
    assert!(!html.contains("Before you believe it") && !html.contains("Interrupted"));
    let links = html.matches("http").count();
    assert_eq!(
        links,
        html.matches("http://www.w3.org/").count(),
        "nothing is loaded from elsewhere"
    );
}

#[test]
fn what_is_suspicious_comes_before_the_figures() {
    let html = page_of(&fixtures::suspicious());
    assert!(html.find("virtual disk").unwrap() < html.find("<svg").unwrap());
    assert!(html.contains("Interrupted"));
    assert_eq!(
        html.matches("<svg").count(),
        4 + 1 + 4,
        "a distribution for each operation and depth"
    );
}

#[test]
fn figures_that_are_missing_leave_their_chart_out() {
    let mut report = fixtures::report();
    for m in &mut report.measurements {
        (m.latency.p99_us, m.latency.p50_us) = (None, None);
    }
    assert_eq!(page_of(&report).matches("<svg").count(), 2 + 1);
    report.measurements.clear();
    assert!(!page_of(&report).contains("<svg"));
}
