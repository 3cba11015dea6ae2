//! Work beside the writers: compaction ahead of them, dictionary training, defragmentation.

#[allow(unsafe_code)]
pub(crate) mod defragment;
pub(crate) mod idle;
pub(crate) mod scheduler;
pub(crate) mod sizing;
#[allow(unsafe_code)]
pub(crate) mod training;
mod workers;
