//! Output files of a benchmark: checked for writability before the run, and replaced atomically after it.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::failure::Failure;

/// Links to follow before assuming a cycle: the kernel's limit.
const MAX_LINKS: usize = 40;

/// A writable output file.
pub struct Output {
    path: PathBuf,
    place: Place,
}

/// The destination.
enum Place {
    /// A file, replaced atomically.
    Replaced(PathBuf),
    /// A device, pipe or terminal, which is written to directly, never replaced.
    Into(File),
}

impl Output {
    /// Checks that `path` can be written, without changing it.
    pub fn new(option: &str, path: &Path) -> Result<Self, Failure> {
        let refuse = |reason: String| Failure::bad_input(format!("{option} {}: {reason}", path.display()));
        if path.is_dir() || path.as_os_str().as_bytes().ends_with(b"/") {
            return Err(refuse("it is a directory".into()));
        }
        let append = || {
            OpenOptions::new()
                .append(true)
                .open(path)
                .map_err(|e| refuse(e.to_string()))
        };
        let at = path.to_owned();
        // `/dev/stdout` may lead to a regular file, but this process is writing that one.
        let is_device = path.starts_with("/dev") || path.starts_with("/proc");
        if path.exists() && (is_device || !path.is_file()) {
            let place = Place::Into(append()?);
            return Ok(Self { path: at, place });
        }
        let end = end_of_links(path);
        if end.exists() {
            append()?;
        }
        // Created and removed immediately, so that nothing is left if the run is killed.
        drop(sibling(&end).map_err(|e| refuse(format!("cannot write in its directory: {}", bare(&e))))?);
        let place = Place::Replaced(end);
        Ok(Self { path: at, place })
    }

    /// Opens an output in a results directory: an existing entry is replaced, even a link, since others may have
    /// created it.
    pub fn in_directory(option: &str, path: PathBuf) -> Result<Self, Failure> {
        let refuse = |reason: String| Failure::bad_input(format!("{option} {}: {reason}", path.display()));
        if path.symlink_metadata().is_ok_and(|there| there.is_dir()) {
            return Err(refuse("it is a directory".into()));
        }
        drop(sibling(&path).map_err(|e| refuse(format!("cannot write in its directory: {}", bare(&e))))?);
        let place = Place::Replaced(path.clone());
        Ok(Self { path, place })
    }

    /// Returns whether both are the same file, in which only the later text would remain.
    pub fn is_same_file(&self, other: &Self) -> bool {
        let (Place::Replaced(mine), Place::Replaced(theirs)) = (&self.place, &other.place) else {
            return false;
        };
        mine.file_name() == theirs.file_name()
            && directory_of(mine).canonicalize().ok() == directory_of(theirs).canonicalize().ok()
    }

    /// Writes `text` to the destination.
    pub fn write(self, text: &str) -> Result<(), Failure> {
        let path = self.path.display();
        let failed = |e: &std::io::Error| Failure::failed(format!("{path}: {e}"));
        match self.place {
            Place::Into(mut file) => file.write_all(text.as_bytes()).map_err(|e| failed(&e)),
            Place::Replaced(end) => {
                let mut unfinished = sibling(&end).map_err(|e| failed(&e))?;
                unfinished.write_all(text.as_bytes()).map_err(|e| failed(&e))?;
                unfinished.persist(&end).map_err(|e| failed(&e.error))?;
                Ok(())
            }
        }
    }
}

/// Resolves links from `path` on; the target need not exist.
fn end_of_links(path: &Path) -> PathBuf {
    let mut end = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(next) = std::fs::read_link(&end) else { break };
        end = directory_of(&end).join(next);
    }
    end
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Creates a temporary file in the directory of `path`, to be renamed over it.
fn sibling(path: &Path) -> std::io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".leafpress-bench-")
        .permissions(permissions())
        .tempfile_in(directory_of(path))
}

/// Permissions of a new file, before the umask.
fn permissions() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o666)
}

/// The system's message, without the temporary file's name.
fn bare(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "it does not exist".into(),
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
        let no_directory = directory.path().join("none/");
        for path in [directory.path(), &nowhere, &no_directory] {
            assert!(
                matches!(Output::new("--json", path), Err(Failure::BadInput(_))),
                "{}",
                path.display()
            );
        }
    }

    /// What a link points at is replaced, there already or not, and not the link.
    #[test]
    fn a_link_stays_one() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("there")).unwrap();
        let link = directory.path().join("latest.json");
        std::os::unix::fs::symlink("there/today.json", &link).unwrap();
        for text in ["first", "second"] {
            Output::new("--json", &link).unwrap().write(text).unwrap();
            assert!(link.is_symlink(), "{text}");
            assert_eq!(
                std::fs::read_to_string(directory.path().join("there/today.json")).unwrap(),
                text
            );
        }
    }

    /// In a directory of results a link is not followed.
    #[test]
    fn a_link_in_a_results_directory_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let (victim, path) = (directory.path().join("victim"), directory.path().join("results.json"));
        std::fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        Output::in_directory("--out", path.clone())
            .unwrap()
            .write("text")
            .unwrap();
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
        assert!(!path.is_symlink());
    }

    /// A device, a pipe or a terminal is written into: `/dev/null` must not become a file.
    #[test]
    fn writes_into_a_pipe_without_replacing_it() {
        use std::os::unix::fs::FileTypeExt;

        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::read_to_string(pipe).unwrap()
        });
        Output::new("--json", &pipe).unwrap().write("text").unwrap();
        assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo());
        assert_eq!(reader.join().unwrap(), "text");
    }

    /// Killed before it is written, it leaves nothing.
    #[test]
    fn nothing_is_there_before_it_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let _output = Output::new("--json", &directory.path().join("out.json")).unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
