//! A walk over all leaves, one at a time.

use crate::tree::error::TreeError;
use crate::tree::inner::TreeInner;
use crate::tree::node::leaf::Leaf;

/// The position of a walk: all leaves before the one that holds a key of a shard were visited.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    shard: usize,
    key: Vec<u8>,
}

impl Walk {
    /// Visits the next leaf; returns false if there is none.
    ///
    /// # Errors
    /// [`TreeError::OutOfMemory`], or that of the visit; the position is then unchanged.
    pub(crate) fn step(
        &mut self,
        core: &TreeInner,
        visit: &mut dyn FnMut(Leaf<'_>) -> Result<(), TreeError>,
    ) -> Result<bool, TreeError> {
        let Some(shard) = core.shards.get(self.shard) else {
            return Ok(false);
        };
        let guard = core.memory.enter()?;
        let (leaf, end) = shard.descend_up(&self.key, &guard)?;
        visit(leaf)?;
        match end {
            Some(end) => self.key = end,
            None => {
                self.key.clear();
                self.shard += 1;
            }
        }
        Ok(true)
    }
}
