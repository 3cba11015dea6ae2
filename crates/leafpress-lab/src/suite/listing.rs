//! Which files there are, how long they are once they are opened, and which cannot be read.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use walkdir::WalkDir;
use zip::ZipArchive;

use crate::core::LabError;
use crate::core::corpus::{
    MAGIC_BYTES, Packing, Sample, Source, Unpacked, find_sample, is_same, open_packed, plain, unpacked,
};

/// A file that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Its path, or its archive's and its name in there.
    pub file: String,
    /// Why.
    pub reason: String,
}

/// A file, or one of an archive's.
#[derive(Debug)]
pub(super) struct Listed {
    pub name: String,
    /// Its length once it is opened.
    pub bytes: u64,
    place: Place,
}

#[derive(Debug)]
enum Place {
    File(PathBuf),
    /// A zip's file: its number, and its checksum.
    ZipEntry(PathBuf, usize, u32),
    Packed(PathBuf, Packing),
    /// A sample that is part of this program.
    Bundled(&'static [u8], Packing),
}

/// The files found.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub files: Vec<Listed>,
    pub skipped: Vec<Skipped>,
    /// Files seen, by device and inode: one that is named twice, or has two names, counts once.
    seen: HashSet<(u64, u64)>,
}

impl Listing {
    /// All files at and below `paths`, in the order they are named in and then of their paths.
    ///
    /// # Errors
    /// [`LabError::Data`] for a path that is not there; [`LabError::Cancelled`].
    pub(super) fn new(paths: &[PathBuf], raw: bool, cancel: &AtomicBool) -> Result<Self, LabError> {
        let mut listing = Self::default();
        for path in paths {
            let found = match find(path)? {
                Sample::File(found) => found,
                Sample::Bundled(packed) => {
                    listing.add_bundled(packed, &path.display().to_string())?;
                    continue;
                }
            };
            if !found.is_dir() {
                listing.add(&found, &path.display().to_string(), raw);
                continue;
            }
            for entry in WalkDir::new(&found).sort_by_file_name() {
                if cancel.load(Ordering::Relaxed) {
                    return Err(LabError::Cancelled);
                }
                match entry {
                    // A link to a directory is not followed, so that this ends.
                    Ok(entry) if entry.file_type().is_dir() || entry.path().is_dir() => {}
                    Ok(entry) if is_report(entry.path()) => {
                        listing.skip(entry.path().display().to_string(), "a report of leafpress");
                    }
                    Ok(entry) => listing.add(entry.path(), &entry.path().display().to_string(), raw),
                    Err(e) => {
                        let file = e.path().unwrap_or(&found).display().to_string();
                        let reason = e.io_error().map_or_else(|| e.to_string(), plain);
                        listing.skip(file, reason);
                    }
                }
            }
        }
        listing.leave_out_copies(cancel)?;
        Ok(listing)
    }

    /// Leaves out what is packed, and there unpacked too.
    fn leave_out_copies(&mut self, cancel: &AtomicBool) -> Result<(), LabError> {
        let files = self.files.iter().filter_map(|file| match &file.place {
            Place::File(path) => Some(path),
            _ => None,
        });
        let mut unpacked = Unpacked::among(files);
        for file in std::mem::take(&mut self.files) {
            if cancel.load(Ordering::Relaxed) {
                return Err(LabError::Cancelled);
            }
            let is_same = |other: &Path| file.read(|contents| Ok(is_same(other, contents.reader()))) == Ok(true);
            let copy = match &file.place {
                Place::File(_) | Place::Bundled(..) => None,
                Place::ZipEntry(_, _, crc32) => unpacked.of_member(file.bytes, *crc32, is_same),
                Place::Packed(path, _) => unpacked.of_packed(path, is_same),
            };
            match copy {
                Some(copy) => self.skip(file.name, format!("a duplicate of {}", copy.display())),
                None => self.files.push(file),
            }
        }
        Ok(())
    }

    pub(super) fn skip(&mut self, file: String, reason: impl Into<String>) {
        self.skipped.push(Skipped {
            file,
            reason: reason.into(),
        });
    }

    fn add(&mut self, path: &Path, name: &str, raw: bool) {
        let is_new = |file: &Metadata| self.seen.insert((file.dev(), file.ino()));
        if !path.metadata().as_ref().is_ok_and(is_new) && path.exists() {
            return;
        }
        if let Err(reason) = self.look(path, name, raw) {
            self.skip(name.to_owned(), reason);
        }
    }

    /// Adds a sample that is part of this program.
    fn add_bundled(&mut self, packed: &'static [u8], name: &str) -> Result<(), LabError> {
        let unreadable = |e: io::Error| LabError::data(name, plain(&e));
        let Some(packing) = Packing::of(packed) else {
            return Err(LabError::data(name, "the bundled sample is not packed"));
        };
        let mut contents = unpacked(packing, packed).map_err(unreadable)?;
        let bytes = io::copy(&mut contents, &mut io::sink()).map_err(unreadable)?;
        self.push(name.to_owned(), bytes, Place::Bundled(packed, packing));
        Ok(())
    }

