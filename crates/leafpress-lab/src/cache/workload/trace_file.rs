//! A trace's bytes: a plain file, or a decompressed one.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use crate::core::LabError;
use crate::core::corpus::{Packing, plain, unpacked};

/// Opens a trace; gzip, zstd and xz are recognised by their first bytes.
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
    let packing = Packing::opened(start).map_err(refuse)?;
    let reader: Box<dyn Read> = match packing {
        Some(Packing::Zip) => return Err(refuse("is a zip archive; a trace is one file: unpack it".into())),
        Some(packing) => unpacked(packing, file).map_err(|e| refuse(plain(&e)))?,
        None => return Ok(Box::new(file)),
    };
    Ok(Box::new(BufReader::with_capacity(1 << 18, reader)))
}

/// Fills `record`; returns false at the end. A partial record is an error.
pub(super) fn read_record(reader: &mut impl Read, record: &mut [u8]) -> io::Result<bool> {
    let mut filled = 0;
    while filled < record.len() {
        match reader.read(&mut record[filled..]) {
            Ok(0) if filled == 0 => return Ok(false),
            Ok(0) => {
                let reason = format!("{filled} bytes are left at its end: records have {}", record.len());
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, reason));
            }
            Ok(read) => filled += read,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(true)
}
