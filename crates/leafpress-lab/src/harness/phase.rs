//! The phase of a run, for progress reports.

use serde::{Deserialize, Serialize};

/// The phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Reading and cutting the data.
    Corpus,
    /// Loading the key space.
    Load,
    /// Warming up.
    WarmUp,
    /// The timed window.
    Timed,
    /// Checking every key after the timed window.
    Verify,
}
