//! Codec names.

use std::fmt;
use std::str::FromStr;

use super::CodecError;

/// Which path Intel QPL executes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QplPath {
    /// The CPU, never a device.
    Software,
    /// An IAA device; fails fast without one.
    Hardware,
    /// An IAA device first, then the CPU.
    Auto,
}

/// Which Huffman tables QPL compresses with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QplMode {
    /// The fixed tables of RFC 1951.
    Fixed,
    /// Tables made for each block.
    Dynamic,
}

/// A codec's name and settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Codec {
    /// Stored as it is.
    None,
    /// LZ4; `acceleration` 1 is LZ4's default, larger is faster and weaker.
    Lz4 {
        /// 1 to 65537.
        acceleration: i32,
    },
    /// Zstandard.
    Zstd {
        /// -131072 to 22, not 0.
        level: i32,
    },
    /// Raw deflate by libdeflate.
    Deflate {
        /// 1 to 12.
        level: i32,
    },
    /// Raw deflate by the system's zlib, or what is preloaded over it.
    Zlib {
        /// 1 to 9.
        level: i32,
    },
    /// Raw deflate by Intel QPL.
    Qpl {
        /// Where it executes.
        path: QplPath,
        /// Which Huffman tables it writes.
        mode: QplMode,
    },
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Codec::None => f.write_str("none"),
            Codec::Lz4 { acceleration: 1 } => f.write_str("lz4"),
            Codec::Lz4 { acceleration } => write!(f, "lz4:fast={acceleration}"),
            Codec::Zstd { level } => write!(f, "zstd:{level}"),
            Codec::Deflate { level } => write!(f, "deflate:{level}"),
            Codec::Zlib { level } => write!(f, "zlib:{level}"),
            Codec::Qpl { path, mode } => {
                let path = match path {
                    QplPath::Software => "software",
                    QplPath::Hardware => "hardware",
                    QplPath::Auto => "auto",
                };
                let mode = match mode {
                    QplMode::Fixed => "fixed",
                    QplMode::Dynamic => "dynamic",
                };
                write!(f, "qpl:{path}:{mode}")
            }
        }
    }
}

impl FromStr for Codec {
    type Err = CodecError;

    fn from_str(s: &str) -> Result<Self, CodecError> {
        match s {
            "none" => Ok(Codec::None),
            "lz4" => Ok(Codec::Lz4 { acceleration: 1 }),
            _ => s
                .strip_prefix("zstd:")
                .and_then(|l| l.parse().ok())
                .map(|level| Codec::Zstd { level })
                .ok_or_else(|| CodecError::UnknownName(format!("unknown codec {s}"))),
        }
    }
}
