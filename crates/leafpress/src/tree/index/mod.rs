//! Search structures from a key to its leaf: a shard's inner nodes, and the interpolation index that bypasses them.

#[allow(unsafe_code)]
pub(crate) mod interpolation;
#[allow(unsafe_code)]
pub(crate) mod shard;
