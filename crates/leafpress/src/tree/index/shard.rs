//! A shard: one B+tree, with paths through it and every change of structure.
//!
//! Lock order: a leaf's lock, then the shard's structure lock, then the locks of inner nodes. A thread that holds the
//! structure lock only tries to lock a leaf. The lock of an inner node above leaves is held for a few stores, and no
//! thread waits under it.
//!
//! - A leaf is replaced in its parent by one that covers the same range under the leaf's lock and the parent's.
//! - All other changes (splits, merges, growth and shrinking of the root) are made under the structure lock: new inner
//!   nodes are built bottom-up, and one pointer is stored at the top.

#[allow(unsafe_code)]
pub(crate) mod descent;
#[allow(unsafe_code)]
mod interpolation;
#[allow(unsafe_code)]
mod move_inner;
mod validate;

use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use leafpress_base::reclaim::guard::Guard;

use crate::tree::error::TreeError;
use crate::tree::node::inner::{InnerNode, MAX_CHILDREN, NewInner, Node};
use crate::tree::node::leaf::{Leaf, NewLeaf};
use crate::tree::node::partition::ShardPartitioner;
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::{TryGrow, copied, room_for};
use leafpress_base::mem::tagged_ptr;
use leafpress_base::reclaim::load;
use leafpress_base::reclaim::node_heap::NodeHeap;
use leafpress_base::sync::{AtomicPtr, LatchGuard, Mutex, MutexGuard};

/// A node with fewer children than this is merged with a neighbour if possible.
const MIN_CHILDREN: usize = MAX_CHILDREN / 4;
/// Two nodes are merged when they have at most this many children together.
const JOINED_CHILDREN: usize = MAX_CHILDREN * 3 / 4;

/// Tags a root pointer that leads to a leaf, by its lowest bit.
fn tag_leaf(leaf: *mut u8) -> *mut u8 {
    leaf.map_addr(|address| address | 1)
}

fn untag(root: *mut u8) -> (*mut u8, bool) {
    (root.map_addr(|address| address & !1), root.addr() & 1 == 1)
}

/// One B+tree.
pub(crate) struct Shard {
    root: AtomicPtr<u8>,
    /// The interpolation index; null when there is none.
    interpolation: AtomicPtr<u8>,
    structure: Mutex<()>,
    /// How the keys of the tree are divided, of which this shard has a part.
    partitioner: ShardPartitioner,
}

/// A leaf, and the end or start of its range, if it has one.
pub(crate) type Bounded<'g> = (Leaf<'g>, Option<Vec<u8>>);

/// The nodes from the root to a leaf's parent, each with the index of the child taken.
pub(crate) type Path<'g> = Vec<(InnerNode<'g>, usize)>;

/// A replacement of neighbouring children.
pub(crate) struct Splice {
    /// Children `from..to` of the path's last node are removed.
    pub from: usize,
    pub to: usize,
    /// The inserted children, with the separators between them.
    pub children: Vec<*mut u8>,
    pub separators: Vec<Vec<u8>>,
}

impl Shard {
    /// Creates a tree of one leaf, for its part of the keys.
    pub(crate) fn new(leaf: NewLeaf, partitioner: ShardPartitioner) -> Self {
        let root = tag_leaf(leaf.leaf().as_ptr());
        leaf.publish();
        Self {
            root: AtomicPtr::new(root),
            interpolation: AtomicPtr::new(std::ptr::null_mut()),
            structure: Mutex::new(()),
            partitioner,
        }
    }

