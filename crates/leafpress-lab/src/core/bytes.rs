//! Numbers of bytes as people write them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Units in powers of 1024, by their letter.
const UNITS: [(char, u32); 5] = [('P', 50), ('T', 40), ('G', 30), ('M', 20), ('K', 10)];
/// Units in powers of 1000 that sizes are given in; a thousand bytes are taken for a number.
const DECIMAL_UNITS: [(&str, u64); 4] = [
    ("PB", 1_000_000_000_000_000),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
];

/// A number of bytes: `65536`, `64K`, `1.5G`. K, M, G, T and P are powers of 1024, with or without `iB`; with `B`
/// alone, as in `10MB`, they are powers of 1000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    /// Parses a number of bytes.
    ///
    /// # Errors
    /// [`ParseBytesError`] when the text is not one.
    pub fn parse_u64(text: &str) -> Result<u64, ParseBytesError> {
        text.parse().map(|Self(bytes)| bytes)
    }

    /// Parses a length in memory.
    ///
    /// # Errors
    /// [`ParseBytesError`] when the text is not one, or does not fit the type.
    pub fn parse_usize(text: &str) -> Result<usize, ParseBytesError> {
        usize::try_from(Self::parse_u64(text)?).map_err(|_| ParseBytesError::TooMany(text.to_owned()))
    }
}

/// A number of bytes that is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseBytesError {
    /// It is not written as one.
    #[error("invalid size `{0}`: use digits, and K, M, G or T for powers of 1024, as in 500M")]
    Unreadable(String),
    /// It is one, and more than a number of bytes can be.
    #[error("size `{0}` is too large: at most 16383P, 2^64 - 1; use K, M, G, T or P, as in 500M")]
    TooMany(String),
}

impl fmt::Display for Bytes {
    /// The largest unit that divides it, so that it reads back as the same number; of the two kinds of units the one
    /// with fewer digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(bytes) = *self;
        let divides = |unit: u64| bytes > 0 && bytes.is_multiple_of(unit);
        let unit = UNITS.iter().find(|(_, bits)| divides(1 << bits));
        let (number, letter) = match unit {
            Some((letter, bits)) => (bytes >> bits, letter.to_string()),
            None => (bytes, String::new()),
        };
        match DECIMAL_UNITS.iter().find(|(_, unit)| divides(*unit)) {
            Some((name, unit)) if bytes / unit < number => write!(f, "{}{name}", bytes / unit),
            _ => write!(f, "{number}{letter}"),
        }
    }
}

/// Formats a measured amount for reports: three digits in the unit of 1024 that it is read in, written as flags take
/// it: `412M`, `1.5G`, `900B`.
pub fn about(bytes: f64) -> String {
    let units = UNITS.map(|(letter, bits)| (letter.to_string(), f64::from(bits).exp2()));
    in_the_largest(bytes, &units)
}

/// [`about`] in units of 1000: `42.6GB`. For amounts shown with sizes in such units.
#[cfg(feature = "advise")]
pub(crate) fn about_decimal(bytes: f64) -> String {
    let units = DECIMAL_UNITS.map(|(name, unit)| (name.to_owned(), unit as f64));
    let [peta, tera, giga, mega] = units;
    in_the_largest(bytes, &[peta, tera, giga, mega, ("KB".to_owned(), 1e3)])
}

