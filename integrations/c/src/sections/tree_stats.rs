//! Trees: what they hold and what they did.

use leafpress_core::TreeStats;

use crate::failure::{Failure, call};
use crate::lp_status;
use crate::lp_tree;
use crate::sections::tree::of;

/// What a tree holds and what it did. Set struct_size to sizeof(lp_tree_stats) before the call; later versions add
/// fields at the end.
///
/// bytes_held is the sum of the ten fields below it and of the tree's fixed parts.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct lp_tree_stats {
    /// In: the bytes of this struct that there are. Out: those that were written.
    pub struct_size: usize,
    /// Records.
    pub records: u64,
    /// Bytes of their keys and values.
    pub user_bytes: u64,
    /// All memory that the tree holds, in bytes.
    pub bytes_held: u64,
    /// Leaves: headers, keys and compressed frames.
    pub leaf_bytes: u64,
    /// Inner nodes.
    pub inner_bytes: u64,
    /// Indexes that lead past the inner nodes.
    pub interpolation_bytes: u64,
    /// Landing buffers.
    pub landing_bytes: u64,
    /// Values past 2 KiB.
    pub large_value_bytes: u64,
    /// Copies of hot records (codec "auto").
    pub hot_bytes: u64,
    /// Dictionaries and their tables.
    pub dictionary_bytes: u64,
    /// What was replaced, and is yet to be freed.
    pub retired_bytes: u64,
    /// Holes, and what the heap holds in reserve.
    pub free_bytes: u64,
    /// What is kept for each thread.
    pub thread_bytes: u64,
    /// Leaves.
    pub leaves: u64,
    /// Levels from the root to a leaf.
    pub depth: u64,
    /// Leaves that are cold: compressed more strongly (codec "auto").
    pub cold_leaves: u64,
    /// Point reads.
    pub gets: u64,
    /// Writes.
    pub puts: u64,
    /// Removals.
    pub removes: u64,
    /// Bytes of the keys and values that were written.
    pub put_bytes: u64,
    /// Raw bytes that were compressed for that.
    pub compressed_bytes: u64,
    /// The id of the dictionary in use, 0 for none.
    pub dictionary_id: u64,
    /// Pieces of background work that failed, and were given up.
    pub background_failures: u64,
}

/// Fills in stats. It visits every leaf: not for every request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_get_stats(tree: Option<&lp_tree>, stats: *mut lp_tree_stats) -> lp_status {
    call(|| {
        let tree = of(tree)?;
        // SAFETY: the header requires NULL or a struct with as many writable bytes as its first field says.
        unsafe { fill(stats, |size| lp_tree_stats::of(&tree.stats(), size)) }
    })
}

impl lp_tree_stats {
    fn of(stats: &TreeStats, struct_size: usize) -> Self {
        Self {
            struct_size,
            records: stats.records,
            user_bytes: stats.user_bytes,
            bytes_held: stats.bytes_held,
            leaf_bytes: stats.leaf_bytes,
            inner_bytes: stats.inner_bytes,
            interpolation_bytes: stats.interpolation_bytes,
            landing_bytes: stats.landing_bytes,
            large_value_bytes: stats.large_value_bytes,
            hot_bytes: stats.hot_bytes,
            dictionary_bytes: stats.dictionary_bytes,
            retired_bytes: stats.retired_bytes,
            free_bytes: stats.free_bytes,
            thread_bytes: stats.thread_bytes,
            leaves: stats.leaves,
            depth: stats.depth.into(),
            cold_leaves: stats.cold_leaves,
            gets: stats.gets,
            puts: stats.puts,
            removes: stats.removes,
            put_bytes: stats.put_bytes,
            compressed_bytes: stats.compressed_bytes,
            dictionary_id: stats.dictionary_id.into(),
            background_failures: stats.bg_errors + stats.bg_panics,
        }
    }
}

/// Writes the front of a struct for a caller that may know fewer or more of its fields. The first field is the size,
/// and the rest are numbers.
///
/// # Safety
/// `to` is NULL, or as many bytes as its first field says may be written there.
pub(crate) unsafe fn fill<S: Copy>(to: *mut S, make: impl FnOnce(usize) -> S) -> Result<(), Failure> {
    if to.is_null() {
        return Err(Failure::argument("the struct to fill in is NULL"));
    }
    // SAFETY: `to` is not NULL and points to a struct whose first field, of type `size_t`, the caller has initialised.
    let known_bytes = unsafe { to.cast::<usize>().read() };
    let bytes = known_bytes.min(size_of::<S>());
    // The size covers at least the first version's fields; an impossible size is most likely uninitialised.
    if known_bytes < 2 * size_of::<u64>()
        || known_bytes > MAX_STRUCT_BYTES
        || !known_bytes.is_multiple_of(align_of::<S>())
    {
        return Err(Failure::argument(format!(
            "struct_size is {known_bytes}: set it to the struct's sizeof before the call"
        )));
    }
    let made = make(bytes);
    // SAFETY: both have at least that many bytes.
    unsafe { std::ptr::copy_nonoverlapping((&raw const made).cast::<u8>(), to.cast::<u8>(), bytes) };
    Ok(())
}

/// No struct of ours will ever be so long.
const MAX_STRUCT_BYTES: usize = 4096;
