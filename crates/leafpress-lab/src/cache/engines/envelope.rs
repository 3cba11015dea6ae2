//! The envelope of a value in a cache of plain bytes: per-value compression, the obvious approach, and the
//! time at which it expires.

use std::sync::Arc;
use std::time::{Duration, Instant};

use leafpress::codec::{CodecError, Engine, EngineOptions};
use leafpress::{CacheError, Codec};

/// Bytes of a length or a time in front of a value.
const WORD: usize = 4;
/// Set in the length of a value that is stored uncompressed.
const RAW: u32 = 1 << 31;

/// Wraps values: `expiry, if they expire | raw length, if they are compressed | bytes`.
pub struct Envelope {
    codec: Option<Arc<dyn Engine>>,
    ttl: Option<Duration>,
    started: Instant,
}

impl Envelope {
    /// An envelope for values with this codec and time to live.
    ///
    /// # Errors
    /// The codec's error, if it does not run here.
    pub(super) fn new(codec: Option<Codec>, ttl: Option<Duration>) -> Result<Self, CacheError> {
        let open = |codec: Codec| codec.open(&EngineOptions::default());
        Ok(Self {
            codec: codec.map(open).transpose().map_err(CacheError::Codec)?,
            ttl,
            started: Instant::now(),
        })
    }

    /// Milliseconds since it was made: 49 days of them.
    fn now_ms(&self) -> u32 {
        u32::try_from(self.started.elapsed().as_millis()).unwrap_or(u32::MAX)
    }

    /// Wraps a value for storage.
    ///
    /// # Errors
    /// The codec's error.
    pub fn wrap(&self, value: &[u8]) -> Result<Arc<[u8]>, CacheError> {
        if self.codec.is_none() && self.ttl.is_none() {
            return Ok(value.into());
        }
        let mut bytes = Vec::with_capacity(2 * WORD + value.len());
        if let Some(ttl) = self.ttl {
            let ttl = u32::try_from(ttl.as_millis()).unwrap_or(u32::MAX);
            bytes.extend_from_slice(&self.now_ms().saturating_add(ttl).to_le_bytes());
        }
        let Some(codec) = &self.codec else {
            bytes.extend_from_slice(value);
            return Ok(bytes.into());
        };
        let start = bytes.len();
        let raw = value.len() as u32;
        bytes.extend_from_slice(&raw.to_le_bytes());
        let stored = codec.compress(value, None, &mut bytes).map_err(CacheError::Codec)?;
        if stored >= value.len() {
            bytes.truncate(start);
            bytes.extend_from_slice(&(raw | RAW).to_le_bytes());
            bytes.extend_from_slice(value);
        }
        Ok(bytes.into())
    }

    /// Replaces `value` by what was wrapped; false when its time is over.
    ///
    /// # Errors
    /// The stored bytes are not a wrapped value.
    pub fn unwrap(&self, stored: &[u8], value: &mut Vec<u8>) -> Result<bool, CacheError> {
        let mut rest = stored;
        value.clear();
        if self.ttl.is_some() && word(&mut rest)? <= self.now_ms() {
            return Ok(false);
        }
        let Some(codec) = &self.codec else {
            value.extend_from_slice(rest);
            return Ok(true);
        };
        let raw = word(&mut rest)?;
        if raw & RAW != 0 {
            value.extend_from_slice(rest);
            return Ok(true);
        }
        value.resize(raw as usize, 0);
        codec.decompress(rest, None, value).map_err(CacheError::Codec)?;
        Ok(true)
    }
}

fn word(rest: &mut &[u8]) -> Result<u32, CacheError> {
    let Some((word, behind)) = rest.split_first_chunk::<WORD>() else {
        return Err(CacheError::Codec(CodecError::Corrupt {
            codec: "envelope",
            reason: "it ends within a length".into(),
        }));
    };
    *rest = behind;
    Ok(u32::from_le_bytes(*word))
}
