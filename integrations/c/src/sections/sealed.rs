//! Sealed blocks: compressed, and with everything that is needed to read them.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;

use leafpress_core::Dictionary;
use leafpress_core::codec::sealed::{self, Label, MAX_OVERHEAD_BYTES};

use crate::failure::{Failure, call};
use crate::given::{Given, Room, list};
use crate::handle;
use crate::sections::tree_stats::fill;
use crate::{lp_codec, lp_dictionary, lp_status};

/// Returns the most bytes that raw_len bytes become when they are sealed: 22 bytes more.
#[unsafe(no_mangle)]
pub extern "C" fn lp_seal_bound(raw_len: usize) -> usize {
    raw_len.saturating_add(MAX_OVERHEAD_BYTES)
}

/// Compresses raw into a sealed block, which begins with the codec, the dictionary's id, the raw length and a checksum,
/// 14 to 22 bytes. Data that does not shrink is stored uncompressed. buffer, capacity and sealed_len are as in
/// lp_compress(). Returns LP_TOO_LONG past 1 GiB.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_seal(
    codec: Option<&lp_codec>,
    dictionary: Option<&lp_dictionary>,
    raw: *const c_void,
    raw_len: usize,
    buffer: *mut c_void,
    capacity: usize,
    sealed_len: Option<&mut MaybeUninit<usize>>,
) -> lp_status {
    // SAFETY: the header requires bytes that are readable and unchanged during the call.
    let raw = unsafe { Given::new(raw, raw_len) };
    call(|| {
        // SAFETY: the header requires NULL or room that is writable and unused by others during the call.
        let mut room = unsafe { Room::new(buffer, capacity, sealed_len)? };
        let codec = handle::of(codec)?;
        let sealed = codec.sealer.seal(raw.get("input")?, lp_dictionary::of(dictionary)?)?;
        room.fill(&sealed)
    })
}

/// Decodes a sealed block of any codec into buffer and writes the raw length to raw_len; with a NULL buffer (and a
/// capacity of 0) it only returns the length, and checks only that the length is possible. dictionaries are the count
/// dictionaries that the block may have been sealed with; there may be none.
///
/// Returns LP_CORRUPT for any damage, LP_UNKNOWN_DICTIONARY or LP_BUFFER_TOO_SMALL. The content of buffer after a
/// failure is undefined.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_unseal(
    sealed: *const c_void,
    sealed_len: usize,
    dictionaries: *const Option<&lp_dictionary>,
    count: usize,
    buffer: *mut c_void,
    capacity: usize,
    raw_len: Option<&mut MaybeUninit<usize>>,
) -> lp_status {
    // SAFETY: the header requires bytes that are readable and unchanged during the call.
    let sealed = unsafe { Given::new(sealed, sealed_len) };
    call(|| {
        // SAFETY: the header requires NULL or room that is writable and unused by others during the call.
        let mut room = unsafe { Room::new(buffer, capacity, raw_len)? };
        let sealed = sealed.get("sealed block")?;
        let label = Label::read(sealed)?;
        // SAFETY: the header requires a list of pointers, each NULL or to a dictionary that lives during the call.
        let dictionaries = known(unsafe { list(dictionaries, count, "dictionaries")? })?;
        if room.take(label.raw_bytes)?.is_some() {
            let raw = room.all().unwrap_or_default();
            sealed::unseal_into(sealed, &dictionaries, raw)?;
        }
        Ok(())
    })
}

fn known(handles: &[Option<&lp_dictionary>]) -> Result<Vec<Dictionary>, Failure> {
    let given = handles
        .iter()
        .filter_map(|handle| lp_dictionary::of(*handle).transpose());
    given.map(|dictionary| dictionary.cloned()).collect()
}

/// The header of a sealed block. Set struct_size to sizeof(lp_sealed_label) before the call.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct lp_sealed_label {
    /// In: the size of the caller's struct. Out: the bytes that were written.
    pub struct_size: usize,
    /// Raw bytes.
    pub raw_len: u64,
    /// The id of the dictionary that the block needs, if has_dictionary is not 0.
    pub dictionary_id: u32,
    /// Not 0 if the block needs a dictionary.
    pub has_dictionary: c_int,
    /// The codec without its level: "none" (stored uncompressed), "lz4", "zstd" or "deflate". It ends with a zero byte.
    pub codec: [std::ffi::c_char; 16],
}

/// Reads the header of a sealed block without decoding it. Returns LP_CORRUPT if it is not a sealed block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_sealed_read_label(
    sealed: *const c_void,
    sealed_len: usize,
    label: *mut lp_sealed_label,
) -> lp_status {
    // SAFETY: the header requires bytes that are readable and unchanged during the call.
    let sealed = unsafe { Given::new(sealed, sealed_len) };
    call(|| {
        let read = Label::read(sealed.get("sealed block")?)?;
        let mut codec = [0; 16];
        // The last stays 0.
        for (to, from) in codec[..15].iter_mut().zip(read.family.bytes()) {
            *to = from as std::ffi::c_char;
        }
        // SAFETY: the header requires NULL or a struct with as many writable bytes as its first field says.
        unsafe {
            fill(label, |struct_size| lp_sealed_label {
                struct_size,
                raw_len: read.raw_bytes as u64,
                dictionary_id: read.dictionary_id.unwrap_or(0),
                has_dictionary: read.dictionary_id.is_some().into(),
                codec,
            })
        }
    })
}
