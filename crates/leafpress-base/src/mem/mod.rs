//! Memory: mappings and regions of the system's memory, the tree's heap for its nodes, and prefetch hints.

#[cfg(all(feature = "node-heap", unix, not(miri)))]
#[allow(unsafe_code)]
pub mod heap;
#[allow(unsafe_code)]
pub mod mapping;
pub mod node;
#[cfg(not(all(feature = "node-heap", unix, not(miri))))]
#[allow(unsafe_code)]
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
pub mod tlsf;
#[allow(unsafe_code)]
pub mod transient;
#[allow(unsafe_code)]
pub mod trim;

#[cfg(not(all(feature = "node-heap", unix, not(miri))))]
pub use plain_heap as heap;

/// Size of a cache line in bytes.
pub const LINE_BYTES: usize = 64;

/// Memory could not be allocated.
#[derive(Debug, Clone, Copy)]
pub struct OutOfMemory {
    /// The length of the request that failed.
    pub bytes: usize,
}
