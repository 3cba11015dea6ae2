//! Numbers as people read them.

/// Formats a number with its thousands separated.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share as percent, without its sign.
pub(crate) fn percent(share: f64, decimals: usize) -> String {
    format!("{:.decimals$}", share * 100.0)
}

/// A share of the memory as percent, without its sign; with a decimal where it is not whole, as 15/16 are not.
pub(crate) fn share_of_memory(share: f64) -> String {
    let text = percent(share, 1);
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// Formats three digits of a figure, and more of a large one; what stands in a column has as many decimals as its
/// digits ask for.
pub fn three_digits(figure: f64) -> String {
    let decimals = match figure.abs() {
        0.0 => 0,
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.9995 => 2,
        size if size >= 0.09995 => 3,
        size if size >= 0.009995 => 4,
        _ => 5,
    };
    format!("{figure:.decimals$}")
}

/// Formats operations per second, in millions.
pub fn mops(per_second: f64) -> String {
    three_digits(per_second / 1e6)
}

/// Formats a figure with at least three digits.
#[cfg(feature = "advise")]
pub(crate) fn brief(figure: f64) -> String {
    match figure.abs() {
        f64::INFINITY => "∞".to_owned(),
        size if size >= 99.95 => thousands(figure.round().max(0.0) as u64),
        size if size > 0.0 && size < 0.9995 => {
            let text = three_digits(figure);
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ => three_digits(figure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        for (figure, text) in [
            (0.0, "0"),
            (12_345.6, "12346"),
            (99.96, "100"),
            (12.34, "12.3"),
            (9.996, "10.0"),
            (1.2345, "1.23"),
            (0.12345, "0.123"),
            (0.012345, "0.0123"),
            (0.0012345, "0.00123"),
        ] {
            assert_eq!(three_digits(figure), text);
        }
        assert_eq!(mops(532_100.0), "0.532");
    }
}
