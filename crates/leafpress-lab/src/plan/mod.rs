//! What to buy for a number of bytes of records: memory, compression, or an SSD.
//!
//! [`run()`] measures a sample of the records in a tree and in a cache, and projects it to all records (`sample`).
//! The hit ratio of a cache that holds a share of the records follows from a distribution or from a trace (`hits`).
//! Both, with prices and times, give the alternatives (`alternatives`), and [`document()`] makes the plan a report.

mod alternatives;
mod answer;
mod document;
mod hits;
mod options;
mod run;
mod sample;
mod times;

#[cfg(test)]
mod tests;

pub use alternatives::{Alternative, Cost, Kind};
pub use document::document;
pub use hits::Hits;
pub use options::{Options, Prices, Rate, Requests};
pub use run::{Case, Event, Plan, run};
pub use sample::Sampled;
pub use times::{Time, Times};
