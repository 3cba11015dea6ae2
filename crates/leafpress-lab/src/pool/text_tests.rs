use leafpress_pages::pool::RawShare;

use super::super::fixtures::{self, LZ4};
use super::*;
use crate::report::testing::assert_golden;

#[test]
fn the_report_of_a_run() {
    let text = report(&fixtures::report(LZ4, RawShare::Adaptive));
    assert_golden("pool/golden/report.txt", &text);
}

#[test]
fn what_went_wrong_is_in_the_report() {
    let text = report(&fixtures::wrong());
    assert_golden("pool/golden/wrong.txt", &text);
    for words in ["INTERRUPTED", "OVER", "2 wrong", "page 7: 8192 bytes", "Write errors"] {
        assert!(text.contains(words), "{words}:\n{text}");
    }
    assert!(!text.contains("in theory"), "there is no formula for zipfian");
}

#[test]
fn the_table_of_a_sweep() {
    let text = sweep(&fixtures::sweep());
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

#[test]
fn no_line_is_left_without_a_figure() {
    let text = report(&Report {
        options: fixtures::options(LZ4, RawShare::Adaptive),
        host: "A CPU".into(),
        outcome: Outcome::default(),
    });
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
}
