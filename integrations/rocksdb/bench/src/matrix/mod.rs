//! The white paper's whole set: blocks of 4 and 16 KiB, values of 32 and 256 bytes, read-only and 80:20, against zstd.

mod charts;
mod document;

use leafpress_lab::model::tco::Prices;
use serde::Serialize;

pub(crate) use charts::trade_off;
pub(crate) use document::NOTES;
pub use document::document;

use crate::study::{Access, Cell, Study};

/// The set's block lengths in bytes.
pub const BLOCK_BYTES: [u64; 2] = [4 << 10, 16 << 10];
/// The set's value lengths in bytes.
pub const VALUE_BYTES: [usize; 2] = [32, 256];

/// The results of a matrix.
#[derive(Debug, Clone, Serialize)]
pub struct Matrix {
    /// The machine.
    pub host: String,
    /// A study for each length of blocks and values.
    pub studies: Vec<Study>,
    /// The value of saved cores.
    pub prices: Prices,
    /// The user stopped it.
    pub cancelled: bool,
}

impl Matrix {
    /// Returns the compressions that are in any study, in order.
    pub fn compressions(&self) -> Vec<&crate::Compression> {
        let mut all: Vec<&crate::Compression> = Vec::new();
        for compression in self.studies.iter().flat_map(|study| &study.plan.compressions) {
            if !all.contains(&compression) {
                all.push(compression);
            }
        }
        all
    }

    /// Returns a compression's cells in an access pattern, over all studies.
    pub fn cells<'m>(&'m self, compression: &'m crate::Compression, access: Access) -> impl Iterator<Item = &'m Cell> {
        let cells = self.studies.iter().flat_map(move |study| study.cells(access));
        cells.filter(move |cell| cell.compression == *compression)
    }

    /// Reads that did not return what their keys hold.
    pub fn mismatches(&self) -> u64 {
        self.studies.iter().map(Study::mismatches).sum()
    }

    /// Returns the first compression that failed, and why.
    pub fn failure(&self) -> Option<String> {
        let failures = self.studies.iter().flat_map(|study| &study.failures);
        failures
            .map(|(compression, reason)| format!("{compression}: {reason}"))
            .next()
    }
}
