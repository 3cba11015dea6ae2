//! Where a corpus comes from: files, directories, archives, bundled samples.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::copies::{Unpacked, is_same};
use super::take::{Extent, Sampled, Taking};
use crate::core::LabError;

/// Most bytes a dump of records may have once its archives are opened.
pub const MAX_CORPUS_BYTES: u64 = 8 << 30;

/// Where values come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A file, or a directory with all files below it in the order of their paths. Zip, gzip and zstd files are opened.
    Path(#[serde(with = "crate::core::paths")] PathBuf),
    /// A bundled sample: a file of the `data` directory, named without its extension. The directory is `LEAFPRESS_DATA`,
    /// else the nearest `data` beside or above the executable or the working directory that has the sample.
    Sample(String),
    /// Made-up values of which this share (0 to 1) is compressible: see [`Source::validate`] for the bounds and
    /// `synthetic` in the source for the recipe, which is fio's `buffer_compress_percentage`.
    Synthetic(f64),
}

impl Source {
    /// Checks the bounds of synthetic data.
    ///
    /// # Errors
    /// [`LabError::Option`] when the compressible share is not between 0 and 1.
    pub fn validate(&self) -> Result<(), LabError> {
        match self {
            Self::Synthetic(eta) if !(0.0..=1.0).contains(eta) => Err(LabError::option(
                "data",
                format!("synthetic:{eta}: the compressible share is not between 0 and 1"),
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(feature = "pool")]
impl Source {
    /// Checks that it is there, without reading it.
    pub(crate) fn find(&self) -> Result<(), LabError> {
        let path = match self {
            Self::Synthetic(_) => return Ok(()),
            Self::Sample(name) => find_sample(name)?,
            Self::Path(path) => path.clone(),
        };
        let found = path.metadata();
        found
            .map_err(|e| LabError::data(path.display().to_string(), plain(&e)))
            .map(drop)
    }
}

impl Source {
    /// What [`FromStr`] makes of a word, whatever bytes it has: what is no text is a path.
    ///
    /// # Errors
    /// As [`FromStr`].
    pub fn named(word: &OsStr) -> Result<Self, LabError> {
        match word.to_str() {
            Some(text) => text.parse(),
            None => Ok(Self::Path(word.into())),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Sample(name) => f.write_str(name),
            Self::Synthetic(eta) => write!(f, "synthetic:{eta}"),
        }
    }
}

impl FromStr for Source {
    type Err = LabError;

    /// `synthetic:ETA`; what exists, or has a slash or a dot in it, is a path; anything else is a sample.
    fn from_str(s: &str) -> Result<Self, LabError> {
        if let Some(eta) = s.strip_prefix("synthetic:") {
            let eta = eta
                .parse()
                .map_err(|_| LabError::option("data", format!("`{s}`: {eta} is not a number between 0 and 1")))?;
            let source = Self::Synthetic(eta);
            source.validate()?;
            return Ok(source);
        }
        if s.is_empty() {
            return Err(LabError::option(
                "data",
                "it is empty; name a file, directory, archive or bundled sample",
            ));
        }
        if s.contains(['/', '.']) || Path::new(s).exists() {
            return Ok(Self::Path(s.into()));
        }
        Ok(Self::Sample(s.into()))
    }
}

/// Names of the bundled samples that can be found, sorted.
pub fn sample_names() -> Vec<String> {
    let mut names: Vec<_> = data_directories()
        .iter()
        .filter_map(|directory| directory.read_dir().ok())
        .flatten()
        .flatten()
        .filter_map(|entry| sample_name(&entry.path()))
        .collect();
    names.sort();
    names.dedup();
    names
}

/// The sample a file of the data directory is, if it is one: documents are not.
fn sample_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let is_document = name.starts_with('.') || Path::new(name).extension().is_some_and(|e| e == "md");
    (path.is_file() && !is_document).then(|| name.split('.').next().unwrap_or(name).to_owned())
}

fn data_directories() -> Vec<PathBuf> {
    if let Some(directory) = std::env::var_os("LEAFPRESS_DATA") {
        return vec![directory.into()];
    }
    let starts = [
        std::env::current_exe().ok(),
        // A name in it, since the path itself is skipped below; a dot would be no part of a path.
        std::env::current_dir().ok().map(|d| d.join("any")),
    ];
    let above = starts.iter().flatten().flat_map(|start| start.ancestors().skip(1));
    above
        .map(|directory| directory.join("data"))
        .filter(|data| data.is_dir())
        .collect()
}

pub(crate) fn find_sample(name: &str) -> Result<PathBuf, LabError> {
    let mut found: Vec<_> = Vec::new();
    for directory in data_directories() {
        let entries = directory.read_dir().map_err(|e| LabError::io(&directory, e))?;
        found.extend(
            entries
                .flatten()
                .map(|e| e.path())
                .filter(|path| sample_name(path).as_deref() == Some(name)),
        );
        if !found.is_empty() {
            break;
        }
    }
    found.sort();
    found.into_iter().next().ok_or_else(|| {
        let names = sample_names();
        let known = if names.is_empty() {
            "none found".into()
        } else {
            names.join(" ")
        };
        LabError::data(
            name,
            format!("no such file or directory, and not a bundled sample (samples: {known})"),
        )
    })
}

/// The parts of a source: one for a file, one per archive entry, one per file of a directory; and how much of it they are if they are
/// not all.
pub(super) fn read(
    source: &Source,
    raw: bool,
    extent: Extent,
    cancel: &AtomicBool,
) -> Result<(Vec<Vec<u8>>, Option<Sampled>), LabError> {
    let mut taking = Taking::new(extent, cancel);
    let path = match source {
        Source::Sample(name) => find_sample(name)?,
        Source::Path(path) => path.clone(),
        // Synthetic data has no file; the caller makes it.
        Source::Synthetic(_) => return taking.finish(),
    };
    let mut files = Vec::new();
    list_files(&path, &mut files)?;
    if files.is_empty() {
        return Err(LabError::data(path.display().to_string(), "the directory has no files"));
    }
    let mut unpacked = Unpacked::among(&files);
    for file in files {
        if taking.is_cancelled() {
            break;
        }
        read_file(&file, raw, &mut unpacked, &mut taking).map_err(|e| LabError::data(file.display().to_string(), e))?;
    }
    taking.finish()
}

/// All files at or below `path`, in the order of their paths. Links to directories are not followed, so this ends.
fn list_files(path: &Path, out: &mut Vec<PathBuf>) -> Result<(), LabError> {
    let metadata = path
        .metadata()
        .map_err(|e| LabError::data(path.display().to_string(), plain(&e)))?;
    if !metadata.is_dir() {
        out.push(path.to_owned());
        return Ok(());
    }
    let mut entries = path
        .read_dir()
        .and_then(Iterator::collect::<io::Result<Vec<_>>>)
        .map_err(|e| LabError::data(path.display().to_string(), plain(&e)))?;
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        let kind = entry
            .file_type()
            .map_err(|e| LabError::data(entry.path().display().to_string(), plain(&e)))?;
        let entry = entry.path();
        if kind.is_dir() || (kind.is_symlink() && entry.is_file()) || kind.is_file() {
            list_files(&entry, out)?;
        }
    }
    Ok(())
}

/// What went wrong, in the words of this laboratory.
pub(crate) fn plain(e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::NotFound => "no such file or directory".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => e.to_string(),
    }
}

fn read_file(path: &Path, raw: bool, unpacked: &mut Unpacked, taking: &mut Taking) -> Result<(), String> {
    let mut file = File::open(path).map_err(|e| plain(&e))?;
    let metadata = file.metadata().map_err(|e| plain(&e))?;
    if metadata.file_type().is_char_device() {
        return Err("is a character device, which may have no end; name a file, a directory or a pipe".into());
    }
    let mut start = Vec::new();
    (&file).take(4).read_to_end(&mut start).map_err(|e| plain(&e))?;
    let packing = Packing::of(&start).filter(|_| !raw);
    if !metadata.is_file() {
        // A pipe or a device, which is read once from front to back.
        let whole = io::Cursor::new(start).chain(file);
        return match packing {
            None => taking.part(&mut stream(whole)),
            Some(Packing::Zip) => {
                let mut bytes = Vec::new();
                let read = whole.take(MAX_CORPUS_BYTES).read_to_end(&mut bytes);
                read.map_err(|e| plain(&e))?;
                unzip(io::Cursor::new(bytes), unpacked, taking)
            }
            Some(packing) => unpack(packing, BufReader::new(whole), taking),
        };
    }
    file.rewind().map_err(|e| plain(&e))?;
    let mut file = BufReader::new(file);
    match packing {
        None => taking.part(&mut file),
        Some(Packing::Zip) => unzip(file, unpacked, taking),
        Some(packing) => {
            let is_copy =
                |other: &Path| open_packed(path, packing).is_ok_and(|mut contents| is_same(other, &mut contents));
            if let Some(copy) = unpacked.of_packed(path, is_copy) {
                taking.leave_out_copy(copy.metadata().map_or(0, |metadata| metadata.len()));
                return Ok(());
            }
            unpack(packing, file, taking)
        }
    }
}

fn stream<'r>(reader: impl Read + 'r) -> BufReader<Box<dyn Read + 'r>> {
    BufReader::new(Box::new(reader))
}

