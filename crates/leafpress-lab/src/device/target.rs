//! The file that is read: the probe's own, which has no name and so cannot outlive the probe, or the user's, which is
//! only read.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::fcntl::{FallocateFlags, FcntlArg, OFlag, PosixFadviseAdvice, fallocate, fcntl, posix_fadvise};
use nix::sys::resource::{Resource, getrlimit};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::buffer::Buffer;
use super::{DeviceError, MIN_BLOCKS, Medium, Options, Subject};
use crate::core::{Bytes, LabError};

/// Room that is left to others on the file system.
const SPARE_BYTES: u64 = 64 << 20;
/// A piece of the probe's file that is written at once.
const PIECE_BYTES: usize = 4 << 20;

/// An open file to probe.
pub(super) struct Target {
    pub(super) path: PathBuf,
    pub(super) file: File,
    pub(super) subject: Subject,
    /// Bytes of it that are used.
    pub(super) bytes: u64,
    pub(super) direct: Result<(), String>,
    pub(super) hole_bytes: u64,
    pub(super) medium: Medium,
}

impl Target {
    /// Opens the options' path; in a directory a file is made and filled.
    ///
    /// # Errors
    /// [`DeviceError::Path`] where there is nothing to probe, [`DeviceError::NoRoom`], [`DeviceError::Fill`],
    /// [`LabError::Cancelled`].
    pub(super) fn open(
        options: &Options,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Self, LabError> {
        let path = &options.path;
        // Checked before opening: opening a pipe would block forever.
        let about = std::fs::metadata(path).map_err(|e| refuse(path, error_text(&e)))?;
        let medium = Medium::of(path);
        if about.is_dir() {
            let mut target = Self::in_directory(options, medium)?;
            target.fill(options.seed, cancel, progress)?;
            target.check_blocks(options)?;
            return Ok(target);
        }
        if options.write {
            let reason = "--write requires a directory, in which the probe creates its own file: an existing file is \
                          never written";
            return Err(refuse(path, reason).into());
        }
        let target = Self::existing(options, &about, medium)?;
        target.check_blocks(options)?;
        Ok(target)
    }

    fn in_directory(options: &Options, medium: Medium) -> Result<Self, LabError> {
        let path = &options.path;
        let wanted = options.file_bytes.unwrap_or(Options::FILE_BYTES);
        let least = options.largest_block_bytes() * MIN_BLOCKS;
        if wanted < least {
            let reason = format!(
                "{} is less than {MIN_BLOCKS} blocks: use at least {}",
                Bytes(wanted),
                Bytes(least)
            );
            return Err(LabError::option("file-bytes", reason));
        }
        check_room(path, wanted)?;
        let file = tempfile::tempfile_in(path).map_err(|e| {
            let kind = e.kind();
            let hint = match kind {
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    "; name a writable directory, or a file to read"
                }
                _ => "",
            };
            refuse(path, format!("cannot create a file there: {e}{hint}"))
        })?;
        // Fails at once where the room that is free is not this user's; file systems without it find out while they
        // write.
        match fallocate(&file, FallocateFlags::empty(), 0, wanted as i64) {
            Ok(()) | Err(nix::Error::EOPNOTSUPP | nix::Error::ENOSYS | nix::Error::EINVAL) => {}
            Err(e) => {
                return Err(DeviceError::Fill {
                    path: path.clone(),
                    written_bytes: 0,
                    wanted_bytes: wanted,
                    source: e.into(),
                }
                .into());
            }
        }
        let direct = if medium.is_memory() {
            Err("the file system is in memory".into())
        } else {
            make_direct(&file)
        };
        Ok(Self {
            path: path.clone(),
            file,
            subject: Subject::ProbeFile,
            bytes: wanted,
            direct,
            hole_bytes: 0,
            medium,
        })
    }

    fn existing(options: &Options, about: &Metadata, medium: Medium) -> Result<Self, LabError> {
        let path = &options.path;
        let subject = match about.file_type() {
            kind if kind.is_file() => Subject::File,
            kind if kind.is_block_device() => Subject::BlockDevice,
            _ => return Err(refuse(path, "neither a directory nor a file nor a block device").into()),
        };
        let open = |flags| OpenOptions::new().read(true).custom_flags(flags).open(path);
        let (file, direct) = match open(libc::O_DIRECT) {
            Ok(file) if medium.is_memory() => (file, Err("the file system is in memory".into())),
            Ok(file) => (file, Ok(())),
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => (
                open(0).map_err(|e| refuse(path, error_text(&e)))?,
                Err("not supported by the file system".into()),
            ),
            Err(e) => return Err(refuse(path, error_text(&e)).into()),
        };
        let len = match subject {
            // A block device's length is where its end is.
            Subject::BlockDevice => {
                io::Seek::seek(&mut &file, io::SeekFrom::End(0)).map_err(|e| refuse(path, error_text(&e)))?
            }
            _ => about.len(),
        };
        let least = options.largest_block_bytes() * MIN_BLOCKS;
        if len < least {
            let reason = format!(
                "{} bytes long, which is less than {MIN_BLOCKS} blocks of {}: use a larger file, or smaller \
                 --block-bytes",
                len,
                Bytes(options.largest_block_bytes())
            );
            return Err(refuse(path, reason).into());
        }
        let stored = about.blocks().saturating_mul(512);
        Ok(Self {
            path: path.clone(),
            file,
            subject,
            bytes: options.file_bytes.unwrap_or(len).min(len),
            direct,
            hole_bytes: if subject == Subject::File {
                len.saturating_sub(stored)
            } else {
                0
            },
            medium,
        })
    }

