//! The module's type.

use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::context::Context;
use super::guard::guarded;
use super::io::{Digest, Loader, Rewriter, Saver};
use super::raw::{
    AUX_AFTER, AUX_BEFORE, ERR, OK, RawDefrag, RawDigest, RawIo, RawKeyOptions, RawString, RawType, TypeMethods,
};
use super::string::Str;
use super::table::api;
use crate::store::value::{Borrowed, Value};

/// The operations of the type, for [`register`].
pub struct Methods {
    /// Loads a value that was saved in an encoding of this version.
    pub load: fn(&mut Loader, i32) -> Option<Value>,
    /// Saves a value; returns whether all of it was written.
    pub save: fn(&mut Saver, &Borrowed<'_>) -> bool,
    /// Writes the commands that make a value; returns whether all of it was written.
    pub rewrite: fn(&mut Rewriter, Str<'_>, &Borrowed<'_>) -> bool,
    /// Adds a value to a digest.
    pub digest: fn(&mut Digest, &Borrowed<'_>),
    /// Returns about how many bytes a value holds.
    pub memory: fn(&Borrowed<'_>) -> usize,
    /// Returns how much work it is to free a value, in allocations of native types.
    pub free_effort: fn(&Borrowed<'_>) -> usize,
    /// A snapshot begins: writes what precedes its values.
    pub begin_saving: fn(&mut Saver),
    /// A snapshot ends.
    pub end_saving: fn(),
    /// Loads what precedes a snapshot's values; returns whether it is valid.
    pub load_before: fn(&mut Loader) -> bool,
    /// A copy of a value for a database.
    pub copy: fn(i32, &Borrowed<'_>) -> Option<Value>,
}

static TYPE: AtomicPtr<RawType> = AtomicPtr::new(std::ptr::null_mut());
static METHODS: OnceLock<Methods> = OnceLock::new();

/// Version of the layout of [`TypeMethods`].
const METHODS_VERSION: u64 = 5;

/// Returns the type, as registered with the server.
#[inline]
pub fn registered() -> *mut RawType {
    TYPE.load(Ordering::Relaxed)
}

/// Registers the type; returns whether the server took it.
pub fn register(context: Context, name: &CStr, version: c_int, methods: Methods) -> bool {
    let _ = METHODS.set(methods);
    let callbacks = TypeMethods {
        version: METHODS_VERSION,
        rdb_load: Some(load),
        rdb_save: Some(save),
        aof_rewrite: Some(rewrite),
        mem_usage: Some(memory),
        digest: Some(digest),
        free: Some(free),
        aux_load: Some(aux_load),
        aux_save: std::ptr::null(),
        aux_save_triggers: AUX_BEFORE | AUX_AFTER,
        free_effort: Some(free_effort),
        unlink: std::ptr::null(),
        copy: std::ptr::null(),
        defrag: Some(defrag),
        mem_usage2: std::ptr::null(),
        free_effort2: std::ptr::null(),
        unlink2: std::ptr::null(),
        copy2: Some(copy),
        aux_save2: Some(aux_save),
    };
    // SAFETY: the module is being loaded; the server copies the callbacks, whose layout is of this version.
    let registered = unsafe { (api().CreateDataType)(context.raw(), name.as_ptr(), version, &raw const callbacks) };
    TYPE.store(registered, Ordering::Relaxed);
    !registered.is_null()
}

fn methods() -> &'static Methods {
    METHODS.get().expect("the type is registered with its methods")
}

// The server calls all of these with the arguments of its interface: a stream that lives as long as the call, and
// values of this module, which nothing changes meanwhile.

unsafe extern "C" fn load(io: *mut RawIo, version: c_int) -> *mut c_void {
    guarded("loading a value", std::ptr::null_mut(), || {
        // SAFETY: the stream lives as long as the call, and values are this module's.
        let mut loader = unsafe { Loader::new(io) };
        (methods().load)(&mut loader, version).map_or(std::ptr::null_mut(), Value::into_raw)
    })
}

unsafe extern "C" fn save(io: *mut RawIo, value: *mut c_void) {
    let is_whole = guarded("saving a value", false, || {
        // SAFETY: the stream lives as long as the call, and values are this module's.
        let (mut saver, value) = unsafe { (Saver::new(io), Borrowed::of(value)) };
        (methods().save)(&mut saver, &value)
    });
    if !is_whole {
        // SAFETY: the stream lives as long as the call.
        unsafe { Saver::new(io) }.fail();
    }
}

unsafe extern "C" fn rewrite(io: *mut RawIo, key: *mut RawString, value: *mut c_void) {
    let is_whole = guarded("rewriting a value", false, || {
        // SAFETY: the stream lives as long as the call, and values are this module's.
        let (mut rewriter, key, value) = unsafe { (Rewriter::new(io), Str::new(key), Borrowed::of(value)) };
        (methods().rewrite)(&mut rewriter, key, &value)
    });
    if !is_whole {
        // SAFETY: the stream lives as long as the call.
        unsafe { Rewriter::new(io) }.fail();
    }
}

unsafe extern "C" fn aux_save(io: *mut RawIo, when: c_int) {
    let is_whole = guarded("saving dictionaries", false, || {
        if when == AUX_BEFORE {
            // SAFETY: the stream lives as long as the call, and values are this module's.
            (methods().begin_saving)(&mut unsafe { Saver::new(io) });
        } else {
            (methods().end_saving)();
        }
        true
    });
    if !is_whole {
        // SAFETY: the stream lives as long as the call.
        unsafe { Saver::new(io) }.fail();
    }
}

unsafe extern "C" fn aux_load(io: *mut RawIo, _: c_int, _: c_int) -> c_int {
    guarded("loading dictionaries", ERR, || {
        // SAFETY: the stream lives as long as the call, and values are this module's.
        let mut loader = unsafe { Loader::new(io) };
        if (methods().load_before)(&mut loader) { OK } else { ERR }
    })
}

unsafe extern "C" fn memory(value: *const c_void) -> usize {
    guarded("measuring a value", 0, || {
        // SAFETY: the stream lives as long as the call, and values are this module's.
        let value = unsafe { Borrowed::of(value.cast_mut()) };
        (methods().memory)(&value)
    })
}

unsafe extern "C" fn digest(digest: *mut RawDigest, value: *mut c_void) {
    guarded("digesting a value", (), || {
        // SAFETY: the stream lives as long as the call, and values are this module's.
        let (mut digest, value) = unsafe { (Digest::new(digest), Borrowed::of(value)) };
        (methods().digest)(&mut digest, &value);
    });
}

unsafe extern "C" fn free(value: *mut c_void) {
    guarded("freeing a value", (), || {
        // SAFETY: the server gives up the value.
        drop(unsafe { Value::from_raw(value) });
    });
}

unsafe extern "C" fn free_effort(_: *mut RawString, value: *const c_void) -> usize {
    guarded("freeing a value", 1, || {
        // SAFETY: the stream lives as long as the call, and values are this module's.
        let value = unsafe { Borrowed::of(value.cast_mut()) };
        (methods().free_effort)(&value)
    })
}

unsafe extern "C" fn copy(options: *mut RawKeyOptions, value: *const c_void) -> *mut c_void {
    guarded("copying a value", std::ptr::null_mut(), || {
        // SAFETY: the stream lives as long as the call, and values are this module's.
        let (database, value) = unsafe { ((api().GetToDbIdFromOptCtx)(options), Borrowed::of(value.cast_mut())) };
        (methods().copy)(database, &value).map_or(std::ptr::null_mut(), Value::into_raw)
    })
}

/// Moves, for active defragmentation, the small part of a map that its pointer points to; the tree's nodes stay.
unsafe extern "C" fn defrag(walk: *mut RawDefrag, _: *mut RawString, value: *mut *mut c_void) -> c_int {
    guarded("defragmenting a value", 0, || {
        // SAFETY: a map's part is a block of the server's allocator as a whole: it is aligned to no more than that
        // gives. What the server returns is a copy, and it has freed the block.
        unsafe {
            if let Borrowed::Map(_) = Borrowed::of(*value) {
                let moved = (api().DefragAlloc)(walk, *value);
                if !moved.is_null() {
                    *value = moved;
                }
            }
        }
        0
    })
}
