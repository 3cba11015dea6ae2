//! The core workloads of YCSB (Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", SoCC 2010).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Law, Ratios};
use crate::core::LabError;

/// A core workload of YCSB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ycsb {
    /// 50% reads, 50% updates, zipfian.
    A,
    /// 95% reads, 5% updates, zipfian.
    B,
    /// Reads, zipfian.
    C,
    /// 95% reads of what was inserted lately, 5% inserts.
    D,
    /// 95% scans of 1 to `scan_size` records from a zipfian start, 5% inserts.
    E,
    /// 50% reads, 50% reads of a record followed by its update, zipfian.
    F,
}

/// YCSB's skew.
pub(super) const SKEW: f64 = 0.99;

impl Ycsb {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::A, Self::B, Self::C, Self::D, Self::E, Self::F];

    /// Returns the mix of operations.
    pub fn ratios(self) -> Ratios {
        let mut ratios = Ratios::NONE;
        match self {
            Self::A => (ratios.read, ratios.update) = (0.5, 0.5),
            Self::B => (ratios.read, ratios.update) = (0.95, 0.05),
            Self::C => ratios.read = 1.0,
            Self::D => (ratios.read, ratios.insert) = (0.95, 0.05),
            Self::E => (ratios.scan, ratios.insert) = (0.95, 0.05),
            Self::F => (ratios.read, ratios.read_modify_write) = (0.5, 0.5),
        }
        ratios
    }

    /// Returns how ids are chosen.
    pub fn law(self) -> Law {
        match self {
            Self::D => Law::Latest,
            _ => Law::Zipfian,
        }
    }

    /// Reads a list: letters with commas between them, or a range like `A..F`.
    ///
    /// # Errors
    /// [`LabError::Option`] for anything else, and for a duplicate workload.
    pub fn list(text: &str) -> Result<Vec<Self>, LabError> {
        if let Some((first, last)) = text.split_once("..") {
            let (first, last): (Self, Self) = (first.parse()?, last.parse()?);
            let range: Vec<_> = Self::ALL
                .into_iter()
                .filter(|w| (first as u8..=last as u8).contains(&(*w as u8)))
                .collect();
            if !range.is_empty() {
                return Ok(range);
            }
        }
        let mut workloads = Vec::new();
        for word in text.split(',') {
            let workload = word.parse()?;
            if workloads.contains(&workload) {
                return Err(LabError::option("ycsb", format!("{workload} is listed twice")));
            }
            workloads.push(workload);
        }
        Ok(workloads)
    }
}

impl fmt::Display for Ycsb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl FromStr for Ycsb {
    type Err = LabError;

    fn from_str(s: &str) -> Result<Self, LabError> {
        let known = Self::ALL
            .into_iter()
            .find(|w| w.to_string().eq_ignore_ascii_case(s.trim()));
        known.ok_or_else(|| LabError::option("ycsb", format!("unknown workload `{s}`; known: A B C D E F")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_add_up() {
        for workload in Ycsb::ALL {
            assert!((workload.ratios().sum() - 1.0).abs() < 1e-12, "{workload}");
        }
    }

    #[test]
    fn lists_and_ranges() {
        assert_eq!(Ycsb::list("A,c,E").unwrap(), [Ycsb::A, Ycsb::C, Ycsb::E]);
        assert_eq!(Ycsb::list("B..D").unwrap(), [Ycsb::B, Ycsb::C, Ycsb::D]);
        assert_eq!(Ycsb::list("f").unwrap(), [Ycsb::F]);
        for bad in ["", "G", "A,,B", "D..B", "A..G", "A,B,a"] {
            assert!(Ycsb::list(bad).is_err(), "{bad}");
        }
    }
}
