//! A step on the descent to a leaf, and where in what it leads to a key is.

use std::marker::PhantomData;

use crate::mem::tagged_ptr::Hint;
use crate::tree::node::inner::Inner;
use crate::tree::node::leaf::Leaf;

/// What a step leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nothing,
    Inner,
    Leaf,
}

/// A step on the descent, to a node that is live for `'g`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Step<'g> {
    node: *mut u8,
    kind: Kind,
    pub hint: Hint,
    /// Where in the child's range the key is, if both ends are known.
    pub share: Option<Fraction>,
    /// About how many records a leaf has, 0 if that is not known.
    pub records: u16,
    live: PhantomData<&'g ()>,
}

impl<'g> Step<'g> {
    /// A step that leads nowhere.
    pub(crate) const NOWHERE: Self = Self {
        node: std::ptr::null_mut(),
        kind: Kind::Nothing,
        hint: 0,
        share: None,
        records: 0,
        live: PhantomData,
    };

    /// A step to a leaf.
    ///
    /// # Safety
    /// `node` is a leaf's that is live for `'g`, or nobody asks for the leaf.
    #[inline(always)]
    pub(crate) unsafe fn to_leaf(node: *mut u8, hint: Hint, share: Option<Fraction>, records: u16) -> Self {
        Self {
            node,
            kind: Kind::Leaf,
            hint,
            share,
            records,
            live: PhantomData,
        }
    }

    /// A step to an inner node.
    ///
    /// # Safety
    /// `node` is an inner node's that is live for `'g`.
    #[inline(always)]
    pub(crate) unsafe fn to_inner(node: *mut u8, hint: Hint, share: Option<Fraction>) -> Self {
        Self {
            node,
            kind: Kind::Inner,
            hint,
            share,
            records: 0,
            live: PhantomData,
        }
    }

    /// Whether the descent goes on from here.
    #[inline(always)]
    pub(crate) fn is_inner(&self) -> bool {
        self.kind == Kind::Inner
    }

    /// Where the node is. For asking for its lines.
    #[inline(always)]
    pub(crate) fn address(&self) -> *mut u8 {
        self.node
    }

    /// The leaf that the step leads to.
    #[inline(always)]
    pub(crate) fn leaf(&self) -> Leaf<'g> {
        assert!(self.kind == Kind::Leaf, "the step leads to a leaf");
        // SAFETY: as whoever made the step promised.
        unsafe { Leaf::from_ptr(self.node) }
    }

    /// The inner node that the step leads to.
    #[inline(always)]
    pub(crate) fn inner(&self) -> Inner<'g> {
        assert!(self.kind == Kind::Inner, "the step leads to an inner node");
        // SAFETY: as whoever made the step promised.
        unsafe { Inner::from_ptr(self.node) }
    }
}

/// A node of a shard.
#[derive(Clone, Copy)]
pub(crate) enum Node<'g> {
    Inner(Inner<'g>),
    Leaf(Leaf<'g>),
}

/// A part of a whole, less than all of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fraction(u16);

impl Fraction {
    /// `part` of `whole`.
    #[inline(always)]
    pub(crate) fn of(part: f32, whole: f32) -> Self {
        // Single precision is enough, and its division faster than that of integers. The cast saturates.
        Self((part / whole * 65536.0) as u16)
    }

    /// The nearest whole number to so much of `whole`.
    #[inline(always)]
    pub(crate) fn nearest(self, whole: usize) -> usize {
        (usize::from(self.0) * whole + (1 << (u16::BITS - 1))) >> u16::BITS
    }

    /// All of `most` in the middle, and less towards the ends, where it is nothing: a parabola.
    #[inline(always)]
    pub(crate) fn of_middle(self, most: usize) -> usize {
        let product = usize::from(self.0) * usize::from(u16::MAX - self.0);
        ((product >> u16::BITS) * most) >> (u16::BITS - 2)
    }

    /// So much of `whole`.
    #[inline(always)]
    pub(crate) fn times(self, whole: usize) -> usize {
        (usize::from(self.0) * whole) >> u16::BITS
    }
}
