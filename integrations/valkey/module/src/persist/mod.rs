//! Values outside of their trees: snapshots and `DUMP`, the append-only file, digests, copies.
//!
//! A saved value consists of its records, in order of the fields, without the tree and without a dictionary, so that
//! each value can be read individually, by another server, with other settings. Only a snapshot as a whole has
//! dictionaries, which precede its values.

pub mod block;
pub mod dictionaries;
pub mod digest;
pub mod load;
pub mod memory;
pub mod rewrite;
pub mod save;

#[cfg(test)]
mod tests;

use std::fmt;

use leafpress::TreeError;

use crate::store::map::Map;

/// Why a value cannot be written as a whole. Then the save or the rewrite fails, so that nothing is lost unnoticed.
#[derive(Debug)]
pub enum Incomplete {
    /// A record cannot be read.
    Tree(TreeError),
    /// Records are missing, which is a bug.
    Missing {
        /// The number of records that were read.
        found: u64,
        /// The number that the value counts.
        counted: u64,
    },
}

impl fmt::Display for Incomplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tree(error) => write!(f, "{error}"),
            Self::Missing { found, counted } => write!(f, "it has {counted} records, and {found} were found"),
        }
    }
}

impl From<TreeError> for Incomplete {
    fn from(error: TreeError) -> Self {
        Self::Tree(error)
    }
}

/// Calls `visit` with all fields and values of a map; returns an error if any cannot be read or is missing.
fn each_of(map: &Map, mut visit: impl FnMut(&[u8], &[u8])) -> Result<(), Incomplete> {
    let mut found = 0;
    map.each(|field, value| {
        found += 1;
        visit(field, value);
    })?;
    check_count(found, map.len())
}

fn check_count(found: u64, counted: u64) -> Result<(), Incomplete> {
    match found == counted {
        true => Ok(()),
        false => Err(Incomplete::Missing { found, counted }),
    }
}

/// Version of the format that [`save`] writes.
pub const ENCODING: i32 = 0;

/// The kind of a saved string.
pub const KIND_TEXT: u64 = 0;
/// The kind of a saved map.
pub const KIND_MAP: u64 = 1;
