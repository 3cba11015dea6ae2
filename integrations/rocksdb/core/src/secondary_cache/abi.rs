//! The functions that the shim calls (`shim/secondary_cache_abi.h`). No panic leaves them.

use std::ffi::c_void;
use std::sync::Arc;

use leafpress_pages::victim::{NewBlock, OnHit};

use crate::abi::{View, guarded};

use super::options::{SecondaryCacheOptionError, SecondaryCacheOptions, size};
use super::statistics::Instance;

/// Receives text that is borrowed for the call.
pub(super) type Sink = unsafe extern "C" fn(context: *mut c_void, data: *const u8, len: usize);
type Fill = unsafe extern "C" fn(context: *mut c_void, out: *mut u8, len: usize) -> bool;
type Found = unsafe extern "C" fn(context: *mut c_void, data: *const u8, len: usize, tag: u16) -> bool;

/// # Safety
/// `sink` accepts text with this context.
unsafe fn report(sink: Sink, context: *mut c_void, text: &str) {
    // SAFETY: the text is readable during the call, and `sink` accepts text with this context.
    unsafe { sink(context, text.as_ptr(), text.len()) };
}

/// Parses a size; returns whether it is valid.
///
/// # Safety
/// `text` is readable, `bytes` is writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn leafpress_size_parse(text: View, bytes: *mut usize) -> bool {
    guarded(false, || {
        // SAFETY: the shim keeps the bytes of `text` readable until this function returns.
        let Some(parsed) = crate::size::parse(unsafe { text.text() }.trim()) else {
            return false;
        };
        // SAFETY: `bytes` points to a `size_t` of the shim, writable until this function returns.
        unsafe { bytes.write(parsed) };
        true
    })
}

/// # Safety
/// `cache` is null or came from [`leafpress_secondary_cache_new`] and is not freed.
unsafe fn instance<'c>(cache: *const Instance) -> Option<&'c Instance> {
    // SAFETY: a pointer that is not null came from `Arc::into_raw` in `leafpress_secondary_cache_new`, whose reference
    // is released only by `leafpress_secondary_cache_free`.
    unsafe { cache.as_ref() }
}

/// # Safety
/// `pairs` has `count` pairs of a name and a value, which are readable, and `sink` accepts text with this context.
#[unsafe(no_mangle)]
unsafe extern "C" fn leafpress_secondary_cache_new(
    pairs: *const View,
    count: usize,
    sink: Sink,
    context: *mut c_void,
) -> *const Instance {
    let made = guarded(None, || {
        let pairs = if count == 0 {
            &[]
        } else {
            // SAFETY: `pairs` is an array of `2 * count` views, which the shim neither moves nor changes during this
            // call.
            unsafe { std::slice::from_raw_parts(pairs, count * 2) }
        };
        // SAFETY: the shim keeps the bytes of every name and value readable until this function returns.
        let texts: Vec<_> = pairs.iter().map(|view| unsafe { view.text() }).collect();
        let pairs = texts.chunks_exact(2).map(|pair| (&*pair[0], &*pair[1]));
        Some(SecondaryCacheOptions::from_pairs(pairs).and_then(Instance::new))
    });
    let error = match made {
        Some(Ok(instance)) => return Arc::into_raw(instance),
        Some(Err(error)) => error.to_string(),
        None => "the library panicked".to_owned(),
    };
    // SAFETY: the shim passes `sink` with the context that it expects, and `error` is readable during its call.
    unsafe { report(sink, context, &error) };
    std::ptr::null()
}

/// # Safety
/// `cache` is null or came from [`leafpress_secondary_cache_new`], and is not used again.
#[unsafe(no_mangle)]
unsafe extern "C" fn leafpress_secondary_cache_free(cache: *const Instance) {
    if !cache.is_null() {
        // SAFETY: `cache` is the pointer of `Arc::into_raw` in `leafpress_secondary_cache_new`; the shim frees it once,
        // in the destructor of its cache, and uses it no more.
        guarded((), || drop(unsafe { Arc::from_raw(cache) }));
    }
}

