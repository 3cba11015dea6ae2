//! Nodes that nobody else sees yet.

use std::ptr::NonNull;

use leafpress_base::reclaim::node_heap::NodeHeap;

/// A node that its maker alone sees. It is freed when this is dropped, unless it was published before; what it points to is not.
pub(super) struct Unpublished(NonNull<u8>);

impl Unpublished {
    /// # Safety
    /// `node` came from [`NodeHeap::allocate`], and nobody else has it.
    pub(super) unsafe fn new(node: NonNull<u8>) -> Self {
        Self(node)
    }

    pub(super) fn node(&self) -> NonNull<u8> {
        self.0
    }
}

impl Drop for Unpublished {
    fn drop(&mut self) {
        // SAFETY: the node came from `NodeHeap::allocate` and was not published (`publish` forgets it), so that nobody else has it.
        unsafe { NodeHeap::free(self.0) };
    }
}

/// Makes the type of unpublished nodes of a kind, whose handle has `from_node`.
macro_rules! unpublished {
    ($(#[$doc:meta])* $name:ident, $handle:ident, $get:ident) => {
        $(#[$doc])*
        pub(crate) struct $name($crate::tree::node::unpublished::Unpublished);

        impl $name {
            /// # Safety
            /// `node` came from [`NodeHeap::allocate`](leafpress_base::reclaim::node_heap::NodeHeap::allocate), begins as its kind does, and nobody else
            /// has it.
            pub(crate) unsafe fn new(node: std::ptr::NonNull<u8>) -> Self {
                // SAFETY: as the caller promises.
                Self(unsafe { $crate::tree::node::unpublished::Unpublished::new(node) })
            }

            /// The node, while it is its maker's.
            pub(crate) fn $get(&self) -> $handle<'_> {
                // SAFETY: the node is live while `self` is, and of this kind as `new`'s caller promised.
                unsafe { $handle::from_node(self.0.node()) }
            }

            /// The node belongs to what it was stored in from now on.
            pub(crate) fn publish(self) {
                std::mem::forget(self);
            }
        }
    };
}

pub(super) use unpublished;
