//! The compression test suite: every codec, block size and number of threads over the user's files.
//!
//! The suite of K. J. Harper, "Viability of Time-Memory Trade-Offs in Large Data Sets" (2018), chapter 4 and appendix
//! B: data is cut into blocks as a cache would hold them, and each block is compressed by itself. [`run()`] finds the
//! files (`core::corpus`), reads them or a sample of them (`sample`), cuts them (`blocks`) and lets each `method` (a
//! codec's engine, or memcpy as the floor) do `pass`es over them. What it measured is a [`Report`]; [`document()`]
//! makes it a report for people and programs. [`records`] does the same with the records of a dump.

mod blocks;
mod charts;
mod clock;
mod document;
#[cfg(test)]
mod fixtures;
mod interleave;
mod method;
mod options;
mod outcome;
mod pass;
mod phrases;
mod piece_selection;
pub mod records;
mod run;
mod sample;
mod single;
mod tables;
mod verdict;

pub use crate::core::corpus::Skipped;
pub use document::document;
pub use interleave::Progress;
pub use method::{Absent, MEMCPY, Measured};
pub use options::{
    DEFAULT_BLOCK_BYTES, MAX_BLOCK_BYTES, MAX_PASSES, MIN_BLOCK_BYTES, Options, QUICK_BYTES, block_bytes, threads,
};
pub use outcome::{FileRows, Report, Row, Speed};
pub use run::{run, run_engines};
#[cfg(feature = "advise")]
pub(crate) use sample::SamplePages;
pub use sample::SampleSize;
pub use single::measure_blocks;
pub use verdict::{among as verdict_among, compresses};

#[cfg(test)]
mod tests;
