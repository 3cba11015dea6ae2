//! A filter of commands before the server looks them up.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::context::Context;
use super::guard::guarded;
use super::raw::{FILTER_NO_SELF, RawFilter, RawFiltered};
use super::string::{OwnedStr, Str};
use super::table::api;

/// A command that came, to be looked at and changed.
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
    /// How many arguments there are, the command's name included.
    pub fn count(&self) -> usize {
        // SAFETY: the callback runs, here and below.
        usize::try_from(unsafe { (api().CommandFilterArgsCount)(self.0) }).unwrap_or(0)
    }

    /// An argument.
    pub fn argument(&self, index: usize) -> Option<&[u8]> {
        let index = i32::try_from(index).ok()?;
        // SAFETY: as above; the string lives until it is replaced.
        unsafe {
            let string = (api().CommandFilterArgGet)(self.0, index);
            (!string.is_null()).then(|| Str::new(string).bytes())
        }
    }

    /// Puts another name in the place of the command's.
    pub fn rename(&mut self, name: &[u8]) {
        let name = OwnedStr::new(name);
        // SAFETY: as above; the server takes the string.
        unsafe { (api().CommandFilterArgReplace)(self.0, 0, name.into_raw()) };
    }
}