    pub(crate) fn lock_structure(&self) -> MutexGuard<'_, ()> {
        self.structure.lock()
    }

    /// Returns the path to the leaf that `choose` leads to, the leaf, and whether the root is that leaf.
    fn path_by<'g>(
        &self,
        guard: &'g Guard<'_>,
        choose: impl Fn(&InnerNode) -> usize,
    ) -> Result<(Path<'g>, Leaf<'g>), OutOfMemory> {
        let mut path = Path::new();
        let mut node = self.root(guard);
        loop {
            match node {
                Node::Leaf(leaf) => return Ok((path, leaf)),
                Node::Inner(inner) => {
                    let index = choose(&inner);
                    path.try_push((inner, index))?;
                    node = inner.load_child(index, guard);
                }
            }
        }
    }

    /// Returns the root.
    pub(crate) fn root<'g>(&self, guard: &'g Guard<'_>) -> Node<'g> {
        // SAFETY: the guard protects the root, which was loaded from the shard.
        unsafe { node_at(load(&self.root, guard)) }
    }

    /// Returns the leaf whose range holds `key`, with the path to it.
    pub(crate) fn path<'g>(&self, key: &[u8], guard: &'g Guard<'_>) -> Result<(Path<'g>, Leaf<'g>), OutOfMemory> {
        self.path_by(guard, |inner| inner.search(key))
    }

    /// Returns the leaf whose range holds `key`, and the end of the range (exclusive).
    pub(crate) fn descend_up<'g>(&self, key: &[u8], guard: &'g Guard<'_>) -> Result<Bounded<'g>, OutOfMemory> {
        let (path, leaf) = self.path(key, guard)?;
        let end = path.iter().rev().find(|(inner, index)| index + 1 < inner.children());
        Ok((leaf, end.map(|(inner, index)| inner.separator(*index)).transpose()?))
    }

    /// Returns the leaf whose range holds the greatest keys below `key` (all keys for `None`), and the start of the
    /// range (inclusive).
    pub(crate) fn descend_down<'g>(
        &self,
        key: Option<&[u8]>,
        guard: &'g Guard<'_>,
    ) -> Result<Bounded<'g>, OutOfMemory> {
        let (path, leaf) = self.path_by(guard, |inner| match key {
            Some(key) => inner.search_below(key),
            None => inner.children() - 1,
        })?;
        let start = path.iter().rev().find(|(_, index)| *index > 0);
        Ok((
            leaf,
            start.map(|(inner, index)| inner.separator(index - 1)).transpose()?,
        ))
    }

    /// Returns the number of levels from root to leaf.
    pub(crate) fn depth(&self, guard: &Guard<'_>) -> u32 {
        match self.root(guard) {
            Node::Leaf(_) => 1,
            Node::Inner(root) => u32::from(root.header().level) + 1,
        }
    }

    /// Replaces `leaf`, whose lock the caller holds, by `new`; returns false when `leaf` is no longer in the tree.
    /// `parent` is the leaf's as far as the caller knows.
    pub(crate) fn replace<'g>(
        &self,
        leaf: Leaf<'g>,
        new: Leaf<'_>,
        key: &[u8],
        mut parent: Option<InnerNode<'g>>,
        guard: &'g Guard<'_>,
    ) -> bool {
        loop {
            match parent {
                None => {
                    let (old, new) = (tag_leaf(leaf.as_ptr()), tag_leaf(new.as_ptr()));
                    // The root leaf is in no table: a leaf becomes the root when it takes over another leaf's range.
                    // The root is checked first, since a caller that used the table has no parent, and its line is one
                    // that all descents read.
                    if self.root.load(Ordering::Relaxed) == old
                        && self
                            .root
                            .compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed)
                            .is_ok()
                    {
                        return true;
                    }
                }
                Some(inner) => {
                    let latch_word = inner.latch_word();
                    let latch = latch_word.lock.lock();
                    let index = inner.search(key);
                    let current =
                        !latch_word.obsolete.load(Ordering::Relaxed) && inner.child_locked(index) == leaf.as_ptr();
                    if current {
                        // SAFETY: the parent's latch is held; the new leaf is live, and its parent's level is the one
                        // above leaves.
                        self.exchange(leaf, key, guard, || unsafe { inner.store_child(index, new.as_ptr()) });
                        return true;
                    }
                    drop(latch);
                }
            }
            // The caller did not know the parent, or it was replaced since the descent, or the tree was cleared.
            let (here, above) = self.descend(key, guard);
            if here != leaf {
                return false;
            }
            parent = above;
        }
    }

    /// Replaces neighbouring children of the path's last node under the structure lock: leaves, whose locks the caller
    /// holds, or none, which rebuilds the node. If all children of a node are removed and none is inserted, the node is
    /// removed too: its parent then has other children. On an error nothing has changed.
    pub(crate) fn splice(
        &self,
        path: &[(InnerNode<'_>, usize)],
        mut change: Splice,
        memory: &NodeHeap,
        guard: &Guard<'_>,
        _structure: &MutexGuard<'_, ()>,
    ) -> Result<(), TreeError> {
        let mut work = Rebuild {
            memory,
            made: Vec::new(),
            replaced: Vec::new(),
            latched: Vec::new(),
        };
        // Level of the children of the current node.
        let mut level = path.last().map_or(0, |(node, _)| node.header().level - 1);
        for depth in (0..path.len()).rev() {
            let (node, _) = path[depth];
            if level == 0 {
                work.lock(node)?;
                self.forget_replaced(&path[..=depth], &change, guard)?;
            }
            work.replaced.try_push(node)?;
            let grows_at_end = change.to == node.children();
            let (mut children, mut separators) = apply(node, change)?;
            let above = depth.checked_sub(1).map(|above| path[above]);
            let (mut from, mut to) = above.map_or((0, 1), |(_, index)| (index, index + 1));
            match above {
                // A root with one child is replaced by it.
                None if children.len() == 1 => {
                    let child = tagged_ptr::address(children[0]);
                    let child = if level == 0 { tag_leaf(child) } else { child };
                    self.root.store(child, Ordering::Release);
                    work.publish(guard);
                    return Ok(());
                }
                Some((parent, index)) if children.len() < MIN_CHILDREN && parent.children() > 1 => {
                    let right = index + 1 < parent.children();
                    let neighbour = if right { index + 1 } else { index - 1 };
                    if let Node::Inner(sibling) = parent.load_child(neighbour, guard)
                        && (children.is_empty() || children.len() + sibling.children() <= JOINED_CHILDREN)
                    {
                        if level == 0 {
                            work.lock(sibling)?;
                        }
                        if level == 0 && children.is_empty() {
                            // The sibling's nearest leaf takes over the range; the table must not contain that leaf
                            // with its old, shorter range.
                            let mut way = copied(&path[..depth])?;
                            if let Some((_, index)) = way.last_mut() {
                                *index = neighbour;
                            }
                            let nearest = if right { 0 } else { sibling.children() - 1 };
                            self.forget_children(sibling, &way, nearest..nearest + 1, guard)?;
                        }
                        work.replaced.try_push(sibling)?;
                        let (more, more_separators) = sibling.contents()?;
                        if children.is_empty() {
                            (children, separators) = (more, more_separators);
                        } else {
                            let between = parent.separator(index.min(neighbour))?;
                            children.try_grow(more.len())?;
                            separators.try_grow(more_separators.len() + 1)?;
                            if right {
                                separators.push(between);
                                children.extend(more);
                                separators.extend(more_separators);
                            } else {
                                children.splice(0..0, more);
                                separators.splice(0..0, more_separators.into_iter().chain([between]));
                            }
                        }
                        if right {
                            to += 1;
                        } else {
                            from -= 1;
                        }
                    }
                }
                _ => {}
            }
            level += 1;
            let (nodes, between) = work.build(level, children, separators, grows_at_end)?;
            if let ([node], 1) = (nodes.as_slice(), to - from) {
                match above {
                    // SAFETY: the structure lock is held, and the node was built for this level.
                    Some((parent, index)) => unsafe {
                        parent.store_child(index, *node);
                    },
                    None => self.root.store(*node, Ordering::Release),
                }
                work.publish(guard);
                return Ok(());
            }
            change = Splice {
                from,
                to,
                children: nodes,
                separators: between,
            };
        }
        // The root itself became several nodes: levels are added until one node is left.
        let Splice {
            mut children,
            mut separators,
            ..
        } = change;
        while children.len() > 1 {
            level += 1;
            (children, separators) = work.build(level, children, separators, true)?;
        }
        let root = tagged_ptr::address(children[0]);
        let root = if level == 0 { tag_leaf(root) } else { root };
        self.root.store(root, Ordering::Release);
        work.publish(guard);
        Ok(())
    }

    /// Replaces the tree by the one leaf `empty`, retires the old tree's inner nodes and returns its leaves, still
    /// unlocked.
    pub(crate) fn reset<'g>(&self, empty: NewLeaf, guard: &'g Guard<'_>) -> Result<Vec<Leaf<'g>>, OutOfMemory> {
        let structure = self.structure.lock();
        // Leaves are replaced one for one even while the structure lock is held.
        let mut count = 0;
        self.for_each_leaf(guard, |_| count += 1);
        let mut leaves = room_for(count)?;
        self.put_interpolation(None, guard, &structure);
        // SAFETY: the guard protects the old root, which the shard led to until now.
        let root = unsafe { node_at(self.root.swap(tag_leaf(empty.leaf().as_ptr()), Ordering::AcqRel)) };
        empty.publish();
        walk(root, guard, &mut |visit| match visit {
            Visit::Before(inner) => {
                // No leaf is replaced in this node once it is obsolete: the children read from now on are its last.
                let _latch = inner.latch_word().lock.lock();
                inner.latch_word().obsolete.store(true, Ordering::Relaxed);
            }
            Visit::Leaf(leaf) => leaves.push(leaf),
            // SAFETY: the root no longer leads to the node.
            Visit::After(inner) => unsafe { NodeHeap::retire(inner.node(), guard) },
        });
        Ok(leaves)
    }

    /// Visits every leaf. Under concurrent changes of structure one may be visited twice or not at all.
    pub(crate) fn for_each_leaf(&self, guard: &Guard<'_>, mut visit: impl FnMut(Leaf)) {
        walk(self.root(guard), guard, &mut |step| {
            if let Visit::Leaf(leaf) = step {
                visit(leaf);
            }
        });
    }

    /// Yields every node to be freed: the leaves, with what they point to, the inner nodes and the interpolation index.
    /// Yielded nodes are not accessed again.
    pub(crate) fn take_nodes(
        &mut self,
        guard: &Guard<'_>,
        mut leaf: impl FnMut(Leaf),
        mut other: impl FnMut(NonNull<u8>),
    ) {
        NonNull::new(self.interpolation.load(Ordering::Acquire))
            .into_iter()
            .for_each(&mut other);
        walk(self.root(guard), guard, &mut |step| match step {
            Visit::Before(_) => {}
            Visit::Leaf(found) => leaf(found),
            Visit::After(inner) => other(inner.node()),
        });
    }
}

/// Returns the node that a root pointer leads to.
///
/// # Safety
/// `root` was a shard's root, and the node is live for `'g`.
unsafe fn node_at<'g>(root: *mut u8) -> Node<'g> {
    // SAFETY: the caller guarantees that the node is live; the tag distinguishes leaves from inner nodes.
    unsafe {
        match untag(root) {
            (leaf, true) => Node::Leaf(Leaf::from_ptr(leaf)),
            (inner, false) => Node::Inner(InnerNode::from_ptr(inner)),
        }
    }
}

enum Visit<'g> {
    /// Before its children are visited.
    Before(InnerNode<'g>),
    Leaf(Leaf<'g>),
    /// After its children were visited.
    After(InnerNode<'g>),
}

fn walk<'g>(node: Node<'g>, guard: &'g Guard<'_>, visit: &mut impl FnMut(Visit<'g>)) {
    match node {
        Node::Leaf(leaf) => visit(Visit::Leaf(leaf)),
        Node::Inner(inner) => {
            visit(Visit::Before(inner));
            inner.load_children(guard).for_each(|child| walk(child, guard, visit));
            visit(Visit::After(inner));
        }
    }
}

/// Returns the node's children and separators after the change.
fn apply(node: InnerNode<'_>, change: Splice) -> Result<(Vec<*mut u8>, Vec<Vec<u8>>), OutOfMemory> {
    let Splice {
        from,
        to,
        children: new,
        separators: between,
    } = change;
    let (mut children, mut separators) = node.contents()?;
    children.try_grow(new.len())?;
    separators.try_grow(between.len())?;
    if new.is_empty() {
        // A neighbour takes over the removed range: the left one if there is one.
        let first = from.saturating_sub(1);
        separators.drain(first..(first + (to - from)).min(separators.len()));
    } else {
        separators.splice(from..to - 1, between);
    }
    children.splice(from..to, new);
    Ok((children, separators))
}

/// New and replaced inner nodes of a change. If it is dropped without being published, nothing has changed.
struct Rebuild<'m, 'g> {
    memory: &'m NodeHeap,
    made: Vec<NewInner>,
    replaced: Vec<InnerNode<'g>>,
    latched: Vec<(InnerNode<'g>, LatchGuard<'g>)>,
}

impl<'g> Rebuild<'_, 'g> {
    fn lock(&mut self, node: InnerNode<'g>) -> Result<(), OutOfMemory> {
        self.latched.try_room(1)?;
        self.latched.push((node, node.latch_word().lock.lock()));
        Ok(())
    }

    /// Builds nodes of `level` over the children: one, or several when they are too many; returns them and the
    /// separators between them.
    fn build(
        &mut self,
        level: u8,
        children: Vec<*mut u8>,
        separators: Vec<Vec<u8>>,
        grows_at_end: bool,
    ) -> Result<(Vec<*mut u8>, Vec<Vec<u8>>), TreeError> {
        let total = children.len();
        let share = if total <= MAX_CHILDREN {
            total
        } else if grows_at_end {
            MAX_CHILDREN - 1
        } else {
            total.div_ceil(total.div_ceil(MAX_CHILDREN))
        };
        let (mut nodes, mut between) = (Vec::new(), Vec::new());
        let mut from = 0;
        while from < total {
            let to = (from + share).min(total);
            nodes.try_grow(1)?;
            self.made.try_grow(1)?;
            // SAFETY: the children are nodes of the level below, and the tree's memory outlives its nodes.
            let node = unsafe { InnerNode::build(level, &children[from..to], &separators[from..to - 1], self.memory)? };
            nodes.push(node.inner().as_ptr());
            self.made.push(node);
            if to < total {
                between.try_push(copied(&separators[to - 1])?)?;
            }
            from = to;
        }
        Ok((nodes, between))
    }

    /// Marks the new nodes as published, and retires those that they replace.
    fn publish(self, guard: &Guard<'_>) {
        for node in self.made {
            node.publish();
        }
        for (node, latch) in self.latched {
            node.latch_word().obsolete.store(true, Ordering::Relaxed);
            drop(latch);
        }
        for node in self.replaced {
            // SAFETY: the tree no longer leads to the node, and each replaced node is listed once.
            unsafe { NodeHeap::retire(node.node(), guard) };
        }
    }
}

// SAFETY: the root leads to nodes that any thread may read under a guard and change under the locks above.
unsafe impl Send for Shard {}
// SAFETY: concurrent access through `&Shard` uses atomics, guards and the locks above.
unsafe impl Sync for Shard {}
