//! System calls that the standard library does not wrap: on files, timers and clocks.

use std::fs::File;
use std::io;
#[cfg(unix)]
use std::time::Duration;

/// Flushes the file system that contains an open directory to the device (`syncfs`).
#[cfg(target_os = "linux")]
pub fn sync_file_system(directory: &File) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    // SAFETY: no memory is involved, and the descriptor is open as long as the file is borrowed.
    if unsafe { libc::syncfs(directory.as_raw_fd()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Deallocates a range of a file (punches a hole); it then reads as zeroes.
#[cfg(target_os = "linux")]
pub fn free_space(file: &File, offset: u64, len: usize) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    let (Ok(offset), Ok(len)) = (libc::off64_t::try_from(offset), libc::off64_t::try_from(len)) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    loop {
        // SAFETY: no memory is involved, and the descriptor is open as long as the file is borrowed.
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

/// Fails: holes are punched on Linux only.
#[cfg(not(target_os = "linux"))]
pub fn free_space(_file: &File, _offset: u64, _len: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Locks a file exclusively with `flock`; [`io::ErrorKind::WouldBlock`] where another descriptor holds the lock. The
/// lock is released when the last reference to the descriptor is closed, which includes transfers in flight.
/// `std::fs::File::try_lock` would need Rust 1.89.
#[cfg(unix)]
pub fn try_lock(file: &File) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    // SAFETY: no memory is involved, and the descriptor is open as long as the file is borrowed.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Releases a lock taken by [`try_lock`], for every process that shares the descriptor.
#[cfg(unix)]
pub fn unlock(file: &File) {
    use std::os::fd::AsRawFd;

    // SAFETY: no memory is involved, and the descriptor is open as long as the file is borrowed.
    let _ = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_UN) };
}

/// Makes reads and writes of a file block until the device is done, if the file was opened non-blocking.
#[cfg(unix)]
pub(super) fn set_blocking(file: &File) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    // SAFETY: no memory is involved, and the descriptor is open as long as the file is borrowed.
    let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
    if flags < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: no memory is involved, and the descriptor is open as long as the file is borrowed.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags & !libc::O_NONBLOCK) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Returns whether the file is on tmpfs or ramfs.
#[cfg(target_os = "linux")]
pub(super) fn in_memory(file: &File) -> bool {
    use std::os::fd::AsRawFd;

    const RAMFS_MAGIC: u32 = 0x8584_58f6;
    // SAFETY: `statfs` is a struct of integers, for which all-zero is a valid value.
    let mut about: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open as long as the file is borrowed, and `about` is valid for the kernel to write a
    // `statfs`.
    let failed = unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut about) } != 0;
    // The type's width and sign differ between platforms; the magic numbers have 32 bits.
    !failed && [libc::TMPFS_MAGIC as u32, RAMFS_MAGIC].contains(&(about.f_type as u32))
}

/// Returns the alignment of buffers and of offsets stated by the kernel (`statx`, Linux 6.1; 0 means no direct I/O).
#[cfg(target_os = "linux")]
pub(super) fn stated_alignment(file: &File) -> Option<(usize, usize)> {
    use std::os::fd::AsRawFd;

    // SAFETY: `statx` is a struct of integers, for which all-zero is a valid value.
    let mut about: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, the path is an empty C string, and `about` is valid for the kernel to write a
    // `statx`.
    let failed = unsafe {
        libc::statx(
            file.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            libc::STATX_DIOALIGN,
            &raw mut about,
        )
    } != 0;
    if failed || about.stx_mask & libc::STATX_DIOALIGN == 0 {
        return None;
    }
    let (memory, granule) = (about.stx_dio_mem_align as usize, about.stx_dio_offset_align as usize);
    let sane = |alignment: usize| alignment == 0 || alignment.is_power_of_two();
    (sane(memory) && sane(granule)).then_some((memory, granule))
}

/// Returns the calling thread's timer slack in nanoseconds; 0 for real-time threads, which have none.
#[cfg(all(feature = "testing", target_os = "linux"))]
pub(super) fn timer_slack_ns() -> u64 {
    // SAFETY: the call takes no pointer and changes no state.
    let slack_ns = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK, 0, 0, 0, 0) };
    u64::try_from(slack_ns).unwrap_or(0)
}

/// Sets the calling thread's timer slack in nanoseconds.
#[cfg(all(feature = "testing", target_os = "linux"))]
pub(super) fn set_timer_slack_ns(ns: u64) {
    let ns = libc::c_ulong::try_from(ns).unwrap_or(libc::c_ulong::MAX);
    // SAFETY: the call takes no pointer; it only changes this thread's timer slack.
    let _ = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, ns, 0, 0, 0) };
}

/// Returns the time of a system clock, or zero where the clock does not exist.
#[cfg(unix)]
pub fn clock_time(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a `timespec` that is valid for writes.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return Duration::ZERO;
    }
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
