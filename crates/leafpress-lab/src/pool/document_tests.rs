use leafpress_pages::pool::RawShare;

use super::super::fixtures::{self, LZ4};
use super::*;
use crate::report::testing::{assert_golden, charts, has_verdict, kept};

fn page_of(sweep: &Sweep) -> String {
    kept(
        document(sweep, sweep.lines.len() == 1)
            .page("leafpress pool -p 'a<b'")
            .unwrap(),
    )
}

#[test]
fn a_run_alone_has_its_charts_and_its_report() {
    let html = page_of(&Sweep::of(fixtures::report(LZ4, RawShare::Adaptive)));
    assert_eq!(
        charts(&html),
        7,
        "share, hits, pages, device, latency, and two of memory"
    );
    assert!(has_verdict(&html), "{html}");
    assert!(html.contains("Acquisitions") && html.contains("A CPU, 2 cores"));
    assert!(!html.contains("By share"), "there is only one");
    assert!(html.contains("-p 'a&lt;b'") && html.contains("/data/a&lt;b.db") && !html.contains("a<b"));
    assert!(html.contains("18,000 pages compared") && html.contains("none wrong"));
}

#[test]
fn a_sweep_has_charts_against_the_share_and_memory_for_each_codec() {
    let html = page_of(&fixtures::sweep());
    assert_eq!(charts(&html), 2 + 5 + 2);
    assert!(html.contains("By share") && html.contains("killed by &lt;signal&gt;"));
    assert_eq!(
        html.matches("% more microseconds").count(),
        2,
        "a verdict for each codec"
    );
}

#[test]
fn wrong_bytes_are_at_the_top() {
    let html = page_of(&Sweep::of(fixtures::wrong()));
    assert!(html.find("WRONG BYTES").unwrap() < html.find("<svg").unwrap());
    assert!(!html.contains("none wrong"));
}

#[test]
fn a_run_that_measured_nothing_still_has_a_page() {
    let mut report = fixtures::report(LZ4, RawShare::Adaptive);
    report.outcome = Outcome::default();
    assert!(!page_of(&Sweep::of(report)).contains("<svg"));
    let none = Sweep {
        lines: Vec::new(),
        cancelled: true,
    };
    assert!(page_of(&none).contains("cancelled"));
}

#[test]
fn the_table_of_a_sweep() {
    let text = document(&fixtures::sweep(), false).text();
    assert_golden("pool/golden/sweep.txt", &text);
    let widest = text
        .lines()
        .filter(|line| line.contains('─'))
        .map(|line| line.chars().count())
        .max();
    assert!(widest <= Some(120), "{widest:?}");
    assert!(
        text.contains("failed: none 0%: run failed: killed by <signal> 9"),
        "{text}"
    );
}
