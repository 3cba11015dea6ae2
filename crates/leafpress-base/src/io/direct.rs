//! Opening a file a second time for direct I/O, where its file system supports that.

use std::fs::File;
use std::io;
use std::path::Path;

#[cfg(target_os = "linux")]
use super::system::{in_memory, stated_alignment};

/// A descriptor that bypasses the page cache, and its alignment requirements.
pub struct Direct {
    /// The file, opened for direct I/O.
    pub file: File,
    /// Granularity of offsets and lengths in bytes, a power of two.
    pub granule: usize,
    /// Alignment of buffers in bytes, a power of two.
    pub memory: usize,
}

/// Short explanation of why direct I/O is not used.
pub type Reason = String;

impl Direct {
    /// Opens `path` for direct I/O in pages of `page_bytes`; `file` is the same file, already open.
    #[cfg(not(target_os = "linux"))]
    pub fn open(_path: &Path, _file: &File, _page_bytes: usize, _writable: bool) -> Result<Self, Reason> {
        Err(String::from("not supported on this system"))
    }

    /// Opens `path` for direct I/O in pages of `page_bytes`; `file` is the same file, already open.
    #[cfg(target_os = "linux")]
    pub fn open(path: &Path, file: &File, page_bytes: usize, writable: bool) -> Result<Self, Reason> {
        use std::os::unix::fs::MetadataExt;

        if in_memory(file) {
            // Recent kernels accept O_DIRECT on tmpfs and ignore it.
            return Err(String::from("the file system is in memory"));
        }
        let direct = super::open::store(path, writable, libc::O_DIRECT).map_err(|e| match e.raw_os_error() {
            Some(libc::EINVAL) => String::from("not supported by the file system"),
            _ => e.to_string(),
        })?;
        let same = |a: io::Result<std::fs::Metadata>, b: io::Result<std::fs::Metadata>| match (a, b) {
            (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
            _ => false,
        };
        if !same(file.metadata(), direct.metadata()) {
            return Err(String::from("another file has replaced it"));
        }
        let (memory, granule) = match stated_alignment(&direct) {
            Some((0, _) | (_, 0)) => return Err(String::from("not supported for this file")),
            Some(stated) => stated,
            None => guessed_alignment(&direct),
        };
        if !page_bytes.is_multiple_of(granule) {
            return Err(format!("pages are not a multiple of the {granule}-byte blocks"));
        }
        Ok(Self {
            file: direct,
            granule,
            memory,
        })
    }

    /// Returns whether direct I/O can use this buffer without a copy.
    pub fn takes(&self, buffer: &[u8]) -> bool {
        buffer.as_ptr().addr().is_multiple_of(self.memory) && buffer.len().is_multiple_of(self.granule)
    }
}

/// Determines the alignment by trial where the kernel does not state it ([`stated_alignment`]): 512 bytes if such a
/// read works, else a value that every device accepts.
#[cfg(target_os = "linux")]
fn guessed_alignment(direct: &File) -> (usize, usize) {
    use std::os::unix::fs::FileExt;

    const SAFE: usize = 4096;
    const SMALL: usize = 512;
    let small_reads_work = super::aligned::AlignedBuffer::new(SMALL, SAFE)
        .is_ok_and(|mut buffer| matches!(direct.read_at(buffer.bytes_mut(), SMALL as u64), Ok(SMALL)));
    // The alignment of buffers is not tried: a page's alignment is always sufficient.
    (SAFE, if small_reads_work { SMALL } else { SAFE })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use super::super::aligned::AlignedBuffer;
    use super::{Direct, guessed_alignment, stated_alignment};

    /// The guessed alignment works, also for an empty file.
    #[test]
    fn a_guessed_alignment_is_at_least_the_kernels() {
        // The directory of the executable is likely to be on a disk.
        let directory = std::env::current_exe().unwrap().parent().unwrap().to_owned();
        for len in [0, 1 << 16] {
            let named = tempfile::NamedTempFile::new_in(&directory).unwrap();
            named.as_file().write_all_at(&vec![7; len], 0).unwrap();
            let direct = match Direct::open(named.path(), named.as_file(), 4096, true) {
                Ok(direct) => direct,
                Err(reason) => {
                    eprintln!("skipped: no direct I/O: {reason}");
                    return;
                }
            };
            let (memory, granule) = guessed_alignment(&direct.file);
            if let Some((least_memory, least_granule)) = stated_alignment(&direct.file) {
                assert!(memory >= least_memory && granule >= least_granule);
            }
            let mut buffer = AlignedBuffer::new(granule, memory).unwrap();
            buffer.bytes_mut().fill(9);
            direct.file.write_all_at(buffer.bytes(), granule as u64).unwrap();
            direct.file.read_exact_at(buffer.bytes_mut(), granule as u64).unwrap();
            assert!(buffer.bytes().iter().all(|&byte| byte == 9));
        }
    }

    #[test]
    fn another_file_of_the_same_name_is_not_taken() {
        let directory = std::env::current_exe().unwrap().parent().unwrap().to_owned();
        let named = tempfile::NamedTempFile::new_in(&directory).unwrap();
        let other = tempfile::NamedTempFile::new_in(&directory).unwrap();
        let opened = Direct::open(named.path(), &File::open(other.path()).unwrap(), 4096, false);
        assert!(opened.is_err());
    }
}
