//! From a codec's name to its engine.

use std::sync::Arc;

use super::lz4::Lz4;
use super::none::None;
use super::zstd::Zstd;
use super::{Codec, CodecError, Engine, EngineOptions};

impl Codec {
    /// Opens the codec's engine. Threads share it; its contexts are made when a thread first uses it.
    ///
    /// # Errors
    /// [`CodecError::Unavailable`] when the codec cannot run here, with the reason and the fix;
    /// [`CodecError::UnknownName`] when a setting is out of its bounds.
    pub fn open(&self, _options: &EngineOptions) -> Result<Arc<dyn Engine>, CodecError> {
        self.validate()?;
        match *self {
            Codec::None => Ok(Arc::new(None::default())),
            Codec::Lz4 { acceleration } => Ok(Arc::new(Lz4::new(acceleration))),
            Codec::Zstd { level } => Ok(Arc::new(Zstd::new(level))),
            _ => Err(CodecError::Unavailable {
                codec: self.to_string(),
                reason: "not built yet".into(),
            }),
        }
    }
}
