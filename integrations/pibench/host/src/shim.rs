//! The C++ shim's functions (`shim.cpp`), and a wrapper's tree behind them.

use std::error::Error;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

use libloading::os::unix::{self, RTLD_LOCAL, RTLD_NOW};

use crate::interface::{BULK_LOAD, Interface, TLS_SETUP};
use crate::{CallError, LoadError, TreeOptions};

/// `tree_api* (*)(const tree_options_t&)`, only ever called by the shim.
type CreateTree = unsafe extern "C" fn(*const c_void) -> *mut c_void;

/// `leafpress_pibench_options`.
#[repr(C)]
struct Options {
    key_size: usize,
    value_size: usize,
    pool_path: *const c_char,
    pool_path_bytes: usize,
    pool_size: usize,
    num_threads: usize,
    protocol: u8,
    clock_type: u8,
    gc_enabled: u8,
}

/// What a function returns when the wrapper threw; the text is then in `error`, or null if there was no memory for it.
const THREW: c_int = -1;

unsafe extern "C" {
    fn leafpress_pibench_create(
        create: CreateTree,
        options: *const Options,
        tree: *mut *mut c_void,
        error: *mut *mut c_char,
    ) -> c_int;
    fn leafpress_pibench_destroy(tree: *mut c_void, error: *mut *mut c_char) -> c_int;
    fn leafpress_pibench_tls_setup(tree: *mut c_void, error: *mut *mut c_char) -> c_int;
    fn leafpress_pibench_find(
        tree: *mut c_void,
        has_bulk_load: bool,
        key: *const u8,
        key_size: usize,
        value_out: *mut u8,
        error: *mut *mut c_char,
    ) -> c_int;
    fn leafpress_pibench_insert(
        tree: *mut c_void,
        has_bulk_load: bool,
        key: *const u8,
        key_size: usize,
        value: *const u8,
        value_size: usize,
        error: *mut *mut c_char,
    ) -> c_int;
    fn leafpress_pibench_update(
        tree: *mut c_void,
        has_bulk_load: bool,
        key: *const u8,
        key_size: usize,
        value: *const u8,
        value_size: usize,
        error: *mut *mut c_char,
    ) -> c_int;
    fn leafpress_pibench_remove(
        tree: *mut c_void,
        has_bulk_load: bool,
        key: *const u8,
        key_size: usize,
        error: *mut *mut c_char,
    ) -> c_int;
    fn leafpress_pibench_scan(
        tree: *mut c_void,
        has_bulk_load: bool,
        key: *const u8,
        key_size: usize,
        count: c_int,
        values_out: *mut *mut u8,
        scanned: *mut c_int,
        error: *mut *mut c_char,
    ) -> c_int;
    fn leafpress_pibench_free(text: *mut c_char);
}

/// A `tree_api*` that is ours to delete. Its library is never unloaded.
pub(crate) struct Tree {
    address: NonNull<c_void>,
    interface: Interface,
}

// SAFETY: the caller that opened the wrapper vouches that any thread may call, and delete, the tree.
unsafe impl Send for Tree {}
// SAFETY: the caller that opened the wrapper vouches that many threads may call the tree at once.
unsafe impl Sync for Tree {}

