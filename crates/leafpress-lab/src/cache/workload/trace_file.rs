//! A trace's bytes: a file as it is, or as it was before it was compressed.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use lzma_rust2::XzReader;

use crate::core::LabError;
use crate::core::corpus::{Packing, plain, unpacked};

/// Memory that an xz file may ask for, in KiB: what the strongest presets take.
const XZ_MEMORY_KIB: u32 = 256 << 10;
const XZ_MAGIC: [u8; 6] = [0xfd, b'7', b'z', b'X', b'Z', 0];

/// Opens a trace; gzip, zstd and xz are told by their first bytes.
///
/// # Errors
/// [`LabError::Data`] when it cannot be opened, or is a directory or a zip.
pub(super) fn open(path: &Path) -> Result<Box<dyn BufRead>, LabError> {
    let refuse = |reason: String| LabError::data(path.display().to_string(), reason);
    let file = File::open(path).map_err(|e| refuse(plain(&e)))?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Err(refuse("is a directory; a trace is a file".into()));
    }
    let mut file = BufReader::with_capacity(1 << 18, file);
    let start = file.fill_buf().map_err(|e| refuse(plain(&e)))?;
    let (is_xz, packing) = (start.starts_with(&XZ_MAGIC), Packing::of(start));
    let reader: Box<dyn Read> = match packing {
        _ if is_xz => Box::new(XzReader::new_mem_limit(file, true, XZ_MEMORY_KIB)),
        Some(Packing::Zip) => return Err(refuse("is a zip; a trace is one file: unpack it".into())),
        Some(packing) => unpacked(packing, file).map_err(|e| refuse(plain(&e)))?,
        None => return Ok(Box::new(file)),
    };
    Ok(Box::new(BufReader::with_capacity(1 << 18, reader)))
}

/// Fills `record`, or finds the end: false. What is left over at the end is an error.
pub(super) fn read_record(reader: &mut impl Read, record: &mut [u8]) -> io::Result<bool> {
    let mut filled = 0;
    while filled < record.len() {
        match reader.read(&mut record[filled..]) {
            Ok(0) if filled == 0 => return Ok(false),
            Ok(0) => {
                let reason = format!("{filled} bytes are left over at its end: records have {}", record.len());
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, reason));
            }
            Ok(read) => filled += read,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(true)
}
