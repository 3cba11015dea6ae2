use super::super::fixtures::published;
use super::*;
use crate::report::testing::assert_golden;

#[test]
fn the_summary_has_a_line_for_each_codec_and_share() {
    let text = summary(&published());
    assert_golden("model/golden/summary.tsv", &text);
    assert_eq!(text.lines().count(), 1 + 2 * 5);
    assert!(text.lines().all(|line| line.split('\t').count() == COLUMNS.len()));
}

#[test]
fn the_best_share_of_a_codec_is_marked_once() {
    let outcome = published();
    for codec in &outcome.codecs {
        let best: Vec<_> = rows(codec).iter().map(|row| row[4].best).collect();
        assert_eq!(best, [false, false, false, false, true], "{}", codec.codec.name);
    }
}
