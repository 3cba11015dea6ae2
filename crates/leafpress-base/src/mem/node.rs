//! The header of every node, which identifies the node to the thread that frees it.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::LINE_BYTES;
use super::heap;

/// The kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A leaf of the tree.
    Leaf,
    /// An inner node of the tree.
    Inner,
    /// The landing buffer of a leaf.
    Landing,
    /// A value too long for a leaf.
    Large,
    /// A bucket array of the interpolation index.
    InterpolationIndex,
    /// Copies of hot records, and their table.
    Hot,
}

/// The number of kinds.
pub const KINDS: usize = 6;

/// The header at the start of every node.
#[repr(C)]
pub struct NodeHeader {
    /// The heap that accounts for the node. In a retired node, the next node of its list; readers do not look at this
    /// field.
    pub memory_or_next: AtomicPtr<()>,
    /// Requested bytes.
    pub requested_bytes: u32,
    /// The kind of the node.
    pub kind: Kind,
    /// The part of the heap that the node was allocated from.
    pub part: u8,
}

impl NodeHeader {
    /// Returns the kind as an index.
    pub fn kind(&self) -> usize {
        self.kind as usize
    }

    /// Returns the requested bytes, including the header.
    pub fn requested_bytes(&self) -> usize {
        self.requested_bytes as usize
    }

    /// Returns the cache lines that the node takes in its heap.
    pub fn lines(&self) -> usize {
        heap::held_bytes(self.requested_bytes()).div_ceil(LINE_BYTES)
    }

    /// Returns the bytes that the node takes in its heap.
    pub fn held(&self) -> i64 {
        heap::held_bytes(self.requested_bytes()) as i64
    }

    /// Sets the next node of a retired node's list.
    pub fn link(&self, next: Option<NonNull<NodeHeader>>) {
        let next = next.map_or(std::ptr::null_mut(), NonNull::as_ptr);
        self.memory_or_next.store(next.cast(), Ordering::Relaxed);
    }

    /// Returns the next node of a retired node's list.
    pub fn next(&self) -> Option<NonNull<NodeHeader>> {
        NonNull::new(self.memory_or_next.load(Ordering::Relaxed).cast())
    }
}
