//! Compression engines behind one trait.
//!
//! A [`Codec`] is a name: what users type, logs print and files store. [`Codec::open`] turns it into an [`Engine`], which
//! does the work. Engines are `Send + Sync`, share a pool of contexts, two for each core, and decode any bytes safely: corrupt input is
//! an error, never a panic, an over-read or an endless loop.
//!
//! A block does not say how long its raw bytes are, nor which codec or dictionary made it: whoever stores it knows. A [`sealed`] block
//! says so itself.
//!
//! A codec that the crate is built without keeps its name; opening it is [`CodecError::Unavailable`].
//!
//! | codec | feature | what a block is |
//! |---|---|---|
//! | `none` | | the raw bytes |
//! | `lz4` (any encoder) | `lz4` | a bare LZ4 block; unless [`Lz4Blocks::Standard`] is asked for, up to 4 KiB of raw bytes are compressed with twelve fixed bytes behind them that are cut off again, and a block as long as its raw bytes is those bytes |
//! | `zstd` | `zstd` | up to 128 KiB of raw bytes: a bare zstd block without any header, and a block as long as its raw bytes is those bytes; longer: a zstd frame without magic number, content size, checksum or dictionary id |
//! | `deflate`, `zlib`, `qpl` | `deflate`, `deflate`, `qpl` | one raw deflate stream (RFC 1951) that looks back at most 4 KiB, so that each reads what the others wrote and an IAA device all of it |

#![cfg_attr(
    not(all(feature = "deflate", feature = "lz4", feature = "qpl", feature = "zstd")),
    allow(dead_code, reason = "what only an engine uses that is left out of the build")
)]
#![warn(missing_docs)]
// Modules that need it are allowed it by name, where they are declared.
#![deny(unsafe_code, unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

mod counters;
#[cfg(feature = "deflate")]
mod deflate;
mod dictionary;
mod dictionary_pool;
mod engine;
mod error;
mod in_vain;
mod list;
#[cfg(feature = "lz4")]
#[cfg_attr(miri, allow(dead_code, reason = "Miri runs no C"))]
mod lz4;
mod name;
mod none;
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
#[cfg(feature = "deflate")]
mod zlib;
#[cfg(feature = "zstd")]
mod zstd;

pub use counters::EngineCounters;
pub use dictionary::Dictionary;
pub use dictionary_pool::DictionaryPool;
pub use engine::{Engine, EngineOptions, JobCache, Lz4Blocks, StreamCache};
pub use error::CodecError;
pub use in_vain::InVain;
pub use list::Availability;
pub use name::{Codec, QplMode, QplPath};
pub use saving::{MAX_STORED_65536THS, most_stored, saves_enough};
pub use scratch::Scratch;
pub use train::IS_BUILT_IN as CAN_TRAIN;
pub use train::{MIN_DICTIONARY_BYTES, MIN_SAMPLE_BYTES, MIN_SAMPLES};
