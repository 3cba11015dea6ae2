//! Bars with names, a row each: readable on narrow and wide pages. Made of text, so nothing is scaled.

use maud::{Markup, html};
use plotters::style::RGBColor;

use super::palette::css;

/// A bar.
pub(crate) struct Bar<'b> {
    /// Whose it is.
    pub name: &'b str,
    /// Its colour.
    pub colour: RGBColor,
    /// How long it is, 0 or more.
    pub figure: f64,
    /// The figure as people read it.
    pub text: String,
}

/// Bars under their title, with the unit; `None` for fewer than two: a single one is described in words.
pub(crate) fn rows(title: &str, bars: &[Bar<'_>]) -> Option<Markup> {
    if bars.len() < 2 {
        return None;
    }
    let most = bars.iter().map(|bar| bar.figure).fold(0.0, f64::max);
    let width = |bar: &Bar<'_>| {
        format!(
            "width:{:.1}%;background:{}",
            bar.figure / most.max(f64::MIN_POSITIVE) * 100.0,
            css(bar.colour)
        )
    };
    Some(html! {
        figure {
            figcaption { (title) }
            div.bars {
                @for bar in bars {
                    span { (bar.name) }
                    span.track { span.fill style=(width(bar)) {} }
                    span.figure { (bar.text) }
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_no_chart_for_a_single_bar_and_scales_bars_to_the_longest() {
        let bar = |name, figure| Bar {
            name,
            colour: RGBColor(1, 2, 3),
            figure,
            text: format!("{figure}"),
        };
        assert!(rows("a", &[bar("one", 1.0)]).is_none());
        let html = rows("Mops/s", &[bar("one<", 1.0), bar("two", 4.0)])
            .unwrap()
            .into_string();
        assert!(
            html.contains("one&lt;") && html.contains("width:25.0%") && html.contains("width:100.0%"),
            "{html}"
        );
        assert!(
            rows("0", &[bar("one", 0.0), bar("two", 0.0)])
                .unwrap()
                .into_string()
                .contains("width:0.0%")
        );
    }
}
