//! Dictionaries, for trees and codecs.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

use leafpress_core::{Codec, Dictionary};

use crate::failure::{Failure, call};
use crate::fork::Process;
use crate::given::{Given, Out, copied, each, list, text};
use crate::handle::{self, Handle};
use crate::{lp_bytes, lp_status};

/// What many records have in common, for lz4 and zstd: small records compress much better with one. A dictionary never
/// changes; any number of threads may use it at the same time. Its users hold a reference: it may be freed at any time.
pub struct lp_dictionary {
    pub(crate) dictionary: Dictionary,
    process: Process,
}

impl Handle for lp_dictionary {
    const NAME: &'static str = "dictionary";

    fn process(&self) -> Process {
        self.process
    }
}

impl From<Dictionary> for lp_dictionary {
    fn from(dictionary: Dictionary) -> Self {
        Self {
            dictionary,
            process: Process::this(),
        }
    }
}

impl lp_dictionary {
    /// Returns the dictionary behind a handle, if there is one.
    pub(crate) fn of(dictionary: Option<&Self>) -> Result<Option<&Dictionary>, Failure> {
        let checked = dictionary.map(|dictionary| handle::of(Some(dictionary))).transpose()?;
        Ok(checked.map(|checked| &checked.dictionary))
    }
}

/// Makes a dictionary of bytes that were trained or chosen, with an id of your own, by which sealed blocks refer to it.
/// Free it with lp_dictionary_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_dictionary_new(
    id: u32,
    bytes: *const c_void,
    bytes_len: usize,
    dictionary: Option<&mut MaybeUninit<*mut lp_dictionary>>,
) -> lp_status {
    // SAFETY: the header requires bytes that are readable and unchanged during the call.
    let bytes = unsafe { Given::new(bytes, bytes_len) };
    call(|| {
        handle::hand_out(dictionary, || {
            let bytes = copied(bytes.get("dictionary's content")?)?;
            Ok(Dictionary::from_bytes(id, bytes).into())
        })
    })
}

/// Trains a dictionary of at most max_bytes (256 or more; 16 to 64 KiB are usual) for a codec from samples of the data
/// to be compressed: at least eight records and 2 KiB, ideally about fifty times max_bytes. Its id is computed from its
/// bytes. Training takes about 100 ms per megabyte. Returns LP_FAILED if there are too few samples, or the codec uses
/// no dictionaries. Free it with lp_dictionary_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_dictionary_train(
    codec_name: *const c_char,
    samples: *const lp_bytes,
    count: usize,
    max_bytes: usize,
    dictionary: Option<&mut MaybeUninit<*mut lp_dictionary>>,
) -> lp_status {
    call(|| {
        handle::hand_out(dictionary, || {
            // SAFETY: the header requires NULL or a string that ends with a zero byte and is unchanged during the call.
            let codec: Codec = unsafe { text(codec_name, "codec's name")? }.parse()?;
            // SAFETY: the header requires a list of `count` items with bytes that are readable and unchanged during the
            // call.
            let samples = unsafe { each(list(samples, count, "samples")?, "sample")? };
            Ok(Dictionary::train(codec, &samples, max_bytes)?.into())
        })
    })
}

/// Returns the dictionary's id and its bytes, to be stored; id and bytes may each be NULL. The bytes are valid until it
/// is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_dictionary_content(
    dictionary: Option<&lp_dictionary>,
    id: Option<&mut MaybeUninit<u32>>,
    bytes: Option<&mut MaybeUninit<lp_bytes>>,
) -> lp_status {
    call(|| {
        let dictionary = &handle::of(dictionary)?.dictionary;
        Out::put(id, dictionary.id());
        Out::put(bytes, lp_bytes::from(dictionary.bytes()));
        Ok(())
    })
}

/// Frees a dictionary; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_dictionary_free(dictionary: *mut lp_dictionary) {
    // SAFETY: `free` accepts NULL and handles that were handed out, which the caller gives back once.
    unsafe { handle::free(dictionary) };
}
