//! Upkeep by the tree's caller, and trainings and compactions on request.

use std::time::Duration;

use crate::tree::error::TreeError;
use crate::tree::{Tree, TreeBuilder, Upkeep};
use leafpress_codec::Codec;

impl TreeBuilder {
    /// Checks that the options allow upkeep by the caller.
    pub(super) fn check_upkeep_options(&self) -> Result<(), TreeError> {
        let refused = |option, reason: &str| {
            Err(TreeError::Option {
                option,
                reason: reason.to_owned(),
            })
        };
        match self.upkeep {
            Upkeep::Caller if self.background_threads > 0 => {
                refused("background_threads", "not available with `Upkeep::Caller`")
            }
            Upkeep::Caller if matches!(self.codec, Codec::Auto { .. }) => refused(
                "upkeep",
                "the codec `auto` scans all leaves at once, which `Upkeep::Caller` cannot do in steps",
            ),
            _ => Ok(()),
        }
    }
}

impl Tree {
    /// Runs due upkeep steps until `budget` has passed, with [`Upkeep::Caller`], and returns whether more is due. With
    /// [`Upkeep::Threads`] there is nothing to do.
    ///
    /// A step is usually one leaf: some ten microseconds, or, if it is recompressed, the codec's time for a leaf of 16
    /// or 32 KiB. Two steps are longer: the interpolation index of a shard, which is rebuilt in one step of some
    /// milliseconds for 64 thousand leaves, and not rebuilt if there are more; and, with the feature `node-heap`, the
    /// end of a pass over all leaves, which returns memory to the system. If a step is due, at least one is run. If
    /// none is due, a call takes well below a microsecond.
    ///
    /// While a training runs on its thread ([`Tree::is_training`]) there may be nothing to do; a call after its end
    /// continues with its result.
    ///
    /// ```
    /// use std::time::Duration;
    /// use leafpress::{Upkeep, Tree};
    ///
    /// let tree = Tree::builder().upkeep(Upkeep::Caller).build()?;
    /// tree.insert("apple", "red")?;
    /// // Now and then, as from an event loop's timer.
    /// while tree.run_upkeep(Duration::from_millis(1))? {}
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// [`TreeError::OutOfMemory`] or [`TreeError::Codec`] from a step or a training, [`TreeError::Thread`] where no
    /// thread could be started for a training. No record is lost; the failed step is skipped, and the next call
    /// continues with other due steps.
    ///
    /// # Fork
    /// The process may fork between calls, and while a training runs.
    pub fn run_upkeep(&self, budget: Duration) -> Result<bool, TreeError> {
        self.core.run_upkeep(budget)
    }

    /// Requests the training of a dictionary and the choice of the frame length, even though neither is due: by the
    /// tree's upkeep, or in the next calls of [`Tree::run_upkeep`]. The results are used only if they are better than
    /// the current ones. Returns false where there is nothing to train: the codec takes no dictionary, or it was given
    /// or is off, and the lengths are given as well.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// if tree.request_training() {
    ///     tree.settle()?;
    /// }
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn request_training(&self) -> bool {
        let core = &self.core;
        let trains = core.dictionaries.auto || core.sizing.auto;
        if trains {
            core.background.train();
        }
        trains
    }

    /// Requests what [`Tree::compact`] does, without waiting for it: a training, and a pass that compacts every leaf,
    /// by the tree's upkeep, or in the next calls of [`Tree::run_upkeep`]. A new dictionary is used only if it is
    /// better than the current one. Returns false if nothing would do it: with [`Upkeep::Threads`] a tree has no upkeep
    /// task if it has neither the feature `node-heap` nor anything to train.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.extend([("apple", "red"), ("banana", "yellow"), ("cherry", "red")])?;
    /// if tree.request_compaction() {
    ///     tree.settle()?;
    /// }
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn request_compaction(&self) -> bool {
        let core = &self.core;
        core.background.compact(core.dictionaries.auto || core.sizing.auto)
    }

    /// Returns whether a requested compaction has not ended, as of the last step of the upkeep.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// assert!(!tree.is_compacting());
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    #[must_use]
    pub fn is_compacting(&self) -> bool {
        self.core.background.is_compacting()
    }

    /// Returns whether a training is running.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// assert!(!tree.is_training(), "there is nothing to train from");
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    #[must_use]
    pub fn is_training(&self) -> bool {
        self.core.background.is_training()
    }
}
