//! Codec names.

use std::fmt;
use std::str::FromStr;

use super::CodecError;

/// The execution path of Intel QPL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QplPath {
    /// The CPU, never a device.
    Software,
    /// An IAA device; fails fast without one.
    Hardware,
    /// An IAA device first, then the CPU.
    Auto,
}

/// The Huffman tables with which QPL compresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QplMode {
    /// The fixed tables of RFC 1951.
    Fixed,
    /// Tables built for each block.
    Dynamic,
}

/// What a tree's trial of codecs favours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TrialGoal {
    /// Reads as fast as those of uncompressed records, in few bytes.
    Balance,
    /// Few bytes, as a cache wants whose misses cost more than any decoding.
    Memory,
}

/// A codec's name and settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Codec {
    /// Stored uncompressed.
    #[default]
    None,
    /// LZ4; acceleration 1 is LZ4's default, larger is faster and compresses less.
    Lz4 {
        /// 1 to 65537.
        acceleration: i32,
    },
    /// LZ4 by liblz4's slow encoders: smaller blocks in the same format.
    Lz4Hc {
        /// 2 to 12; 9 is liblz4's default.
        level: i32,
    },
    /// Zstandard.
    Zstd {
        /// -131072 to 22, not 0.
        level: i32,
    },
    /// Codes of 12 to 16 bits for the strings of a trained dictionary, for records that are read one by one.
    OnPair {
        /// Bits of a code: 12, 14 or 16. Wider codes stand for more strings, and their tables take more memory.
        bits: u8,
    },
    /// [`Codec::OnPair`] with 12 bits and a static Huffman code over its codes: smaller, and slower to decode.
    OnPairHuffman,
    /// Raw deflate by libdeflate.
    Deflate {
        /// 1 to 12.
        level: i32,
    },
    /// Raw deflate by the system's zlib, or a library preloaded over it, with a history window of 4 KiB, that of Intel
    /// IAA.
    Zlib {
        /// 1 to 9.
        level: i32,
    },
    /// Raw deflate by the system's zlib with its default history window of 32 KiB. IAA cannot decode it.
    Zlib32K {
        /// 1 to 9.
        level: i32,
    },
    /// Raw deflate by Intel QPL.
    Qpl {
        /// The execution path.
        path: QplPath,
        /// The Huffman tables it writes.
        mode: QplMode,
    },
    /// The codec that is best for the records of a tree, chosen by trials on them: see [`Codec::candidates`]. Only a
    /// tree supports this codec.
    Trial {
        /// What the choice favours.
        goal: TrialGoal,
    },
    /// A codec per leaf, by how often it is read: records read often have an uncompressed copy, leaves that are rarely
    /// read are compressed by Zstandard, the others as by `trial`. Only a tree supports this codec.
    Auto {
        /// Zstandard's level, -131072 to 22, not 0; default 3.
        level: i32,
    },
}

/// The level of `auto`.
const AUTO_LEVEL: i32 = 3;

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Codec::None => f.write_str("none"),
            Codec::Lz4 { acceleration: 1 } => f.write_str("lz4"),
            Codec::Lz4 { acceleration } => write!(f, "lz4:fast={acceleration}"),
            Codec::Lz4Hc { level } => write!(f, "lz4:hc={level}"),
            Codec::Zstd { level } => write!(f, "zstd:{level}"),
            Codec::OnPair { bits: 12 } => f.write_str("onpair"),
            Codec::OnPair { bits } => write!(f, "onpair:{bits}"),
            Codec::OnPairHuffman => f.write_str("onpair:huffman"),
            Codec::Deflate { level } => write!(f, "deflate:{level}"),
            Codec::Zlib { level } => write!(f, "zlib:{level}"),
            Codec::Zlib32K { level } => write!(f, "zlib:32k={level}"),
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
            Codec::Trial {
                goal: TrialGoal::Balance,
            } => f.write_str("trial"),
            Codec::Trial {
                goal: TrialGoal::Memory,
            } => f.write_str("trial:memory"),
            Codec::Auto { level: AUTO_LEVEL } => f.write_str("auto"),
            Codec::Auto { level } => write!(f, "auto:zstd:{level}"),
        }
    }
}

/// The smallest zstd level (`ZSTD_minCLevel`).
const MIN_ZSTD_LEVEL: i32 = -131_072;
/// liblz4 clamps larger accelerations to this one (`LZ4_ACCELERATION_MAX`).
const MAX_LZ4_ACCELERATION: i32 = 65_537;