/// # Safety
/// `cache` is a valid cache, the key is readable, and `fill` writes `raw_bytes` bytes with this context.
#[unsafe(no_mangle)]
unsafe extern "C" fn leafpress_secondary_cache_insert(
    cache: *const Instance,
    key: View,
    raw_bytes: usize,
    family: u8,
    tag: u16,
    compress: bool,
    force: bool,
    fill: Fill,
    context: *mut c_void,
) -> i32 {
    guarded(1, || {
        // SAFETY: `cache` is null or an instance that `leafpress_secondary_cache_new` returned and nothing has freed;
        // `key` is readable during this call.
        let (Some(instance), key) = (unsafe { instance(cache) }, unsafe { key.bytes() }) else {
            return 1;
        };
        let mut block = NewBlock::new(raw_bytes);
        block.family = family;
        block.tag = tag;
        block.compress = compress;
        block.force = force;
        // RocksDB's keys name a place in a file that never changes.
        block.unchanging = true;
        let fill = |out: &mut [u8]| {
            // SAFETY: `out` is writable for its length, and the shim passes `fill` with the context that it expects.
            let filled = unsafe { fill(context, out.as_mut_ptr(), out.len()) };
            if filled { Ok(()) } else { Err(()) }
        };
        i32::from(instance.cache.insert_with(key, &block, fill).is_err())
    })
}

/// Returns 0 if the block is not found; 1 if it is found and stays; 2 if it is found and must be inserted again when
/// RocksDB evicts it.
///
/// # Safety
/// `cache` is a valid cache, the key is readable, and `found` accepts a block with this context.
#[unsafe(no_mangle)]
unsafe extern "C" fn leafpress_secondary_cache_lookup(
    cache: *const Instance,
    key: View,
    advise_erase: bool,
    found: Found,
    context: *mut c_void,
) -> i32 {
    guarded(0, || {
        // SAFETY: `cache` is null or an instance that `leafpress_secondary_cache_new` returned and nothing has freed;
        // `key` is readable during this call.
        let (Some(instance), key) = (unsafe { instance(cache) }, unsafe { key.bytes() }) else {
            return 0;
        };
        let is_promoted = advise_erase && instance.is_exclusive();
        let taking = if is_promoted { OnHit::Promote } else { OnHit::Keep };
        let read = |block: leafpress_pages::victim::FoundBlock<'_>| {
            // SAFETY: the block is readable during the call, and the shim passes `found` with the context that it
            // expects.
            let used = unsafe { found(context, block.bytes.as_ptr(), block.bytes.len(), block.tag) };
            if used { Ok(()) } else { Err(()) }
        };
        match instance.cache.read(key, taking, read) {
            Some(Ok(())) => 1 + i32::from(is_promoted),
            _ => 0,
        }
    })
}

/// # Safety
/// `cache` is a valid cache, and the key is readable.
#[unsafe(no_mangle)]
unsafe extern "C" fn leafpress_secondary_cache_erase(cache: *const Instance, key: View) {
    guarded((), || {
        // SAFETY: `cache` is null or an instance that `leafpress_secondary_cache_new` returned and nothing has freed.
        if let Some(instance) = unsafe { instance(cache) } {
            // SAFETY: the shim keeps the bytes of `key` readable until this function returns.
            instance.cache.remove(unsafe { key.bytes() });
        }
    });
}

/// # Safety
/// `cache` is a valid cache.
#[unsafe(no_mangle)]
unsafe extern "C" fn leafpress_secondary_cache_capacity(cache: *const Instance) -> usize {
    // SAFETY: `cache` is null or an instance that `leafpress_secondary_cache_new` returned and nothing has freed.
    guarded(0, || {
        unsafe { instance(cache) }.map_or(0, |instance| instance.cache.memory())
    })
}

/// # Safety
/// `cache` is a valid cache.
#[unsafe(no_mangle)]
unsafe extern "C" fn leafpress_secondary_cache_set_capacity(cache: *const Instance, bytes: usize) {
    guarded((), || {
        // SAFETY: `cache` is null or an instance that `leafpress_secondary_cache_new` returned and nothing has freed.
        if let Some(instance) = unsafe { instance(cache) } {
            instance.cache.set_memory(bytes);
        }
    });
}

