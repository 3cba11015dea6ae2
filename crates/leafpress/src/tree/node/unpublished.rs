//! Nodes that nobody else sees yet.

use std::ptr::NonNull;

use crate::reclaim::memory::Memory;
use crate::tree::node::inner::Inner;
use crate::tree::node::landing::Landing;
use crate::tree::node::large::Large;
use crate::tree::node::leaf::Leaf;

/// A node that its maker alone sees. It is freed when this is dropped, unless it was published before; what it points to is not.
struct Node(NonNull<u8>);

impl Drop for Node {
    fn drop(&mut self) {
        // SAFETY: the node came from `Memory::allocate` and was not published (`publish` forgets it), so that nobody else has it.
        unsafe { Memory::free(self.0) };
    }
}

macro_rules! unpublished {
    ($(#[$doc:meta])* $name:ident, $handle:ident, $get:ident) => {
        $(#[$doc])*
        pub(crate) struct $name(Node);

        impl $name {
            /// # Safety
            /// `node` came from [`Memory::allocate`], begins as its kind does, and nobody else has it.
            pub(crate) unsafe fn new(node: NonNull<u8>) -> Self {
                Self(Node(node))
            }

            /// The node, while it is its maker's.
            pub(crate) fn $get(&self) -> $handle<'_> {
                // SAFETY: the node is live while `self` is, and of this kind as `new`'s caller promised.
                unsafe { $handle::from_node(self.0.0) }
            }

            /// The node belongs to what it was stored in from now on.
            pub(crate) fn publish(self) {
                std::mem::forget(self);
            }
        }
    };
}

unpublished!(
    /// A leaf that nobody else sees yet.
    NewLeaf,
    Leaf,
    leaf
);
unpublished!(
    /// A landing buffer that nobody else sees yet.
    NewLanding,
    Landing,
    landing
);
unpublished!(
    /// A large value that nobody else sees yet.
    NewLarge,
    Large,
    large
);
unpublished!(
    /// An inner node that nobody else sees yet.
    NewInner,
    Inner,
    inner
);
