//! Dictionary training by zstd's FastCover.

use super::ffi;
use crate::dictionary::{TRAINING, ZstdHeader};
use crate::{CodecError, output};
use leafpress_base::mem::room::{collected, room_for};
use leafpress_base::mem::transient::Transient;

/// Room for zstd's header, which is cut off for LZ4.
const HEADER_ROOM_BYTES: usize = 1024;

/// Concatenated samples.
pub(crate) struct Samples {
    bytes: Transient,
    lengths: Vec<usize>,
}

impl Samples {
    pub(crate) fn new(samples: &[&[u8]]) -> Result<Self, CodecError> {
        let total = samples.iter().map(|sample| sample.len()).sum();
        let mut bytes = Transient::with_capacity(total).ok_or(CodecError::OutOfMemory { bytes: total })?;
        for sample in samples {
            bytes.push(sample);
        }
        Ok(Self {
            bytes,
            lengths: collected(samples.iter().map(|s| s.len()))?,
        })
    }

    /// Trains a dictionary of at most `max_bytes`.
    pub(crate) fn cover(
        &self,
        max_bytes: usize,
        header: ZstdHeader,
        segment_bytes: u32,
        level: i32,
    ) -> Result<Vec<u8>, CodecError> {
        let header_room = if header == ZstdHeader::CutOff {
            HEADER_ROOM_BYTES
        } else {
            0
        };
        let mut dictionary = room_for(max_bytes + header_room)?;
        dictionary.resize(max_bytes + header_room, 0_u8);
        let refused = |reason| output::failed(TRAINING, format!("{reason} (the samples may be too few or too small)"));
        let len = ffi::train(self.bytes.bytes(), &self.lengths, segment_bytes, level, &mut dictionary);
        dictionary.truncate(len.map_err(refused)?);
        if header == ZstdHeader::CutOff {
            let header = ffi::header_bytes(&dictionary).map_err(refused)?;
            // The best content, which was chosen first, is at the end, where LZ4 reaches it longest.
            let from = header.max(dictionary.len().saturating_sub(max_bytes));
            dictionary.drain(..from);
        }
        Ok(dictionary)
    }
}
