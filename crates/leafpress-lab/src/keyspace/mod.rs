//! What the keys of a running Redis or Valkey server take, and what they would take compressed.
//!
//! [`run()`] draws a sample of the keys of a server, or of every primary of a cluster, reads some of the values, and
//! estimates the memory of each prefix and type: now, with values that clients compress one by one, and with
//! the Leafpress module, whose records it puts into a tree. [`document()`] makes the result a report.
//!
//! All commands that are sent only read, and none of them takes time in proportion to a large value. The pauses between
//! them keep the server's processor time below a bound.

mod connection;
mod document;
mod estimate;
mod footprint;
mod groups;
mod kind;
mod reply;
mod sample;
mod survey;
mod values;

#[cfg(test)]
mod tests;

pub use connection::{Address, Spent};
pub use document::document;
pub use groups::{Estimate, Group};
pub use kind::Kind;
pub use reply::PASSWORD_VARIABLES;
pub use sample::SampleSize;
pub use survey::{Event, LargeKey, Options, ServerFacts, Survey, run};
