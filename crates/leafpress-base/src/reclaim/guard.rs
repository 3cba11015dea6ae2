//! An operation on the tree, during which nothing that it may read is freed; and nodes that it unlinks.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use crate::mem::OutOfMemory;
use crate::reclaim::local::LocalHandle;
use crate::reclaim::node_heap::NodeHeap;
use crate::sync::AtomicPtr;

/// While it is there, the nodes that this thread finds in the tree stay, unlinked or not. It stays with its thread.
pub struct Guard<'m> {
    memory: &'m NodeHeap,
    local: &'m LocalHandle,
    of_this_thread: PhantomData<*const ()>,
}

impl NodeHeap {
    /// A guard for whoever alone has the tree, which needs no memory.
    ///
    /// # Safety
    /// No other thread uses the tree, or will before the guard is dropped.
    pub unsafe fn enter_alone(&self) -> Guard<'_> {
        self.common.slot.enter(&self.epochs);
        Guard {
            memory: self,
            local: &self.common,
            of_this_thread: PhantomData,
        }
    }

    /// Begins an operation; one may begin within another.
    ///
    /// # Errors
    /// [`OutOfMemory`], only where the thread never began one before.
    #[inline]
    pub fn enter(&self) -> Result<Guard<'_>, OutOfMemory> {
        let local = self.local()?;
        local.slot.enter(&self.epochs);
        Ok(Guard {
            memory: self,
            local,
            of_this_thread: PhantomData,
        })
    }

    /// Takes a node that was unlinked. It is freed when no reader is in its way, and others are to be freed with it.
    ///
    /// # Safety
    /// `node` came from [`NodeHeap::allocate`], of the guard's memory, threads that enter from now on cannot reach it, and it is retired once.
    pub unsafe fn retire(node: NonNull<u8>, guard: &Guard<'_>) {
        // SAFETY: as the caller promises; a guard stays with its thread.
        unsafe { guard.local.retire(node, guard.memory.flush_bytes()) };
    }
}

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        // Outside: else this thread itself would be in the way.
        match self.local.slot.leave(&self.memory.epochs) {
            (false, false) => {}
            (true, _) => self.memory.flush(self.local),
            // Without what this thread has retired: it would be left over in its turn, as long as threads retire.
            (false, true) => self.memory.free_left_over(),
        }
    }
}

/// Loads a node's address such that `guard` protects the node until it is dropped.
#[inline(always)]
pub fn load(pointer: &AtomicPtr<u8>, _guard: &Guard<'_>) -> *mut u8 {
    pointer.load(Ordering::Acquire)
}
