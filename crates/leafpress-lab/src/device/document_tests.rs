use super::super::{Topic, fixtures, summary};
use super::*;
use crate::report::testing::{assert_golden, charts, has_verdict, kept};

fn page_of(report: &Report) -> String {
    kept(document(report).page("leafpress device '/mnt/a<b'").unwrap())
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
    assert!(!html.contains("Caveats") && !html.contains("INTERRUPTED"));
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
    assert!(html.contains("INTERRUPTED"));
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

#[test]
fn the_report_of_a_probe() {
    assert_golden("device/golden/report.txt", &document(&fixtures::report()).text());
}

#[test]
fn reports_suspicious_results() {
    let report = fixtures::suspicious();
    let text = document(&report).text();
    assert_golden("device/golden/suspicious.txt", &text);
    assert!(report.notes.iter().any(|note| note.topic == Topic::VirtualDisk));
    assert_eq!(text.matches("\n! ").count(), report.notes.len());
    assert!(text.ends_with("only finished measurements are shown.\n"));
}

#[test]
fn the_summary_has_a_line_for_each_measurement() {
    let report = fixtures::suspicious();
    let table = summary(&report);
    assert_golden("device/golden/summary.tsv", &table);
    assert_eq!(table.lines().count(), 1 + report.measurements.len());
    let columns = table.lines().next().map_or(0, |head| head.split('\t').count());
    assert!(table.lines().all(|line| line.split('\t').count() == columns));
}

#[test]
fn no_line_is_too_wide_and_none_without_a_figure() {
    let text = document(&fixtures::report()).text();
    let rules = text.lines().filter(|line| line.contains('─'));
    assert!(rules.map(|line| line.chars().count()).max() <= Some(120));
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
}
