//! Common parts of every measurement: errors, lengths in bytes, data and keys, latencies, and resources of a process.
//! Independent of any command and harness.

mod bytes;
pub mod corpus;
mod error;
mod files;
pub mod keys;
pub mod latency;
pub mod paths;
pub mod resources;
#[cfg(any(feature = "device", feature = "peers", feature = "suite"))]
pub(crate) mod statistics;
pub(crate) mod words;

#[cfg(feature = "advise")]
pub(crate) use bytes::about_decimal;
pub use bytes::{Bytes, ParseBytesError, about};
#[cfg(feature = "device")]
pub use error::DeviceError;
pub use error::LabError;
pub(crate) use files::create_file;
