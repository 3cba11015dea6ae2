//! When memory that readers may still look at is freed: epochs, guards, garbage, and what is held and what waits.

mod epoch;
mod garbage;
pub(crate) mod guard;
pub(crate) mod memory;

pub(crate) use guard::load;
