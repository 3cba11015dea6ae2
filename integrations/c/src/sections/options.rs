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

/// The options of a tree or a cache, by name. Opening copies them; one object may open many. Only one thread at a time
/// may use it.
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

/// The reason for which a record left a cache.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum lp_removal {
    /// It was evicted.
    LP_REMOVAL_EVICTED = 0,
    /// It expired.
    LP_REMOVAL_EXPIRED = 1,
    /// It was removed by its key.
    LP_REMOVAL_REMOVED = 2,
    /// It was replaced.
    LP_REMOVAL_REPLACED = 3,
}

/// Receives a record that left a cache. Any thread may call it, the cache's own as well, and several at a time.
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

/// Sets an option, for example "codec" to "zstd:3". A number of bytes may end in KiB, MiB, GiB or TiB: "512MiB". The
/// last value of an option counts.
///
/// Returns LP_INVALID_ARGUMENT for an unknown name or an invalid value; values out of bounds are reported by opening.
///
/// Options of trees and caches:
///
///   codec                      a name as for lp_codec_open(), or auto: several, by how often
///                              a leaf is read. Default trial for trees, trial:memory for
///                              caches: the best of several by trials
///
/// Options of trees:
///
///   dictionary                 auto (default: trained from the tree's own records), off
///   dictionary_bytes           longest trained dictionary, 1 KiB to 1 MiB
///   shards                     1 (default) to 1024: more for many concurrent writers
///   background_threads         threads that compact leaves, 0 (default: writers do) to 64
///   load_threads               threads of lp_tree_load(), 1 (default) to 64
///   leaf_bytes                 size at which a leaf splits, 1 KiB to 32 KiB; chosen by default
///   frame_bytes                bytes that are compressed together, 1 (a record each) to
///                              leaf_bytes; chosen by default
///   inline_value_bytes         longest value stored in a leaf, 64 to 2048
///   landing_bytes              size of a leaf's log of new writes, 0 to 16 KiB; chosen by default
///   temperature_rule           of codec auto: costs:PCT, deviation:FACTOR, deviation:auto:PCT
///
/// Options of caches:
///
///   memory_bytes               memory bound, 4 MiB or more; default 64 MiB
///   ttl_ms                     time to live of a record, 1 or more; default unlimited
///   time_to_idle_ms            time to live of a record that is not read, 1000 or more; default
///                              unlimited
///   refresh_ahead_ms           how long before its expiry lp_cache_get_or_load() loads a record anew;
///                              other callers get the present value meanwhile
///   stale_while_revalidate_ms  how long after its expiry a record is still returned to callers
///                              that would wait for a load; default not at all
///   share                      memory for uncompressed copies of the most read records: adaptive
///                              (default) or fixed:PERCENT, 0 to 75
///   miss_cost_us               what a miss costs, for the adaptive share and the codec, default 100
///   disk_path, disk_bytes      a file (or device) for records that leave memory, and its size
///   disk_codec                 default zstd:3
///   disk_write_bytes_per_s     most bytes written per second on average; default unlimited
///   disk_recover_after_crash   true: records on disk are recovered also after the process was
///                              killed, by two more files next to it; default false
///   disk_overwrite             true: a file that is not empty and that no cache wrote is
///                              overwritten; default false: it is refused
///   name                       the name in messages
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_options_set(
    options: Option<&mut lp_options>,
    name: *const c_char,
    value: *const c_char,
) -> lp_status {
    call(|| {
        let options = handle::of_mut(options)?;
        // SAFETY: the header requires NULL or strings that end with a zero byte and are unchanged during the call.
        let (name, value) = unsafe { (text(name, "option's name")?, text(value, "option's value")?) };
        options.settings.set(name, value)
    })
}

/// Sets an option to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_options_set_number(
    options: Option<&mut lp_options>,
    name: *const c_char,
    value: u64,
) -> lp_status {
    call(|| {
        let options = handle::of_mut(options)?;
        // SAFETY: the header requires NULL or a string that ends with a zero byte and is unchanged during the call.
        let name = unsafe { text(name, "option's name")? };
        options.settings.set(name, &value.to_string())
    })
}

/// Sets the dictionary that a tree compresses with, instead of one that it trains. NULL removes it.
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

/// Sets a cache's function that receives the removed records and the cause. It may use the cache, but not close or free
/// it. It and its context have to be valid until lp_cache_close() or lp_cache_free() has returned. NULL removes it.
///
/// Values are decoded for it, which takes time. With a disk tier it receives the records that leave memory and are not
/// on disk. lp_cache_clear() reports none.
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

/// Frees options; NULL is allowed. Trees and caches that were opened with them are unaffected.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_options_free(options: *mut lp_options) {
    // SAFETY: `free` accepts NULL and handles that were handed out, which the caller gives back once.
    unsafe { handle::free(options) };
}

/// Returns the builder of a tree with these options; NULL stands for the defaults.
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

/// Returns the builder of a cache with these options; NULL stands for the defaults.
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
        Some(listener) => builder.listener(move |key, value, cause| listener.report(key, value, cause)),
        None => builder,
    })
}

impl Listener {
    fn report(&self, key: &[u8], value: &[u8], cause: RemovalCause) {
        let cause = match cause {
            RemovalCause::Expired => lp_removal::LP_REMOVAL_EXPIRED,
            RemovalCause::Removed => lp_removal::LP_REMOVAL_REMOVED,
            RemovalCause::Replaced => lp_removal::LP_REMOVAL_REPLACED,
            _ => lp_removal::LP_REMOVAL_EVICTED,
        };
        let (key, value) = (lp_bytes::from(key), lp_bytes::from(value));
        // SAFETY: the header requires a function that may be called with this context, and the bytes live until it
        // returns.
        unsafe { (self.function)(self.context.get(), key.data, key.len, value.data, value.len, cause) };
    }
}

const _: () = assert!(size_of::<lp_removal>() == size_of::<c_int>());
