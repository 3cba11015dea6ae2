//! A step on the descent to a leaf, and where in what it leads to a key is.

use std::marker::PhantomData;

use crate::tree::node::fraction::Fraction;
use leafpress_base::mem::tagged_ptr::Hint;

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

    /// Whether the step leads to a leaf.
    #[inline(always)]
    pub(crate) fn is_leaf(&self) -> bool {
        self.kind == Kind::Leaf
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
}
