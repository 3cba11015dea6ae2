//! A filter of commands before the server looks them up.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::context::Context;
use super::guard::guarded;
use super::raw::{FILTER_NO_SELF, RawFilter, RawFiltered};
use super::string::Str;
use super::table::api;

/// A received command, to be inspected and changed.
pub struct Filtered(*mut RawFiltered);

static FILTER: AtomicPtr<RawFilter> = AtomicPtr::new(std::ptr::null_mut());
static RUN: OnceLock<fn(&mut Filtered)> = OnceLock::new();

/// Has all commands go through `run`.
pub fn register(context: Context, run: fn(&mut Filtered)) {
    let _ = RUN.set(run);
    if FILTER.load(Ordering::Relaxed).is_null() {
        // SAFETY: the module is loaded, and the context is its own.
        let filter = unsafe { (api().RegisterCommandFilter)(context.raw(), call, FILTER_NO_SELF) };
        FILTER.store(filter, Ordering::Relaxed);
    }
}

unsafe extern "C" fn call(filtered: *mut RawFiltered) {
    guarded("the command filter", (), || {
        if let Some(run) = RUN.get() {
            run(&mut Filtered(filtered));
        }
    });
}

impl Filtered {
    /// Returns how many arguments there are, the command's name included.
    pub fn count(&self) -> usize {
        // SAFETY: the server passes a valid command for the duration of the callback.
        usize::try_from(unsafe { (api().CommandFilterArgsCount)(self.0) }).unwrap_or(0)
    }

    /// Returns an argument.
    pub fn argument(&self, index: usize) -> Option<&[u8]> {
        let index = i32::try_from(index).ok()?;
        // SAFETY: the server passes a valid command for the duration of the callback; the string is valid until it
        // is replaced, which the borrow of `self` excludes.
        unsafe {
            let string = (api().CommandFilterArgGet)(self.0, index);
            (!string.is_null()).then(|| Str::new(string).bytes())
        }
    }

    /// Returns all arguments behind the command's name.
    pub fn arguments(&self) -> Vec<Str<'_>> {
        let count = i32::try_from(self.count()).unwrap_or(i32::MAX);
        (1..count)
            .map(|index| {
                // SAFETY: the server passes a valid command for the duration of the callback, with that many
                // arguments, which are valid until they are replaced.
                unsafe { Str::new((api().CommandFilterArgGet)(self.0, index)) }
            })
            .collect()
    }

    /// Returns the number of the client that sent the command; `None` if the server does not report it, as Redis before
    /// 7.2.
    pub fn client(&self) -> Option<u64> {
        // SAFETY: the server passes a valid command for the duration of the callback.
        api().CommandFilterGetClientId.map(|get| unsafe { get(self.0) })
    }

    /// Replaces the command's name. The caller keeps its hold on the string, so that it can be recognized later.
    pub fn rename(&mut self, name: Str<'_>) {
        // SAFETY: the server passes a valid command for the duration of the callback. It owns the reference that is
        // retained here; the caller keeps its own.
        unsafe {
            (api().RetainString)(std::ptr::null_mut(), name.raw());
            (api().CommandFilterArgReplace)(self.0, 0, name.raw());
        }
    }
}
