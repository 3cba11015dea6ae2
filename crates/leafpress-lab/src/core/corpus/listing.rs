//! Which files a source has, which of them are left out and why, and how each is read.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{DirEntry, File, Metadata};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use zip::ZipArchive;

use super::copies::{Unpacked, is_same};
use super::packing::{MAGIC_BYTES, Packing, check_regular, plain, unpacked};
use super::samples::Sample;
use super::take::{Copies, Input};
use crate::core::LabError;

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
pub(crate) struct Listed {
    pub name: String,
    /// Its length once it is opened; `None` where only reading all of it tells.
    pub bytes: Option<u64>,
    place: Place,
}

#[derive(Debug)]
enum Place {
    File(PathBuf),
    /// A zip's file: its number, and its checksum.
    ZipEntry(PathBuf, usize, u32),
    Packed(PathBuf, Packing),
    /// A sample that is part of this program.
    Bundled(&'static [u8], Option<Packing>),
}

/// The files found.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub files: Vec<Listed>,
    pub skipped: Vec<Skipped>,
    /// The first of them that should be there and cannot be read.
    pub fault: Option<Skipped>,
    /// Packed files that are left out, since they are also present unpacked.
    pub copies: Copies,
    /// Files seen, by device and inode: one that is named twice, or has two names, counts once.
    seen: HashSet<(u64, u64)>,
}

impl Listing {
    /// All files at and below `roots`, which have names, in the order they are named in and then of their paths. `raw`
    /// takes an archive's own bytes.
    ///
    /// # Errors
    /// [`LabError::Data`] when a root is missing, [`LabError::Cancelled`].
    pub(crate) fn new(
        roots: impl IntoIterator<Item = (Sample, String)>,
        raw: bool,
        cancel: &AtomicBool,
    ) -> Result<Self, LabError> {
        let mut listing = Self::default();
        for (root, name) in roots {
            match root {
                Sample::Bundled(packed) => {
                    let packing = Packing::of(packed).filter(|_| !raw);
                    let bytes = packing.is_none().then_some(packed.len() as u64);
                    listing.push(name, bytes, Place::Bundled(packed, packing));
                }
                Sample::File(path) => match path.metadata() {
                    Ok(metadata) if metadata.is_dir() => listing.add_below(&path, raw, cancel)?,
                    Ok(_) => listing.add(&path, name, raw),
                    Err(e) => return Err(LabError::data(name, plain(&e))),
                },
            }
        }
        listing.leave_out_copies(cancel)?;
        Ok(listing)
    }

    /// Looks up the lengths that only reading tells.
    ///
    /// # Errors
    /// [`LabError::Cancelled`].
    #[cfg(feature = "suite")]
    pub(crate) fn measure(&mut self, cancel: &AtomicBool) -> Result<(), LabError> {
        let mut reader = Reader::default();
        for file in std::mem::take(&mut self.files) {
            cancelled(cancel)?;
            let bytes = match file.bytes {
                Some(bytes) => Ok(bytes),
                None => reader.read(&file, |contents| io::copy(contents, &mut io::sink())),
            };
            match bytes {
                Ok(bytes) => self.push(file.name, Some(bytes), file.place),
                Err(reason) => self.skip(file.name, reason),
            }
        }
        // What cannot be unpacked is found after the others.
        self.skipped.sort_by(|one, other| one.file.cmp(&other.file));
        Ok(())
    }

    /// Leaves out packed files that are also present unpacked, as when an archive lies next to what was unpacked from
    /// it.
    fn leave_out_copies(&mut self, cancel: &AtomicBool) -> Result<(), LabError> {
        let files = self.files.iter().filter_map(|file| match &file.place {
            Place::File(path) => Some(path),
            _ => None,
        });
        let mut unpacked = Unpacked::among(files);
        let mut reader = Reader::default();
        for file in std::mem::take(&mut self.files) {
            cancelled(cancel)?;
            let is_same = |other: &Path| reader.read(&file, |contents| Ok(is_same(other, contents))) == Ok(true);
            let copy = match &file.place {
                Place::File(_) | Place::Bundled(..) => None,
                Place::ZipEntry(_, _, crc32) => unpacked.of_member(file.bytes.unwrap_or(0), *crc32, is_same),
                Place::Packed(path, _) => unpacked.of_packed(path, is_same),
            };
            match copy {
                Some(copy) => {
                    self.copies.files += 1;
                    self.copies.bytes += copy.metadata().map_or(0, |metadata| metadata.len());
                    self.skip(file.name, format!("a duplicate of {}", copy.display()));
                }
                None => self.files.push(file),
            }
        }
        Ok(())
    }

    /// Leaves a file out.
    pub(crate) fn skip(&mut self, file: String, reason: impl Into<String>) {
        self.skipped.push(Skipped {
            file,
            reason: reason.into(),
        });
    }

    fn skip_fault(&mut self, file: String, reason: String) {
        self.skip(file, reason);
        self.fault = self.fault.take().or_else(|| self.skipped.last().cloned());
    }

