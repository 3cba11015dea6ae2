//! RocksDB's caches, driven directly through `secondary_cache_driver.cc`.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::ffi::{CStr, CString, c_char, c_int, c_long};
use std::ptr::NonNull;

#[repr(C)]
struct Raw {
    _private: [u8; 0],
}

unsafe extern "C" {
    fn driver_faults(which: c_int);
    fn driver_live_objects() -> c_long;
    fn driver_new(options: *const c_char, capacity: usize, clock: c_int, error: *mut c_char, len: usize) -> *mut Raw;
    fn driver_free(driver: *mut Raw);
    fn driver_insert(driver: *mut Raw, key: *const u8, data: *const u8, len: usize) -> c_int;
    fn driver_lookup(driver: *mut Raw, key: *const u8, out: *mut u8, capacity: usize, wait: c_int) -> c_long;
    fn driver_erase_primary(driver: *mut Raw, key: *const u8);
    fn driver_secondary_insert(driver: *mut Raw, key: *const u8, data: *const u8, len: usize, force: c_int) -> c_int;
    fn driver_secondary_insert_saved(d: *mut Raw, key: *const u8, data: *const u8, len: usize, kind: c_int) -> c_int;
    fn driver_secondary_lookup(
        driver: *mut Raw,
        key: *const u8,
        out: *mut u8,
        capacity: usize,
        advise_erase: c_int,
        saved: *mut c_int,
    ) -> c_long;
    fn driver_secondary_erase(driver: *mut Raw, key: *const u8);
    fn driver_size(driver: *mut Raw, what: c_int, bytes: usize) -> c_int;
    fn driver_capacity(driver: *mut Raw) -> usize;
    fn driver_configure(driver: *mut Raw, options: *const c_char, error: *mut c_char, len: usize) -> c_int;
    fn driver_option(driver: *mut Raw, name: *const c_char, value: *mut c_char, len: usize) -> c_int;
    fn driver_printable(driver: *mut Raw, text: *mut c_char, len: usize);
    fn driver_table_options(options: *const c_char, error: *mut c_char, len: usize) -> c_int;
}

const TEXT: usize = 8192;
const BLOCK: usize = 1 << 20;

pub const FAIL_SAVETO: i32 = 1;
pub const FAIL_CREATE: i32 = 2;
pub const FAIL_CREATE_SILENTLY: i32 = 4;

/// Which callbacks of this thread fail from now on.
pub fn faults(which: i32) {
    unsafe { driver_faults(which) };
}

/// Objects that this thread has made, less those that it has deleted.
pub fn live_objects() -> i64 {
    unsafe { driver_live_objects() }
}

pub fn key(n: u64) -> [u8; 16] {
    let mut key = [b'k'; 16];
    key[8..].copy_from_slice(&n.to_be_bytes());
    key
}

fn text_of(call: impl FnOnce(*mut c_char, usize) -> c_int) -> Result<String, String> {
    let mut text = vec![0_u8; TEXT];
    let status = call(text.as_mut_ptr().cast(), text.len());
    let text = CStr::from_bytes_until_nul(&text)
        .unwrap()
        .to_string_lossy()
        .into_owned();
    if status == 0 { Ok(text) } else { Err(text) }
}

/// Parses a database's options.
pub fn parse_options(options: &str) -> Result<(), String> {
    let options = CString::new(options).unwrap();
    text_of(|error, len| unsafe { driver_table_options(options.as_ptr(), error, len) }).map(drop)
}

/// What the secondary cache handed out.
#[derive(Debug, PartialEq)]
pub struct Found {
    pub bytes: Vec<u8>,
    pub kept: bool,
    pub compression_type: i32,
    pub tier: i32,
}

pub struct Driver(NonNull<Raw>);

unsafe impl Send for Driver {}
unsafe impl Sync for Driver {}

impl Driver {
    /// Makes a secondary cache behind an `LRUCache`, or a `HyperClockCache`, of `capacity` bytes.
    pub fn new(options: &str, capacity: usize, clock: bool) -> Result<Self, String> {
        leafpress_rocksdb::register();
        let options = CString::new(options).unwrap();
        let mut made = std::ptr::null_mut();
        text_of(|error, len| {
            made = unsafe { driver_new(options.as_ptr(), capacity, c_int::from(clock), error, len) };
            c_int::from(made.is_null())
        })?;
        Ok(Self(NonNull::new(made).unwrap()))
    }

