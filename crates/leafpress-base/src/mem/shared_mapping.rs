//! A file's words in memory, which outlast the process that writes them.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

/// The words of a whole file, mapped and shared: what is stored here is in the file from then on, for whoever reads it, and stays there when the
/// process is killed. It is not there yet when the machine goes down.
///
/// Whoever makes the file shorter while it is mapped ends the process.
pub struct SharedMapping(NonNull<[AtomicU32]>);

// SAFETY: the mapping is owned by this alone, and its words are atomic.
unsafe impl Send for SharedMapping {}
// SAFETY: as above.
unsafe impl Sync for SharedMapping {}

impl SharedMapping {
    /// Maps a file that was written whole, so that it has all of its blocks, open to read and to write.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a file without words, and what the system says.
    pub fn new(file: &File) -> io::Result<Self> {
        let words = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX) / size_of::<u32>();
        if words == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: a new mapping touches nothing that exists.
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
        // SAFETY: the words are mapped as long as this lives, aligned to a page, and any bytes are words. Other processes that write the file
        // make no other word of one than an atomic store would.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for SharedMapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and whole, and nobody has its words any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), self.0.len() * size_of::<u32>()) };
    }
}
