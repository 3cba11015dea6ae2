//! Opening a codec's engine.

use std::sync::Arc;

#[cfg(feature = "deflate")]
use super::deflate::Deflate;
#[cfg(all(feature = "lz4", miri))]
use super::lz4::run_lengths::RunLengths;
#[cfg(all(feature = "lz4", not(miri)))]
use super::lz4::{Lz4, Method};
use super::none::None;
use super::onpair::OnPair;
#[cfg(feature = "qpl")]
use super::qpl::QplEngine;
#[cfg(feature = "zlib")]
use super::zlib::ZlibEngine;
#[cfg(feature = "zstd")]
use super::zstd::Zstd;
use super::{Codec, CodecError, Engine, EngineOptions};

impl Codec {
    /// Opens the codec's engine. Threads share it; its contexts are created at their first use, and shared by the
    /// process's engines.
    ///
    /// # Errors
    /// Returns [`CodecError::Unavailable`] if the codec cannot run here or is not compiled in, with the cause and the
    /// remedy, or [`CodecError::UnknownName`] if a setting is out of its bounds.
    pub fn open(&self, options: &EngineOptions) -> Result<Arc<dyn Engine>, CodecError> {
        self.validate()?;
        self.engine(options).map_err(|reason| CodecError::Unavailable {
            codec: self.to_string(),
            reason,
        })
    }

    /// Returns the codec's engine, or why there is none.
    #[cfg_attr(
        not(any(feature = "lz4", feature = "qpl", feature = "zlib")),
        allow(unused_variables)
    )]
    fn engine(&self, options: &EngineOptions) -> Result<Arc<dyn Engine>, String> {
        Ok(match *self {
            Codec::None => Arc::new(None::default()),
            #[cfg(all(feature = "lz4", miri))]
            Codec::Lz4 { .. } | Codec::Lz4Hc { .. } => Arc::new(RunLengths::default()),
            #[cfg(all(feature = "lz4", not(miri)))]
            Codec::Lz4 { acceleration } => Arc::new(Lz4::new(Method::Fast { acceleration }, options.lz4_blocks)),
            #[cfg(all(feature = "lz4", not(miri)))]
            Codec::Lz4Hc { level } => Arc::new(Lz4::new(Method::High { level }, options.lz4_blocks)),
            #[cfg(feature = "zstd")]
            Codec::Zstd { level } => Arc::new(Zstd::new(level)),
            Codec::OnPair { .. } | Codec::OnPairHuffman => Arc::new(OnPair::new(*self)),
            #[cfg(feature = "deflate")]
            Codec::Deflate { level } => Arc::new(Deflate::new(level)),
            #[cfg(feature = "zlib")]
            Codec::Zlib { .. } | Codec::Zlib32K { .. } => Arc::new(ZlibEngine::new(*self, options.stream_cache)?),
            #[cfg(feature = "qpl")]
            Codec::Qpl { path, mode } => Arc::new(QplEngine::new(path, mode, options.job_cache)?),
            Codec::Trial { .. } | Codec::Auto { .. } => {
                return Err("only a tree chooses between codecs; name one of them".to_owned());
            }
            #[cfg(not(feature = "lz4"))]
            Codec::Lz4 { .. } | Codec::Lz4Hc { .. } => return Err(left_out("lz4")),
            #[cfg(not(feature = "zstd"))]
            Codec::Zstd { .. } => return Err(left_out("zstd")),
            #[cfg(not(feature = "deflate"))]
            Codec::Deflate { .. } => return Err(left_out("deflate")),
            #[cfg(not(feature = "zlib"))]
            Codec::Zlib { .. } | Codec::Zlib32K { .. } => return Err(left_out("zlib")),
            #[cfg(not(feature = "qpl"))]
            Codec::Qpl { .. } => return Err(left_out("qpl")),
        })
    }
}

/// Returns the error for a codec whose feature is off.
#[allow(dead_code, reason = "nothing is left out with every feature")]
pub(super) fn left_out(feature: &str) -> String {
    format!("this build of leafpress is without it; turn on the crate's feature `{feature}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In this build, every codec opens exactly if its feature is on, and otherwise reports the feature to turn on.
    #[test]
    fn an_omitted_codec_reports_its_feature() {
        for (name, feature, is_on) in [
            ("none", "", true),
            ("lz4", "lz4", cfg!(feature = "lz4")),
            ("lz4:hc=9", "lz4", cfg!(feature = "lz4")),
            ("zstd:1", "zstd", cfg!(feature = "zstd")),
            ("onpair", "", true),
            ("onpair:huffman", "", true),
            ("deflate:1", "deflate", cfg!(feature = "deflate")),
            ("zlib:1", "zlib", cfg!(feature = "zlib")),
            ("zlib:32k=6", "zlib", cfg!(feature = "zlib")),
            ("qpl:auto:fixed", "qpl", cfg!(feature = "qpl")),
        ] {
            let codec: Codec = name.parse().unwrap();
            match codec.open(&EngineOptions::default()) {
                Ok(engine) => assert!(is_on && engine.codec().family() == codec.family(), "{name}"),
                Err(CodecError::Unavailable { codec: named, reason }) => {
                    assert_eq!(named, name);
                    let is_left_out = reason.contains(&format!("feature `{feature}`"));
                    assert_eq!(is_left_out, !is_on, "{name}: {reason}");
                }
                Err(error) => panic!("{name}: {error}"),
            }
        }
    }
}