    pub fn insert(&self, n: u64, bytes: &[u8]) -> bool {
        unsafe { driver_insert(self.0.as_ptr(), key(n).as_ptr(), bytes.as_ptr(), bytes.len()) == 0 }
    }

    pub fn lookup(&self, n: u64, as_multi_get: bool) -> Option<Vec<u8>> {
        let mut out = vec![0; BLOCK];
        let found = c_int::from(as_multi_get);
        let len = unsafe { driver_lookup(self.0.as_ptr(), key(n).as_ptr(), out.as_mut_ptr(), BLOCK, found) };
        out.truncate(usize::try_from(len).ok()?);
        Some(out)
    }

    pub fn erase_primary(&self, n: u64) {
        unsafe { driver_erase_primary(self.0.as_ptr(), key(n).as_ptr()) };
    }

    pub fn secondary_insert(&self, n: u64, bytes: &[u8], force: bool) -> bool {
        let (data, force) = (bytes.as_ptr(), c_int::from(force));
        unsafe { driver_secondary_insert(self.0.as_ptr(), key(n).as_ptr(), data, bytes.len(), force) == 0 }
    }

    pub fn secondary_insert_saved(&self, n: u64, bytes: &[u8], kind: i32) -> bool {
        let data = bytes.as_ptr();
        unsafe { driver_secondary_insert_saved(self.0.as_ptr(), key(n).as_ptr(), data, bytes.len(), kind) == 0 }
    }

    pub fn secondary_lookup(&self, n: u64, advise_erase: bool) -> Option<Found> {
        let (mut out, mut saved) = (vec![0; BLOCK], [0; 3]);
        let (key, advise_erase) = (key(n), c_int::from(advise_erase));
        let (out_ptr, saved_ptr) = (out.as_mut_ptr(), saved.as_mut_ptr());
        let len =
            unsafe { driver_secondary_lookup(self.0.as_ptr(), key.as_ptr(), out_ptr, BLOCK, advise_erase, saved_ptr) };
        assert_ne!(len, -2, "a handle that is not ready");
        out.truncate(usize::try_from(len).ok()?);
        Some(Found {
            bytes: out,
            kept: saved[0] == 1,
            compression_type: saved[1],
            tier: saved[2],
        })
    }

    pub fn secondary_erase(&self, n: u64) {
        unsafe { driver_secondary_erase(self.0.as_ptr(), key(n).as_ptr()) };
    }

    pub fn set_capacity(&self, bytes: usize) {
        assert_eq!(unsafe { driver_size(self.0.as_ptr(), 0, bytes) }, 0);
    }

    pub fn deflate(&self, bytes: usize) {
        assert_eq!(unsafe { driver_size(self.0.as_ptr(), 1, bytes) }, 0);
    }

    pub fn inflate(&self, bytes: usize) {
        assert_eq!(unsafe { driver_size(self.0.as_ptr(), 2, bytes) }, 0);
    }

    pub fn capacity(&self) -> usize {
        unsafe { driver_capacity(self.0.as_ptr()) }
    }

    pub fn configure(&self, options: &str) -> Result<(), String> {
        let options = CString::new(options).unwrap();
        text_of(|error, len| unsafe { driver_configure(self.0.as_ptr(), options.as_ptr(), error, len) }).map(drop)
    }

    pub fn option(&self, name: &str) -> Result<String, String> {
        let name = CString::new(name).unwrap();
        text_of(|value, len| unsafe { driver_option(self.0.as_ptr(), name.as_ptr(), value, len) })
    }

    pub fn printable(&self) -> String {
        text_of(|text, len| {
            unsafe { driver_printable(self.0.as_ptr(), text, len) };
            0
        })
        .unwrap()
    }

    /// Returns a ticker of the cache's statistics.
    pub fn ticker(&self, name: &str) -> u64 {
        let text = self.option("statistics").unwrap();
        let wanted = format!(".{name} COUNT : ");
        let line = text.lines().find(|line| line.contains(&wanted));
        let line = line.unwrap_or_else(|| panic!("no {name} in {text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        unsafe { driver_free(self.0.as_ptr()) };
    }
}
