//! Inner nodes: separators and children.
//!
//! Separators never change once a node is published; a change of structure builds new nodes. Only child pointers are
//! stored in place: directly above the leaves under the node's lock, when a leaf is replaced by its compacted version,
//! further up under the structure lock, when a node is replaced by one that covers the same range. A child pointer
//! carries a hint (see `mem::tagged_ptr`): [`Leaf::hint`] for a leaf, the number of its children for an inner node.
//!
//! ```text
//! header | to a cache line's start | pivots: 16 of 8 bytes
//! groups, each: heads of 8 separators | pointers to 8 children
//! latch word: lock, obsolete | ends: u32 each | prefix | separators behind the prefix
//! ```
//! A head is the first eight bytes of a separator after the common prefix, zero-padded, most significant byte first: a
//! search compares heads, and reads a separator's bytes only where heads are equal. A pivot is the last head of a
//! group. Unused heads after the last separator have the greatest value.
//!
//! In a tree that is far larger than the caches most nodes are evicted from them between two visits, and a binary
//! search would wait for one line after the other. Here a search reads the header and the pivots, all at once since
//! their positions follow from the node's address, and then one group, whose two lines are fetched together.

use std::cmp::Ordering as Order;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use leafpress_base::reclaim::guard::Guard;

use crate::tree::error::TreeError;
use crate::tree::node::descent_step::DescentStep;
use crate::tree::node::fraction::Fraction;
use crate::tree::node::key_order::{begins_with, common_prefix, head, head_behind};
use crate::tree::node::leaf::Leaf;
use crate::tree::node::partition::ShardPartitioner;
use crate::tree::node::rank::count_below;
use crate::tree::node::unpublished::unpublished;
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::node::{Kind, NodeHeader};
use leafpress_base::mem::prefetch::{LINE_BYTES, prefetch};
use leafpress_base::mem::room::{TryGrow, collected, joined, room_for};
use leafpress_base::mem::tagged_ptr::{self, Hint};
use leafpress_base::reclaim::load;
use leafpress_base::reclaim::node_heap::NodeHeap;
use leafpress_base::sync::{AtomicBool, AtomicPtr, Latch};

/// Maximum number of children of an inner node.
pub(crate) const MAX_CHILDREN: usize = 128;

#[repr(C)]
pub(crate) struct InnerHeader {
    node: NodeHeader,
    /// The head of the common prefix.
    prefix_head: u64,
    children: u16,
    prefix_len: u16,
    /// 1 when the children are leaves.
    pub level: u8,
}

/// The mutable state of a node besides its child pointers. It is stored after the groups, away from the lines that
/// every descent reads: these would otherwise be invalidated by each replacement of a leaf.
#[repr(C)]
pub(crate) struct LatchWord {
    pub lock: Latch,
    /// Set under the lock when a newer node has replaced this one.
    pub obsolete: AtomicBool,
}

/// Separators, and children, of a group: the heads fill a cache line.
const GROUP: usize = LINE_BYTES / size_of::<u64>();
const GROUPS: usize = MAX_CHILDREN / GROUP;
const PIVOTS_BYTES: usize = GROUPS * size_of::<u64>();
/// Size of a child pointer; larger with a model checker's atomics.
const CHILD_BYTES: usize = size_of::<AtomicPtr<u8>>();
const GROUP_BYTES: usize = LINE_BYTES + GROUP * CHILD_BYTES;
/// Size of the latch word, padded so that the ends after it are aligned.
const LATCH_WORD_BYTES: usize = size_of::<LatchWord>().next_multiple_of(size_of::<u32>());
/// Maximum padding between the header and the line on which the pivots start.
const MAX_PADDING_BYTES: usize = LINE_BYTES - 1;
/// Head of a position without a separator.
const NO_HEAD: u64 = u64::MAX;

/// Number of children to each side of a predicted one that are prefetched.
const GUESS_OFF: usize = 2;

/// The result of a search.
struct FoundChild {
    index: usize,
    /// The head that was searched for, if the key has the common prefix.
    wanted: Option<u64>,
}

