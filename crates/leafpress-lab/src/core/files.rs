//! Files that replace others of their names.

use std::fs::File;
use std::io;
use std::path::Path;

/// Replaces the file of this name by an empty one. A symbolic link is removed, not followed: result
/// directories may lie where others can write.
///
/// # Errors
/// The system's error; [`io::ErrorKind::AlreadyExists`] for a directory, a pipe or a device of this name.
pub(crate) fn create_file(path: &Path) -> io::Result<File> {
    let there = path.symlink_metadata().map(|metadata| metadata.file_type());
    if there.is_ok_and(|kind| kind.is_file() || kind.is_symlink()) {
        std::fs::remove_file(path)?;
    }
    // With `create_new`, a link created in between is an error.
    File::create_new(path)
}
