//! Large values, above the inline limit: each in its own compressed block, outside the leaf.

use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::tree::error::TreeError;
use crate::tree::node::unpublished::unpublished;
use leafpress_base::mem::node::{Kind, NodeHeader};
use leafpress_base::mem::transient::Transient;
use leafpress_base::reclaim::node_heap::NodeHeap;
use leafpress_codec::{Codec, Engine, most_stored, saves_enough};

/// Length in bytes of the longest value that a leaf or a landing buffer can store inline.
pub(crate) const MAX_INLINE_VALUE_BYTES: usize = 2048;
/// Longer values are compressed in memory that is mapped directly: an allocator would keep freed buffers of each thread
/// and length.
pub(crate) const MAX_BUFFERED_BYTES: usize = 64 << 10;

#[repr(C)]
struct LargeHeader {
    node: NodeHeader,
    raw_len: u32,
    block_len: u32,
}

/// A large value, live for `'g`. The leaf or landing buffer that points to it owns it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Large<'g>(NonNull<u8>, PhantomData<&'g NonNull<u8>>);

unpublished!(
    /// A large value that is not published yet.
    NewLarge,
    Large,
    large
);

/// A large value that will be unreferenced once a compaction is published: it is retired then.
pub(crate) struct DeadLarge(NonNull<u8>);

impl DeadLarge {
    pub(crate) fn node(&self) -> NonNull<u8> {
        self.0
    }
}

impl<'g> Large<'g> {
    /// Compresses `value` into a node of its own, through `buffer` if it is short; it is stored raw when it does not
    /// shrink by an eighth.
    ///
    /// # Safety
    /// `memory` outlives the value.
    pub(crate) unsafe fn compress(
        value: &[u8],
        engine: &dyn Engine,
        memory: &NodeHeap,
        buffer: &mut Vec<u8>,
    ) -> Result<NewLarge, TreeError> {
        if engine.codec() == Codec::None {
            // SAFETY: the caller guarantees that `memory` outlives the value.
            return unsafe { Self::store(value, value, memory) };
        }
        if !NodeHeap::can_be_moved(size_of::<LargeHeader>() + value.len()) {
            // SAFETY: the caller guarantees that `memory` outlives the value.
            return unsafe { Self::compress_in_place(value, engine, memory) };
        }
        let mut room;
        let pressed = if value.len() > MAX_BUFFERED_BYTES {
            let most = most_stored(value.len());
            room = Transient::with_capacity(most).ok_or(TreeError::OutOfMemory { bytes: most })?;
            let len = engine.compress_into(value, None, &mut room.whole()[..most])?;
            len.map(|len| &room.bytes()[..len])
        } else {
            buffer.clear();
            engine.compress(value, None, buffer)?;
            saves_enough(buffer.len(), value.len()).then_some(buffer.as_slice())
        };
        // SAFETY: the caller guarantees that `memory` outlives the value.
        unsafe { Self::store(value, pressed.unwrap_or(value), memory) }
    }

    /// Compresses `value` in a node that is a mapping of its own, and is shortened afterwards: so a writer holds no
    /// copy of the block, and what it holds is counted.
    ///
    /// # Safety
    /// `memory` outlives the value, and a node with the value cannot be moved.
    unsafe fn compress_in_place(value: &[u8], engine: &dyn Engine, memory: &NodeHeap) -> Result<NewLarge, TreeError> {
        // SAFETY: the caller guarantees that `memory` outlives the value. Nothing else refers to the new node, whose
        // header is followed by room for the value, zeroed since the node cannot be moved.
        unsafe {
            let node = memory.allocate(size_of::<LargeHeader>() + value.len(), Kind::Large)?;
            let new = NewLarge::new(node);
            let header = node.cast::<LargeHeader>().as_ptr();
            let start = node.as_ptr().add(size_of::<LargeHeader>());
            (*header).raw_len = value.len() as u32;
            let room = std::slice::from_raw_parts_mut(start, most_stored(value.len()));
            let Some(block_len) = engine.compress_into(value, None, room)? else {
                (*header).block_len = value.len() as u32;
                start.copy_from_nonoverlapping(value.as_ptr(), value.len());
                return Ok(new);
            };
            (*header).block_len = block_len as u32;
            let node = memory.shorten(node, size_of::<LargeHeader>() + block_len)?;
            new.publish();
            Ok(NewLarge::new(node))
        }
    }