    fn add_below(&mut self, directory: &Path, raw: bool, cancel: &AtomicBool) -> Result<(), LabError> {
        let entries = directory.read_dir().and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(e) => {
                self.skip_fault(directory.display().to_string(), plain(&e));
                return Ok(());
            }
        };
        entries.sort_by_key(DirEntry::path);
        for entry in entries {
            cancelled(cancel)?;
            let path = entry.path();
            let name = path.display().to_string();
            match path.metadata() {
                // A link to a directory is not followed, so that this ends.
                Ok(metadata) if metadata.is_dir() && path.is_symlink() => {}
                Ok(metadata) if metadata.is_dir() => self.add_below(&path, raw, cancel)?,
                Ok(metadata) if !metadata.is_file() => self.skip(name, "not a regular file"),
                Ok(_) if is_report(&path) => self.skip(name, "a report of leafpress"),
                Ok(_) => self.add(&path, name, raw),
                Err(e) => self.skip(name, plain(&e)),
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &Path, name: String, raw: bool) {
        let is_new = |file: &Metadata| self.seen.insert((file.dev(), file.ino()));
        if !path.metadata().as_ref().is_ok_and(is_new) && path.exists() {
            return;
        }
        if let Err(reason) = self.look(path, &name, raw) {
            self.skip_fault(name, reason);
        }
    }

    fn look(&mut self, path: &Path, name: &str, raw: bool) -> Result<(), String> {
        // To open a pipe would be to wait for its writer.
        check_regular(path)?;
        let file = File::open(path).map_err(|e| plain(&e))?;
        let mut start = Vec::new();
        let read = (&file).take(MAGIC_BYTES).read_to_end(&mut start);
        read.map_err(|e| plain(&e))?;
        let path = path.to_owned();
        match if raw { None } else { Packing::opened(&start)? } {
            None => {
                // The length of a device is not in its metadata.
                let metadata = file.metadata().ok().filter(Metadata::is_file);
                let bytes = metadata.map(|metadata| metadata.len());
                self.push(name.to_owned(), bytes, Place::File(path));
            }
            Some(Packing::Zip) => self.look_into(&path, name, file)?,
            Some(packing) => self.push(name.to_owned(), None, Place::Packed(path, packing)),
        }
        Ok(())
    }

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
                Ok((true, bytes, crc32)) => {
                    self.push(name, Some(bytes), Place::ZipEntry(path.to_owned(), index, crc32));
                }
                Ok((false, ..)) => {}
                Err(e) => self.skip_fault(name, unreadable(e)),
            }
        }
        Ok(())
    }

    fn push(&mut self, name: String, bytes: Option<u64>, place: Place) {
        match bytes {
            Some(0) => self.skip(name, "empty"),
            _ => self.files.push(Listed { name, bytes, place }),
        }
    }
}

fn cancelled(cancel: &AtomicBool) -> Result<(), LabError> {
    match cancel.load(Ordering::Relaxed) {
        true => Err(LabError::Cancelled),
        false => Ok(()),
    }
}

/// Reads files of a listing. An archive stays open while its files are read in turn.
#[derive(Default)]
pub(crate) struct Reader {
    zip: Option<(PathBuf, ZipArchive<BufReader<File>>)>,
}

impl Reader {
    /// Reads a file from its start; why it cannot be read.
    pub(crate) fn read<R>(
        &mut self,
        file: &Listed,
        reader: impl FnOnce(&mut dyn Input) -> io::Result<R>,
    ) -> Result<R, String> {
        let (packing, result) = match &file.place {
            Place::File(path) => {
                let is_file = path.is_file();
                let result = File::open(path).and_then(|file| match is_file {
                    true => reader(&mut BufReader::new(file)),
                    // A device is read from front to back.
                    false => reader(&mut stream(file)),
                });
                (None, result)
            }
            Place::Packed(path, packing) => {
                let contents = File::open(path).and_then(|file| unpacked(*packing, BufReader::new(file)));
                (
                    Some(*packing),
                    contents.and_then(|contents| reader(&mut stream(contents))),
                )
            }
            Place::Bundled(bytes, None) => (None, reader(&mut stream(*bytes))),
            Place::Bundled(packed, Some(packing)) => {
                let contents = unpacked(*packing, *packed);
                (
                    Some(*packing),
                    contents.and_then(|contents| reader(&mut stream(contents))),
                )
            }
            Place::ZipEntry(path, index, _) => {
                let archive = self.archive(path);
                let result = archive.and_then(|archive| reader(&mut stream(archive.by_index(*index)?)));
                (Some(Packing::Zip), result)
            }
        };
        result.map_err(|e| match (packing, e.kind()) {
            (Some(packing), _) => format!("unreadable {packing}: {}", plain(&e)),
            (None, io::ErrorKind::UnexpectedEof) => "it was truncated while being read".into(),
            (None, _) => plain(&e),
        })
    }

    fn archive(&mut self, path: &Path) -> io::Result<&mut ZipArchive<BufReader<File>>> {
        let open = self.zip.take().filter(|(open, _)| open == path);
        let open = match open {
            Some(open) => open,
            None => (path.to_owned(), ZipArchive::new(BufReader::new(File::open(path)?))?),
        };
        Ok(&mut self.zip.insert(open).1)
    }
}

fn stream<'r>(reader: impl Read + 'r) -> BufReader<Box<dyn Read + 'r>> {
    BufReader::new(Box::new(reader))
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