/// Bytes in the first unit of which they are one at least.
fn in_the_largest(bytes: f64, units: &[(String, f64)]) -> String {
    // 1023.9M are 1G, as rounded figures go.
    let found = units.iter().find(|(_, unit)| bytes >= unit * 0.9995);
    let (name, unit) = found.map_or(("B", 1.0), |(name, unit)| (name.as_str(), *unit));
    let amount = bytes / unit;
    let decimals = match amount {
        amount if amount >= 99.95 => 0,
        amount if amount >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{amount:.decimals$}");
    let text = match text.split_once('.') {
        Some(_) => text.trim_end_matches('0').trim_end_matches('.'),
        None => &text,
    };
    format!("{text}{name}")
}

impl FromStr for Bytes {
    type Err = ParseBytesError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseBytesError::Unreadable(text.to_owned());
        let too_many = || ParseBytesError::TooMany(text.to_owned());
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, unit) = text.split_at(end.unwrap_or(text.len()));
        let scale = scale(unit).ok_or_else(error)?;
        // Whole numbers are exact over all of their range.
        if !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()) {
            let whole = number.parse::<u64>().ok().and_then(|whole| whole.checked_mul(scale));
            return whole.map(Self).ok_or_else(too_many);
        }
        let bytes = number.parse::<f64>().map_err(|_| error())? * scale as f64;
        match bytes {
            _ if scale <= 1 => Err(error()),
            bytes if bytes >= u64::MAX as f64 => Err(too_many()),
            bytes => Ok(Self(bytes.round() as u64)),
        }
    }
}

/// Bytes of a unit.
fn scale(unit: &str) -> Option<u64> {
    let unit = unit.to_ascii_uppercase();
    if matches!(unit.as_str(), "" | "B") {
        return Some(1);
    }
    let (letter, rest) = unit.split_at_checked(1)?;
    let (_, bits) = UNITS.iter().find(|(known, _)| letter.starts_with(*known))?;
    match rest {
        "" | "IB" => Some(1 << bits),
        "B" => Some(1000_u64.pow(bits / 10)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_write_bytes_in_many_ways() {
        for (text, bytes) in [
            ("0", 0),
            ("65536", 65536),
            ("64K", 65536),
            ("64k", 65536),
            ("64KiB", 65536),
            ("500M", 500 << 20),
            ("10MB", 10_000_000),
            ("512B", 512),
            ("1.5G", 3 << 29),
            ("2T", 2 << 40),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
    }

    #[test]
    fn reports_invalid_numbers_of_bytes() {
        for text in [
            "", "M", "-1", "1.5", "1X", "1KBB", "1.2.3M", "1e9", " 1", "1 M", "ä", "1ä",
        ] {
            let error = text.parse::<Bytes>().unwrap_err().to_string();
            assert!(error.contains("500M") && !error.contains('\n'), "{text}: {error}");
        }
    }

    #[test]
    fn reports_sizes_that_are_too_large() {
        for text in ["99999999T", "18446744073709551616", "16384P", "99999.5P"] {
            let error = text.parse::<Bytes>().unwrap_err();
            assert_eq!(error, ParseBytesError::TooMany(text.into()));
            assert!(error.to_string().contains("is too large"), "{error}");
        }
        assert_eq!("16383P".parse(), Ok(Bytes(16383 << 50)));
    }

    #[test]
    fn what_is_shown_reads_back() {
        for bytes in [
            0,
            1,
            1023,
            1024,
            65536,
            1_000_000,
            500 << 20,
            (500 << 20) + 1,
            3 << 40,
            u64::MAX,
        ] {
            assert_eq!(Bytes(bytes).to_string().parse(), Ok(Bytes(bytes)));
        }
        assert_eq!(Bytes(500 << 20).to_string(), "500M");
        assert_eq!(Bytes(1536 << 20).to_string(), "1536M");
        // Sizes given in powers of 1000 are shown in them.
        for (bytes, text) in [(15_000_000_000, "15GB"), (10_000_000, "10MB"), (3000, "3000")] {
            assert_eq!(Bytes(bytes).to_string(), text);
            assert_eq!(text.parse(), Ok(Bytes(bytes)));
        }
    }

    #[test]
    fn amounts_have_three_digits_and_the_units_of_the_flags() {
        for (bytes, text) in [
            (0.0, "0B"),
            (900.0, "900B"),
            (1536.0, "1.5K"),
            (65_536.0, "64K"),
            (432e6, "412M"),
            (1.5e9, "1.4G"),
            (1_073_741_800.0, "1G"),
            (16.3e6, "15.5M"),
            (3e15, "2.66P"),
            (1023.0 * 1_048_576.0, "1023M"),
        ] {
            assert_eq!(about(bytes), text);
            assert!(text.parse::<Bytes>().is_ok(), "{text} is what a flag takes");
        }
    }
}
