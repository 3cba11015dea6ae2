//! The files of a benchmark: known to be writable before the run, whole or not there after it.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::failure::Failure;

/// A file that can be written.
pub struct Output {
    path: PathBuf,
    /// Beside the file, so that it can take its place in one step.
    unfinished: NamedTempFile,
}

impl Output {
    /// Checks that `path` can be written, without touching what is there.
    pub fn new(option: &str, path: &Path) -> Result<Self, Failure> {
        let refuse = |reason: String| Failure::bad_input(format!("{option} {}: {reason}", path.display()));
        if path.is_dir() {
            return Err(refuse("it is a directory".into()));
        }
        if path.exists() {
            OpenOptions::new()
                .append(true)
                .open(path)
                .map_err(|e| refuse(e.to_string()))?;
        }
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let unfinished = tempfile::Builder::new()
            .prefix(".leafpress-bench-")
            .permissions(permissions())
            .tempfile_in(directory)
            .map_err(|e| refuse(format!("cannot write in its directory: {}", bare(&e))))?;
        Ok(Self {
            path: path.to_owned(),
            unfinished,
        })
    }

    /// Puts `text` there.
    pub fn write(mut self, text: &str) -> Result<(), Failure> {
        let path = self.path.display();
        let failed = |e: &std::io::Error| Failure::failed(format!("{path}: {e}"));
        self.unfinished.write_all(text.as_bytes()).map_err(|e| failed(&e))?;
        self.unfinished.persist(&self.path).map_err(|e| failed(&e.error))?;
        Ok(())
    }
}

/// What a new file has, before the mask.
fn permissions() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o666)
}

/// What the system said, without the temporary file's name.
fn bare(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is none".into(),
        kind => kind.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_stays_until_it_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.json");
        std::fs::write(&path, "old").unwrap();
        drop(Output::new("--json", &path).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        Output::new("--json", &path).unwrap().write("new").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(
            std::fs::read_dir(directory.path()).unwrap().count(),
            1,
            "nothing else is left"
        );
        let nowhere = directory.path().join("no/out.json");
        for path in [directory.path(), &nowhere] {
            assert!(
                matches!(Output::new("--json", path), Err(Failure::BadInput(_))),
                "{}",
                path.display()
            );
        }
    }
}
