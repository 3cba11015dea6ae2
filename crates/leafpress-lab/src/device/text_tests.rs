use super::super::fixtures;
use super::super::{Topic, summary};
use super::*;
use crate::report::testing::assert_golden;

#[test]
fn the_report_of_a_probe() {
    assert_golden("device/golden/report.txt", &text(&fixtures::report()));
}

#[test]
fn what_is_suspicious_is_under_the_table() {
    let report = fixtures::suspicious();
    let text = text(&report);
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
    let text = text(&fixtures::report());
    let rules = text.lines().filter(|line| line.contains('─'));
    assert!(rules.map(|line| line.chars().count()).max() <= Some(120));
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
}
