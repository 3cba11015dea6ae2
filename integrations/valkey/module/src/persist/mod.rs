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

/// Version of the format that [`save`] writes.
pub const ENCODING: i32 = 0;

/// The kind of a saved string.
pub const KIND_TEXT: u64 = 0;
/// The kind of a saved map.
pub const KIND_MAP: u64 = 1;