    /// Adds the contents of a file; returns why it cannot be read.
    fn look(&mut self, path: &Path, name: &str, raw: bool) -> Result<(), String> {
        let metadata = path.metadata().map_err(|e| plain(&e))?;
        // To open a pipe would be to wait for its writer.
        if !metadata.is_file() {
            return Err("not a regular file".into());
        }
        let file = File::open(path).map_err(|e| plain(&e))?;
        let mut start = Vec::new();
        let read = (&file).take(MAGIC_BYTES).read_to_end(&mut start);
        read.map_err(|e| plain(&e))?;
        match if raw { None } else { Packing::opened(&start)? } {
            None => self.push(name.to_owned(), metadata.len(), Place::File(path.to_owned())),
            Some(Packing::Zip) => self.look_into(path, name, file)?,
            Some(packing) => {
                let unreadable = |e: io::Error| format!("unreadable {packing}: {}", plain(&e));
                let mut contents = open_packed(path, packing).map_err(unreadable)?;
                let bytes = io::copy(&mut contents, &mut io::sink()).map_err(unreadable)?;
                self.push(name.to_owned(), bytes, Place::Packed(path.to_owned(), packing));
            }
        }
        Ok(())
    }

    /// Adds the files of a zip.
    fn look_into(&mut self, path: &Path, name: &str, file: File) -> Result<(), String> {
        let unreadable = |e: zip::result::ZipError| format!("unreadable zip: {e}");
        let mut archive = ZipArchive::new(BufReader::new(file)).map_err(unreadable)?;
        for index in 0..archive.len() {
            let entry = match archive.name_for_index(index) {
                Some(Ok(entry)) => entry.into_owned(),
                _ => format!("number {index}"),
            };
            let name = format!("{name}:{entry}");
            let found = archive
                .by_index(index)
                .map(|entry| (entry.is_file(), entry.size(), entry.crc32()));
            match found {
                Ok((true, bytes, crc32)) => self.push(name, bytes, Place::ZipEntry(path.to_owned(), index, crc32)),
                Ok((false, ..)) => {}
                Err(e) => self.skip(name, unreadable(e)),
            }
        }
        Ok(())
    }

    fn push(&mut self, name: String, bytes: u64, place: Place) {
        if bytes == 0 {
            self.skip(name, "empty");
        } else {
            self.files.push(Listed { name, bytes, place });
        }
    }
}

impl Listed {
    /// Passes the contents of the file.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(super) fn read<R>(&self, reader: impl FnOnce(&mut dyn Contents) -> io::Result<R>) -> Result<R, String> {
        let result = match &self.place {
            Place::File(path) => File::open(path).and_then(|mut file| reader(&mut file)),
            Place::Packed(path, packing) => {
                open_packed(path, *packing).and_then(|contents| reader(&mut Stream(contents)))
            }
            Place::Bundled(packed, packing) => {
                unpacked(*packing, *packed).and_then(|contents| reader(&mut Stream(contents)))
            }
            Place::ZipEntry(path, index, _) => File::open(path).and_then(|file| {
                let mut archive = ZipArchive::new(BufReader::new(file))?;
                let entry = archive.by_index(*index)?;
                reader(&mut Stream(entry))
            }),
        };
        result.map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => "it was truncated while being read".into(),
            _ => plain(&e),
        })
    }
}

/// Contents of a file, read from front to back.
pub(super) trait Contents {
    /// Skips this many bytes.
    fn skip(&mut self, bytes: u64) -> io::Result<()>;
    /// Appends the next bytes to `out`, at most this many.
    fn take(&mut self, bytes: u64, out: &mut Vec<u8>) -> io::Result<()>;
    /// Reads the rest.
    fn reader(&mut self) -> &mut dyn Read;
}

fn append(reader: impl Read, bytes: u64, out: &mut Vec<u8>) -> io::Result<()> {
    if reader.take(bytes).read_to_end(out)? as u64 == bytes {
        Ok(())
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

impl Contents for File {
    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        let bytes = i64::try_from(bytes).map_err(io::Error::other)?;
        self.seek(SeekFrom::Current(bytes)).map(drop)
    }

    fn take(&mut self, bytes: u64, out: &mut Vec<u8>) -> io::Result<()> {
        append(self, bytes, out)
    }

    fn reader(&mut self) -> &mut dyn Read {
        self
    }
}

/// A reader without seek.
struct Stream<R>(R);

impl<R: Read> Contents for Stream<R> {
    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        io::copy(&mut (&mut self.0).take(bytes), &mut io::sink()).map(drop)
    }

    fn take(&mut self, bytes: u64, out: &mut Vec<u8>) -> io::Result<()> {
        append(&mut self.0, bytes, out)
    }

    fn reader(&mut self) -> &mut dyn Read {
        &mut self.0
    }
}

/// Whether a file is one of those that `--out` leaves in a directory: of its own reports nobody wants to know how they
/// compress.
fn is_report(path: &Path) -> bool {
    const RESULTS: &str = "results.json";
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let is_named_so = name == RESULTS || name == "report.html" || name.ends_with(".tsv");
    let mut start = Vec::new();
    let read = |file: File| file.take(300).read_to_end(&mut start);
    // The document names the command that wrote it.
    is_named_so
        && File::open(path.with_file_name(RESULTS)).and_then(read).is_ok()
        && String::from_utf8_lossy(&start).contains("\"command_line\": \"leafpress")
}

/// Where a path given by the user is: what exists, or a bundled sample.
fn find(path: &Path) -> Result<Sample, LabError> {
    match path.metadata() {
        Ok(_) => Ok(Sample::File(path.to_owned())),
        Err(e) => match path.to_str().map(str::parse) {
            Some(Ok(Source::Sample(name))) => find_sample(&name),
            _ => Err(LabError::data(path.display().to_string(), plain(&e))),
        },
    }
}
