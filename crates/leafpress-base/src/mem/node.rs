//! What every node begins with, so that whoever frees it knows what it is.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::LINE_BYTES;
use super::heap;

/// What a node is.
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

/// How every node begins.
#[repr(C)]
pub struct NodeHeader {
    /// The account that the node is counted in. Of a retired one the next in its list, which readers do not look at.
    pub memory_or_next: AtomicPtr<()>,
    /// Bytes asked for.
    pub asked: u32,
    /// The kind of the node that the header begins.
    pub kind: Kind,
    /// The part of the heap that the node is from.
    pub part: u8,
}

impl NodeHeader {
    /// Returns the kind as an index.
    pub fn kind(&self) -> usize {
        self.kind as usize
    }

    /// Bytes asked for, the header's included.
    pub fn asked(&self) -> usize {
        self.asked as usize
    }

    /// Cache lines the node takes in its heap.
    pub fn lines(&self) -> usize {
        heap::held_bytes(self.asked()).div_ceil(LINE_BYTES)
    }

    /// Bytes the node takes in its heap.
    pub fn held(&self) -> i64 {
        heap::held_bytes(self.asked()) as i64
    }

    /// Of a retired node.
    pub fn link(&self, next: Option<NonNull<NodeHeader>>) {
        let next = next.map_or(std::ptr::null_mut(), NonNull::as_ptr);
        self.memory_or_next.store(next.cast(), Ordering::Relaxed);
    }

    /// Of a retired node that was linked.
    pub fn next(&self) -> Option<NonNull<NodeHeader>> {
        NonNull::new(self.memory_or_next.load(Ordering::Relaxed).cast())
    }
}
