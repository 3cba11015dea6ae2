//! Compaction: a leaf and its landing buffer become new leaves.

pub(crate) mod builder;
pub(crate) mod compress;
#[allow(unsafe_code)]
mod encode;
pub(crate) mod landed;
pub(crate) mod live_settings;
pub(crate) mod merge;
#[allow(unsafe_code)]
pub(crate) mod overwrite;
pub(crate) mod settings;
mod split;
pub(crate) mod split_hint;
