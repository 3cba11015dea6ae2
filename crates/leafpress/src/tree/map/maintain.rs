//! What a tree is and holds, and the upkeep that its user may ask for.

use crate::tree::upkeep::defragment::Sweep;
use crate::tree::upkeep::temperature::Temperatures;
use crate::tree::{Tree, TreeError, TreeStats};
use leafpress_codec::Dictionary;

impl Tree {
    /// Number of records. Under concurrent writes, a number that was right a moment ago.
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

    /// Whether there are no records.
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

    /// What [`TreeStats::bytes_held`] says, without a visit of every leaf. With the feature `node-heap` it asks the system what is resident.
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

    /// What the tree holds and what it did. Visits every leaf.
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

    /// Has landing buffers that are made or filled from now on be at least so long, whatever
    /// [`TreeBuilder::landing_bytes`](crate::tree::TreeBuilder::landing_bytes) says; 0 takes that back, and more than 16 KiB is that.
    ///
    /// It is for as long as a child of the process shares its memory: a compaction writes all of a leaf, and each page that is written is
    /// then held twice; what lands writes little more than itself.
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
    pub fn set_min_landing_bytes(&self, bytes: usize) {
        self.core.set_min_landing_bytes(bytes);
    }

    /// The dictionary that new frames are compressed with; `None` where there is none, yet or at all.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.extend([("apple", "red"), ("banana", "yellow"), ("cherry", "red")])?;
    /// // So few records are not worth one. Another tree can begin with this one's:
    /// let choice = match tree.dictionary()? {
    ///     Some(dictionary) => leafpress::DictionaryChoice::Given(dictionary),
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

    /// Compacts every leaf: landing buffers are emptied, and all frames are compressed with the newest dictionary, which is trained anew
    /// first.
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
    /// [`TreeError::OutOfMemory`] or [`TreeError::Codec`]; no record is lost, and leaves compacted so far stay so.
    pub fn compact(&self) -> Result<(), TreeError> {
        self.core.train_dictionary()?;
        self.core.sweep(Sweep::Landed)
    }

    /// Puts the tree in the state in which it would be some time after the last write: background work that is due is done (dictionary
    /// training and compressing with it, queued compactions), what landed is compacted where it is worth a pass, and what was replaced is
    /// reclaimed, where no reader is in its way.
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
    /// [`TreeError::Background`] where a background thread has ended because all it did panicked; what can be done without it is done.
    pub fn settle(&self) -> Result<(), TreeError> {
        let settled = self.core.background.settle(&self.core, true);
        self.core.flush_retired();
        settled
    }

    /// Moves every leaf and landing buffer, as the background thread does that defragments the heap: model checkers have neither.
    ///
    /// # Errors
    /// [`TreeError::OutOfMemory`]; leaves moved so far stay so.
    #[cfg(any(shuttle, miri))]
    pub fn defragment(&self) -> Result<(), TreeError> {
        self.core.sweep(Sweep::Defragment)
    }

    /// Checks every structural invariant. No other thread may be writing meanwhile.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.extend([("apple", "red"), ("banana", "yellow"), ("cherry", "red")])?;
    /// tree.validate()?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// [`TreeError::Invalid`] names the first one that is broken.
    pub fn validate(&self) -> Result<(), TreeError> {
        // Leaves keep their temperature meanwhile.
        let _passes = self.core.temperatures.as_ref().map(Temperatures::hold);
        // What landed stays there, to be checked. A background thread that is no more leaves the tree right.
        let _ = self.core.background.settle(&self.core, false);
        self.core.flush_retired();
        self.core.validate()
    }
}
