//! The sections of the header, in its order.

mod cache;
mod cache_load;
mod cache_scan;
mod cache_stats;
mod cache_swap;
mod codec;
mod dictionary;
mod options;
mod sealed;
mod status;
mod tree;
mod tree_cursor;
mod tree_many;
mod tree_scan;
mod tree_stats;
mod tree_swap;
mod tree_upkeep;
mod types;

pub use cache::*;
pub use cache_load::*;
pub use cache_scan::*;
pub use cache_stats::*;
pub use cache_swap::*;
pub use codec::*;
pub use dictionary::*;
pub use options::*;
pub use sealed::*;
pub use status::*;
pub use tree::*;
pub use tree_cursor::*;
pub use tree_many::*;
pub use tree_scan::*;
pub use tree_stats::*;
pub use tree_swap::*;
pub use tree_upkeep::*;
pub use types::*;
