//! Buffers that a thread keeps between calls.

use std::cell::Cell;

use crate::codec::Scratch;

/// Buffers larger than this are not kept, in bytes.
const MAX_KEPT_BYTES: usize = 1 << 20;

/// A thread's buffers.
#[derive(Default)]
pub(super) struct Buffers {
    pub(super) raw: Vec<u8>,
    pub(super) pressed: Vec<u8>,
    pub(super) scratch: Scratch,
    /// Blocks that the thread decoded.
    pub(super) decoded: u32,
}

thread_local! {
    static BUFFERS: Cell<Option<Box<Buffers>>> = const { Cell::new(None) };
}

/// Runs `work` with the calling thread's buffers, or with new ones where `work` itself comes here again or the thread is ending.
pub(super) fn with_buffers<R>(work: impl FnOnce(&mut Buffers) -> R) -> R {
    let mut buffers = BUFFERS.try_with(Cell::take).ok().flatten().unwrap_or_default();
    let result = work(&mut buffers);
    for kept in [&mut buffers.raw, &mut buffers.pressed] {
        if kept.capacity() > MAX_KEPT_BYTES {
            *kept = Vec::new();
        }
    }
    if buffers.scratch.held_bytes() > 4 * MAX_KEPT_BYTES {
        buffers.scratch = Scratch::default();
    }
    let _ = BUFFERS.try_with(|own| own.set(Some(buffers)));
    result
}
