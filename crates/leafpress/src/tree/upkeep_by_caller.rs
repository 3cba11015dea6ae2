//! UpkeepHandle by the tree's caller, and trainings that are asked for.

use std::time::Duration;

use crate::tree::error::TreeError;
use crate::tree::{Tree, TreeBuilder, Upkeep};
use leafpress_codec::Codec;

impl TreeBuilder {
    /// What the caller can tend.
    pub(super) fn check_tending(&self) -> Result<(), TreeError> {
        let refused = |option, reason: &str| {
            Err(TreeError::Option {
                option,
                reason: reason.to_owned(),
            })
        };
        match self.upkeep {
            Upkeep::Caller if self.background_threads > 0 => {
                refused("background_threads", "with the caller tending the tree there are none")
            }
            Upkeep::Caller if matches!(self.codec, Codec::Auto { .. }) => refused(
                "upkeep",
                "the codec `auto` looks at all leaves at once, which the caller cannot do in steps",
            ),
            _ => Ok(()),
        }
    }
}

impl Tree {
    /// With [`Upkeep::Caller`], does upkeep that is due, one step after the other until `budget` is over, and says whether more can be
    /// done now. With [`Upkeep::Threads`] there is nothing to do.
    ///
    /// A step is mostly one leaf: some ten microseconds, or, where it is compressed again, as long as the codec takes for a leaf of 16 or 32
    /// KiB. Longer are the table that leads to the leaves of a shard, which is made anew in one step, some milliseconds where there are 64
    /// thousand of them, and kept as it is where there are more; and, with the feature `node-heap`, the end of a pass over all leaves, which
    /// gives memory back to the system. At least one step is done where one is due. With nothing due a call takes well below a microsecond.
    ///
    /// While a training runs on its thread ([`Tree::is_training`]) there may be nothing to do; a call after its end goes on with what came
    /// of it.
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
    /// [`TreeError::OutOfMemory`] or [`TreeError::Codec`] from a step or a training, [`TreeError::Thread`] where none could be started for a training.
    /// No record is lost; what failed is left undone, and the next call goes on with what else is due.
    pub fn run_upkeep(&self, budget: Duration) -> Result<bool, TreeError> {
        self.core.run_upkeep(budget)
    }

    /// Has a dictionary trained, and the lengths of frames chosen, though neither is due: by the tree's upkeep, or at the next
    /// [`Tree::run_upkeep`]s. What comes of it is used only if it is better than what there is. Returns false where there is nothing to train: the codec
    /// takes no dictionary, or it was given or is off, and lengths are given as well.
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

    /// Whether a training runs now.
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
