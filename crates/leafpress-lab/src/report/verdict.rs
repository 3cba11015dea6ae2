//! A report's first line: the gain and loss of one thing vs another, in percent.

use maud::{Markup, html};

use super::numbers::percent;
use super::paragraph::wrapped;

/// Ratios this close to 1 count as equal.
const SAME: f64 = 0.005;

/// The compared figure: a quantity (less) or a number (fewer).
#[derive(Debug, Clone, Copy)]
pub(crate) enum Noun {
    Quantity(&'static str),
    Number(&'static str),
}

/// `44% less memory`, for the ratio of one figure to another.
pub(crate) fn change(ratio: f64, noun: Noun) -> String {
    let (less, name) = match noun {
        Noun::Quantity(name) => ("less", name),
        Noun::Number(name) => ("fewer", name),
    };
    match ratio {
        ratio if (ratio - 1.0).abs() < SAME => format!("the same {name}"),
        ratio if ratio < 1.0 => format!("{}% {less} {name}", percent(1.0 - ratio, 0)),
        ratio if ratio < 2.0 => format!("{}% more {name}", percent(ratio - 1.0, 0)),
        ratio => format!("{ratio:.1} times the {name}"),
    }
}

/// `lz4 vs none: 44% less memory, 17% fewer reads per second.`; `None` when nothing can be compared.
#[cfg(any(test, feature = "cache", feature = "peers"))]
pub(crate) fn against(name: &str, other: &str, changes: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    let changes: Vec<String> = changes.into_iter().flatten().collect();
    (!changes.is_empty()).then(|| format!("{name} vs {other}: {}.", changes.join(", ")))
}

/// The ratio of two figures, if both exist and it is meaningful.
pub(crate) fn ratio(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    let (one, other) = (one?, other.filter(|other| *other > 0.0)?);
    Some(one / other).filter(|ratio| ratio.is_finite() && *ratio > 0.0)
}

/// Verdicts as lines of text, followed by an empty line.
pub(crate) fn text(verdicts: &[String]) -> String {
    let mut text: String = verdicts.iter().map(|verdict| wrapped(verdict, "", "  ")).collect();
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// Caveats of the verdicts as lines of text, followed by an empty line.
pub(crate) fn cautions(cautions: &[String]) -> String {
    let mut text: String = cautions.iter().map(|caution| wrapped(caution, "! ", "  ")).collect();
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// Verdicts on a page.
pub(crate) fn html(verdicts: &[String]) -> Markup {
    html! { @for verdict in verdicts { p.verdict { (verdict) } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_described() {
        let (memory, reads) = (Noun::Quantity("memory"), Noun::Number("reads per second"));
        for (ratio, noun, sentence) in [
            (0.56, memory, "44% less memory"),
            (0.83, reads, "17% fewer reads per second"),
            (1.0, memory, "the same memory"),
            (1.004, reads, "the same reads per second"),
            (1.5, memory, "50% more memory"),
            (2.4, reads, "2.4 times the reads per second"),
        ] {
            assert_eq!(change(ratio, noun), sentence);
        }
        assert_eq!(against("lz4", "none", [None, None]), None);
        let sentence = against("lz4", "none", [Some("a".into()), None, Some("b".into())]);
        assert_eq!(sentence.as_deref(), Some("lz4 vs none: a, b."));
        assert_eq!(ratio(Some(1.0), Some(0.0)), None);
        assert_eq!(ratio(Some(1.0), Some(2.0)), Some(0.5));
    }
}
