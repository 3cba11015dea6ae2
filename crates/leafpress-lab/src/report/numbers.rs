//! Numbers as people read them.

/// A number with its thousands set apart.
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

/// A figure with three digits or more.
#[cfg(feature = "advise")]
pub(crate) fn brief(figure: f64) -> String {
    match figure.abs() {
        f64::INFINITY => "∞".to_owned(),
        size if size >= 100.0 => thousands(figure.round().max(0.0) as u64),
        size if size >= 10.0 => format!("{figure:.1}"),
        size if size >= 1.0 || size == 0.0 => format!("{figure:.2}"),
        _ => format!("{figure:.3}"),
    }
}
