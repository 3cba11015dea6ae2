//! Files as they are stored: which formats can be read, how contents are compressed or archived, and unpacking them.

use std::fmt;
use std::io::{self, BufRead, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use lzma_rust2::XzReader;

/// Describes a system error.
pub(crate) fn plain(e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::NotFound => "no such file or directory".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => e.to_string(),
    }
}

/// Refuses pipes and character devices, before they are opened: opening a pipe waits for its writer, and data is read
/// more than once, by the processes of several runs.
pub(crate) fn check_regular(path: &Path) -> Result<(), String> {
    let kind = path.metadata().map_err(|e| plain(&e))?.file_type();
    let what = if kind.is_fifo() {
        "a pipe"
    } else if kind.is_char_device() {
        "a character device"
    } else if kind.is_socket() {
        "a socket"
    } else {
        return Ok(());
    };
    Err(format!(
        "is {what}, but data is read more than once: save it to a file first"
    ))
}

/// Unpacks a gzip, zstd or xz stream. A zip archive is not a stream: its bytes are returned unchanged.
pub(crate) fn unpacked<'r>(packing: Packing, packed: impl BufRead + 'r) -> io::Result<Box<dyn Read + 'r>> {
    Ok(match packing {
        Packing::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(packed)),
        Packing::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(packed)?),
        Packing::Xz => Box::new(XzReader::new_mem_limit(packed, true, XZ_MEMORY_KIB)),
        Packing::Zip => Box::new(packed),
    })
}

/// Memory that an xz file may ask for, in KiB: what the strongest presets take.
const XZ_MEMORY_KIB: u32 = 256 << 10;

/// First bytes of a file, which determine its packing.
pub(crate) const MAGIC_BYTES: u64 = 8;

/// How a file's contents are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    Zip,
    Gzip,
    Zstd,
    Xz,
}

impl fmt::Display for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Zip => "zip",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
        })
    }
}

impl Packing {
    /// By the first [`MAGIC_BYTES`] of a file.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [b'P', b'K', 3 | 5, 4 | 6, ..] => Some(Self::Zip),
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Self::Xz),
            _ => None,
        }
    }

    /// As [`Packing::of`]; what is compressed in another way is refused by name, since measured as it stands it would
    /// seem to be data that does not compress.
    pub(crate) fn opened(bytes: &[u8]) -> Result<Option<Self>, String> {
        let name = match bytes {
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, ..] => "a bzip2 file",
            [0x04, 0x22, 0x4d, 0x18, ..] => "an lz4 file",
            [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => "a 7z archive",
            [b'R', b'a', b'r', b'!', 0x1a, 0x07, ..] => "a RAR archive",
            [b'P', b'A', b'R', b'1', ..] => "a Parquet file",
            _ => return Ok(Self::of(bytes)),
        };
        Err(format!(
            "is {name}, a compressed format that is not supported: unpack it first"
        ))
    }
}
