//! The ZipCache paper's objects: how long their values are, and how much of them does not compress.

use serde::{Deserialize, Serialize};

use crate::core::LabError;
use crate::core::words::between;

/// Longest value, in bytes.
pub const MAX_PAPER_VALUE_BYTES: u32 = 1 << 20;
/// Most lengths that values may have.
const MAX_LENGTHS: usize = 16;
/// So many bytes of a value are random at the least, where it has as many: values are told apart by them.
const MIN_RANDOM_BYTES: u32 = 8;

/// Values of the paper's objects, whose keys have 16 bytes: random bytes, and zeros behind them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PaperObjects {
    /// Lengths of values in bytes. Objects of each take an equal part of all bytes of keys and values.
    pub value_bytes: Vec<u32>,
    /// Percent of a value that does not compress: the paper's eta. Eight bytes are random at the least.
    pub incompressible_pct: f64,
}

impl Default for PaperObjects {
    /// 64 bytes, half of them zeros.
    fn default() -> Self {
        Self {
            value_bytes: vec![64],
            incompressible_pct: 50.0,
        }
    }
}

impl PaperObjects {
    pub(super) fn validate(&self) -> Result<(), LabError> {
        let lengths = &self.value_bytes;
        if lengths.is_empty() {
            return Err(LabError::option("value-bytes", "the list is empty"));
        }
        if lengths.len() > MAX_LENGTHS {
            let reason = format!("{} lengths are more than {MAX_LENGTHS}", lengths.len());
            return Err(LabError::option("value-bytes", reason));
        }
        for (at, bytes) in lengths.iter().enumerate() {
            between("value-bytes", *bytes, 1, MAX_PAPER_VALUE_BYTES)?;
            if lengths[..at].contains(bytes) {
                return Err(LabError::option("value-bytes", format!("{bytes} is there twice")));
            }
        }
        between("incompressible", self.incompressible_pct, 0.0, 100.0)
    }

    /// Random bytes of a value; the others are zeros.
    pub(super) fn random_bytes(&self, value_bytes: u32) -> u32 {
        let share = (f64::from(value_bytes) * self.incompressible_pct / 100.0).round() as u32;
        share.max(MIN_RANDOM_BYTES).min(value_bytes)
    }
}