    /// Stores a block in a new node.
    ///
    /// # Safety
    /// `memory` outlives the value.
    unsafe fn store(value: &[u8], block: &[u8], memory: &NodeHeap) -> Result<NewLarge, TreeError> {
        // SAFETY: the caller guarantees that `memory` outlives the value; the block is copied into the room allocated
        // for it.
        unsafe {
            let node = memory.allocate(size_of::<LargeHeader>() + block.len(), Kind::Large)?;
            let header = node.cast::<LargeHeader>().as_ptr();
            (*header).raw_len = value.len() as u32;
            (*header).block_len = block.len() as u32;
            node.as_ptr()
                .add(size_of::<LargeHeader>())
                .copy_from_nonoverlapping(block.as_ptr(), block.len());
            Ok(NewLarge::new(node))
        }
    }

    /// Returns a copy of the value; `None` where it is too large to be moved.
    ///
    /// # Safety
    /// `memory` outlives the copy.
    pub(crate) unsafe fn copy(self, memory: &NodeHeap) -> Result<Option<NewLarge>, TreeError> {
        // SAFETY: a live large value begins with its header and `block_len` bytes follow it; it never changes. The copy
        // has the same size.
        unsafe {
            let header = self.0.cast::<LargeHeader>().as_ref();
            if !NodeHeap::can_be_moved(header.node.requested_bytes()) {
                return Ok(None);
            }
            let node = memory.allocate(header.node.requested_bytes(), Kind::Large)?;
            let copy = node.cast::<LargeHeader>().as_ptr();
            (*copy).raw_len = header.raw_len;
            (*copy).block_len = header.block_len;
            let (from, to) = (self.0.add(size_of::<LargeHeader>()), node.add(size_of::<LargeHeader>()));
            to.copy_from_nonoverlapping(from, header.block_len as usize);
            Ok(Some(NewLarge::new(node)))
        }
    }

    /// Borrows a value.
    ///
    /// # Safety
    /// `node` is a large value that is live for `'g`.
    pub(crate) unsafe fn from_node(node: NonNull<u8>) -> Self {
        Self(node, PhantomData)
    }

    /// Borrows a value by its address; [`None`] for null.
    ///
    /// # Safety
    /// `pointer` came from [`Large::as_ptr`] and the value is live for `'g`.
    pub(crate) unsafe fn from_ptr(pointer: *mut u8) -> Option<Self> {
        NonNull::new(pointer).map(|node| Self(node, PhantomData))
    }

    pub(crate) fn as_ptr(self) -> *mut u8 {
        self.0.as_ptr()
    }

    pub(crate) fn node(self) -> NonNull<u8> {
        self.0
    }

    /// Returns the value as one that will be unreferenced after the next publication.
    pub(crate) fn dead(self) -> DeadLarge {
        DeadLarge(self.0)
    }

    /// Returns the length of the value, in bytes.
    pub(crate) fn raw_len(self) -> usize {
        // SAFETY: a live large value begins with its header.
        unsafe { self.0.cast::<LargeHeader>().as_ref().raw_len as usize }
    }

    /// Returns the length of its block, in bytes.
    pub(crate) fn stored_len(self) -> usize {
        // SAFETY: a live large value begins with its header.
        unsafe { self.0.cast::<LargeHeader>().as_ref().block_len as usize }
    }

    /// Returns the block, which is the value itself if it has the value's length.
    fn block(self) -> &'g [u8] {
        // SAFETY: a live large value begins with its header, and `block_len` bytes follow it, which never change.
        unsafe {
            let block = self.0.as_ptr().add(size_of::<LargeHeader>());
            std::slice::from_raw_parts(block, self.stored_len())
        }
    }

    /// Calls `read` with the value, decoded if it is compressed.
    pub(crate) fn with<R>(self, engine: &dyn Engine, read: impl FnOnce(&[u8]) -> R) -> Result<R, TreeError> {
        let (raw_len, block) = (self.raw_len(), self.block());
        if block.len() == raw_len {
            return Ok(read(block));
        }
        if raw_len <= MAX_BUFFERED_BYTES {
            let mut value = Vec::new();
            self.read_into(engine, &mut value)?;
            return Ok(read(&value));
        }
        let room = Transient::with_capacity(raw_len);
        let mut room = room.ok_or(TreeError::OutOfMemory { bytes: raw_len })?;
        let value = &mut room.whole()[..raw_len];
        engine.decompress(block, None, value)?;
        Ok(read(value))
    }

    /// Appends the value to `out`. On an error `out` is unchanged.
    pub(crate) fn read_into(self, engine: &dyn Engine, out: &mut Vec<u8>) -> Result<(), TreeError> {
        let (raw_len, block) = (self.raw_len(), self.block());
        out.try_reserve(raw_len)
            .map_err(|_| TreeError::OutOfMemory { bytes: raw_len })?;
        let before = out.len();
        if block.len() == raw_len {
            out.extend_from_slice(block);
            return Ok(());
        }
        out.resize(before + raw_len, 0);
        engine.decompress(block, None, &mut out[before..]).map_err(|error| {
            out.truncate(before);
            error.into()
        })
    }
}
