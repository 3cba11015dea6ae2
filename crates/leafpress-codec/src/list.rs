//! List of the codecs that can run here.

use super::{Codec, CodecError, EngineOptions, QplMode, QplPath};

/// Availability of a codec.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Availability {
    /// The codec, with common settings.
    pub codec: Codec,
    /// The implementation (see [`Engine::engine_name`](super::Engine::engine_name)), or why there is none and the
    /// remedy.
    pub engine: Result<&'static str, String>,
    /// The library and its version, if it is loaded.
    pub provided_by: Option<String>,
}

impl Codec {
    /// Returns every codec with one or two common settings, built-in codecs first.
    pub fn list() -> Vec<Availability> {
        let mut codecs = vec![
            Codec::None,
            Codec::Lz4 { acceleration: 1 },
            Codec::Lz4Hc { level: 9 },
            Codec::Zstd { level: 1 },
            Codec::Zstd { level: 3 },
            Codec::OnPair { bits: 12 },
            Codec::OnPairHuffman,
            Codec::Deflate { level: 1 },
            Codec::Zlib { level: 1 },
        ];
        for path in [QplPath::Software, QplPath::Hardware, QplPath::Auto] {
            codecs.extend([QplMode::Fixed, QplMode::Dynamic].map(|mode| Codec::Qpl { path, mode }));
        }
        codecs.into_iter().map(availability).collect()
    }
}

fn availability(codec: Codec) -> Availability {
    let engine = match codec.open(&EngineOptions::default()) {
        Ok(engine) => Ok(engine.engine_name()),
        Err(CodecError::Unavailable { reason, .. }) => Err(reason),
        Err(error) => Err(error.to_string()),
    };
    Availability {
        codec,
        engine,
        provided_by: library(codec),
    }
}

/// Returns the library of a codec and its version.
fn library(codec: Codec) -> Option<String> {
    match codec {
        #[cfg(feature = "lz4")]
        Codec::Lz4 { .. } | Codec::Lz4Hc { .. } => Some(super::lz4::library()),
        #[cfg(feature = "zstd")]
        Codec::Zstd { .. } => Some(super::zstd::library()),
        #[cfg(feature = "deflate")]
        Codec::Deflate { .. } => Some(super::deflate::LIBRARY.to_owned()),
        #[cfg(feature = "zlib")]
        Codec::Zlib { .. } | Codec::Zlib32K { .. } => super::zlib::library(),
        #[cfg(feature = "qpl")]
        Codec::Qpl { .. } => super::qpl::library(),
        // No library, or not compiled in.
        _ => None,
    }
}
