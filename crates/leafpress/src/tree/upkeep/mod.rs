//! Background work: compaction ahead of writers, dictionary training, defragmentation.

mod choice;
#[allow(unsafe_code)]
pub(crate) mod defragment;
mod due;
pub(crate) mod idle;
pub(crate) mod renewal;
pub(crate) mod samples;
pub(crate) mod scheduler;
pub(crate) mod sizing;
pub(crate) mod steps;
mod steps_of_training;
pub(crate) mod temperature;
pub(crate) mod trainer;
#[allow(unsafe_code)]
pub(crate) mod training;
mod workers;
