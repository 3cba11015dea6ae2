//! Epoch-based reclamation: epochs, guards, garbage, per-thread state, and the accounting of nodes.

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
