//! Opaque pointers' objects: made, borrowed and freed.

use std::alloc::Layout;
use std::mem::MaybeUninit;

use crate::failure::{Failure, OUT_OF_MEMORY, call};
use crate::fork::Process;
use crate::given::Out;

/// An object that a caller has a pointer to.
pub(crate) trait Handle: Sized {
    /// Its name in messages.
    const NAME: &'static str;

    /// Returns the process that made it.
    fn process(&self) -> Process;
}

/// Returns the handle, if it is valid and of this process.
#[inline]
pub(crate) fn of<H: Handle>(handle: Option<&H>) -> Result<&H, Failure> {
    let handle = handle.ok_or_else(null::<H>)?;
    handle.process().check()?;
    Ok(handle)
}

/// Borrows a handle that no other thread uses meanwhile.
#[inline]
pub(crate) fn of_mut<H: Handle>(handle: Option<&mut H>) -> Result<&mut H, Failure> {
    let handle = handle.ok_or_else(null::<H>)?;
    handle.process().check()?;
    Ok(handle)
}

#[cold]
fn null<H: Handle>() -> Failure {
    Failure::argument(format!("the {} is NULL", H::NAME))
}

/// Makes a handle and writes it to the caller's pointer, which is NULL if it cannot be made.
pub(crate) fn hand_out<H: Handle>(
    to: Option<&mut MaybeUninit<*mut H>>,
    make: impl FnOnce() -> Result<H, Failure>,
) -> Result<(), Failure> {
    let to = Out::at(to, "where to put the handle")?;
    let to = to.write(std::ptr::null_mut());
    *to = boxed(make()?)?;
    Ok(())
}

/// Returns the handle in a box, if there is memory for it.
fn boxed<H>(handle: H) -> Result<*mut H, Failure> {
    const { assert!(size_of::<H>() > 0) };
    // SAFETY: the layout is not empty.
    let room = unsafe { std::alloc::alloc(Layout::new::<H>()) }.cast::<H>();
    if room.is_null() {
        return Err(OUT_OF_MEMORY);
    }
    // SAFETY: the room is of a handle's layout, from the allocator that boxes free to.
    unsafe { room.write(handle) };
    Ok(room)
}

/// Takes a handle back, if there is one. In a fork's child it is leaked: the threads that it would wait for do not
/// exist there.
///
/// # Safety
/// [`hand_out`] made it, and no thread uses it now or later.
pub(crate) unsafe fn take_back<H: Handle>(handle: *mut H) -> Option<H> {
    if handle.is_null() {
        return None;
    }
    // SAFETY: it is the box that was handed out, which the caller gives back.
    let handle = unsafe { Box::from_raw(handle) };
    if handle.process().is_this() {
        return Some(*handle);
    }
    Box::leak(handle);
    None
}

/// Frees a handle.
///
/// # Safety
/// As for [`take_back`].
pub(crate) unsafe fn free<H: Handle>(handle: *mut H) {
    call(|| {
        // SAFETY: `hand_out` made the handle or it is NULL; the caller gives it back, and no thread uses it any more.
        drop(unsafe { take_back(handle) });
        Ok(())
    });
}
