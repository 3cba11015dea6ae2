//! The parts of a page: one file, readable without a network. Text is escaped by the template; what is HTML already is
//! a [`Markup`] and says so.

use maud::{Markup, PreEscaped, html};
use plotters::style::RGBColor;

use super::palette::css;

pub(crate) const STYLE: &str = include_str!("page.css");

/// Escapes a text for HTML.
pub fn escape(text: &str) -> String {
    html!((text)).into_string()
}

/// Renders a whole page around its body.
pub fn document(title: &str, body: &Markup) -> String {
    page(title, html!(style { (PreEscaped(STYLE)) }), body)
}

/// A whole page around its body, with additions to its head.
pub(crate) fn page(title: &str, head: Markup, body: &Markup) -> String {
    let page = html! {
        (PreEscaped("<!doctype html>\n"))
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                (head)
            }
            (PreEscaped("\n"))
            body { (body) }
        }
        (PreEscaped("\n"))
    };
    page.into_string()
}

/// Renders a chart under its title.
pub fn figure(title: &str, svg: &str) -> Markup {
    html! { figure { figcaption { (title) } (PreEscaped(svg)) } }
}

/// Renders charts, as many per row as fit.
pub fn pair(charts: &[Markup]) -> Markup {
    html! { div.pair { (all(charts)) } }
}

/// Renders charts below each other.
pub fn all(parts: &[Markup]) -> Markup {
    html! { @for part in parts { (part) } }
}

/// Renders a square of a colour.
pub fn swatch(hue: RGBColor) -> Markup {
    html! { span.swatch style=(format!("background:{}", css(hue))) {} }
}

/// Renders a legend of names and colours.
pub fn legend<'n>(entries: impl IntoIterator<Item = (RGBColor, &'n str)>) -> Markup {
    legend_and(entries, "")
}

/// A legend of names and colours, with a note.
pub(crate) fn legend_and<'n>(entries: impl IntoIterator<Item = (RGBColor, &'n str)>, more: &str) -> Markup {
    html! {
        div.legend {
            @for (hue, name) in entries { span { (swatch(hue)) (name) } }
            @if !more.is_empty() { span.faint { (more) } }
        }
    }
}

/// Renders a text that keeps its line breaks.
pub fn lines(text: &str) -> Markup {
    html! {
        @for (at, line) in text.lines().enumerate() {
            @if at > 0 { br; }
            (line)
        }
    }
}

/// A table that scrolls on narrow pages, with keys too.
pub(crate) fn scrolled(table: Markup) -> Markup {
    html! { div.scroll tabindex="0" role="region" aria-label="Table" { (table) } }
}

/// A cell; the best of its column can be seen.
pub(crate) fn cell(text: &str, best: bool) -> Markup {
    html! { td class=[best.then_some("best")] { (text) } }
}

/// A row whose first cell is its head.
#[cfg(any(feature = "advise", test))]
pub(crate) fn row(cells: &[impl AsRef<str>]) -> Vec<Markup> {
    let cells = cells.iter().map(AsRef::as_ref).enumerate();
    cells
        .map(|(at, text)| {
            if at == 0 {
                html! { th scope="row" { (text) } }
            } else {
                cell(text, false)
            }
        })
        .collect()
}

/// Caveats of the figures, set apart; empty without any.
pub(crate) fn cautions(cautions: &[String]) -> Markup {
    html! {
        @if !cautions.is_empty() {
            section.cautions {
                h2 { "Caveats" }
                ul { @for caution in cautions { li { (caution) } } }
            }
        }
    }
}

/// Renders names and their descriptions.
pub fn terms<T: AsRef<str>>(entries: &[(T, String)]) -> Markup {
    html! { dl { @for (term, value) in entries { dt { (term.as_ref()) } dd { (value) } } } }
}

/// Renders explanations of figures, with markup.
pub fn notes(notes: &[&str]) -> Markup {
    html! { ul { @for note in notes { li { (PreEscaped(note)) } (PreEscaped("\n")) } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        let hostile = "</title><script>&\"";
        let page = document(
            hostile,
            &html! { (figure(hostile, "<svg></svg>")) (all(&row(&[hostile]))) },
        );
        assert!(!page.contains("<script") && page.contains("<svg></svg>"), "{page}");
        assert_eq!(page.matches(&escape(hostile)).count(), 3);
        assert_eq!(escape(hostile), "&lt;/title&gt;&lt;script&gt;&amp;&quot;");
    }

    #[test]
    fn lines_are_broken_between_and_not_behind() {
        assert_eq!(lines("a\nb<\n").into_string(), "a<br>b&lt;");
    }
}
