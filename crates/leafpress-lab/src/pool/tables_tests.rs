use super::super::fixtures;
use super::*;
use crate::report::testing::assert_golden;

#[test]
fn the_summary_has_a_line_for_each_run_that_ended_well() {
    let sweep = fixtures::sweep();
    let text = summary(&sweep);
    assert_golden("pool/golden/summary.tsv", &text);
    assert_eq!(text.lines().count(), 1 + sweep.lines.len() - 1);
    assert!(
        text.lines().all(|line| line.split('\t').count() == COLUMNS.len()),
        "{text}"
    );
    let mut names: Vec<_> = COLUMNS.iter().map(|(name, _)| name).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), COLUMNS.len(), "a name is there twice");
}

#[test]
fn over_time_has_a_line_for_each_window() {
    let mut sweep = fixtures::sweep();
    sweep.lines.drain(..3);
    sweep.lines.truncate(2);
    let text = over_time(&sweep);
    assert_golden("pool/golden/over_time.tsv", &text);
    assert_eq!(text.lines().count(), 1 + 2 * 24);
}

#[test]
fn the_best_of_each_codec_is_marked() {
    let sweep = fixtures::sweep();
    for codec in sweep.codecs() {
        let rows = rows(sweep.of_codec(codec));
        for column in 0..headings().len() {
            let best = rows.iter().filter(|row| row[column].best).count();
            assert_eq!(
                best,
                usize::from(PEOPLE[column].1.is_some() && !rows.is_empty()),
                "{codec}, column {column}"
            );
        }
    }
    assert_eq!(sweep.best_fixed(fixtures::LZ4).unwrap().share_name(), "60%");
    let over = sweep.adaptive_over_best_pct(fixtures::LZ4).unwrap();
    assert!((over - 50.0).abs() < 1.0, "{over}");
}
