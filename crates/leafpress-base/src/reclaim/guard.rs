//! Guards: operations on the tree, during which no node that they may read is freed; and the retirement of nodes.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use crate::mem::OutOfMemory;
use crate::reclaim::local::LocalHandle;
use crate::reclaim::node_heap::NodeHeap;
use crate::sync::AtomicPtr;

/// A guard. While it exists, the nodes that this thread finds in the tree are not freed, unlinked or not. It is not
/// `Send`.
pub struct Guard<'m> {
    memory: &'m NodeHeap,
    local: &'m LocalHandle,
    of_this_thread: PhantomData<*const ()>,
}

impl NodeHeap {
    /// Creates a guard without allocating memory, for a thread with exclusive access to the tree.
    ///
    /// # Safety
    /// No other thread uses the tree until the guard is dropped.
    pub unsafe fn enter_alone(&self) -> Guard<'_> {
        self.common.slot.enter(&self.epochs);
        Guard {
            memory: self,
            local: &self.common,
            of_this_thread: PhantomData,
        }
    }

    /// Begins an operation; operations may nest.
    ///
    /// # Errors
    /// [`OutOfMemory`], only in the first operation of a thread.
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

    /// Retires a node that was unlinked. It is freed, in a batch, when no reader can access it any more.
    ///
    /// # Safety
    /// `node` came from [`NodeHeap::allocate`], of the guard's memory, threads that enter from now on cannot reach it,
    /// and it is retired once.
    pub unsafe fn retire(node: NonNull<u8>, guard: &Guard<'_>) {
        // SAFETY: the caller guarantees that the node is unlinked and retired once; a guard is not `Send`, so `local`
        // is the calling thread's.
        unsafe { guard.local.retire(node, guard.memory.flush_bytes()) };
    }
}

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        // After leaving, since this thread itself would block reclamation otherwise.
        match self.local.slot.leave(&self.memory.epochs) {
            (false, false) => {}
            (true, _) => self.memory.flush(self.local),
            // Without this thread's own retired nodes: they would be left over in turn, as long as threads retire
            // nodes.
            (false, true) => self.memory.free_left_over(),
        }
    }
}

/// Loads a node's address such that `guard` protects the node until it is dropped.
#[inline(always)]
pub fn load(pointer: &AtomicPtr<u8>, _guard: &Guard<'_>) -> *mut u8 {
    pointer.load(Ordering::Acquire)
}