    /// Writes random bytes, which cannot be compressed or deduplicated, and flushes them to the medium.
    fn fill(&mut self, seed: u64, cancel: &AtomicBool, progress: &mut dyn FnMut(f64)) -> Result<(), LabError> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ 0xf111);
        let failed = |written_bytes| {
            let (path, wanted_bytes) = (self.path.clone(), self.bytes);
            move |source| DeviceError::Fill {
                path,
                written_bytes,
                wanted_bytes,
                source,
            }
        };
        let mut piece = Buffer::new(PIECE_BYTES).map_err(failed(0))?;
        let mut at = 0;
        while at < self.bytes {
            if cancel.load(Ordering::Relaxed) {
                return Err(LabError::Cancelled);
            }
            piece.fill(&mut random);
            let len = PIECE_BYTES.min((self.bytes - at) as usize);
            let written = match self.file.write_all_at(&piece.bytes()[..len], at) {
                // The end of a file whose length is odd, or direct I/O that is none after all.
                Err(e) if e.raw_os_error() == Some(libc::EINVAL) && self.direct.is_ok() => {
                    self.go_buffered().map_err(failed(at))?;
                    self.file.write_all_at(&piece.bytes()[..len], at)
                }
                answer => answer,
            };
            written.map_err(failed(at))?;
            at += len as u64;
            progress(at as f64 / self.bytes as f64);
        }
        self.file.sync_all().map_err(failed(at))?;
        // The fallback above is for one odd write; reads and their sizes are judged by `check_blocks`.
        if self.direct.is_ok() {
            self.direct = make_direct(&self.file);
        }
        Ok(())
    }

    fn go_buffered(&self) -> io::Result<()> {
        let flags = OFlag::from_bits_retain(fcntl(&self.file, FcntlArg::F_GETFL)?);
        fcntl(&self.file, FcntlArg::F_SETFL(flags - OFlag::O_DIRECT))?;
        Ok(())
    }

    /// Tries a read of every block size, so that a size that direct I/O does not support is reported before measuring.
    fn check_blocks(&self, options: &Options) -> Result<(), LabError> {
        for &block_bytes in &options.block_bytes {
            let failed = |source| DeviceError::Transfer {
                path: self.path.clone(),
                operation: "read",
                block_bytes,
                offset_bytes: block_bytes,
                source,
            };
            let mut buffer = Buffer::new(block_bytes as usize).map_err(failed)?;
            match self.file.read_exact_at(buffer.bytes_mut(), block_bytes) {
                Ok(()) => {}
                Err(e) if e.raw_os_error() == Some(libc::EINVAL) && self.direct.is_ok() => {
                    let reason = format!(
                        "{}: direct I/O does not support this block size here, try 4K",
                        Bytes(block_bytes)
                    );
                    return Err(LabError::option("block-bytes", reason));
                }
                Err(e) => return Err(failed(e).into()),
            }
        }
        Ok(())
    }

    /// Asks the page cache to let go of the file, so that buffered reads are the device's once at least.
    pub(super) fn forget_pages(&self) {
        if self.direct.is_err() {
            // Advisory: if it has no effect, the result is the cache's, which is reported anyway.
            let _ = posix_fadvise(&self.file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
        }
    }
}

fn refuse(path: &Path, reason: impl Into<String>) -> DeviceError {
    DeviceError::Path {
        path: path.to_owned(),
        reason: reason.into(),
    }
}

fn error_text(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or directory".into(),
        io::ErrorKind::PermissionDenied => "not readable by this user".into(),
        _ => error.to_string(),
    }
}

/// Enables direct I/O, or returns why it is not available.
fn make_direct(file: &File) -> Result<(), String> {
    let flags = fcntl(file, FcntlArg::F_GETFL).map_err(|e| e.to_string())?;
    let flags = OFlag::from_bits_retain(flags) | OFlag::O_DIRECT;
    match fcntl(file, FcntlArg::F_SETFL(flags)) {
        Ok(_) => Ok(()),
        Err(nix::Error::EINVAL) => Err("not supported by the file system".into()),
        Err(e) => Err(e.to_string()),
    }
}

/// Whether a file of `wanted` bytes may be made in a directory: room, and the limit on the length of files.
fn check_room(path: &Path, wanted: u64) -> Result<(), LabError> {
    if let Ok((limit, _)) = getrlimit(Resource::RLIMIT_FSIZE)
        && wanted > limit
    {
        // The system would end the process instead of refusing the write.
        let reason = format!(
            "{} exceeds the file size limit ({limit} bytes, ulimit -f)",
            Bytes(wanted)
        );
        return Err(LabError::option("file-bytes", reason));
    }
    let room = nix::sys::statvfs::statvfs(path).map_err(|e| refuse(path, error_text(&e.into())))?;
    let free_bytes = room.blocks_available().saturating_mul(room.fragment_size());
    if free_bytes < wanted.saturating_add(SPARE_BYTES) {
        return Err(DeviceError::NoRoom {
            path: path.to_owned(),
            wanted_bytes: wanted,
            spare_bytes: SPARE_BYTES,
            free_bytes,
        }
        .into());
    }
    Ok(())
}