/// # Safety
/// `cache` is a valid cache.
#[unsafe(no_mangle)]
unsafe extern "C" fn leafpress_secondary_cache_deflate(cache: *const Instance, bytes: usize) {
    guarded((), || {
        // SAFETY: `cache` is null or an instance that `leafpress_secondary_cache_new` returned and nothing has freed.
        if let Some(instance) = unsafe { instance(cache) } {
            instance.cache.shrink_by(bytes);
        }
    });
}

/// # Safety
/// `cache` is a valid cache.
#[unsafe(no_mangle)]
unsafe extern "C" fn leafpress_secondary_cache_inflate(cache: *const Instance, bytes: usize) {
    guarded((), || {
        // SAFETY: `cache` is null or an instance that `leafpress_secondary_cache_new` returned and nothing has freed.
        if let Some(instance) = unsafe { instance(cache) } {
            instance.cache.grow_back(bytes);
        }
    });
}

fn set(instance: &Instance, name: &str, value: &str) -> Result<(), SecondaryCacheOptionError> {
    let name = SecondaryCacheOptions::known(name)?;
    if name == "capacity" {
        instance.cache.set_memory(size(name, value)?);
        return Ok(());
    }
    // An unchanged value may be set again.
    let same = instance.options().value(name).is_some_and(|now| now == value);
    if same {
        Ok(())
    } else {
        Err(SecondaryCacheOptionError::Fixed(name))
    }
}

/// # Safety
/// `cache` is a valid cache, name and value are readable, and `sink` accepts text with this context.
#[unsafe(no_mangle)]
unsafe extern "C" fn leafpress_secondary_cache_set(
    cache: *const Instance,
    name: View,
    value: View,
    sink: Sink,
    context: *mut c_void,
) -> bool {
    guarded(false, || {
        // SAFETY: `cache` is null or an instance that `leafpress_secondary_cache_new` returned and nothing has freed;
        // `name` and `value` are readable during this call.
        let (instance, name, value) = unsafe { (instance(cache), name.text(), value.text()) };
        let Some(instance) = instance else { return false };
        match set(instance, &name, &value) {
            Ok(()) => true,
            Err(error) => {
                // SAFETY: the shim passes `sink` with the context that it expects, and the message is readable during
                // its call.
                unsafe { report(sink, context, &error.to_string()) };
                false
            }
        }
    })
}

/// # Safety
/// As [`leafpress_secondary_cache_set`].
#[unsafe(no_mangle)]
unsafe extern "C" fn leafpress_secondary_cache_get(
    cache: *const Instance,
    name: View,
    sink: Sink,
    context: *mut c_void,
) -> bool {
    guarded(false, || {
        // SAFETY: `cache` is null or an instance that `leafpress_secondary_cache_new` returned and nothing has freed;
        // `name` is readable during this call.
        let (Some(instance), name) = (unsafe { instance(cache) }, unsafe { name.text() }) else {
            return false;
        };
        let value = match &*name {
            "statistics" => Some(instance.text()),
            name => instance.options().value(name),
        };
        let Some(value) = value else { return false };
        // SAFETY: the shim passes `sink` with the context that it expects, and `value` is readable during its call.
        unsafe { report(sink, context, &value) };
        true
    })
}

/// # Safety
/// As [`leafpress_secondary_cache_set`].
#[unsafe(no_mangle)]
unsafe extern "C" fn leafpress_secondary_cache_options(cache: *const Instance, sink: Sink, context: *mut c_void) {
    guarded((), || {
        // SAFETY: `cache` is null or an instance that `leafpress_secondary_cache_new` returned and nothing has freed.
        if let Some(instance) = unsafe { instance(cache) } {
            // SAFETY: the shim passes `sink` with the context that it expects, and the text is readable during its
            // call.
            unsafe { report(sink, context, &instance.options().to_string()) };
        }
    });
}
