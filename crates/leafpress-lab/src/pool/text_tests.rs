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
fn no_line_is_left_without_a_figure() {
    let text = report(&Report {
        options: fixtures::options(LZ4, RawShare::Adaptive),
        host: "A CPU".into(),
        outcome: Outcome::default(),
    });
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
}
