//! Options.

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;

use leafpress_core::Dictionary;
use leafpress_core::cache::{self, RemovalCause};
use leafpress_core::tree::{self, DictionaryChoice};

use crate::callback::Context;
use crate::failure::{Failure, call};
use crate::fork::Process;
use crate::given::text;
use crate::handle::{self, Handle};
use crate::option_table::Settings;
use crate::{lp_bytes, lp_dictionary, lp_status};

/// How a tree or a cache is to be opened: options by name. Opening takes a copy; one object may open many. No two threads may use one at the
/// same time.
pub struct lp_options {
    settings: Settings,
    dictionary: Option<Dictionary>,
    listener: Option<Listener>,
    process: Process,
}

type ListenerFn = unsafe extern "C" fn(*mut c_void, *const c_void, usize, *const c_void, usize, lp_removal);

#[derive(Clone, Copy)]
struct Listener {
    function: ListenerFn,
    context: Context,
}

impl Handle for lp_options {
    const NAME: &'static str = "options object";

    fn process(&self) -> Process {
        self.process
    }
}

/// Why a record left a cache.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum lp_removal {
    /// It made room for others.
    LP_REMOVAL_EVICTED = 0,
    /// Its time was over.
    LP_REMOVAL_EXPIRED = 1,
    /// It was removed by its key.
    LP_REMOVAL_REMOVED = 2,
    /// Its key was inserted again.
    LP_REMOVAL_REPLACED = 3,
}

/// Is told of a record that left a cache. Any thread may call it, the cache's own as well, and several at a time.
pub type lp_removal_fn = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        key: *const c_void,
        key_len: usize,
        value: *const c_void,
        value_len: usize,
        cause: lp_removal,
    ),
>;

/// Makes an options object with all options at their defaults. Free it with lp_options_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_options_new(options: Option<&mut MaybeUninit<*mut lp_options>>) -> lp_status {
    call(|| {
        handle::hand_out(options, || {
            Ok(lp_options {
                settings: Settings::default(),
                dictionary: None,
                listener: None,
                process: Process::this(),
            })
        })
    })
}

/// Sets an option, "codec" to "zstd:3" say. A number of bytes may end in KiB, MiB, GiB or TiB: "512MiB". The last value counts.
///
/// LP_INVALID_ARGUMENT for a name that no tree or cache has and for a value that cannot be; what is out of bounds is said when it is opened.
///
/// Of trees and caches:
///
///   codec                      as lp_codec_open() takes it, or auto: several, by how much a
///                              leaf is read. Default lz4 for trees, zstd:1 for caches
///
/// Of trees:
///
///   dictionary                 auto (default: trained from the tree's own records), off
///   dictionary_bytes           longest one that is trained, 1 KiB to 1 MiB
///   shards                     1 (default) to 1024: more for many writers at a time
///   background_threads         that compact leaves, 0 (default: writers do) to 64
///   load_threads               that lp_tree_load() uses, 1 (default) to 64
///   leaf_bytes                 at which a leaf splits, 1 KiB to 32 KiB; chosen by default
///   frame_bytes                that are compressed together, from 1 (a record each) to
///                              leaf_bytes; chosen by default
///   sub_pages                  1 to 64: records are put into frames by a hash of the key
///   inline_value_bytes         longest value that stands in a leaf, 64 to 2048
///   landing_bytes              of a leaf's log of new writes, 0 to 16 KiB; chosen by default
///   temperature_rule           of codec auto: costs:PCT, deviation:FACTOR, deviation:auto:PCT
///
/// Of caches:
///
///   memory_bytes               all that it may hold, from 4 MiB on; default 64 MiB
///   policy                     s3-fifo (default), clock, lru, page
///   ttl_ms                     how long a record lives, from 1000 on; default for ever
///   time_to_idle_ms            how long a record lives that is not read; default for ever
///   stale_while_revalidate_ms  after its time a record is given to those who would wait for a
///                              load, for so long; default not at all
///   disk_path, disk_bytes      a file (or device) for what leaves memory, and how much of it
///   disk_codec                 default zstd:3
///   disk_write_bytes_per_s     most that is written a second on average; default any number
///   disk_recover_after_crash   true: what is on disk is found again after the process was killed
///                              too, by two files beside it; default false
///   disk_overwrite             true: a file that is not empty and that no cache wrote is written
///                              over; default false: it is refused
///   name                       for messages
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_options_set(
    options: Option<&mut lp_options>,
    name: *const c_char,
    value: *const c_char,
) -> lp_status {
    call(|| {
        let options = handle::of_mut(options)?;
        // SAFETY: strings of the caller's.
        let (name, value) = unsafe { (text(name, "option's name")?, text(value, "option's value")?) };
        options.settings.set(name, value)
    })
}

