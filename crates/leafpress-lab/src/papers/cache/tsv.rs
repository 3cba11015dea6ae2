//! A figure's tables for programs: those of its scenarios, with the scenario of each line in front.

use super::FigureOutcome;
use crate::cache::{Outcome, tables};
use crate::report::tsv;

/// `summary.tsv`: a line for each scenario and cache that ended well.
pub(super) fn summary(figure: &FigureOutcome) -> String {
    joined(figure, tables::summary)
}

/// `over_time.tsv`: a line for each window of each.
pub(super) fn over_time(figure: &FigureOutcome) -> String {
    joined(figure, tables::over_time)
}

fn joined(figure: &FigureOutcome, table: fn(&Outcome) -> String) -> String {
    let mut text = String::new();
    for one in &figure.scenarios {
        let lines = table(&one.outcome);
        let mut lines = lines.lines();
        let names = lines.next().unwrap_or_default();
        if text.is_empty() {
            let head = tsv::line(["figure", "scenario", "paper"].map(tsv::word));
            text = format!("{}\t{names}\n", head.trim_end());
        }
        let head = [
            tsv::word(figure.options.figure),
            tsv::word(&one.name),
            one.paper.as_ref().and_then(tsv::word),
        ];
        let head = tsv::line(head);
        for line in lines {
            text += &format!("{}\t{line}\n", head.trim_end());
        }
    }
    text
}
