//! Files that are whole or not there.

use std::fmt;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::core::LabError;

/// Files that a command wrote: a description and a path each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written(Vec<(&'static str, PathBuf)>);

impl Written {
    /// The first file that is called so.
    #[cfg(all(test, any(feature = "pool", feature = "suite")))]
    pub(crate) fn path(&self, what: &str) -> &Path {
        &self.0.iter().find(|(name, _)| *name == what).expect(what).1
    }
}

/// A line for each.
impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.0.iter().map(|(what, _)| what.len()).max().unwrap_or(0);
        self.0
            .iter()
            .try_for_each(|(what, path)| writeln!(f, "{what:width$} {}", path.display()))
    }
}

/// Writes files into the existing `directory`, each with a description, a name, and a text.
///
/// # Errors
/// [`LabError::Io`] when one cannot be written.
pub fn write_all(
    directory: &Path,
    files: impl IntoIterator<Item = (&'static str, impl AsRef<Path>, String)>,
) -> Result<Written, LabError> {
    let files = files.into_iter().map(|(what, name, text)| {
        let path = directory.join(name);
        write(&path, &text).map(|()| (what, path))
    });
    files.collect::<Result<_, _>>().map(Written)
}

/// Writes a file atomically: a reader finds the old one or the new one, never a part, even after a power failure.
///
/// # Errors
/// [`LabError::Io`] when it cannot be written; an existing file is kept.
pub fn write(path: &Path, text: &str) -> Result<(), LabError> {
    replace(path, text).map_err(|e| LabError::io(path, e))
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut file = tempfile::Builder::new()
        .prefix(".leafpress-")
        // Permissions of a new file, before the umask.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    // The file's name is the directory's.
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::create_file;

    #[test]
    fn a_file_is_replaced_or_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("results.json");
        for text in ["old", "new"] {
            write(&path, text).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(
            std::fs::read_dir(directory.path()).unwrap().count(),
            1,
            "nothing else is left"
        );
        // A directory cannot be replaced: nothing of the attempt stays either.
        let taken = directory.path().join("taken");
        std::fs::create_dir(&taken).unwrap();
        assert!(write(&taken, "text").unwrap_err().to_string().contains("taken"));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    /// Neither way of writing follows a link.
    #[test]
    fn a_planted_link_is_replaced_and_its_victim_stays() {
        let directory = tempfile::tempdir().unwrap();
        let (victim, path) = (directory.path().join("victim"), directory.path().join("run.log"));
        std::fs::write(&victim, "precious").unwrap();
        for attempt in 0..2 {
            let _ = std::fs::remove_file(&path);
            std::os::unix::fs::symlink(&victim, &path).unwrap();
            match attempt {
                0 => create_file(&path).unwrap().write_all(b"log").unwrap(),
                _ => write(&path, "log").unwrap(),
            }
            assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
            assert!(!path.is_symlink());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "log");
        }
        assert_eq!(
            create_file(&path).unwrap().metadata().unwrap().len(),
            0,
            "an old file is emptied"
        );
        assert!(create_file(directory.path()).is_err());
    }

    #[test]
    fn two_writers_of_one_file_leave_one_of_the_two() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("results.json");
        std::thread::scope(|scope| {
            for letter in ["a", "b"] {
                let path = &path;
                scope.spawn(move || (0..50).for_each(|_| write(path, &letter.repeat(100_000)).unwrap()));
            }
        });
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text == "a".repeat(100_000) || text == "b".repeat(100_000));
    }
}
