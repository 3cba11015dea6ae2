//! When memory that readers may still look at is freed: epochs, guards, garbage, what a thread keeps, and what is held and what waits.

#[allow(unsafe_code)]
mod epoch;
#[allow(unsafe_code)]
mod garbage;
#[allow(unsafe_code)]
pub mod guard;
#[allow(unsafe_code)]
mod local;
#[allow(unsafe_code)]
pub mod node_heap;

pub use guard::load;