/// The same with a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_options_set_number(
    options: Option<&mut lp_options>,
    name: *const c_char,
    value: u64,
) -> lp_status {
    call(|| {
        let options = handle::of_mut(options)?;
        // SAFETY: a string of the caller's.
        let name = unsafe { text(name, "option's name")? };
        options.settings.set(name, &value.to_string())
    })
}

/// Of a tree: the dictionary that it compresses with, in place of one that it trains. NULL takes that back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_options_set_dictionary(
    options: Option<&mut lp_options>,
    dictionary: Option<&lp_dictionary>,
) -> lp_status {
    call(|| {
        let options = handle::of_mut(options)?;
        let dictionary = dictionary.map(|dictionary| handle::of(Some(dictionary)));
        options.dictionary = dictionary.transpose()?.map(|dictionary| dictionary.dictionary.clone());
        Ok(())
    })
}

/// Of a cache: a function that is told which records leave and why. It may use the cache, but not close or free it. It and its context have
/// to be there until lp_cache_close() or lp_cache_free() has returned. NULL takes that back.
///
/// Values are decoded for it, which takes time. With a disk tier it is told of what leaves memory and is not on disk. lp_cache_clear() tells
/// of none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_options_set_listener(
    options: Option<&mut lp_options>,
    listener: lp_removal_fn,
    context: *mut c_void,
) -> lp_status {
    call(|| {
        let options = handle::of_mut(options)?;
        let context = Context::new(context);
        options.listener = listener.map(|function| Listener { function, context });
        Ok(())
    })
}

/// Frees it; NULL is allowed. What was opened with it goes on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_options_free(options: *mut lp_options) {
    // SAFETY: the caller gives it back.
    unsafe { handle::free(options) };
}

/// A tree that is to be made so; NULL is all defaults.
pub(crate) fn tree_builder(options: Option<&lp_options>) -> Result<tree::TreeBuilder, Failure> {
    let Some(options) = options else {
        return Ok(tree::TreeBuilder::default());
    };
    let options = handle::of(Some(options))?;
    if options.listener.is_some() {
        return Err(Failure::argument("a listener is an option of caches, and not of trees"));
    }
    let builder = options.settings.tree()?.finish();
    Ok(match &options.dictionary {
        Some(dictionary) => builder.dictionary(DictionaryChoice::Given(dictionary.clone())),
        None => builder,
    })
}

/// A cache that is to be made so; NULL is all defaults.
pub(crate) fn cache_builder(options: Option<&lp_options>) -> Result<cache::CacheBuilder, Failure> {
    let Some(options) = options else {
        return Ok(cache::CacheBuilder::default());
    };
    let options = handle::of(Some(options))?;
    if options.dictionary.is_some() {
        return Err(Failure::argument(
            "a dictionary is an option of trees; caches train their own",
        ));
    }
    let builder = options.settings.cache()?.finish()?;
    Ok(match options.listener {
        Some(listener) => builder.listener(move |key, value, cause| listener.tell(key, value, cause)),
        None => builder,
    })
}

impl Listener {
    fn tell(&self, key: &[u8], value: &[u8], cause: RemovalCause) {
        let cause = match cause {
            RemovalCause::Expired => lp_removal::LP_REMOVAL_EXPIRED,
            RemovalCause::Removed => lp_removal::LP_REMOVAL_REMOVED,
            RemovalCause::Replaced => lp_removal::LP_REMOVAL_REPLACED,
            _ => lp_removal::LP_REMOVAL_EVICTED,
        };
        let (key, value) = (lp_bytes::from(key), lp_bytes::from(value));
        // SAFETY: the caller's function, with its context and bytes that are there until it returns.
        unsafe { (self.function)(self.context.get(), key.data, key.len, value.data, value.len, cause) };
    }
}

const _: () = assert!(size_of::<lp_removal>() == size_of::<c_int>());
