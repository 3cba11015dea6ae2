//! I/O errors that say which file they are about.

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

/// `error`, of the same kind, with the path and what was tried in its text; the system's own error is its source. An error for want of memory
/// stays as it is: there may be none for a text either.
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
