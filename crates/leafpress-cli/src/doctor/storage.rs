//! Direct I/O in a directory: writes a file and reads it back with `O_DIRECT`, in 4 KiB and in 512-byte pieces.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use super::finding::Finding;

const AREA: &str = "storage";

/// A buffer aligned for `O_DIRECT`.
#[repr(align(4096))]
struct Page([u8; 4096]);

pub fn examine(directory: &Path) -> Vec<Finding> {
    let what = format!("O_DIRECT in {}", directory.display());
    vec![match try_direct(directory) {
        Ok(smallest) => Finding::ok(AREA, what, format!("wrote and read back; {smallest}-byte reads work")),
        Err((step, e)) if e.raw_os_error() == Some(libc::EINVAL) => Finding::not_usable(
            AREA,
            what,
            format!("{step}: {e}"),
            "the file system has no direct I/O (tmpfs, some overlay and network file systems): use --dir on ext4 or \
             xfs",
        ),
        Err((step, e)) => {
            let fix = match e.kind() {
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    "name a writable directory with --dir"
                }
                io::ErrorKind::StorageFull => "the file system is full",
                _ => "name another directory with --dir",
            };
            Finding::not_usable(AREA, what, format!("{step}: {e}"), fix)
        }
    }]
}

/// The smallest read that works, or the step that failed.
fn try_direct(directory: &Path) -> Result<usize, (&'static str, io::Error)> {
    let file = tempfile::Builder::new()
        .prefix(".leafpress-doctor-")
        .tempfile_in(directory)
        .map_err(|e| ("create a file", e))?;
    let direct = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_DIRECT)
        .open(file.path())
        .map_err(|e| ("open", e))?;
    let mut page = Box::new(Page([0; 4096]));
    for (byte, i) in page.0.iter_mut().zip(0_u32..) {
        *byte = (i % 251) as u8;
    }
    direct.write_all_at(&page.0, 0).map_err(|e| ("write", e))?;
    let mut read = Box::new(Page([0; 4096]));
    direct.read_exact_at(&mut read.0, 0).map_err(|e| ("read", e))?;
    if read.0 != page.0 {
        return Err(("compare", io::Error::other("read data differs from written data")));
    }
    let small = direct.read_exact_at(&mut read.0[..512], 512).is_ok() && read.0[..512] == page.0[512..1024];
    Ok(if small { 512 } else { 4096 })
}
