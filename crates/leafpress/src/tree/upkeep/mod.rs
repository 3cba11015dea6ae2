//! WritePath beside the writers: compaction ahead of them, dictionary training, defragmentation.

pub(crate) mod defragment;
pub(crate) mod idle;
pub(crate) mod scheduler;
pub(crate) mod training;
mod workers;
