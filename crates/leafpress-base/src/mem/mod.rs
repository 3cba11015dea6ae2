//! Memory: mappings and regions of the system's, the tree's heap for its nodes, and hints about cache lines.

#[cfg(all(feature = "node-heap", unix, not(miri)))]
#[allow(unsafe_code)]
pub mod heap;
#[allow(unsafe_code)]
pub mod mapping;
pub mod node;
#[cfg(not(all(feature = "node-heap", unix, not(miri))))]
#[allow(unsafe_code)]
#[allow(missing_docs, reason = "the interface of `heap`, which documents it")]
pub mod plain_heap;
#[cfg(all(leafpress_asan, feature = "node-heap", unix, not(miri)))]
#[allow(unsafe_code)]
mod poison;
#[allow(unsafe_code)]
pub mod prefetch;
#[cfg(all(feature = "node-heap", unix, not(miri)))]
#[allow(unsafe_code)]
mod region;
#[cfg(all(feature = "node-heap", unix, not(miri)))]
#[allow(unsafe_code)]
mod remote_free;
#[allow(unsafe_code)]
pub mod room;
#[allow(unsafe_code)]
pub mod shared_mapping;
pub mod tagged_ptr;
#[allow(unsafe_code)]
pub mod transient;
#[allow(unsafe_code)]
pub mod trim;

#[cfg(not(all(feature = "node-heap", unix, not(miri))))]
pub use plain_heap as heap;

/// Bytes of a cache line.
pub const LINE_BYTES: usize = 64;

/// So many bytes could not be had.
#[derive(Debug, Clone, Copy)]
pub struct OutOfMemory {
    /// The length of the request that failed.
    pub bytes: usize,
}
