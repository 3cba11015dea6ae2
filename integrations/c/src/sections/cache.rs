//! Caches: maps with a memory bound that evict records, optionally with a disk tier.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::time::Duration;

use leafpress_core::Cache;
use leafpress_core::cache::{InsertOptions, MAX_VALUE_BYTES};

use crate::failure::{Failure, call};
use crate::fork::Process;
use crate::given::{Given, Room, each, list};
use crate::handle::{self, Handle};
use crate::sections::options::cache_builder;
use crate::{lp_bytes, lp_found_fn, lp_options, lp_status, lp_value_fn};

/// Longest value of a cache, in bytes. A value of more than an eighth of the cache's memory is not kept.
pub const LP_MAX_CACHE_VALUE_BYTES: usize = 67108790;

const _: () = assert!(LP_MAX_CACHE_VALUE_BYTES == MAX_VALUE_BYTES);

/// A map from byte strings to byte strings with a memory bound: the least used records are evicted, and records may
/// expire. It may evict any record at any time; it never returns a value that was replaced, removed or has expired.
///
/// Any number of threads may use a cache at the same time, with all functions except lp_cache_close() and
/// lp_cache_free(). A read that finds its key in memory does not wait for a lock, unless records have a time to idle.
pub struct lp_cache {
    pub(crate) cache: Cache,
    process: Process,
}

impl Handle for lp_cache {
    const NAME: &'static str = "cache";

    fn process(&self) -> Process {
        self.process
    }
}

/// Returns the cache behind a handle.
#[inline]
pub(crate) fn of(cache: Option<&lp_cache>) -> Result<&Cache, Failure> {
    Ok(&handle::of(cache)?.cache)
}

/// Makes a cache and starts its background work. options may be NULL: 64 MiB, and no disk. Close it with
/// lp_cache_close() or lp_cache_free().
///
/// With a disk tier the cache has the records that lp_cache_close() left in the file; those in use return to memory in
/// the background. Returns LP_IO if the file cannot be used, or another cache uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_cache_open(
    options: Option<&lp_options>,
    cache: Option<&mut MaybeUninit<*mut lp_cache>>,
) -> lp_status {
    call(|| {
        handle::hand_out(cache, || {
            let process = Process::this();
            let cache = cache_builder(options)?.build()?;
            Ok(lp_cache { cache, process })
        })
    })
}

/// Moves the records in memory to the disk tier, leaves them there for the next cache that is opened with the same
/// file, and frees the cache, whatever it returns. Without a disk tier it does what lp_cache_free() does. Returns
/// LP_INVALID_ARGUMENT for NULL, and LP_IO if the file cannot be written: the next cache is empty then.
///
/// The next cache does not know of changes that the database behind it has until then: remove those records there, or
/// let records expire.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_cache_close(cache: *mut lp_cache) -> lp_status {
    call(|| {
        // SAFETY: the caller passes NULL or a handle that it gives back.
        handle::of(unsafe { cache.as_ref() })?;
        // SAFETY: `of` has checked that it is a handle that was handed out; the caller gives it back once.
        let closed = unsafe { handle::take_back(cache) };
        closed.map_or(Ok(()), |closed| Ok(closed.cache.close()?))
    })
}

/// Frees the cache with all its records; NULL is allowed. The records in the file of its disk tier are lost: see
/// lp_cache_close().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_cache_free(cache: *mut lp_cache) {
    // SAFETY: `free` accepts NULL and handles that were handed out, which the caller gives back once.
    unsafe { handle::free(cache) };
}

/// Inserts the record, or replaces its value. It expires after the option ttl_ms, by default never. Other records may
/// be evicted for it, or it for others; a value of more than an eighth of the memory is not kept.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_cache_insert(
    cache: Option<&lp_cache>,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
) -> lp_status {
    // SAFETY: the header requires bytes that are readable and unchanged during the call.
    let (key, value) = unsafe { (Given::new(key, key_len), Given::new(value, value_len)) };
    call(|| Ok(of(cache)?.insert(key.get("key")?, value.get("value")?)?))
}

/// Like lp_cache_insert(), for a record that expires after ttl_ms milliseconds, 1 to 10 years. It may leave up to
/// 1 ms earlier, and is never returned after that time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_cache_insert_ttl(
    cache: Option<&lp_cache>,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    ttl_ms: u64,
) -> lp_status {
    // SAFETY: the header requires bytes that are readable and unchanged during the call.
    let (key, value) = unsafe { (Given::new(key, key_len), Given::new(value, value_len)) };
    call(|| {
        let entry = InsertOptions::ttl(Duration::from_millis(ttl_ms));
        Ok(of(cache)?.insert_entry(key.get("key")?, value.get("value")?, entry)?)
    })
}

/// The time of a record that does not expire, in lp_insert_options.
pub const LP_NEVER: u64 = u64::MAX;

/// How lp_cache_insert_entry() inserts a record. Fill it with zeros, and set what differs.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct lp_insert_options {
    /// Time to live in milliseconds, up to 10 years; 0 for the option ttl_ms of the cache, LP_NEVER for none.
    pub ttl_ms: u64,
    /// Time that the record stays without being read, in milliseconds, from 1,000 to 10 years; 0 for the option
    /// time_to_idle_ms of the cache, LP_NEVER for none.
    pub time_to_idle_ms: u64,
    /// Tags for lp_cache_invalidate_tag(): any bytes.
    pub tags: *const lp_bytes,
    /// Number of tags, at most 8.
    pub tag_count: usize,
}

/// Returns a time of `lp_insert_options`.
fn time_of(ms: u64) -> Option<Duration> {
    match ms {
        0 => None,
        LP_NEVER => Some(Duration::MAX),
        ms => Some(Duration::from_millis(ms)),
    }
}

