//! The compressed B+tree.
//!
//! [`Tree`] is the map; [`TreeBuilder`] configures it. These ten methods suffice for most programs: [`Tree::builder`],
//! [`Tree::get`], [`Tree::insert`], [`Tree::remove`], [`Tree::update_with`], [`Tree::extend`], [`Tree::range`],
//! [`Tree::prefix`], [`Tree::len`] and [`Tree::stats`].
//!
//! # Implementation
//! The public methods are in `map`. `inner` holds the shared state, `read` does the point reads, `scan` the range
//! scans, and `write` the writes under a leaf's latch. `index` leads from a key to its leaf, `node` defines leaves,
//! inner nodes and landing buffers, `compact` builds new leaves from a leaf and its landing buffer, `bulk` from records
//! in key order, and `upkeep` works in the background. `docs/design.md` shows the layouts and gives the reasons.

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
mod near;
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
pub(crate) use key_range::prefixed;
pub use map::Update;
#[cfg(any(test, feature = "testing"))]
pub use options::Layout;
pub use options::{DictionaryChoice, ShardBy, TreeBuilder, Upkeep};
pub use remove_range::{RemovedPart, RemovedRange};
pub use scan::Range;
pub(crate) use scan::{Bounds, copied_bound, is_empty, not_above, not_below};
pub use stats::TreeStats;
pub use temperature_rule::TemperatureRule;

use crate::tree::inner::TreeInner;
use crate::tree::upkeep::scheduler::UpkeepHandle;

/// A key and its value.
pub type Record = (Vec<u8>, Vec<u8>);

/// A concurrent, ordered map from byte strings to byte strings whose leaves are compressed.
///
/// Keys are at most [`MAX_KEY_BYTES`] long, values at most [`MAX_VALUE_BYTES`]; both may be empty. All methods take
/// `&self` and may be called from any number of threads. Reads never wait for a lock.
///
/// Operations on one record are linearizable: [`Tree::get`], [`Tree::insert`], [`Tree::insert_if_absent`],
/// [`Tree::replace`], [`Tree::remove`], [`Tree::swap`], [`Tree::take`], [`Tree::compare_and_swap`] and
/// [`Tree::update_with`] of one key happen one after the other, in an order that all threads agree on. The
/// documentation of [`Tree::pop_first`], [`Tree::pop_last`], [`Tree::get_or_insert_with`] and [`Tree::retain`], which
/// consist of several of these, states what is atomic. [`Tree::extend`], [`Tree::get_many`], [`Tree::clear`] and scans
/// are not atomic as a whole.
///
/// Keys are passed by reference, as any type that is a byte string: `tree.get("a")`, `tree.get(&42_u64.to_be_bytes())`,
/// `tree.range("a".."b")`.
///
/// # Fork
/// A child process of `fork` may read its parent's trees that have [`Upkeep::Caller`]. It must not use those with
/// [`Upkeep::Threads`]: the upkeep threads do not exist in the child, and another thread may have held a lock when the
/// process forked. The child can build trees of its own of both kinds.
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
    /// Returns a builder with every option at its default.
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
