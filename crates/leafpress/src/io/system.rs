//! Calls of the system on files that the standard library does not have.

use std::fs::File;
use std::io;

/// Makes everything on the file system of an open directory last.
#[cfg(target_os = "linux")]
pub(crate) fn sync_file_system(directory: &File) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    // SAFETY: no memory is involved, and the descriptor is open as long as the file is borrowed.
    if unsafe { libc::syncfs(directory.as_raw_fd()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Gives a range of a file back to the file system: it then reads as zeroes.
#[cfg(target_os = "linux")]
pub(crate) fn free_space(file: &File, offset: u64, len: usize) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    let (Ok(offset), Ok(len)) = (libc::off64_t::try_from(offset), libc::off64_t::try_from(len)) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    loop {
        // SAFETY: no memory is involved, and the descriptor is open.
        let answer = unsafe {
            libc::fallocate64(
                file.as_raw_fd(),
                libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE,
                offset,
                len,
            )
        };
        if answer == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::EOPNOTSUPP | libc::ENOSYS) => return Err(io::ErrorKind::Unsupported.into()),
            _ => return Err(error),
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn free_space(_file: &File, _offset: u64, _len: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