impl Tree {
    /// Loads the library and calls its `create_tree`.
    ///
    /// # Safety
    /// As [`Library::open`](crate::Library::open).
    pub(crate) unsafe fn create(path: &Path, options: &TreeOptions) -> Result<Self, LoadError> {
        // SAFETY: the caller of `create` vouches for the library: loading it runs its initialisers.
        let library = unsafe { load(path) }?;
        let pool_path = options.pool_path.as_os_str().as_bytes();
        let options = Options {
            key_size: options.key_size,
            value_size: options.value_size,
            pool_path: pool_path.as_ptr().cast(),
            pool_path_bytes: pool_path.len(),
            pool_size: options.pool_size,
            num_threads: options.num_threads,
            protocol: options.protocol,
            clock_type: options.clock_type,
            gc_enabled: options.gc_enabled,
        };
        let has_fork_options = options.protocol != 0 || options.clock_type != 0 || options.gc_enabled != 0;
        let fork_options = || LoadError::ForkOptions { path: path.to_owned() };
        if has_fork_options && library.exports_bulk_load {
            // The wrapper would take the three bytes for a pointer.
            return Err(fork_options());
        }
        let create = library.create_tree;
        let mut tree = std::ptr::null_mut();
        // SAFETY: `create` is the library's `create_tree`, for which the caller vouches; the pointers are good for the
        // call.
        checked(|error| unsafe { leafpress_pibench_create(create, &options, &mut tree, error) }).map_err(|what| {
            LoadError::Threw {
                path: path.to_owned(),
                what,
            }
        })?;
        let address = NonNull::new(tree).ok_or_else(|| LoadError::NullTree {
            path: path.to_owned(),
            key_size: options.key_size,
            value_size: options.value_size,
        })?;
        // A tree that is refused is not deleted either, since its destructor is unknown.
        let interface = Interface::of(address, library.exports_bulk_load, library.exports_tls_setup)
            .map_err(|reason| reason.of(path))?;
        if has_fork_options && interface.has_bulk_load() {
            return Err(fork_options());
        }
        Ok(Self { address, interface })
    }

    /// Prepares the calling thread, where the wrapper has a method for it.
    pub(crate) fn attach_thread(&self) -> Result<(), CallError> {
        if !self.interface.has_tls_setup() {
            return Ok(());
        }
        // SAFETY: the tree lives as long as `self`, and has the method.
        answer("tls_setup", |error| unsafe {
            leafpress_pibench_tls_setup(self.address.as_ptr(), error)
        })
        .map(drop)
    }

    /// # Safety
    /// The wrapper may write a value, and as much behind it as PiBench lets it, to `value_out`.
    #[inline]
    pub(crate) unsafe fn find(&self, key: &[u8], value_out: *mut u8) -> Result<bool, CallError> {
        // SAFETY: the tree lives as long as `self`; `value_out` has room for a value and for what a wrapper writes
        // behind it.
        answer("find", |error| unsafe {
            leafpress_pibench_find(
                self.address.as_ptr(),
                self.interface.has_bulk_load(),
                key.as_ptr(),
                key.len(),
                value_out,
                error,
            )
        })
    }

    #[inline]
    pub(crate) fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, CallError> {
        // SAFETY: the tree lives as long as `self`; the key and the value are readable during the call, and the caller
        // that opened the wrapper vouches that it reads no more of them.
        answer("insert", |error| unsafe {
            leafpress_pibench_insert(
                self.address.as_ptr(),
                self.interface.has_bulk_load(),
                key.as_ptr(),
                key.len(),
                value.as_ptr(),
                value.len(),
                error,
            )
        })
    }

    #[inline]
    pub(crate) fn update(&self, key: &[u8], value: &[u8]) -> Result<bool, CallError> {
        // SAFETY: the tree lives as long as `self`; the key and the value are readable during the call, and the caller
        // that opened the wrapper vouches that it reads no more of them.
        answer("update", |error| unsafe {
            leafpress_pibench_update(
                self.address.as_ptr(),
                self.interface.has_bulk_load(),
                key.as_ptr(),
                key.len(),
                value.as_ptr(),
                value.len(),
                error,
            )
        })
    }

    #[inline]
    pub(crate) fn remove(&self, key: &[u8]) -> Result<bool, CallError> {
        // SAFETY: the tree lives as long as `self`; the key is readable during the call, and the caller that opened the
        // wrapper vouches that it reads no more of it.
        answer("remove", |error| unsafe {
            leafpress_pibench_remove(
                self.address.as_ptr(),
                self.interface.has_bulk_load(),
                key.as_ptr(),
                key.len(),
                error,
            )
        })
    }

