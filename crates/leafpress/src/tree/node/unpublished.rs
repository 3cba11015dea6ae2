//! Nodes that are not published yet.

use std::ptr::NonNull;

use leafpress_base::reclaim::node_heap::NodeHeap;

/// A node that only its maker can access. Dropping it frees the node, unless it was published; what the node points to
/// is not freed.
pub(super) struct Unpublished(NonNull<u8>);

impl Unpublished {
    /// Takes ownership of a node.
    ///
    /// # Safety
    /// `node` came from [`NodeHeap::allocate`], and nothing else refers to it.
    pub(super) unsafe fn new(node: NonNull<u8>) -> Self {
        Self(node)
    }

    pub(super) fn node(&self) -> NonNull<u8> {
        self.0
    }
}

impl Drop for Unpublished {
    fn drop(&mut self) {
        // SAFETY: the node came from `NodeHeap::allocate` and was not published (`publish` forgets `self`), so nothing
        // else refers to it.
        unsafe { NodeHeap::free(self.0) };
    }
}

/// Defines the type of unpublished nodes of a kind, whose handle has `from_node`.
macro_rules! unpublished {
    ($(#[$doc:meta])* $name:ident, $handle:ident, $get:ident) => {
        $(#[$doc])*
        pub(crate) struct $name($crate::tree::node::unpublished::Unpublished);

        impl $name {
            /// Takes ownership of a node.
            ///
            /// # Safety
            /// `node` came from [`NodeHeap::allocate`](leafpress_base::reclaim::node_heap::NodeHeap::allocate), is
            /// initialised as its kind requires, and nothing else refers to it.
            pub(crate) unsafe fn new(node: std::ptr::NonNull<u8>) -> Self {
                // SAFETY: the caller guarantees that the node came from the heap and nothing else refers to it.
                Self(unsafe { $crate::tree::node::unpublished::Unpublished::new(node) })
            }

            /// Returns the node, while its maker owns it.
            pub(crate) fn $get(&self) -> $handle<'_> {
                // SAFETY: the node is live while `self` is, and of this kind, which `new` requires.
                unsafe { $handle::from_node(self.0.node()) }
            }

            /// Transfers the ownership of the node to the structure it was stored in.
            pub(crate) fn publish(self) {
                std::mem::forget(self);
            }
        }
    };
}

pub(super) use unpublished;