/// Like lp_cache_insert(), with times and tags of the record's own. options may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_cache_insert_entry(
    cache: Option<&lp_cache>,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    options: Option<&lp_insert_options>,
) -> lp_status {
    // SAFETY: the header requires bytes that are readable and unchanged during the call.
    let (key, value) = unsafe { (Given::new(key, key_len), Given::new(value, value_len)) };
    call(|| {
        let mut entry = InsertOptions::default();
        if let Some(options) = options {
            entry.ttl = time_of(options.ttl_ms);
            entry.time_to_idle = time_of(options.time_to_idle_ms);
            // SAFETY: the header requires a list of `count` items with bytes that are readable and unchanged during the
            // call.
            let tags = unsafe { each(list(options.tags, options.tag_count, "tags")?, "tag")? };
            entry = tags.into_iter().fold(entry, InsertOptions::tag);
        }
        Ok(of(cache)?.insert_entry(key.get("key")?, value.get("value")?, entry)?)
    })
}

/// Removes every record that was inserted with the tag, in memory and on disk, in constant time: the records take
/// memory until they are found or evicted. Records that are inserted from now on stay.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_cache_invalidate_tag(
    cache: Option<&lp_cache>,
    tag: *const c_void,
    tag_len: usize,
) -> lp_status {
    // SAFETY: the header requires bytes that are readable and unchanged during the call.
    let tag = unsafe { Given::new(tag, tag_len) };
    call(|| Ok(of(cache)?.invalidate_tag(tag.get("tag")?)?))
}

/// Copies the key's value to buffer, as lp_tree_get() does. Returns LP_NOT_FOUND if the cache does not have the key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_cache_get(
    cache: Option<&lp_cache>,
    key: *const c_void,
    key_len: usize,
    buffer: *mut c_void,
    capacity: usize,
    value_len: Option<&mut MaybeUninit<usize>>,
) -> lp_status {
    map!(get, of(cache)?, key, key_len, buffer, capacity, value_len)
}

/// Calls read with the key's value, which is not copied, as lp_tree_read() does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_cache_read(
    cache: Option<&lp_cache>,
    key: *const c_void,
    key_len: usize,
    read: lp_value_fn,
    context: *mut c_void,
) -> lp_status {
    map!(read, of(cache)?, key, key_len, read, context)
}

/// Calls read with the value of each of count keys, in their order, as lp_tree_get_many() does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_cache_get_many(
    cache: Option<&lp_cache>,
    keys: *const lp_bytes,
    count: usize,
    read: lp_found_fn,
    context: *mut c_void,
) -> lp_status {
    map!(get_many, of(cache)?, keys, count, read, context)
}

/// Returns LP_OK if the key is there, else LP_NOT_FOUND. It counts as a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_cache_contains(cache: Option<&lp_cache>, key: *const c_void, key_len: usize) -> lp_status {
    map!(contains_key, of(cache)?, key, key_len)
}

/// Removes the record; returns LP_NOT_FOUND if it was not there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_cache_remove(cache: Option<&lp_cache>, key: *const c_void, key_len: usize) -> lp_status {
    map!(remove, of(cache)?, key, key_len)
}

/// Removes the record without reporting whether it was there: returns LP_OK either way. lp_cache_remove() may have to
/// read the disk tier for its result; this function reads nothing. A listener receives a record that was in memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_cache_invalidate(
    cache: Option<&lp_cache>,
    key: *const c_void,
    key_len: usize,
) -> lp_status {
    // SAFETY: the header requires bytes that are readable and unchanged during the call.
    let key = unsafe { Given::new(key, key_len) };
    call(|| Ok(of(cache)?.invalidate(key.get("key")?)?))
}

/// Removes every record, including those on disk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_cache_clear(cache: Option<&lp_cache>) -> lp_status {
    call(|| Ok(of(cache)?.clear()?))
}

/// Returns the number of records in memory, including expired ones that have not been removed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_cache_len(cache: Option<&lp_cache>, records: Option<&mut MaybeUninit<u64>>) -> lp_status {
    map!(len, of(cache)?, records)
}

/// Changes the memory bound, 4 MiB or more. When it returns, the cache holds no more than that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_cache_set_memory(cache: Option<&lp_cache>, bytes: u64) -> lp_status {
    call(|| Ok(of(cache)?.set_memory(bytes)?))
}

/// Does the background work that would be done some time after the last write, and waits for it: removes expired
/// records, compacts leaves, writes what waits for the disk. Returns LP_BACKGROUND if a background thread has ended; it
/// still does the work that needs no such thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_cache_settle(cache: Option<&lp_cache>) -> lp_status {
    call(|| Ok(of(cache)?.settle()?))
}

/// Checks every structural invariant, for tests. No other thread may write meanwhile. Returns LP_CORRUPT, with the
/// first violation in the message.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_cache_validate(cache: Option<&lp_cache>) -> lp_status {
    call(|| Ok(of(cache)?.validate()?))
}

/// Writes a few lines for people about the cache's contents and activity to buffer, as a string that ends with a zero
/// byte; text_len is its length without that. With a NULL buffer it only returns the length. Returns
/// LP_BUFFER_TOO_SMALL unless capacity is greater than text_len.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_cache_describe(
    cache: Option<&lp_cache>,
    buffer: *mut c_char,
    capacity: usize,
    text_len: Option<&mut MaybeUninit<usize>>,
) -> lp_status {
    call(|| {
        // SAFETY: the header requires NULL or room that is writable and unused by others during the call.
        let mut room = unsafe { Room::new(buffer.cast(), capacity, text_len)? };
        let mut text = of(cache)?.stats().to_string();
        text.push('\0');
        let filled = room.fill(text.as_bytes());
        room.filled(text.len() - 1);
        filled
    })
}
