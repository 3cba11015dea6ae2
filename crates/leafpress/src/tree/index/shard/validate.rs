//! Validation of a shard's inner nodes.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use leafpress_base::reclaim::guard::Guard;

use crate::tree::error::TreeError;
use crate::tree::index::shard::Shard;
use crate::tree::node::inner::{InnerNode, MAX_CHILDREN, Node};
use crate::tree::node::leaf::Leaf;

impl Shard {
    /// Checks separators, levels and sizes, and calls `visit` with each leaf and its range, in order.
    pub(crate) fn validate(
        &self,
        guard: &Guard<'_>,
        mut visit: impl FnMut(Leaf, Option<&[u8]>, Option<&[u8]>) -> Result<(), TreeError>,
    ) -> Result<(), TreeError> {
        let mut leaves = HashSet::new();
        let mut visit = |leaf: Leaf, start: Option<&[u8]>, end: Option<&[u8]>| {
            leaves.insert(leaf.as_ptr());
            visit(leaf, start, end)
        };
        match self.root(guard) {
            Node::Leaf(leaf) => visit(leaf, None, None)?,
            Node::Inner(inner) => validate_inner(inner, None, None, guard, &mut visit)?,
        }
        if self.interpolation_leads_to(guard, |leaf| leaves.contains(&leaf)) {
            Ok(())
        } else {
            Err(TreeError::Invalid(
                "the interpolation index leads to a leaf that is not in the tree".to_owned(),
            ))
        }
    }
}

fn validate_inner(
    inner: InnerNode<'_>,
    start: Option<&[u8]>,
    end: Option<&[u8]>,
    guard: &Guard<'_>,
    visit: &mut impl FnMut(Leaf, Option<&[u8]>, Option<&[u8]>) -> Result<(), TreeError>,
) -> Result<(), TreeError> {
    let invalid = |what: &str| Err(TreeError::Invalid(format!("inner node: {what}")));
    let header = inner.header();
    if inner.latch_word().obsolete.load(Ordering::Relaxed) {
        return invalid("an obsolete node is in the tree");
    }
    let (children, separators) = inner.contents()?;
    if children.is_empty() || children.len() > MAX_CHILDREN {
        return invalid("number of children");
    }
    if !separators.is_sorted_by(|a, b| a < b) {
        return invalid("separators do not ascend");
    }
    for (index, separator) in separators.iter().enumerate() {
        let inside =
            start.is_none_or(|start| start < separator.as_slice()) && end.is_none_or(|end| separator.as_slice() < end);
        if !inside {
            return invalid("a separator is outside the node's range");
        }
        if inner.search(separator) != index + 1 || inner.search_below(separator) != index {
            return invalid("a search misses its separator");
        }
    }
    for index in 0..children.len() {
        let start = if index == 0 {
            start
        } else {
            Some(separators[index - 1].as_slice())
        };
        let end = separators.get(index).map(Vec::as_slice).or(end);
        match inner.load_child(index, guard) {
            Node::Leaf(leaf) => visit(leaf, start, end)?,
            Node::Inner(child) if child.header().level + 1 != header.level => return invalid("levels"),
            Node::Inner(child) => validate_inner(child, start, end, guard, visit)?,
        }
    }
    Ok(())
}
