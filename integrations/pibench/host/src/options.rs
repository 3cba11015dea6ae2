//! What a tree is made from.

use std::path::PathBuf;

/// The options passed to `create_tree`. The defaults are PiBench's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeOptions {
    /// Bytes of every key, prefix included. Default 8.
    pub key_size: usize,
    /// Bytes of every value. Default 8.
    pub value_size: usize,
    /// Where a persistent tree keeps its file. Default empty.
    pub pool_path: PathBuf,
    /// Bytes of that file. Default 0.
    pub pool_size: usize,
    /// Threads that will call the tree. Default 1.
    pub num_threads: usize,
    /// The fork's concurrency control protocol: 0 one writer, 1 optimistic reads with write coupling, 2 optimistic lock
    /// coupling. Default 0. Wrappers for the original PiBench do not look at this and the next two.
    pub protocol: u8,
    /// The fork's clock: 0 optimistic, 1 synchronised, 3 free. Default 0.
    pub clock_type: u8,
    /// Whether the fork's wrapper collects old versions: 0 or 1. Default 0.
    pub gc_enabled: u8,
}

impl Default for TreeOptions {
    fn default() -> Self {
        Self {
            key_size: 8,
            value_size: 8,
            pool_path: PathBuf::new(),
            pool_size: 0,
            num_threads: 1,
            protocol: 0,
            clock_type: 0,
            gc_enabled: 0,
        }
    }
}
