//! The way from a key to its leaf: a shard's inner nodes, and the interpolation index that leads past them.

pub(crate) mod interpolation;
pub(crate) mod shard;