/// An inner node, live for `'g`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct InnerNode<'g>(NonNull<u8>, PhantomData<&'g NonNull<u8>>);

unpublished!(
    /// An inner node that is not published yet.
    NewInner,
    InnerNode,
    inner
);

/// A node of a shard.
#[derive(Clone, Copy)]
pub(crate) enum Node<'g> {
    Inner(InnerNode<'g>),
    Leaf(Leaf<'g>),
}

/// Returns the address of a child of a node of `level`, with its hint.
///
/// # Safety
/// The child is a live node of the level below.
unsafe fn hinted(child: *mut u8, level: u8) -> *mut u8 {
    match tagged_ptr::split(child) {
        // SAFETY: the caller guarantees a live node of the level below, which the level identifies as a leaf or an
        // inner node.
        (node, 0) => tagged_ptr::with_hint(node, unsafe {
            if level == 1 {
                Leaf::from_ptr(node).hint()
            } else {
                InnerNode::from_ptr(node).children() as Hint
            }
        }),
        _ => child,
    }
}

impl<'g> DescentStep<'g> {
    /// Returns the inner node that the step leads to.
    #[inline(always)]
    pub(crate) fn inner(&self) -> InnerNode<'g> {
        assert!(self.is_inner(), "the step leads to an inner node");
        // SAFETY: `DescentStep::to_inner` requires that the address is a live inner node's.
        unsafe { InnerNode::from_ptr(self.address()) }
    }
}

impl<'g> InnerNode<'g> {
    /// Builds a node above `children`, separated by `separators` (one fewer, ascending). Children may have their hints
    /// already.
    ///
    /// # Safety
    /// `memory` outlives the node; the children are live nodes of `level - 1`.
    pub(crate) unsafe fn build(
        level: u8,
        children: &[*mut u8],
        separators: &[Vec<u8>],
        memory: &NodeHeap,
    ) -> Result<NewInner, TreeError> {
        debug_assert_eq!(children.len(), separators.len() + 1);
        let prefix_len = match (separators.first(), separators.last()) {
            (Some(first), Some(last)) => common_prefix(first, last),
            _ => 0,
        };
        let suffix_bytes: usize = separators.iter().map(|separator| separator.len() - prefix_len).sum();
        let groups = children.len().div_ceil(GROUP);
        let sections = PIVOTS_BYTES + groups * GROUP_BYTES + LATCH_WORD_BYTES + separators.len() * size_of::<u32>();
        let bytes = size_of::<InnerHeader>() + MAX_PADDING_BYTES + sections + prefix_len + suffix_bytes;
        // SAFETY: every section is written into the room counted for it, after the padding; pivots and groups are
        // aligned to lines.
        unsafe {
            let node = memory.allocate(bytes, Kind::Inner)?;
            let header = node.cast::<InnerHeader>().as_ptr();
            let prefix = separators.first().map_or(&[][..], |first| &first[..prefix_len]);
            (&raw mut (*header).prefix_head).write(head(prefix));
            (&raw mut (*header).children).write(children.len() as u16);
            (&raw mut (*header).prefix_len).write(prefix_len as u16);
            (&raw mut (*header).level).write(level);
            let inner = Self(node, PhantomData);
            inner.latch_word_at().write(LatchWord {
                lock: Latch::new(),
                obsolete: AtomicBool::new(false),
            });
            for index in separators.len()..groups * GROUP {
                inner.head_at(index).write(NO_HEAD);
            }
            for index in children.len()..groups * GROUP {
                inner.child_at(index).write(AtomicPtr::new(std::ptr::null_mut()));
            }
            for (index, child) in children.iter().enumerate() {
                inner.child_at(index).write(AtomicPtr::new(hinted(*child, level)));
            }
            let mut end = 0;
            for (index, separator) in separators.iter().enumerate() {
                let suffix = &separator[prefix_len..];
                inner.head_at(index).write(head(suffix));
                inner
                    .bytes()
                    .add(prefix_len + end)
                    .copy_from_nonoverlapping(suffix.as_ptr(), suffix.len());
                end += suffix.len();
                inner.ends().add(index).write(end as u32);
            }
            inner.bytes().copy_from_nonoverlapping(prefix.as_ptr(), prefix_len);
            for group in 0..GROUPS {
                let pivot = if group < groups {
                    inner.head_at(group * GROUP + GROUP - 1).read()
                } else {
                    NO_HEAD
                };
                inner.pivots().add(group).write(pivot);
            }
            Ok(NewInner::new(node))
        }
    }

