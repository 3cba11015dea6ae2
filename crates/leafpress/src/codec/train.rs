//! Training dictionaries from samples.
//!
//! The content is chosen by FastCover (Liao, Petri, Moffat, Wirth, "Effective construction of relative Lempel-Ziv
//! dictionaries", WWW 2016, as zstd's dictBuilder has it). For zstd the entropy tables are added; for LZ4, which has none, the
//! content stands alone.

use std::ffi::CStr;

use rapidhash::v3::rapidhash_v3;
use zstd_sys as ffi;

use super::{Codec, CodecError, Dictionary, output};

const NAME: &str = "dictionary training";

/// Fewer samples than this say too little.
pub const MIN_SAMPLES: usize = 8;
/// Fewer bytes of samples than this say too little.
pub const MIN_SAMPLE_BYTES: usize = 2048;
/// The smallest dictionary that can be asked for, in bytes: zstd's own bound.
pub const MIN_DICTIONARY_BYTES: usize = 256;
/// Room for zstd's header, which is cut off for LZ4.
const HEADER_ROOM_BYTES: usize = 1024;

impl Dictionary {
    /// Trains a dictionary of at most `max_bytes` for `codec` from records or frames like those it will be used for.
    /// Its id is a hash of its bytes. It takes about a second per 10 MB of samples; samples past some hundred times
    /// `max_bytes` add little.
    ///
    /// # Errors
    /// [`CodecError::Failed`] when `codec` uses no dictionaries, `max_bytes` is below [`MIN_DICTIONARY_BYTES`], or the
    /// samples are too few or too small.
    pub fn train(codec: Codec, samples: &[&[u8]], max_bytes: usize) -> Result<Self, CodecError> {
        if max_bytes < MIN_DICTIONARY_BYTES {
            return Err(output::failed(
                NAME,
                format!("{max_bytes} bytes are too few for a dictionary, the least is {MIN_DICTIONARY_BYTES}"),
            ));
        }
        if samples.len() < MIN_SAMPLES {
            return Err(output::failed(
                NAME,
                format!(
                    "{} samples are too few, at least {MIN_SAMPLES} are needed",
                    samples.len()
                ),
            ));
        }
        let sample_bytes: usize = samples.iter().map(|s| s.len()).sum();
        if sample_bytes < MIN_SAMPLE_BYTES {
            return Err(output::failed(
                NAME,
                format!("{sample_bytes} bytes of samples are too few, at least {MIN_SAMPLE_BYTES} are needed"),
            ));
        }
        let bytes = match codec {
            Codec::Zstd { level } => cover(samples, max_bytes, level)?,
            Codec::Lz4 { .. } => {
                let with_header = cover(samples, max_bytes + HEADER_ROOM_BYTES, 1)?;
                // SAFETY: the dictionary is readable.
                let header = unsafe { ffi::ZDICT_getDictHeaderSize(with_header.as_ptr().cast(), with_header.len()) };
                let header = check(header)?;
                // The content that was chosen first, the best, stands at the end, where LZ4 reaches it longest.
                let from = header.max(with_header.len().saturating_sub(max_bytes));
                with_header[from..].to_vec()
            }
            other => return Err(output::failed(NAME, format!("codec {other} uses no dictionary"))),
        };
        // Any 32 bits that follow from the bytes do; 0 stays free to mean "none".
        let id = (rapidhash_v3(&bytes) as u32).max(1);
        Ok(Self::from_bytes(id, bytes))
    }
}

/// A zstd dictionary of at most `max_bytes`.
fn cover(samples: &[&[u8]], max_bytes: usize, level: i32) -> Result<Vec<u8>, CodecError> {
    let count = u32::try_from(samples.len()).map_err(|_| output::failed(NAME, "there are too many samples"))?;
    let lengths: Vec<usize> = samples.iter().map(|s| s.len()).collect();
    let flat = samples.concat();
    let mut parameters = ffi::ZDICT_fastCover_params_t {
        k: 0,
        d: 8,
        f: 20,
        steps: 4,
        nbThreads: 1,
        splitPoint: 0.0,
        accel: 1,
        shrinkDict: 0,
        shrinkDictMaxRegression: 0,
        zParams: ffi::ZDICT_params_t {
            compressionLevel: level,
            notificationLevel: 0,
            dictID: 0,
        },
    };
    let mut dictionary = vec![0_u8; max_bytes];
    // SAFETY: `dictionary` is writable for its length; `flat` holds `count` samples of `lengths`, back to back.
    let written = unsafe {
        ffi::ZDICT_optimizeTrainFromBuffer_fastCover(
            dictionary.as_mut_ptr().cast(),
            dictionary.len(),
            flat.as_ptr().cast(),
            lengths.as_ptr(),
            count,
            &raw mut parameters,
        )
    };
    dictionary.truncate(check(written)?);
    Ok(dictionary)
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
