//! Whether compression pays for the user's data, on the user's device, in a given amount of memory.
//!
//! [`run()`] measures codecs on a sample (`crate::suite`) and the device (`crate::device`), puts both into the model
//! (`crate::model`) for every codec, block length and share of the memory, and recommends: an [`Advice`]. The
//! recommendation itself is [`recommend()`], a pure function of a [`Question`], with nothing measured in it.
//! [`verify()`] runs the page pool at a smaller scale and compares the model's prediction with the measurement.
//! [`document()`] makes an advice a report for people and programs, with an interactive [`page`].

mod candidates;
mod cautions;
mod cold;
mod document;
mod figures;
mod narrative;
mod options;
pub mod page;
mod page_input;
mod question;
mod recommend;
mod run;
mod tables;
mod thresholds;
mod verify;

pub use candidates::Candidate;
pub use cold::{Cold, SWEEP_US};
pub use document::document;
pub use narrative::{reasons, sentence};
pub use options::{DeviceSource, MAX_BLOCK_BYTES, Options, QUICK_SAMPLE_BYTES, SAMPLE_BYTES};
pub use question::{Assumed, BlockFigures, Question, Reads};
pub use recommend::{Recommendation, Verdict, recommend};
pub use run::{Advice, Event, Times, run};
pub use tables::summary;
pub use thresholds::{Crossover, MemoryBound};
pub use verify::{Comparison, HIT_OFF, US_OFF, Verification, VerifyOptions, verify};

#[cfg(test)]
mod tests;