    /// Borrows a node.
    ///
    /// # Safety
    /// `node` is an inner node that is live for `'g`.
    pub(crate) unsafe fn from_node(node: NonNull<u8>) -> Self {
        Self(node, PhantomData)
    }

    /// Borrows a node by its address.
    ///
    /// # Safety
    /// `pointer` is the address of an inner node that is live for `'g`.
    pub(crate) unsafe fn from_ptr(pointer: *mut u8) -> Self {
        // SAFETY: a live node's pointer is not null.
        Self(unsafe { NonNull::new_unchecked(pointer) }, PhantomData)
    }

    pub(crate) fn as_ptr(self) -> *mut u8 {
        self.0.as_ptr()
    }

    pub(crate) fn node(self) -> NonNull<u8> {
        self.0
    }

    pub(crate) fn header(&self) -> &'g InnerHeader {
        // SAFETY: a live node begins with its header.
        unsafe { self.0.cast::<InnerHeader>().as_ref() }
    }

    pub(crate) fn children(&self) -> usize {
        self.header().children as usize
    }

    /// Returns the start of the pivots, at a cache line.
    #[inline(always)]
    fn pivots(&self) -> *mut u64 {
        let behind = self.0.addr().get() + size_of::<InnerHeader>();
        let padding = behind.next_multiple_of(LINE_BYTES) - behind;
        // SAFETY: the node has room for the padding after its header.
        unsafe { self.0.as_ptr().add(size_of::<InnerHeader>() + padding).cast() }
    }

    #[inline(always)]
    fn group_at(&self, group: usize) -> *mut u8 {
        // SAFETY: the groups follow the pivots, and callers pass a group below their number.
        unsafe { self.pivots().cast::<u8>().add(PIVOTS_BYTES + group * GROUP_BYTES) }
    }

    #[inline(always)]
    fn head_at(&self, index: usize) -> *mut u64 {
        // SAFETY: a group starts with its heads.
        unsafe { self.group_at(index / GROUP).cast::<u64>().add(index % GROUP) }
    }

    #[inline(always)]
    fn children_of(&self, group: usize) -> *mut AtomicPtr<u8> {
        // SAFETY: a group's children follow its heads.
        unsafe { self.group_at(group).add(LINE_BYTES).cast() }
    }

    #[inline(always)]
    fn child_at(&self, index: usize) -> *mut AtomicPtr<u8> {
        // SAFETY: a group has as many children as heads.
        unsafe { self.children_of(index / GROUP).add(index % GROUP) }
    }

    fn latch_word_at(&self) -> *mut LatchWord {
        self.group_at(self.children().div_ceil(GROUP)).cast()
    }

    pub(crate) fn latch_word(&self) -> &'g LatchWord {
        // SAFETY: a live node has its latch word after its groups.
        unsafe { &*self.latch_word_at() }
    }

    fn ends(&self) -> *mut u32 {
        // SAFETY: the ends follow the latch word.
        unsafe { self.latch_word_at().cast::<u8>().add(LATCH_WORD_BYTES).cast() }
    }

    fn bytes(&self) -> *mut u8 {
        // SAFETY: the prefix and the separators follow the ends, of which there is one fewer than children.
        unsafe { self.ends().add(self.children() - 1).cast() }
    }

    fn prefix(&self) -> &[u8] {
        // SAFETY: the prefix is immutable and within the node.
        unsafe { std::slice::from_raw_parts(self.bytes(), self.header().prefix_len as usize) }
    }

    fn suffix(&self, index: usize) -> &[u8] {
        // SAFETY: ends ascend, and the last is the length of all suffixes, which are immutable.
        unsafe {
            let start = if index == 0 {
                0
            } else {
                self.ends().add(index - 1).read() as usize
            };
            let end = self.ends().add(index).read() as usize;
            let base = self.bytes().add(self.header().prefix_len as usize);
            std::slice::from_raw_parts(base.add(start), end - start)
        }
    }

    /// Returns separator `index`, including the prefix.
    pub(crate) fn separator(&self, index: usize) -> Result<Vec<u8>, OutOfMemory> {
        joined(self.prefix(), self.suffix(index))
    }

    /// Replaces the contents of `separator` by separator `index`.
    pub(crate) fn separator_into(&self, index: usize, separator: &mut Vec<u8>) -> Result<(), OutOfMemory> {
        separator.clear();
        separator.try_append(self.prefix())?;
        separator.try_append(self.suffix(index))
    }

    #[inline]
    fn child(&self, index: usize) -> &AtomicPtr<u8> {
        debug_assert!(index < self.children());
        // SAFETY: callers pass an index below the number of children, and the pointer is only accessed atomically.
        unsafe { &*self.child_at(index) }
    }

    /// Returns the child at `index`, which the guard protects.
    #[inline]
    pub(crate) fn load_child<'a>(&self, index: usize, guard: &'a Guard<'_>) -> Node<'a> {
        // SAFETY: the guard protects the child.
        unsafe { self.node_below(tagged_ptr::address(load(self.child(index), guard))) }
    }

    /// Returns all children, which the guard protects.
    pub(crate) fn load_children<'a>(&self, guard: &'a Guard<'_>) -> impl Iterator<Item = Node<'a>> {
        (0..self.children()).map(move |index| self.load_child(index, guard))
    }

    /// Borrows a child.
    ///
    /// # Safety
    /// `child` is a child of this node that is live for `'a`.
    unsafe fn node_below<'a>(&self, child: *mut u8) -> Node<'a> {
        // SAFETY: the caller guarantees that the child is live; the level determines its kind.
        unsafe {
            match self.header().level {
                1 => Node::Leaf(Leaf::from_ptr(child)),
                _ => Node::Inner(InnerNode::from_ptr(child)),
            }
        }
    }

    /// Returns the child at `index`, for the holder of a lock that prevents its replacement.
    pub(crate) fn child_locked(&self, index: usize) -> *mut u8 {
        tagged_ptr::address(self.child(index).load(Ordering::Acquire))
    }

    /// Returns the child at `index` with its hint, for the holder of such a lock.
    pub(crate) fn child_with_hint(&self, index: usize) -> *mut u8 {
        self.child(index).load(Ordering::Acquire)
    }

    /// Stores another child at `index`, and returns it with its hint.
    ///
    /// # Safety
    /// The caller holds the lock that protects child pointers of this level, and the child is a live node of the level
    /// below.
    pub(crate) unsafe fn store_child(&self, index: usize, child: *mut u8) -> *mut u8 {
        // SAFETY: the caller guarantees that the child is a live node of the level below.
        let child = unsafe { hinted(child, self.header().level) };
        self.child(index).store(child, Ordering::Release);
        child
    }

    /// Returns the step to the child whose range holds `key`, with the key's approximate position in it.
    #[inline]
    pub(crate) fn step<'a>(&self, key: &[u8], partitioner: ShardPartitioner, guard: &'a Guard<'_>) -> DescentStep<'a> {
        let FoundChild { index, wanted } = self.partition(key, false);
        let (child, hint) = tagged_ptr::split(load(self.child(index), guard));
        let share = wanted.and_then(|wanted| {
            let suffix_len = key.len() - self.header().prefix_len as usize;
            self.share(index, wanted, suffix_len, partitioner)
        });
        // SAFETY: the guard protects the children, and the level determines their kind.
        unsafe {
            if self.header().level == 1 {
                DescentStep::to_leaf(child, hint, share, 0)
            } else {
                DescentStep::to_inner(child, hint, share)
            }
        }
    }

    /// Returns the position of `wanted` between the separators around the child at `index`.
    #[inline(always)]
    fn share(&self, index: usize, wanted: u64, suffix_len: usize, partitioner: ShardPartitioner) -> Option<Fraction> {
        if index == 0 || index + 1 >= self.children() {
            return None;
        }
        // Separators in another group are not used, to avoid another cache miss. SAFETY: there is a separator on both
        // sides.
        let (low, high) = unsafe {
            let low = if index.is_multiple_of(GROUP) {
                self.pivots().add(index / GROUP - 1).read()
            } else {
                self.head_at(index - 1).read()
            };
            (low, self.head_at(index).read())
        };
        Some(partitioner.share(suffix_len, low, wanted, high))
    }

    /// Prefetches the lines of a node that a search in it most likely reads; only its address, its number of children,
    /// and the key's position among them are known.
    #[inline(always)]
    pub(crate) fn prefetch_step(step: &DescentStep<'g>) {
        let pivots = step.inner().pivots().cast::<u8>();
        prefetch(pivots);
        prefetch(pivots.wrapping_add(LINE_BYTES));
        let Some(share) = step.share else { return };
        // Leaves have different widths: the prediction is off by one or two.
        let child = share.times(step.hint as usize);
        let last = (step.hint as usize).saturating_sub(1);
        let first = child.saturating_sub(GUESS_OFF) / GROUP;
        let second = (child + GUESS_OFF).min(last) / GROUP;
        for group in [first, second] {
            let group = pivots.wrapping_add(PIVOTS_BYTES + group * GROUP_BYTES);
            prefetch(group);
            prefetch(group.wrapping_add(LINE_BYTES));
        }
    }

    /// Returns the child whose range holds `key`: the number of separators at or below it.
    #[inline]
    pub(crate) fn search(&self, key: &[u8]) -> usize {
        self.partition(key, false).index
    }

    /// Returns the child whose range holds the greatest key below `key`: the number of separators below it.
    pub(crate) fn search_below(&self, key: &[u8]) -> usize {
        self.partition(key, true).index
    }

    #[inline]
    fn partition(&self, key: &[u8], below_key: bool) -> FoundChild {
        let count = self.children() - 1;
        let header = self.header();
        let prefix_len = header.prefix_len as usize;
        if !begins_with(key, prefix_len, header.prefix_head, || self.prefix()) {
            let index = if key < self.prefix() { 0 } else { count };
            return FoundChild { index, wanted: None };
        }
        let wanted = head_behind(key, prefix_len);
        // SAFETY: the pivots are immutable, aligned and always initialised.
        let group = count_below(unsafe { &*self.pivots().cast::<[u64; GROUPS]>() }, wanted);
        prefetch(self.children_of(group).cast());
        // SAFETY: at most as many pivots as there are full groups are less than the greatest head, and there is always
        // a group after the last full one. Its heads are immutable.
        let mut low = group * GROUP + count_below(unsafe { &*self.group_at(group).cast::<[u64; GROUP]>() }, wanted);
        while low < count {
            // SAFETY: `low` is below the number of heads.
            if unsafe { self.head_at(low).read() } != wanted {
                break;
            }
            match self.suffix(low).cmp(&key[prefix_len..]) {
                Order::Less => low += 1,
                Order::Equal if !below_key => low += 1,
                _ => break,
            }
        }
        FoundChild {
            index: low,
            wanted: Some(wanted),
        }
    }

    /// Returns copies of the children, with their hints, and of the separators.
    pub(crate) fn contents(&self) -> Result<(Vec<*mut u8>, Vec<Vec<u8>>), OutOfMemory> {
        let children = collected((0..self.children()).map(|index| self.child(index).load(Ordering::Acquire)))?;
        let mut separators = room_for(self.children() - 1)?;
        for index in 0..self.children() - 1 {
            separators.push(self.separator(index)?);
        }
        Ok((children, separators))
    }
}
