//! A shared mapping of a file's words, which outlives the process that writes them.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

/// The words of a whole file, mapped and shared: a store is immediately visible to other readers of the file and
/// survives a kill of the process. It does not survive a crash of the machine.
///
/// Truncating the file while it is mapped terminates the process (SIGBUS).
pub struct SharedMapping(NonNull<[AtomicU32]>);

// SAFETY: this value owns the mapping, and its words are atomic.
unsafe impl Send for SharedMapping {}
// SAFETY: the words are atomic, so shared references may be used from any thread.
unsafe impl Sync for SharedMapping {}

impl SharedMapping {
    /// Maps a file that is open for reading and writing and was written completely, so that all of its blocks are
    /// allocated.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a file without words, and errors of the system.
    pub fn new(file: &File) -> io::Result<Self> {
        let words = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX) / size_of::<u32>();
        if words == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: a new mapping at an address of the kernel's choice affects no existing memory.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                words * size_of::<u32>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(start.cast::<AtomicU32>()) {
            Some(first) if start != libc::MAP_FAILED => Ok(Self(NonNull::slice_from_raw_parts(first, words))),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Returns the words of the mapping.
    pub fn words(&self) -> &[AtomicU32] {
        // SAFETY: the words are mapped as long as `self` lives, aligned to a page, and every bit pattern is valid.
        // Writes by other processes are indistinguishable from atomic stores.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for SharedMapping {
    fn drop(&mut self) {
        // SAFETY: this value owns the whole mapping, and no borrow of its words is left.
        unsafe { libc::munmap(self.0.as_ptr().cast(), self.0.len() * size_of::<u32>()) };
    }
}
