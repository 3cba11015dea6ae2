//! Predicts the gain of a cache with compressed pages by formulas: hit ratio and microseconds per page for a size of
//! the data, an amount of memory, a codec, a device and a pattern of access, over all shares of the memory for
//! compressed pages.
//!
//! [`evaluate()`] computes an [`Outcome`] from [`Options`]; [`document()`] makes it a report for people and
//! programs. The formulas are in [`formulas`] and [`replacement`], pure functions over numbers.
//! [`thesis`](crate::papers::thesis) compares the figures of Harper's thesis with what its formulas give, [`tco`] is
//! the arithmetic of costs.

mod access;
mod choice;
mod codec_costs;
mod document;
mod evaluate;
pub mod formulas;
mod options;
mod point;
pub mod replacement;
mod reuse;
mod tables;
pub mod tco;
mod trace;

pub use access::Access;
pub use choice::{MAX_COMPRESSED, WITHIN_ERROR, gain};
#[cfg(feature = "advise")]
pub(crate) use choice::{NOTHING_US, least};
pub use codec_costs::CodecCosts;
#[cfg(feature = "advise")]
pub(crate) use document::costs;
pub use document::{document, json};
#[cfg(feature = "advise")]
pub(crate) use evaluate::evaluate_with_raw;
pub use evaluate::{BreakEven, CodecOutcome, Crossing, Model, Outcome, evaluate, raw_memory_for};
pub use formulas::{mass_of_hottest, share_that_fits};
pub use options::{Method, Options, Overhead, Replacement};
pub use point::Point;
pub use reuse::{Reuse, ReuseCurve};
pub use tables::summary;
pub use trace::{Junk, Sampling, Trace, TraceFormat, TraceOptions, read_trace};

#[cfg(test)]
mod fixtures;
