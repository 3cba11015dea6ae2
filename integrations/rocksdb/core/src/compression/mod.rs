//! Leafpress codecs as a RocksDB `CompressionManager`.
//!
//! The C++ shim (`shim/compression*.cc`) implements RocksDB's interfaces and calls [`abi`]. What an option means is in
//! [`options`], what stands in an SST file in [`wire`] and in `docs/formats.md`.

mod abi;
mod compressor;
mod decompressor;
mod dictionary;
mod engines;
mod known;
mod options;
mod shared;
mod statistics;
mod wire;

pub use options::{CompressionOptions, OptionError};
pub use statistics::statistics_text;
