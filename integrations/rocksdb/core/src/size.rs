//! The one syntax of sizes in options strings.

/// The syntax of a size, for error messages.
pub(crate) const SIZES: &str = "a number of bytes, such as 67108864, 64M, 64MiB or 64MB";

/// Reads a number of bytes: digits, alone or with a unit. K, M, G, T and KiB, MiB, GiB, TiB are powers of 1024; KB, MB,
/// GB, TB are powers of 1000. `None` for anything else, and for more than a `usize` can hold.
pub(crate) fn parse(text: &str) -> Option<usize> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let power = |base: u64, letter: char| "kmgt".find(letter.to_ascii_lowercase()).map(|n| base.pow(n as u32 + 1));
    let mut letters = unit.trim().chars();
    let factor = match (letters.next(), letters.as_str().to_ascii_lowercase().as_str()) {
        (None, _) | (Some('B' | 'b'), "") => 1,
        (Some(letter), "" | "ib") => power(1024, letter)?,
        (Some(letter), "b") => power(1000, letter)?,
        _ => return None,
    };
    let bytes = number.parse::<u64>().ok()?.checked_mul(factor)?;
    usize::try_from(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [
            ("0", 0),
            ("67108864", 64 << 20),
            ("64M", 64 << 20),
            ("64m", 64 << 20),
            ("64MiB", 64 << 20),
            ("64 mib", 64 << 20),
            ("64MB", 64_000_000),
            ("1k", 1024),
            ("2G", 2 << 30),
            ("1TiB", 1 << 40),
            ("12B", 12),
        ] {
            assert_eq!(parse(text), Some(bytes), "{text}");
        }
        for text in [
            "",
            "K",
            "x",
            "-1",
            "1.5M",
            "64XB",
            "64MiBs",
            "99999999999999999999",
            "99999999999T",
            "0x10",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
