//! The bundled samples: a part of the program, so that an installed one has them, unless `LEAFPRESS_DATA` names a
//! directory of others.
//!
//! No other directories are searched: one that happens to be called `data` contains its owner's files.

use std::path::{Path, PathBuf};

use crate::core::LabError;

/// The environment variable that names a directory of samples.
const VARIABLE: &str = "LEAFPRESS_DATA";

/// Name and packed contents of each.
const BUNDLED: [(&str, &[u8]); 4] = [
    ("characters", include_bytes!("../../../data/characters.jsonl.gz")),
    ("licences", include_bytes!("../../../data/licences.txt.gz")),
    ("packages", include_bytes!("../../../data/packages.txt.gz")),
    ("unicode", include_bytes!("../../../data/unicode.txt.gz")),
];

/// Where a sample is.
pub(crate) enum Sample {
    /// A file of the directory that the environment names.
    File(PathBuf),
    /// The packed bytes in this program.
    Bundled(&'static [u8]),
}

/// Returns the names of the samples, sorted.
pub fn sample_names() -> Vec<String> {
    let Some(directory) = std::env::var_os(VARIABLE) else {
        return BUNDLED.iter().map(|(name, _)| (*name).to_owned()).collect();
    };
    let entries = Path::new(&directory).read_dir().into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.filter_map(|entry| sample_name(&entry.path())).collect();
    names.sort();
    names.dedup();
    names
}

/// The sample a file of the directory is, if it is one: documents are not.
fn sample_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let is_document = name.starts_with('.') || Path::new(name).extension().is_some_and(|e| e == "md");
    (path.is_file() && !is_document).then(|| name.split('.').next().unwrap_or(name).to_owned())
}

/// The sample of this name.
///
/// # Errors
/// [`LabError::Data`] with the names there are; [`LabError::Io`] when the directory that the environment names cannot
/// be read.
pub(crate) fn find(name: &str) -> Result<Sample, LabError> {
    let found = match std::env::var_os(VARIABLE) {
        None => {
            let mut bundled = BUNDLED.iter();
            bundled
                .find(|(known, _)| *known == name)
                .map(|(_, packed)| Sample::Bundled(packed))
        }
        Some(directory) => {
            let directory = PathBuf::from(directory);
            let entries = directory.read_dir().map_err(|e| LabError::io(&directory, e))?;
            let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
            paths.sort();
            let mut paths = paths.into_iter();
            paths
                .find(|path| sample_name(path).as_deref() == Some(name))
                .map(Sample::File)
        }
    };
    found.ok_or_else(|| {
        let names = sample_names();
        let known = if names.is_empty() {
            format!("none in the directory that {VARIABLE} names")
        } else {
            names.join(" ")
        };
        LabError::data(
            name,
            format!("no such file or directory, and not a bundled sample (samples: {known})"),
        )
    })
}
