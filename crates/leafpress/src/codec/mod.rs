//! Compression engines behind one trait.
//!
//! A [`Codec`] is a name: what users type, logs print and files store. [`Codec::open`] turns it into an [`Engine`], which
//! does the work. Engines are `Send + Sync`, keep their contexts per thread, and decode any bytes safely: corrupt input is
//! an error, never a panic, an over-read or an endless loop.

mod counters;
mod dictionary;
mod engine;
mod error;
mod name;

pub use counters::EngineCounters;
pub use dictionary::Dictionary;
pub use engine::{Engine, EngineOptions, JobCache, Scratch, StreamCache};
pub use error::CodecError;
pub use name::{Codec, QplMode, QplPath};
