//! The published figures with what their formulas give, as text.

use std::fmt::Write;

use super::thesis::{Figure, Reproduction, Series, Verdict};
use crate::report::paragraph::wrapped_to;
use crate::report::table::{of_figures, of_parts, under_names};

/// Formats the thesis's figures with what its formulas give.
pub fn reproduction(reproduction: &Reproduction) -> String {
    let mut text =
        "Harper, \"Viability of Time-Memory Trade-Offs in Large Data Sets\" (2018): published and computed\n"
            .to_owned();
    text += &table(&reproduction.figures);
    text += "~ the text prints no digits: these follow from the picture, the thesis's formulas and table 4\n";
    text += &notes(&reproduction.figures);
    for series in &reproduction.series {
        text += &self::series(series);
    }
    let _ = writeln!(
        text,
        "\n{} figures: {} agree, {} where the published text disagrees with its own formulas, {} differ.",
        reproduction.figures.len(),
        reproduction.count(Verdict::Agrees),
        reproduction.count(Verdict::TextDisagrees),
        reproduction.count(Verdict::Differs)
    );
    text
}

/// Formats the white paper's figures with what its arithmetic gives.
pub fn white_paper(figures: &[Figure]) -> String {
    let mut text =
        "Intel, \"IAA Plugin for RocksDB Storage Engine\" (2023), total cost of ownership: published and computed\n"
            .to_owned();
    text += &table(figures);
    text += &notes(figures);
    text
}

/// Computed and published figures, as text.
fn table(figures: &[Figure]) -> String {
    let rows = figures.iter().map(|figure| {
        let mark = if figure.printed { "" } else { "~" };
        let verdict = match figure.verdict {
            Verdict::Agrees => "",
            Verdict::TextDisagrees => "! ",
            Verdict::Differs => "DIFFERS: ",
        };
        let cell = |most, text: &str| wrapped_to(most, text, "", "").trim_end().to_owned();
        vec![
            cell(27, figure.place),
            cell(25, &format!("{verdict}{}", figure.what)).replace('\n', "\n    "),
            cell(13, &format!("{mark}{}", figure.published)),
            cell(13, &figure.computed),
        ]
    });
    let table = of_parts(
        ["figure", "published", "computed"],
        under_names(rows),
        1,
        &[("", &[1, 2])],
    );
    format!("{table}\n! the published text disagrees with its own formulas\n")
}

/// Where the published text is not what its formulas give.
fn notes(figures: &[Figure]) -> String {
    let mut text = "\nWhere the published text and its own formulas disagree:\n".to_owned();
    for figure in figures.iter().filter(|figure| figure.verdict == Verdict::TextDisagrees) {
        let _ = writeln!(
            text,
            "- {}: {}: published {}, computed {}{}{}",
            figure.place,
            figure.what,
            figure.published,
            figure.computed,
            if figure.note.is_empty() { "" } else { "; " },
            figure.note
        );
    }
    text
}

fn series(series: &Series) -> String {
    let names = series.lines.iter().map(|(name, _)| name.clone());
    let rows = series.shares.iter().enumerate().map(|(at, share)| {
        let figures = series
            .lines
            .iter()
            .map(move |(_, figures)| format!("{:.3}", figures[at]));
        std::iter::once(share.to_string()).chain(figures)
    });
    let table = of_figures(std::iter::once("C %".to_owned()).chain(names), rows, 0);
    format!("\n{}: {} ({})\n{table}\n", series.place, series.what, series.unit)
}

#[cfg(test)]
mod tests {
    use super::super::{thesis, white_paper};
    use super::*;
    use crate::report::testing::assert_golden;

    #[test]
    fn the_reproduction_is_as_it_was() {
        assert_golden(
            "papers/golden/reproduction.txt",
            &reproduction(&thesis::reproduce().unwrap()),
        );
    }

    #[test]
    fn the_white_paper_is_as_it_was() {
        assert_golden(
            "papers/golden/white_paper.txt",
            &super::white_paper(&white_paper::figures()),
        );
    }
}
