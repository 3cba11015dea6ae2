//! The compressed B+tree.
//!
//! [`Tree`] is what users see, by the methods in `map`. Inside, from the outside in: `inner` holds the parts, `read` does the point reads, `scan` the range
//! scans, and `write` writes under a leaf's latch. `index` leads from a key to its leaf, `node` is what stands in leaves, inner nodes
//! and landing buffers, `compact` makes new leaves of a leaf and what landed on it, `bulk` of records that come in key
//! order, and `upkeep` works beside the writers.
//! `docs/design.md` draws the pages and gives the reasons.

#[allow(unsafe_code)]
mod admin;
mod admission;
mod bulk;
pub(crate) mod cache_hooks;
mod compact;
mod count;
mod error;
#[cfg(any(test, feature = "fuzz"))]
#[doc(hidden)]
#[allow(unsafe_code)]
pub mod fuzz;
pub(crate) mod hash;
#[allow(unsafe_code)]
mod hot;
mod in_range;
mod index;
#[allow(unsafe_code)]
mod inner;
mod key_range;
mod map;
mod node;
mod options;
mod read;
mod remove_range;
mod sample;
mod scan;
mod stats;
mod temperature_rule;
#[allow(unsafe_code)]
mod thread_state;
mod upkeep;
mod upkeep_by_caller;
mod validate;
mod walk;
#[allow(unsafe_code)]
mod write;

use std::sync::Arc;

pub use error::{MAX_KEY_BYTES, MAX_VALUE_BYTES, TreeError};
pub use key_range::KeyRange;
pub use map::Update;
pub use options::{DictionaryChoice, Layout, ShardBy, TreeBuilder, Upkeep};
pub use remove_range::RemovedRange;
pub use scan::Range;
pub(crate) use scan::{Bounds, copied_bound, is_empty, not_above, not_below};
pub use stats::TreeStats;
pub use temperature_rule::TemperatureRule;

use crate::tree::inner::TreeInner;
use crate::tree::upkeep::scheduler::UpkeepHandle;

/// A key and its value.
pub type Record = (Vec<u8>, Vec<u8>);

/// A concurrent, ordered map from byte strings to byte strings whose leaves are kept compressed.
///
/// Keys are at most [`MAX_KEY_BYTES`] long, values at most [`MAX_VALUE_BYTES`]; both may be empty. All methods take `&self` and may be
/// called from any number of threads. Reads never wait for a lock.
///
/// An operation on one record is atomic: [`Tree::get`], [`Tree::insert`], [`Tree::insert_if_absent`], [`Tree::update_if_present`],
/// [`Tree::remove`], [`Tree::swap`], [`Tree::take`], [`Tree::compare_and_swap`] and [`Tree::update_with`] of one key happen one after the
/// other, in an order that all threads agree on. What is made of several of these says itself what is atomic: [`Tree::pop_first`],
/// [`Tree::pop_last`], [`Tree::get_or_insert_with`], [`Tree::retain`].
/// [`Tree::extend`], [`Tree::get_many`], [`Tree::clear`] and scans are not of one moment.
///
/// Keys are taken by reference, as whatever has bytes: `tree.get("a")`, `tree.get(&42_u64.to_be_bytes())`, `tree.range("a".."b")`.
pub struct Tree {
    core: Arc<TreeInner>,
    upkeep: UpkeepHandle,
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tree")
            .field("codec", &self.core.engines.warm.codec())
            .field("shards", &self.core.shards.len())
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl Tree {
    /// A builder with every option at its default.
    ///
    /// ```
    /// let tree = leafpress::Tree::builder().codec("zstd:1".parse()?).build()?;
    /// assert!(tree.is_empty());
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn builder() -> TreeBuilder {
        TreeBuilder::default()
    }
}

impl<'t> IntoIterator for &'t Tree {
    type Item = Result<(Vec<u8>, Vec<u8>), TreeError>;
    type IntoIter = Range<'t>;

    fn into_iter(self) -> Range<'t> {
        self.iter()
    }
}

const _: () = {
    const fn shared_between_threads<T: Send + Sync>() {}
    shared_between_threads::<Tree>();
    shared_between_threads::<TreeBuilder>();
    shared_between_threads::<Range<'_>>();
    shared_between_threads::<TreeStats>();
    shared_between_threads::<TreeError>();
};

impl Drop for Tree {
    fn drop(&mut self) {
        self.core.background.stop();
        self.upkeep.end();
    }
}
