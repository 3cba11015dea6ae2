//! The ZipCache paper's objects: lengths of their values, and the incompressible part of them.

use serde::{Deserialize, Serialize};

use crate::core::LabError;
use crate::core::words::between;

/// Longest value, in bytes.
pub const MAX_PAPER_VALUE_BYTES: u32 = 1 << 20;
/// Most lengths that values may have.
const MAX_LENGTHS: usize = 16;
/// Minimum random bytes of a value, if it has as many: they distinguish values.
const MIN_RANDOM_BYTES: u32 = 8;

/// Values of the paper's objects, whose keys have 16 bytes: random bytes, followed by zeros.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PaperObjects {
    /// Lengths of values in bytes. Objects of each take an equal part of all bytes of keys and values.
    pub value_bytes: Vec<u32>,
    /// Percent of a value that does not compress: the paper's eta. At least eight bytes are random.
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
            let reason = format!("{} lengths are given, at most {MAX_LENGTHS} are allowed", lengths.len());
            return Err(LabError::option("value-bytes", reason));
        }
        for (at, bytes) in lengths.iter().enumerate() {
            between("value-bytes", *bytes, 1, MAX_PAPER_VALUE_BYTES)?;
            if lengths[..at].contains(bytes) {
                return Err(LabError::option("value-bytes", format!("{bytes} is listed twice")));
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
