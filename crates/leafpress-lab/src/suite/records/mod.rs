//! The suite over records as people have them: what each codec makes of a dump's values.
//!
//! Values are compressed one by one, as a cache keeps them that finds each by its key, and in frames of neighbours, as
//! a store of blocks does; with a trained dictionary and without. The more neighbours share a frame, the smaller they
//! are, and the more is decoded to read one: [`run()`] measures both, the frontier between them. What one strong codec
//! reaches for all values in one piece is the upper limit.

mod document;
mod frames;
mod limit;
mod options;
mod outcome;
mod run;
mod tables;
mod values;
mod verdict;

pub use document::document;
pub use limit::LIMIT_LEVEL;
pub use options::{DEFAULT_DICTIONARY_BYTES, DEFAULT_FRAME_BYTES, MAX_DICTIONARY_BYTES, Options};
pub use outcome::{CompressionUnit, Limit, Report, Row};
pub use run::run;

#[cfg(test)]
mod tests;
