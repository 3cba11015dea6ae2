//! From a codec's name to its engine.

use std::sync::Arc;

use super::deflate::Deflate;
#[cfg(miri)]
use super::lz4::run_lengths::RunLengths;
#[cfg(not(miri))]
use super::lz4::{Lz4, Method};
use super::none::None;
use super::qpl::QplEngine;
use super::zlib::ZlibEngine;
use super::zstd::Zstd;
use super::{Codec, CodecError, Engine, EngineOptions};

impl Codec {
    /// Opens the codec's engine. Threads share it; its contexts are made when a thread first uses it.
    ///
    /// # Errors
    /// [`CodecError::Unavailable`] when the codec cannot run here, with the reason and the fix;
    /// [`CodecError::UnknownName`] when a setting is out of its bounds.
    pub fn open(&self, options: &EngineOptions) -> Result<Arc<dyn Engine>, CodecError> {
        self.validate()?;
        match *self {
            Codec::None => Ok(Arc::new(None::default())),
            #[cfg(miri)]
            Codec::Lz4 { .. } | Codec::Lz4Hc { .. } => Ok(Arc::new(RunLengths::default())),
            #[cfg(not(miri))]
            Codec::Lz4 { acceleration } => Ok(Arc::new(Lz4::new(Method::Fast { acceleration }, options.lz4_blocks))),
            #[cfg(not(miri))]
            Codec::Lz4Hc { level } => Ok(Arc::new(Lz4::new(Method::High { level }, options.lz4_blocks))),
            Codec::Deflate { level } => Ok(Arc::new(Deflate::new(level))),
            Codec::Zlib { level } => match ZlibEngine::new(level, options.stream_cache) {
                Ok(engine) => Ok(Arc::new(engine)),
                Err(reason) => Err(self.unavailable(reason)),
            },
            Codec::Zstd { level } => Ok(Arc::new(Zstd::new(level))),
            Codec::Qpl { path, mode } => match QplEngine::new(path, mode, options.job_cache) {
                Ok(engine) => Ok(Arc::new(engine)),
                Err(reason) => Err(self.unavailable(&reason)),
            },
        }
    }

    fn unavailable(&self, reason: &str) -> CodecError {
        CodecError::Unavailable {
            codec: self.to_string(),
            reason: reason.to_owned(),
        }
    }
}
