//! Values past the inline limit: each its own compressed block, outside the leaf.

use std::ptr::NonNull;

use crate::codec::{Codec, Engine, saves_enough};
use crate::mem::node::{Kind, NodeHeader};
use crate::reclaim::memory::Memory;
use crate::tree::error::Error;

/// Longest value that a leaf or a landing buffer holds itself, in bytes.
pub(crate) const MAX_INLINE_VALUE_BYTES: usize = 2048;

#[repr(C)]
struct Header {
    node: NodeHeader,
    raw_len: u32,
    block_len: u32,
}

/// A large value. The leaf or landing buffer that points to it owns it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Large(NonNull<u8>);

impl Large {
    /// Compresses `value` into a node of its own; stored raw when it does not shrink by an eighth.
    ///
    /// # Safety
    /// `memory` outlives the value.
    pub(crate) unsafe fn new(
        value: &[u8],
        engine: &dyn Engine,
        memory: &Memory,
        buffer: &mut Vec<u8>,
    ) -> Result<Self, Error> {
        buffer.clear();
        if engine.codec() != Codec::None {
            engine.compress(value, None, buffer)?;
        }
        let compressed = engine.codec() != Codec::None && saves_enough(buffer.len(), value.len());
        let block = if compressed { buffer.as_slice() } else { value };
        // SAFETY: the caller keeps `memory` alive; the block is copied into the room asked for.
        unsafe {
            let node = memory.allocate(size_of::<Header>() + block.len(), Kind::Large)?;
            let header = node.cast::<Header>().as_ptr();
            (*header).raw_len = value.len() as u32;
            (*header).block_len = block.len() as u32;
            node.as_ptr()
                .add(size_of::<Header>())
                .copy_from_nonoverlapping(block.as_ptr(), block.len());
            Ok(Self(node))
        }
    }

    /// The same value in another place; nothing where it is too large to be moved.
    ///
    /// # Safety
    /// The value is live, and `memory` outlives the copy.
    pub(crate) unsafe fn copy(self, memory: &Memory) -> Result<Option<Self>, Error> {
        // SAFETY: a live large value begins with its header and `block_len` bytes follow it; it never changes. The copy has the same
        // room.
        unsafe {
            let header = self.0.cast::<Header>().as_ref();
            if !Memory::can_be_moved(header.node.asked()) {
                return Ok(None);
            }
            let node = memory.allocate(header.node.asked(), Kind::Large)?;
            let copy = node.cast::<Header>().as_ptr();
            (*copy).raw_len = header.raw_len;
            (*copy).block_len = header.block_len;
            let (from, to) = (self.0.add(size_of::<Header>()), node.add(size_of::<Header>()));
            to.copy_from_nonoverlapping(from, header.block_len as usize);
            Ok(Some(Self(node)))
        }
    }

    /// # Safety
    /// `pointer` came from [`Large::as_ptr`] and the value is live.
    pub(crate) unsafe fn from_ptr(pointer: *mut u8) -> Option<Self> {
        NonNull::new(pointer).map(Self)
    }

    pub(crate) fn as_ptr(self) -> *mut u8 {
        self.0.as_ptr()
    }

    pub(crate) fn node(self) -> NonNull<u8> {
        self.0
    }

    /// # Safety
    /// The value is live.
    pub(crate) unsafe fn raw_len(self) -> usize {
        // SAFETY: a live large value begins with its header.
        unsafe { self.0.cast::<Header>().as_ref().raw_len as usize }
    }

    /// Appends the value to `out`. On an error `out` is as it was.
    ///
    /// # Safety
    /// The value is live for the whole call.
    pub(crate) unsafe fn read_into(self, engine: &dyn Engine, out: &mut Vec<u8>) -> Result<(), Error> {
        // SAFETY: a live large value begins with its header and `block_len` bytes follow it.
        let (raw_len, block) = unsafe {
            let header = self.0.cast::<Header>().as_ref();
            let block = self.0.as_ptr().add(size_of::<Header>());
            (
                header.raw_len as usize,
                std::slice::from_raw_parts(block, header.block_len as usize),
            )
        };
        out.try_reserve(raw_len)
            .map_err(|_| Error::OutOfMemory { bytes: raw_len })?;
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
