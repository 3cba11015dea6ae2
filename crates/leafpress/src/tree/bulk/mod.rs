//! Bulk loading: records that come in key order become leaves at once, without a landing buffer or a way down for each.
//!
//! A `loader` is handed one record after the other. As long as their keys ascend they are a run. Of a long run each
//! shard's records are copied into a `batch`, whose records are compressed into full leaves (`leaves`), and these are
//! put into the tree where the batch belongs (`place`), one change of structure for all of them. A run that is short,
//! and records that fall between others which are there, are inserted one by one. Where the tree has no dictionary yet,
//! the run's beginning waits until one is trained from it (`dictionary`). A tree may have threads for this (`crew`),
//! which take over batches.

mod batch;
mod crew;
mod dictionary;
mod leaves;
mod loader;
mod place;

use crate::tree::Tree;
use crate::tree::bulk::loader::{Order, load};
use crate::tree::error::TreeError;

impl Tree {
    /// A tree of `records`, whose keys ascend, with every option at its default: see
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

    /// Inserts or replaces each of `records`, and returns how many keys were new. Each is atomic for itself.
    ///
    /// Records whose keys ascend are a run. A run that is long goes into leaves that are made of it at once, full ones,
    /// where no other records are in between; this takes little more time than compressing the records does. Else each
    /// is inserted by itself. Where a key comes twice, the later record counts. Records are kept for a while until
    /// there are enough: others see them when this returns, or before. In a tree whose dictionary is yet to be trained,
    /// it is trained from a long run's first 8 MiB before these are compressed. See
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
    /// As [`Tree::insert`], for the first record that cannot be inserted. Those before it are. In a tree of several
    /// shards, or with several threads, some of those behind it may be, if the error is [`TreeError::OutOfMemory`] or
    /// [`TreeError::Codec`].
    pub fn extend<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        records: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64, TreeError> {
        load(&self.core, Order::Any, records)
    }

    /// Takes records whose keys ascend; the tree is new.
    pub(crate) fn load_ascending<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        records: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64, TreeError> {
        load(&self.core, Order::Ascending, records)
    }
}
