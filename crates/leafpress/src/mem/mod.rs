//! Memory: mappings and regions of the system's, the tree's heap for its nodes, and hints about cache lines.

#[cfg(all(feature = "node-heap", unix, not(miri)))]
#[allow(unsafe_code)]
pub(crate) mod heap;
#[allow(unsafe_code)]
pub(crate) mod mapping;
pub(crate) mod node;
#[cfg(not(all(feature = "node-heap", unix, not(miri))))]
#[allow(unsafe_code)]
pub(crate) mod plain_heap;
#[cfg(all(leafpress_asan, feature = "node-heap", unix, not(miri)))]
#[allow(unsafe_code)]
mod poison;
#[allow(unsafe_code)]
pub(crate) mod prefetch;
#[cfg(all(feature = "node-heap", unix, not(miri)))]
#[allow(unsafe_code)]
mod region;
#[cfg(all(feature = "node-heap", unix, not(miri)))]
#[allow(unsafe_code)]
mod remote_free;
#[allow(unsafe_code)]
pub(crate) mod room;
#[allow(unsafe_code)]
pub(crate) mod shared_mapping;
pub(crate) mod tagged_ptr;
#[allow(unsafe_code)]
pub(crate) mod transient;
#[allow(unsafe_code)]
pub(crate) mod trim;

#[cfg(not(all(feature = "node-heap", unix, not(miri))))]
pub(crate) use plain_heap as heap;

/// Bytes of a cache line.
pub(crate) const LINE_BYTES: usize = 64;

/// So many bytes could not be had.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutOfMemory {
    pub bytes: usize,
}
