//! Statistics of a tree, and upkeep on request.

use crate::tree::upkeep::defragment::PassKind;
use crate::tree::upkeep::temperature::Temperatures;
use crate::tree::{Tree, TreeError, TreeStats};
use leafpress_codec::Dictionary;

impl Tree {
    /// Returns the number of records. Under concurrent writes it may be slightly out of date.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.extend([("apple", "red"), ("banana", "yellow"), ("cherry", "red")])?;
    /// assert_eq!(tree.len(), 3);
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.core.len()
    }

    /// Returns whether there are no records.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.extend([("apple", "red"), ("banana", "yellow"), ("cherry", "red")])?;
    /// assert!(!tree.is_empty());
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes held, as [`TreeStats::bytes_held`], without visiting every leaf. With the feature `node-heap`
    /// it queries the system for resident memory.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.extend([("apple", "red"), ("banana", "yellow"), ("cherry", "red")])?;
    /// // Of few records most is the tree's own.
    /// assert!(tree.bytes_held() > 0);
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    #[must_use]
    pub fn bytes_held(&self) -> u64 {
        self.core.bytes_held()
    }

    /// Returns statistics of the tree's memory and operations. Visits every leaf.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.extend([("apple", "red"), ("banana", "yellow"), ("cherry", "red")])?;
    /// let stats = tree.stats();
    /// assert_eq!((stats.records, stats.user_bytes), (3, 29));
    /// assert!(stats.bytes_held >= stats.leaf_bytes);
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> TreeStats {
        self.core.stats()
    }

    /// Sets the minimum size in bytes of landing buffers that are allocated or filled from now on, whatever
    /// [`TreeBuilder::landing_bytes`](crate::tree::TreeBuilder::landing_bytes) is; 0 removes the minimum, and values
    /// above 16 KiB mean 16 KiB.
    ///
    /// Intended for the time while a forked child shares the process's memory: a compaction rewrites a whole leaf, and
    /// each page that is written is then held twice (copy-on-write); a write to a landing buffer copies little more
    /// than itself.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.extend([("apple", "red"), ("banana", "yellow"), ("cherry", "red")])?;
    /// tree.set_min_landing_bytes(4 << 10);
    /// // Here the program forks, and writes on while its child saves what there was.
    /// tree.insert("apple", "green")?;
    /// tree.set_min_landing_bytes(0);
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    #[doc(hidden)]
    pub fn set_min_landing_bytes(&self, bytes: usize) {
        self.core.set_min_landing_bytes(bytes);
    }

    /// Returns the dictionary that new frames are compressed with; `None` where there is none (yet).
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.extend([("apple", "red"), ("banana", "yellow"), ("cherry", "red")])?;
    /// // So few records are not worth one. Another tree can begin with this one's:
    /// let choice = match tree.dictionary()? {
    ///     Some(dictionary) => leafpress::DictionaryChoice::Initial(dictionary),
    ///     None => leafpress::DictionaryChoice::Auto,
    /// };
    /// let other = leafpress::Tree::builder().dictionary(choice).build()?;
    /// # assert!(other.is_empty());
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// [`TreeError::OutOfMemory`].
    pub fn dictionary(&self) -> Result<Option<Dictionary>, TreeError> {
        self.core.current_dictionary()
    }

    /// Compacts every leaf: trains a new dictionary, empties the landing buffers, and compresses all frames with the
    /// newest dictionary.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.extend([("apple", "red"), ("banana", "yellow"), ("cherry", "red")])?;
    /// tree.compact()?;
    /// assert_eq!(tree.stats().landing_buffers, 0);
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// [`TreeError::OutOfMemory`] or [`TreeError::Codec`]; no record is lost, and leaves compacted so far stay
    /// compacted.
    pub fn compact(&self) -> Result<(), TreeError> {
        self.core.train_dictionary()?;
        self.core.sweep(PassKind::Landed)
    }

    /// Brings the tree into the state that it would reach some time after the last write: completes due background work
    /// (dictionary training and recompression, queued compactions), compacts landing buffers where that is worth a
    /// pass, and reclaims garbage that no reader uses.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.extend([("apple", "red"), ("banana", "yellow"), ("cherry", "red")])?;
    /// // Before memory is measured.
    /// tree.settle()?;
    /// println!("{} bytes", tree.bytes_held());
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// [`TreeError::Background`] where a background thread has ended after repeated panics; the work that does not
    /// depend on it is done.
    pub fn settle(&self) -> Result<(), TreeError> {
        let settled = self.core.background.settle(&self.core, true);
        self.core.flush_retired();
        settled
    }

    /// Moves every leaf and landing buffer, as defragmentation of the heap does in the background; for model checkers,
    /// which have neither the thread nor the heap.
    ///
    /// # Errors
    /// [`TreeError::OutOfMemory`]; leaves moved so far stay moved.
    #[cfg(any(shuttle, miri))]
    pub fn defragment(&self) -> Result<(), TreeError> {
        self.core.sweep(PassKind::Defragment)
    }

    /// Checks every structural invariant. No other thread may write meanwhile.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.extend([("apple", "red"), ("banana", "yellow"), ("cherry", "red")])?;
    /// tree.validate()?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// [`TreeError::Invalid`] names the first broken invariant.
    pub fn validate(&self) -> Result<(), TreeError> {
        // Prevents temperature changes of leaves meanwhile.
        let _passes = self.core.temperatures.as_ref().map(Temperatures::hold);
        // Landing buffers are not compacted, so that they are checked too. The tree is valid even if a background
        // thread has ended.
        let _ = self.core.background.settle(&self.core, false);
        self.core.flush_retired();
        self.core.validate()
    }
}
