//! Compaction: a leaf and what landed on it become new leaves.

pub(crate) mod builder;
pub(crate) mod compress;
mod encode;
pub(crate) mod merge;
pub(crate) mod overwrite;
pub(crate) mod split;
