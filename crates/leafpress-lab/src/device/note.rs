//! A note on a result: what it is about, and its text.

use serde::{Deserialize, Serialize};

/// The subject of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// Reads are answered by this machine's page cache.
    PageCache,
    /// Files are in memory, without a device.
    Memory,
    /// Files are on another machine, or another program answers.
    Remote,
    /// The disk is a hypervisor's.
    VirtualDisk,
    /// The machine is virtual, the disk does not look it; or no disk was found at all.
    UnknownDisk,
    /// Answers come quicker than devices give them.
    TooQuick,
    /// Second reads are quicker than first ones.
    Reread,
    /// The file has parts that are stored nowhere.
    Holes,
    /// io_uring was not used.
    Engine,
    /// The rate changed while it was measured.
    Unsteady,
    /// A limit on requests per second is what is measured.
    Limit,
    /// The processor is what is measured.
    Processor,
    /// Writes end in a cache of the device.
    WriteCache,
    /// Too few requests for the higher percentiles.
    Few,
    /// Gaps and remarks of a result of fio.
    Fio,
}

/// A caveat of the figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Its subject.
    pub topic: Topic,
    /// The observation and its meaning, in a sentence or two.
    pub text: String,
}

impl Note {
    pub(super) fn new(topic: Topic, text: impl Into<String>) -> Self {
        Self {
            topic,
            text: text.into(),
        }
    }
}