/// The contents of a gzip or zstd file.
pub(crate) fn open_packed(path: &Path, packing: Packing) -> io::Result<Box<dyn Read>> {
    unpacked(packing, BufReader::new(File::open(path)?))
}

/// What is packed in a gzip or zstd stream. A zip is no stream: its bytes come out as they are.
pub(crate) fn unpacked<'r>(packing: Packing, packed: impl BufRead + 'r) -> io::Result<Box<dyn Read + 'r>> {
    Ok(match packing {
        Packing::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(packed)),
        Packing::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(packed)?),
        Packing::Zip => Box::new(packed),
    })
}

/// How a file's contents are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    Zip,
    Gzip,
    Zstd,
}

impl fmt::Display for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Zip => "zip",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        })
    }
}

impl Packing {
    /// By the first bytes of a file; four are enough.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [b'P', b'K', 3 | 5, 4 | 6, ..] => Some(Self::Zip),
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            _ => None,
        }
    }
}

fn unzip(file: impl Read + Seek, unpacked: &mut Unpacked, taking: &mut Taking) -> Result<(), String> {
    let unreadable = |e: String| format!("unreadable zip: {e}");
    let mut archive = zip::ZipArchive::new(file).map_err(|e| unreadable(e.to_string()))?;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(|e| unreadable(e.to_string()))?;
        if !entry.is_file() {
            continue;
        }
        let (bytes, crc32) = (entry.size(), entry.crc32());
        if unpacked
            .of_member(bytes, crc32, |other| is_same(other, &mut entry))
            .is_some()
        {
            taking.leave_out_copy(bytes);
            continue;
        }
        drop(entry);
        // From its start again: some of it may have been compared.
        let entry = archive.by_index(index).map_err(|e| unreadable(e.to_string()))?;
        taking.part(&mut stream(entry)).map_err(unreadable)?;
    }
    Ok(())
}

fn unpack(packing: Packing, packed: impl BufRead, taking: &mut Taking) -> Result<(), String> {
    let contents = unpacked(packing, packed).map_err(|e| plain(&e))?;
    let taken = taking.part(&mut BufReader::new(contents));
    taken.map_err(|e| format!("unreadable {packing}: {e}"))
}
