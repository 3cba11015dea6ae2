//! A chart in words, for screen readers: its subject, and the ends of its lines.

/// Lines in the order of the legend, each of named figures: the first and the last.
pub(crate) fn lines<L: IntoIterator<Item = (String, String)>>(
    shown: &str,
    lines: impl IntoIterator<Item = L>,
) -> String {
    let parts = lines.into_iter().filter_map(|line| {
        let mut points = line.into_iter();
        let (from, first) = points.next()?;
        Some(match points.last() {
            Some((to, last)) => format!("{first} at {from} to {last} at {to}"),
            None => format!("{first} at {from}"),
        })
    });
    all(shown, parts)
}

/// Groups of figures, all of them.
pub(crate) fn groups(shown: &str, names: &[&str], figures: impl Fn(usize) -> Vec<String>) -> String {
    let parts = names.iter().enumerate().filter_map(|(group, name)| {
        let figures = figures(group);
        (!figures.is_empty()).then(|| format!("{name} {}", figures.join(", ")))
    });
    all(shown, parts)
}

/// Named points.
pub(crate) fn all(shown: &str, parts: impl IntoIterator<Item = String>) -> String {
    let parts: Vec<String> = parts.into_iter().collect();
    format!("{shown}, in the order of the legend: {}.", parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn describes_a_line_by_its_ends() {
        let line = |points: &[(u32, u32)]| {
            points
                .iter()
                .map(|(x, y)| (x.to_string(), y.to_string()))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            lines(
                "us against %",
                [line(&[(0, 9), (5, 7), (10, 1)]), line(&[]), line(&[(3, 4)])]
            ),
            "us against %, in the order of the legend: 9 at 0 to 1 at 10; 4 at 3."
        );
        let figures = |group: usize| vec!["1.0".to_owned(); group];
        assert_eq!(
            groups("Mops/s", &["none", "two"], figures),
            "Mops/s, in the order of the legend: two 1.0."
        );
    }
}
