//! Moving inner nodes, for a pass that moves all of a tree's nodes together.

use leafpress_base::reclaim::guard::Guard;

use crate::tree::error::TreeError;
use crate::tree::index::shard::{Shard, Splice};
use leafpress_base::reclaim::node_heap::{NodeHeap, OwnPart};

impl Shard {
    /// Puts copies that are from `part`, which the calling thread allocates from, in the place of the inner nodes above `key` that
    /// are not. Returns the first key behind the range of the lowest of them, nothing at the shard's end.
    ///
    /// # Errors
    /// [`TreeError::OutOfMemory`]; nodes moved so far stay so.
    pub(crate) fn move_inner(
        &self,
        key: &[u8],
        part: &OwnPart,
        memory: &NodeHeap,
        guard: &Guard<'_>,
    ) -> Result<Option<Vec<u8>>, TreeError> {
        let structure = self.lock_structure();
        let mut level = 0;
        loop {
            let (path, _) = self.path(key, guard)?;
            let Some(at) = path.len().checked_sub(level + 1) else {
                let above = path.split_last().map_or(&[][..], |(_, above)| above);
                let end = above.iter().rev().find(|(inner, index)| index + 1 < inner.children());
                return Ok(end.map(|(inner, index)| inner.separator(*index)).transpose()?);
            };
            level += 1;
            // SAFETY: the structure lock keeps inner nodes in place.
            if unsafe { part.has(path[at].0.node()) } {
                continue;
            }
            // A change that changes nothing: the node is made anew, and maybe joined to a neighbour.
            let unchanged = Splice {
                from: 0,
                to: 0,
                children: Vec::new(),
                separators: Vec::new(),
            };
            self.splice(&path[..=at], unchanged, memory, guard, &structure)?;
        }
    }
}