    /// What the wrapper returned and where it says the records are, both unjudged.
    #[inline]
    pub(crate) fn scan(&self, key: &[u8], count: i32) -> Result<(i32, *const u8), CallError> {
        let (mut scanned, mut values) = (0, std::ptr::null_mut());
        // SAFETY: the tree lives as long as `self`; the key is readable, `values` and `scanned` are writable during the
        // call, and the caller that opened the wrapper vouches that it reads no more of the key.
        answer("scan", |error| unsafe {
            leafpress_pibench_scan(
                self.address.as_ptr(),
                self.interface.has_bulk_load(),
                key.as_ptr(),
                key.len(),
                count,
                &mut values,
                &mut scanned,
                error,
            )
        })?;
        Ok((scanned, values))
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // A destructor that throws has no one to report to: the tree is gone either way.
        // SAFETY: `create_tree` made the tree for its caller to delete, and no thread uses it any more.
        let _ = checked(|error| unsafe { leafpress_pibench_destroy(self.address.as_ptr(), error) });
    }
}

/// What a wrapper's library exports.
struct Exports {
    create_tree: CreateTree,
    exports_bulk_load: bool,
    exports_tls_setup: bool,
}

/// Loads the library at `path`, which stays loaded for good.
///
/// # Safety
/// As [`Library::open`](crate::Library::open).
unsafe fn load(path: &Path) -> Result<Exports, LoadError> {
    if path.as_os_str().is_empty() {
        // The loader takes it for the running program.
        return Err(LoadError::Open {
            path: path.to_owned(),
            reason: "the path is empty".to_owned(),
        });
    }
    // A name without a slash is not a path to the loader.
    let name = if path.components().count() == 1 && path.exists() {
        PathBuf::from(".").join(path)
    } else {
        path.to_owned()
    };
    // SAFETY: loading runs the library's initialisers, for which the caller vouches.
    let library = unsafe { unix::Library::open(Some(&name), RTLD_NOW | RTLD_LOCAL) }.map_err(|e| LoadError::Open {
        path: path.to_owned(),
        reason: loader_text(&e),
    })?;
    // SAFETY: the caller vouches that a `create_tree` has this type.
    let found = unsafe { library.get::<CreateTree>(b"create_tree\0") };
    let create_tree = match found {
        Ok(symbol) => *symbol,
        Err(e) => {
            return Err(LoadError::NoCreateTree {
                path: path.to_owned(),
                reason: loader_text(&e),
            });
        }
    };
    // SAFETY: the symbol is only looked for.
    let exports = |symbol: &[u8]| unsafe { library.get::<*const c_void>(symbol) }.is_ok();
    let exports = Exports {
        create_tree,
        exports_bulk_load: exports(BULK_LOAD),
        exports_tls_setup: exports(TLS_SETUP),
    };
    std::mem::forget(library);
    Ok(exports)
}

/// What the loader itself said, which libloading keeps behind a summary of its own.
fn loader_text(error: &libloading::Error) -> String {
    match error.source() {
        Some(source) => source.to_string(),
        None => error.to_string(),
    }
}

/// Calls a method that returns yes or no.
#[inline]
fn answer(method: &'static str, call: impl FnOnce(*mut *mut c_char) -> c_int) -> Result<bool, CallError> {
    match checked(call) {
        Ok(answer) => Ok(answer != 0),
        Err(what) => Err(CallError::Threw { method, what }),
    }
}

/// What `call` returned, or the text of what it threw.
#[inline]
fn checked(call: impl FnOnce(*mut *mut c_char) -> c_int) -> Result<c_int, String> {
    let mut error = std::ptr::null_mut();
    match call(&mut error) {
        THREW => Err(take_text(error)),
        answer => Ok(answer),
    }
}

/// Copies the shim's text, and frees it.
#[cold]
fn take_text(text: *mut c_char) -> String {
    if text.is_null() {
        return "an exception that there is no memory to describe".to_owned();
    }
    // SAFETY: the shim's texts end with a zero byte and are ours until we free them, once.
    unsafe {
        let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
        leafpress_pibench_free(text);
        copy
    }
}
