//! A step of the descent to a leaf, with the predicted position of the key in its target.

use std::marker::PhantomData;

use crate::tree::node::fraction::Fraction;
use leafpress_base::mem::tagged_ptr::Hint;

/// The kind of node that a step leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nothing,
    Inner,
    Leaf,
}

/// A step on the descent, to a node that is live for `'g`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DescentStep<'g> {
    node: *mut u8,
    kind: Kind,
    pub hint: Hint,
    /// Relative position of the key in the child's range, if both ends are known.
    pub share: Option<Fraction>,
    /// Approximate number of records of a leaf, 0 if unknown.
    pub records: u16,
    live: PhantomData<&'g ()>,
}

impl<'g> DescentStep<'g> {
    /// A step without a target.
    pub(crate) const NOWHERE: Self = Self {
        node: std::ptr::null_mut(),
        kind: Kind::Nothing,
        hint: 0,
        share: None,
        records: 0,
        live: PhantomData,
    };

    /// Creates a step to a leaf.
    ///
    /// # Safety
    /// `node` is the address of a leaf that is live for `'g`, or the leaf is never accessed.
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

    /// Creates a step to an inner node.
    ///
    /// # Safety
    /// `node` is the address of an inner node that is live for `'g`.
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

    /// Returns whether the step leads to a leaf.
    #[inline(always)]
    pub(crate) fn is_leaf(&self) -> bool {
        self.kind == Kind::Leaf
    }

    /// Returns whether the step leads to an inner node, where the descent continues.
    #[inline(always)]
    pub(crate) fn is_inner(&self) -> bool {
        self.kind == Kind::Inner
    }

    /// Returns the node's address, for prefetching.
    #[inline(always)]
    pub(crate) fn address(&self) -> *mut u8 {
        self.node
    }
}
