//! Compression engines behind one trait.
//!
//! A [`Codec`] is a name with settings: users type it, logs print it and files store it. [`Codec::open`] returns its
//! [`Engine`], the implementation. Engines are `Send + Sync`, share a pool of contexts, two for each core, and decode
//! any input safely: corrupt input is an error, never a panic, an out-of-bounds read or an endless loop.
//!
//! A block contains neither its raw length nor its codec or dictionary: the caller stores these. A [`sealed`] block
//! contains them itself.
//!
//! A codec that is not compiled in keeps its name; opening it returns [`CodecError::Unavailable`].
//!
//! | codec | feature | block format |
//! |---|---|---|
//! | `none` | | the raw bytes |
//! | `lz4` (any encoder) | `lz4` | a bare LZ4 block, with the exceptions below |
//! | `zstd` | `zstd` | a bare zstd block or frame, see below |
//! | `onpair` | | codes of a dictionary's tokens, see below |
//! | `deflate`, `zlib`, `qpl` | `deflate`, `deflate`, `qpl` | one raw deflate stream (RFC 1951) |
//!
//! - `lz4`, unless [`Lz4Blocks::Standard`] is set: up to 4 KiB of raw bytes are compressed with twelve fixed bytes
//!   appended, whose literals are cut off the block again. A block as long as its raw bytes contains them uncompressed.
//! - `zstd`, up to 128 KiB of raw bytes: a bare zstd block without any header. A block as long as its raw bytes
//!   contains them uncompressed. Above that: a zstd frame without magic number, content size, checksum or dictionary
//!   id.
//! - `onpair`: packed codes of 12, 14 or 16 bits, or with `onpair:huffman` the bits of a Huffman code over them. A
//!   block as long as its raw bytes contains them uncompressed, and so does each block without a dictionary.
//! - `deflate`, `zlib`, `qpl`: the history window is 4 KiB, so that each of them reads the others' blocks and an IAA
//!   device reads all of them.

#![cfg_attr(
    not(all(
        feature = "deflate",
        feature = "lz4",
        feature = "qpl",
        feature = "zlib",
        feature = "zstd"
    )),
    allow(dead_code, reason = "what only an engine uses that is left out of the build")
)]
#![warn(missing_docs)]
// Modules with unsafe code are allowed it individually, at their declaration.
#![deny(unsafe_code, unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

mod by_dictionary;
mod counters;
#[cfg(feature = "deflate")]
mod deflate;
mod dictionary;
mod dictionary_pool;
mod engine;
mod error;
mod incompressible;
mod list;
#[cfg(feature = "lz4")]
#[cfg_attr(miri, allow(dead_code, reason = "Miri runs no C"))]
mod lz4;
mod name;
mod none;
mod onpair;
mod open;
mod output;
#[cfg(any(feature = "lz4", feature = "zstd"))]
#[cfg_attr(miri, allow(dead_code, reason = "Miri runs no C"))]
mod primed;
#[cfg(feature = "qpl")]
mod qpl;
#[allow(unsafe_code, reason = "bytes that are not initialised yet")]
mod room;
mod saving;
mod scratch;
pub mod sealed;
mod train;
#[cfg(feature = "zlib")]
mod zlib;
#[cfg(feature = "zstd")]
mod zstd;

pub use by_dictionary::ByDictionary;
pub use counters::EngineCounters;
pub use dictionary::Dictionary;
pub use dictionary_pool::DictionaryPool;
pub use engine::{Engine, EngineOptions, JobCache, Lz4Blocks, StreamCache};
pub use error::CodecError;
pub use incompressible::IncompressibleDetector;
pub use list::Availability;
pub use name::{Codec, QplMode, QplPath, TrialGoal};
pub use saving::{MAX_STORED_65536THS, most_stored, saves_enough};
pub use scratch::Scratch;
pub use train::{MIN_DICTIONARY_BYTES, MIN_SAMPLE_BYTES, MIN_SAMPLES};
