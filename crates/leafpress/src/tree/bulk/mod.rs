//! Bulk loading: records that arrive in key order become leaves directly, without a landing buffer or a descent for
//! each.
//!
//! A `loader` receives the records one by one. As long as their keys ascend they form a run. Of a long run each shard's
//! records are copied into a `batch`, whose records are compressed into full leaves (`leaves`), and these are put into
//! the tree where the batch belongs (`insert_leaves`), with one change of structure for all of them. A short run, and
//! records that fall between existing ones, are inserted one by one. Where the tree has no dictionary yet, the run's
//! beginning is held back until one is trained from it (`dictionary`). A tree may use helper threads
//! (`helper_threads`), which process batches.

mod batch;
mod dictionary;
mod helper_threads;
mod insert_leaves;
mod leaves;
mod loader;

use crate::tree::Tree;
use crate::tree::bulk::loader::{Order, load};
use crate::tree::error::TreeError;

impl Tree {
    /// Builds a tree of `records`, whose keys ascend, with every option at its default: see
    /// [`TreeBuilder::from_sorted`](crate::tree::TreeBuilder::from_sorted).
    ///
    /// ```
    /// let tree = leafpress::Tree::from_sorted([("apple", "red"), ("banana", "yellow")])?;
    /// assert_eq!(tree.len(), 2);
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// As [`TreeBuilder::from_sorted`](crate::tree::TreeBuilder::from_sorted).
    pub fn from_sorted<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        records: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, TreeError> {
        Self::builder().from_sorted(records)
    }

    /// Inserts or replaces each of `records`, and returns how many keys were new. Each insertion is atomic on its own.
    ///
    /// Records whose keys ascend form a run. A long run is compressed directly into full leaves, where no other records
    /// are in between; this takes little more time than compressing the records. Other records are inserted one by one.
    /// If a key is repeated, the later record wins. Records are collected until there are enough: other threads see
    /// them when this returns, or before. In a tree whose dictionary is not trained yet, it is trained from a long
    /// run's first 8 MiB before these are compressed. See
    /// [`TreeBuilder::load_threads`](crate::tree::TreeBuilder::load_threads).
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// let new = tree.extend((0..1000_u32).map(|n| (n.to_be_bytes(), "value")))?;
    /// assert_eq!(new, 1000);
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tree::insert`], for the first record that cannot be inserted. The records before it are inserted. In a tree
    /// of several shards, or with several threads, some of the records after it may be too, if the error is
    /// [`TreeError::OutOfMemory`] or [`TreeError::Codec`].
    pub fn extend<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        records: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64, TreeError> {
        load(&self.core, Order::Any, records)
    }

    /// Loads records whose keys ascend into a new tree.
    pub(crate) fn load_ascending<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        records: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64, TreeError> {
        load(&self.core, Order::Ascending, records)
    }
}