impl Codec {
    /// Returns the codec without its settings: `none`, `lz4`, `zstd`, `onpair`, `deflate`, `zlib`, `qpl`, `trial` or
    /// `auto`.
    pub fn family(&self) -> &'static str {
        match self {
            Codec::None => "none",
            Codec::Lz4 { .. } | Codec::Lz4Hc { .. } => "lz4",
            Codec::Zstd { .. } => "zstd",
            Codec::OnPair { .. } | Codec::OnPairHuffman => "onpair",
            Codec::Deflate { .. } => "deflate",
            Codec::Zlib { .. } | Codec::Zlib32K { .. } => "zlib",
            Codec::Qpl { .. } => "qpl",
            Codec::Trial { .. } => "trial",
            Codec::Auto { .. } => "auto",
        }
    }

    /// Checks that the settings are within their bounds.
    pub fn validate(&self) -> Result<(), CodecError> {
        let good = match *self {
            Codec::None | Codec::OnPairHuffman | Codec::Qpl { .. } | Codec::Trial { .. } => true,
            Codec::OnPair { bits } => matches!(bits, 12 | 14 | 16),
            Codec::Lz4 { acceleration } => (1..=MAX_LZ4_ACCELERATION).contains(&acceleration),
            Codec::Lz4Hc { level } => (2..=12).contains(&level),
            Codec::Zstd { level } | Codec::Auto { level } => level != 0 && (MIN_ZSTD_LEVEL..=22).contains(&level),
            Codec::Deflate { level } => (1..=12).contains(&level),
            Codec::Zlib { level } | Codec::Zlib32K { level } => (1..=9).contains(&level),
        };
        if good {
            Ok(())
        } else {
            Err(CodecError::UnknownName(self.to_string()))
        }
    }
}

/// Parses a number in its canonical form: no plus sign, no leading zeros.
fn number(digits: &str) -> Option<i32> {
    digits.parse::<i32>().ok().filter(|n| n.to_string() == digits)
}

fn parse(name: &str) -> Option<Codec> {
    let (family, settings) = match name.split_once(':') {
        Some((family, settings)) => (family, Some(settings)),
        None => (name, None),
    };
    let codec = match (family, settings) {
        ("none", None) => Codec::None,
        ("trial", None) => Codec::Trial {
            goal: TrialGoal::Balance,
        },
        ("trial", Some("memory")) => Codec::Trial {
            goal: TrialGoal::Memory,
        },
        ("auto", None) => Codec::Auto { level: AUTO_LEVEL },
        ("auto", Some(strongest)) => match parse(strongest)? {
            Codec::Zstd { level } => Codec::Auto { level },
            _ => return None,
        },
        ("lz4", None) => Codec::Lz4 { acceleration: 1 },
        ("lz4", Some(settings)) => match settings.split_once('=')? {
            ("fast", acceleration) => Codec::Lz4 {
                acceleration: number(acceleration)?,
            },
            ("hc", level) => Codec::Lz4Hc { level: number(level)? },
            _ => return None,
        },
        ("zstd", Some(level)) => Codec::Zstd { level: number(level)? },
        ("onpair", None) => Codec::OnPair { bits: 12 },
        ("onpair", Some("huffman")) => Codec::OnPairHuffman,
        ("onpair", Some(bits)) => Codec::OnPair {
            bits: u8::try_from(number(bits)?).ok()?,
        },
        ("deflate", Some(level)) => Codec::Deflate { level: number(level)? },
        ("zlib", Some(settings)) => match settings.split_once('=') {
            None => Codec::Zlib {
                level: number(settings)?,
            },
            Some(("32k", level)) => Codec::Zlib32K { level: number(level)? },
            Some(_) => return None,
        },
        ("qpl", Some(settings)) => {
            let (path, mode) = settings.split_once(':')?;
            Codec::Qpl {
                path: match path {
                    "software" => QplPath::Software,
                    "hardware" => QplPath::Hardware,
                    "auto" => QplPath::Auto,
                    _ => return None,
                },
                mode: match mode {
                    "fixed" => QplMode::Fixed,
                    "dynamic" => QplMode::Dynamic,
                    _ => return None,
                },
            }
        }
        _ => return None,
    };
    codec.validate().ok().map(|()| codec)
}

impl FromStr for Codec {
    type Err = CodecError;

    fn from_str(s: &str) -> Result<Self, CodecError> {
        parse(s).ok_or_else(|| CodecError::UnknownName(s.to_owned()))
    }
}
