//! What every node begins with, so that whoever frees it knows what it is.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::LINE_BYTES;
use super::heap;

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Leaf,
    Inner,
    Landing,
    Large,
    InterpolationIndex,
    /// Copies of hot records, and their table.
    Hot,
}

pub(crate) const KINDS: usize = 6;

/// How every node begins.
#[repr(C)]
pub(crate) struct NodeHeader {
    /// The account that the node is counted in. Of a retired one the next in its list, which readers do not look at.
    pub(crate) memory_or_next: AtomicPtr<()>,
    /// Bytes asked for.
    pub(crate) asked: u32,
    pub(crate) kind: Kind,
    /// The part of the heap that the node is from.
    pub(crate) part: u8,
}

impl NodeHeader {
    pub(crate) fn kind(&self) -> usize {
        self.kind as usize
    }

    /// Bytes asked for, the header's included.
    pub(crate) fn asked(&self) -> usize {
        self.asked as usize
    }

    /// Cache lines the node takes in its heap.
    pub(crate) fn lines(&self) -> usize {
        heap::held_bytes(self.asked()).div_ceil(LINE_BYTES)
    }

    /// Bytes the node takes in its heap.
    pub(crate) fn held(&self) -> i64 {
        heap::held_bytes(self.asked()) as i64
    }

    /// Of a retired node.
    pub(crate) fn link(&self, next: Option<NonNull<NodeHeader>>) {
        let next = next.map_or(std::ptr::null_mut(), NonNull::as_ptr);
        self.memory_or_next.store(next.cast(), Ordering::Relaxed);
    }

    /// Of a retired node that was linked.
    pub(crate) fn next(&self) -> Option<NonNull<NodeHeader>> {
        NonNull::new(self.memory_or_next.load(Ordering::Relaxed).cast())
    }
}
