//! Compression engines behind one trait.
//!
//! A [`Codec`] is a name: what users type, logs print and files store. [`Codec::open`] turns it into an [`Engine`], which
//! does the work. Engines are `Send + Sync`, keep their contexts per thread, and decode any bytes safely: corrupt input is
//! an error, never a panic, an over-read or an endless loop.
//!
//! A block does not say how long its raw bytes are, nor which codec or dictionary made it: whoever stores it knows.
//!
//! | codec | what a block is |
//! |---|---|
//! | `none` | the raw bytes |
//! | `lz4` (any encoder) | a bare LZ4 block; unless [`Lz4Blocks::Standard`] is asked for, up to 4 KiB of raw bytes are compressed with twelve fixed bytes behind them that are cut off again, and a block as long as its raw bytes is those bytes |
//! | `zstd` | up to 128 KiB of raw bytes: a bare zstd block without any header, and a block as long as its raw bytes is those bytes; longer: a zstd frame without magic number, content size, checksum or dictionary id |
//! | `deflate`, `zlib`, `qpl` | one raw deflate stream (RFC 1951) that looks back at most 4 KiB, so that each reads what the others wrote and an IAA device all of it |

mod counters;
mod deflate;
mod dictionary;
mod engine;
mod error;
mod list;
#[cfg_attr(miri, allow(dead_code, reason = "Miri runs no C"))]
mod lz4;
mod name;
mod none;
mod open;
mod output;
#[cfg_attr(miri, allow(dead_code, reason = "Miri runs no C"))]
mod primed;
mod qpl;
mod scratch;
mod train;
mod zlib;
mod zstd;

pub use counters::EngineCounters;
pub use dictionary::Dictionary;
pub use engine::{Engine, EngineOptions, JobCache, Lz4Blocks, StreamCache};
pub use error::CodecError;
pub use list::Availability;
pub use name::{Codec, QplMode, QplPath};
pub use scratch::Scratch;
pub use train::{MIN_DICTIONARY_BYTES, MIN_SAMPLE_BYTES, MIN_SAMPLES};
