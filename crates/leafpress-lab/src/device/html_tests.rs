use super::super::fixtures;
use super::*;
use crate::report::testing::{charts, has_verdict, kept};

fn page_of(report: &Report) -> String {
    kept(page(report, "leafpress device '/mnt/a<b'").unwrap())
}

#[test]
fn a_probe_has_its_charts() {
    let html = page_of(&fixtures::report());
    assert_eq!(
        charts(&html),
        4 + 1 + 1,
        "IOPS, bandwidth, p50 and p99; the reciprocal and the latency; the distribution"
    );
    assert!(has_verdict(&html), "{html}");
    assert!(html.contains("/mnt/a&lt;b") && !html.contains("a<b"));
    assert!(!html.contains("Caveats") && !html.contains("Interrupted"));
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
    let cautions = html
        .split("<section class=\"cautions\">")
        .nth(1)
        .and_then(|rest| rest.split("</section>").next());
    assert!(cautions.unwrap().contains("virtual disk"), "apart from the figures");
    assert_eq!(charts(&html), 4 + 1 + 4, "a distribution for each operation and depth");
}

#[test]
fn figures_that_are_missing_leave_their_chart_out() {
    let mut report = fixtures::report();
    for m in &mut report.measurements {
        (m.latency.p99_us, m.latency.p50_us) = (None, None);
    }
    assert_eq!(charts(&page_of(&report)), 2 + 1);
    // A single size and depth has no comparison: the table shows it.
    report = fixtures::report();
    report.measurements.truncate(1);
    let html = page_of(&report);
    assert!(!html.contains("By block size"), "{html}");
    report.measurements.clear();
    assert!(!page_of(&report).contains("<svg"));
}
