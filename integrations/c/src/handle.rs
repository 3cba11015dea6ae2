//! What opaque pointers point to: made, looked at and freed.

use std::alloc::Layout;
use std::mem::MaybeUninit;

use crate::failure::{Failure, OUT_OF_MEMORY, call};
use crate::fork::Process;
use crate::given::Out;

/// What a caller has a pointer to.
pub(crate) trait Handle: Sized {
    /// What messages call it.
    const NAME: &'static str;

    /// The process that made it.
    fn process(&self) -> Process;
}

/// The handle, if it is one and this process's.
#[inline]
pub(crate) fn of<H: Handle>(handle: Option<&H>) -> Result<&H, Failure> {
    let handle = handle.ok_or_else(null::<H>)?;
    handle.process().check()?;
    Ok(handle)
}

/// The same of a handle that no other thread uses meanwhile.
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

/// Makes a handle and hands it out; where it cannot be made, the caller's pointer is NULL.
pub(crate) fn hand_out<H: Handle>(
    to: Option<&mut MaybeUninit<*mut H>>,
    make: impl FnOnce() -> Result<H, Failure>,
) -> Result<(), Failure> {
    let to = Out::at(to, "where to put the handle")?;
    let to = to.write(std::ptr::null_mut());
    *to = boxed(make()?)?;
    Ok(())
}

/// The handle in a box of its own, if there is memory for it.
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

/// Takes a handle back, if there is one. In a fork's child it stays where it is: what it would wait for is not there.
///
/// # Safety
/// [`hand_out`] made it, nobody uses it, and nobody will.
pub(crate) unsafe fn take_back<H: Handle>(handle: *mut H) -> Option<H> {
    if handle.is_null() {
        return None;
    }
    // SAFETY: it is the box that was handed out, and the caller's to give.
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
        // SAFETY: the caller says so.
        drop(unsafe { take_back(handle) });
        Ok(())
    });
}
