//! Opening files: the only module of the library that does.
//!
//! A path may name anything, and what it names may change at any moment: another user may have placed a pipe, a device
//! or a symbolic link there. Therefore no function here blocks while opening, every descriptor is checked after it was
//! opened and not before, and a file to be created must not exist: creation follows no link and truncates nothing.

use std::fs::{self, File, FileType, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use super::system::set_blocking;

/// Permissions of a cache's files: only the owner may read them.
const PRIVATE: u32 = 0o600;

/// Opens the regular file at a path for reading. A symbolic link as the last component is an error.
pub fn read_regular(path: &Path) -> io::Result<File> {
    let opened = open(path, OpenOptions::new().read(true), libc::O_NOFOLLOW, FileType::is_file);
    opened.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP | libc::EMLINK) => {
            io::Error::new(io::ErrorKind::InvalidInput, "a symbolic link, which is refused")
        }
        _ => error,
    })
}

/// Opens the regular file at a path for reading; follows symbolic links.
pub fn read_linked(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().read(true), 0, FileType::is_file)
}

/// Opens a regular file or block device for reading and, if `is_writable`, for writing. Symbolic links are followed,
/// since stable device names are links. `flags` are passed to the system.
pub fn store(path: &Path, is_writable: bool, flags: libc::c_int) -> io::Result<File> {
    let is_store = |kind: &FileType| kind.is_file() || kind.is_block_device();
    // Opening some devices has side effects, so the type is checked before.
    check(&fs::metadata(path)?.file_type(), is_store)?;
    let file = open(path, OpenOptions::new().read(true).write(is_writable), flags, is_store)?;
    // With O_NONBLOCK, io_uring would fail requests that have to wait.
    set_blocking(&file)?;
    Ok(file)
}

/// Opens a directory.
pub fn directory(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().read(true), 0, FileType::is_dir)
}

/// Creates a file for reading and writing, with the process's default permissions.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] where the path names anything, a symbolic link included.
pub fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).open(path)
}

/// Creates a file like [`create`], readable only by its owner.
pub fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(PRIVATE).open(path)
}

/// Creates a file like [`create_private`], replacing a file that an interrupted process left. A symbolic link is
/// removed, not its target.
pub fn recreate_private(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    create_private(path)
}

fn open(
    path: &Path,
    options: &mut OpenOptions,
    flags: libc::c_int,
    is_allowed: impl Fn(&FileType) -> bool,
) -> io::Result<File> {
    // Opening a pipe would block until its other end is opened; a terminal would become the controlling terminal.
    let flags = flags | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = options.custom_flags(flags).open(path)?;
    check(&file.metadata()?.file_type(), is_allowed)?;
    Ok(file)
}

fn check(kind: &FileType, is_allowed: impl Fn(&FileType) -> bool) -> io::Result<()> {
    if is_allowed(kind) {
        return Ok(());
    }
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let what = if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_char_device() {
        "a character device"
    } else if kind.is_block_device() {
        "a block device"
    } else if kind.is_file() {
        "a regular file"
    } else {
        "not a regular file"
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}")))
}

#[cfg(all(test, not(miri)))]
mod tests {
    use std::ffi::CString;
    use std::io::{Read, Write};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    #[allow(unsafe_code)]
    fn pipe(path: &Path) {
        let path = CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: the path is a C string.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
    }

    #[test]
    fn only_regular_files_are_opened_and_nothing_blocks() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("file"), "text").unwrap();
        pipe(&at("pipe"));
        symlink(at("file"), at("link")).unwrap();
        symlink(at("pipe"), at("link to a pipe")).unwrap();
        for name in ["pipe", "link to a pipe"] {
            for opened in [
                read_regular(&at(name)),
                read_linked(&at(name)),
                store(&at(name), true, 0),
            ] {
                assert_eq!(opened.unwrap_err().kind(), io::ErrorKind::InvalidInput, "{name}");
            }
        }
        let null = Path::new("/dev/null");
        for opened in [read_regular(null), read_linked(null), store(null, true, 0)] {
            let error = opened.unwrap_err();
            assert!(error.to_string().contains("character device"), "{error}");
        }
        assert!(
            read_regular(&at("link"))
                .unwrap_err()
                .to_string()
                .contains("symbolic link")
        );
        for opened in [
            read_regular(&at("file")),
            read_linked(&at("link")),
            store(&at("link"), true, 0),
        ] {
            let mut text = String::new();
            opened.unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "text");
        }
        assert!(super::directory(&at("file")).is_err() && super::directory(directory.path()).is_ok());
        assert_eq!(
            store(directory.path(), false, 0).unwrap_err().kind(),
            io::ErrorKind::IsADirectory
        );
    }

    #[test]
    fn a_file_is_created_in_the_place_of_a_link_and_not_through_it() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("victim"), "precious").unwrap();
        symlink(at("victim"), at("new")).unwrap();
        symlink(at("nobody"), at("dangling")).unwrap();
        for name in ["victim", "new", "dangling"] {
            for created in [create(&at(name)), create_private(&at(name))] {
                assert_eq!(created.unwrap_err().kind(), io::ErrorKind::AlreadyExists, "{name}");
            }
        }
        for name in ["new", "dangling"] {
            let mut file = recreate_private(&at(name)).unwrap();
            file.write_all(b"ours").unwrap();
            assert_eq!(at(name).symlink_metadata().unwrap().mode() & 0o7777, 0o600 & !umask());
        }
        assert_eq!(fs::read(at("victim")).unwrap(), b"precious");
        assert!(!at("nobody").exists());
    }

    /// Returns the process's file mode creation mask.
    fn umask() -> u32 {
        let probe = tempfile::tempdir().unwrap();
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o777)
            .open(probe.path().join("probe"));
        0o777 & !file.unwrap().metadata().unwrap().mode()
    }
}
