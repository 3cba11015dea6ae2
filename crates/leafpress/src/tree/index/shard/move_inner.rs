//! Relocation of inner nodes, for defragmentation.

use leafpress_base::reclaim::guard::Guard;

use crate::tree::error::TreeError;
use crate::tree::index::shard::{Shard, Splice};
use leafpress_base::reclaim::node_heap::{NodeHeap, OwnPart};

impl Shard {
    /// Replaces the inner nodes above `key` that are not in `part`, which the calling thread allocates from, by copies
    /// in it. Returns the first key after the range of the lowest of them, `None` at the shard's end.
    ///
    /// # Errors
    /// [`TreeError::OutOfMemory`]; nodes moved so far stay moved.
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
            // SAFETY: the structure lock keeps inner nodes from being replaced and freed.
            if unsafe { part.has(path[at].0.node()) } {
                continue;
            }
            // An empty change: the node is rebuilt, and possibly merged with a neighbour.
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
