//! zstd's trainer of dictionaries, FastCover.

use std::ffi::CStr;

use zstd_sys as ffi;

use crate::codec::train::{Header, NAME};
use crate::codec::{CodecError, output};
use crate::mem::transient::Transient;

/// Room for zstd's header, which is cut off for LZ4.
const HEADER_ROOM_BYTES: usize = 1024;

/// Samples, back to back.
pub(in crate::codec) struct Samples {
    bytes: Transient,
    lengths: Vec<usize>,
    count: u32,
}

impl Samples {
    pub(in crate::codec) fn new(samples: &[&[u8]]) -> Result<Self, CodecError> {
        let total = samples.iter().map(|sample| sample.len()).sum();
        let mut bytes = Transient::with_capacity(total).ok_or(CodecError::OutOfMemory { bytes: total })?;
        for sample in samples {
            bytes.push(sample);
        }
        Ok(Self {
            bytes,
            lengths: samples.iter().map(|s| s.len()).collect(),
            count: u32::try_from(samples.len()).map_err(|_| output::failed(NAME, "there are too many samples"))?,
        })
    }

    /// A dictionary of at most `max_bytes`.
    pub(in crate::codec) fn cover(
        &self,
        max_bytes: usize,
        header: Header,
        segment_bytes: u32,
        level: i32,
    ) -> Result<Vec<u8>, CodecError> {
        let parameters = ffi::ZDICT_fastCover_params_t {
            k: segment_bytes,
            d: 8,
            f: 20,
            steps: 1,
            nbThreads: 1,
            splitPoint: 1.0,
            accel: 1,
            shrinkDict: 0,
            shrinkDictMaxRegression: 0,
            zParams: ffi::ZDICT_params_t {
                compressionLevel: level,
                notificationLevel: 0,
                dictID: 0,
            },
        };
        let header_room = if header == Header::CutOff { HEADER_ROOM_BYTES } else { 0 };
        let mut dictionary = vec![0_u8; max_bytes + header_room];
        // SAFETY: `dictionary` is writable for its length; `bytes` holds `count` samples of `lengths`.
        let written = unsafe {
            ffi::ZDICT_trainFromBuffer_fastCover(
                dictionary.as_mut_ptr().cast(),
                dictionary.len(),
                self.bytes.bytes().as_ptr().cast(),
                self.lengths.as_ptr(),
                self.count,
                parameters,
            )
        };
        dictionary.truncate(check(written)?);
        if header == Header::CutOff {
            // SAFETY: the dictionary is readable.
            let header = unsafe { ffi::ZDICT_getDictHeaderSize(dictionary.as_ptr().cast(), dictionary.len()) };
            // The content that was chosen first, the best, stands at the end, where LZ4 reaches it longest.
            let from = check(header)?.max(dictionary.len().saturating_sub(max_bytes));
            dictionary.drain(..from);
        }
        Ok(dictionary)
    }
}

fn check(result: usize) -> Result<usize, CodecError> {
    // SAFETY: looks at the number only.
    if unsafe { ffi::ZDICT_isError(result) } == 0 {
        return Ok(result);
    }
    // SAFETY: the name is a static, terminated string.
    let name = unsafe { CStr::from_ptr(ffi::ZDICT_getErrorName(result)) };
    Err(output::failed(
        NAME,
        format!("{} (the samples may be too few or too small)", name.to_string_lossy()),
    ))
}
