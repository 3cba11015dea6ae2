//! I/O errors that name the file they concern.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

#[derive(Debug, Error)]
#[error("{path}: cannot {action}: {source}")]
struct AtPath {
    path: PathBuf,
    action: String,
    source: io::Error,
}

/// Wraps `error` with the path and the attempted action; kind and source are kept. Out-of-memory errors are returned
/// unchanged, since memory for the text may be missing too.
pub fn at_path(path: &Path, action: impl Display, source: io::Error) -> io::Error {
    if source.kind() == io::ErrorKind::OutOfMemory {
        return source;
    }
    io::Error::new(
        source.kind(),
        AtPath {
            path: path.to_owned(),
            action: action.to_string(),
            source,
        },
    )
}
