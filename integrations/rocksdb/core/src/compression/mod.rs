//! Leafpress codecs as a RocksDB `CompressionManager`.
//!
//! The C++ shim (`shim/compression*.cc`) implements RocksDB's interfaces and calls [`abi`]. [`options`] defines the
//! options; [`wire`] and `docs/formats.md` define the format of SST files.

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
