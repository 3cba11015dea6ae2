//! Values and their records, independent of a server.
//!
//! All values of a generation of a database share a tree. A map is a range of it, under the eight bytes of its number;
//! a string is the record with these eight bytes as its key, and a long string a range as well.

pub mod chunks;
pub mod databases;
pub mod faults;
pub mod generation;
pub mod map;
pub mod number;
pub mod record_key;
pub mod removal;
pub mod scan;
pub mod settings;
pub mod text;
pub mod value;

#[cfg(test)]
mod tests;

use leafpress::tree::{MAX_KEY_BYTES, MAX_VALUE_BYTES};

use record_key::ID_BYTES;

/// Longest field of a map, in bytes.
pub const MAX_FIELD_BYTES: usize = MAX_KEY_BYTES - ID_BYTES;
/// Longest value, in bytes.
pub const MAX_BYTES: usize = MAX_VALUE_BYTES;
