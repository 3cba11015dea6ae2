//! Which codecs can run here.

use std::ffi::CStr;

use super::qpl::ffi::Qpl;
use super::zlib::ffi::Zlib;
use super::{Codec, CodecError, EngineOptions, QplMode, QplPath};

/// Whether a codec can run here, and on what.
#[derive(Debug, Clone)]
pub struct Availability {
    /// The codec, at a usual setting.
    pub codec: Codec,
    /// What would do the work (see [`Engine::engine_name`](super::Engine::engine_name)), or why nothing can and what to do.
    pub engine: Result<&'static str, String>,
    /// The library behind it and its version, where it is loaded.
    pub provided_by: Option<String>,
}

impl Codec {
    /// Every codec at one or two usual settings, in the order of design: what is built in first.
    pub fn list() -> Vec<Availability> {
        let mut codecs = vec![
            Codec::None,
            Codec::Lz4 { acceleration: 1 },
            Codec::Lz4Hc { level: 9 },
            Codec::Zstd { level: 1 },
            Codec::Zstd { level: 3 },
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

fn library(codec: Codec) -> Option<String> {
    match codec {
        Codec::None => None,
        Codec::Lz4 { .. } | Codec::Lz4Hc { .. } => {
            // SAFETY: looks at a constant.
            let number = unsafe { lz4_sys::LZ4_versionNumber() };
            Some(format!(
                "liblz4 {}.{}.{}",
                number / 10_000,
                number / 100 % 100,
                number % 100
            ))
        }
        Codec::Zstd { .. } => {
            // SAFETY: the version is a static, terminated string.
            let version = unsafe { CStr::from_ptr(zstd_sys::ZSTD_versionString()) };
            Some(format!("libzstd {}", version.to_string_lossy()))
        }
        Codec::Deflate { .. } => Some("libdeflate, zlib-rs".to_owned()),
        Codec::Zlib { .. } => Zlib::get().ok().map(|zlib| match &zlib.interposer {
            Some(path) => format!("{} before zlib {}", path.display(), zlib.version()),
            None => format!("zlib {}", zlib.version()),
        }),
        Codec::Qpl { .. } => Qpl::get().ok().map(|qpl| format!("libqpl {}", qpl.version)),
    }
}
