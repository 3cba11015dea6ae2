//! Numbers of bytes as people write them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Units in powers of 1024, by their letter.
const UNITS: [(char, u32); 5] = [('P', 50), ('T', 40), ('G', 30), ('M', 20), ('K', 10)];

/// A number of bytes: `65536`, `64K`, `1.5G`. K, M, G, T and P are powers of 1024, with or without `iB`; with `B` alone, as in `10MB`,
/// they are powers of 1000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A number of bytes that is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseBytesError {
    /// It is not written as one.
    #[error("`{0}` is no number of bytes: use digits, and K, M, G or T for powers of 1024, as in 500M")]
    Unreadable(String),
    /// It is one, and more than a number of bytes can be.
    #[error("`{0}` is too many bytes: there can be up to 16383P, 2^64 - 1; use K, M, G, T or P, as in 500M")]
    TooMany(String),
}

impl fmt::Display for Bytes {
    /// The largest unit that divides it, so that it reads back as the same number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(bytes) = *self;
        let unit = UNITS
            .iter()
            .find(|(_, bits)| bytes > 0 && bytes.is_multiple_of(1 << bits));
        match unit {
            Some((letter, bits)) => write!(f, "{}{letter}", bytes >> bits),
            None => write!(f, "{bytes}"),
        }
    }
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
    fn what_is_no_number_of_bytes_is_told() {
        for text in [
            "", "M", "-1", "1.5", "1X", "1KBB", "1.2.3M", "1e9", " 1", "1 M", "ä", "1ä",
        ] {
            let error = text.parse::<Bytes>().unwrap_err().to_string();
            assert!(error.contains("500M") && !error.contains('\n'), "{text}: {error}");
        }
    }

    #[test]
    fn too_many_bytes_are_told_as_that() {
        for text in ["99999999T", "18446744073709551616", "16384P", "99999.5P"] {
            let error = text.parse::<Bytes>().unwrap_err();
            assert_eq!(error, ParseBytesError::TooMany(text.into()));
            assert!(error.to_string().contains("too many bytes"), "{error}");
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
    }
}
