//! Pages whose bytes identify page and version, and a store of every kind.
#![allow(dead_code)]

use std::io;
use std::path::Path;
use std::sync::LazyLock;

use leafpress_pages::store::{AutoOnOff, FileOptions, FileStore, PageRead, PageStore, PageWrite};
use tempfile::TempDir;

/// A directory on the disk of the build: a temporary directory may be in memory, where there is no direct I/O.
pub fn scratch() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory in the build directory")
}

/// Bytes that are unique to the page and version at every offset.
pub fn page(number: u64, version: u64, len: usize) -> Vec<u8> {
    let seed = number.wrapping_mul(0x9e37_79b9).wrapping_add(version << 40) ^ len as u64;
    let mut bytes = vec![0; len];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    for (byte, tag) in bytes.iter_mut().zip(number.to_le_bytes()) {
        *byte = tag;
    }
    bytes
}

/// Every working method to read and write a file, with its name.
pub fn methods() -> Vec<(String, FileOptions)> {
    // Determined once, so that skipped methods are reported once.
    static METHODS: LazyLock<Vec<(String, FileOptions)>> = LazyLock::new(working_methods);
    METHODS.clone()
}

fn working_methods() -> Vec<(String, FileOptions)> {
    let directory = scratch();
    let mut methods = Vec::new();
    for direct in [AutoOnOff::Off, AutoOnOff::On] {
        for io_uring in [AutoOnOff::Off, AutoOnOff::On] {
            let options = FileStore::options().direct(direct).io_uring(io_uring);
            let name = format!("direct {direct:?}, io_uring {io_uring:?}");
            let path = directory.path().join(&name);
            match options.create(&path, 4096) {
                Ok(store) => {
                    assert_eq!(store.is_direct(), direct == AutoOnOff::On, "{store}");
                    assert_eq!(store.uses_io_uring(), io_uring == AutoOnOff::On, "{store}");
                    methods.push((name, options));
                }
                Err(e) if e.kind() == io::ErrorKind::Unsupported => eprintln!("skipped: {name}: {e}"),
                Err(e) => panic!("{name}: {e}"),
            }
        }
    }
    assert!(!methods.is_empty());
    methods
}

/// Applies a method's options; for a page length that direct I/O does not support the choice is left to the store.
pub fn create(options: &FileOptions, path: &Path, page_bytes: usize) -> io::Result<FileStore> {
    match options.create(path, page_bytes) {
        Err(e) if e.kind() == io::ErrorKind::Unsupported => {
            options.clone().direct(AutoOnOff::Auto).create(path, page_bytes)
        }
        other => other,
    }
}

pub fn read(store: &(impl PageStore + ?Sized), number: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0xaa; store.page_bytes(number)?];
    store.read(number, &mut bytes)?;
    Ok(bytes)
}

/// Reads pages in one batch.
pub fn read_batch(store: &(impl PageStore + ?Sized), numbers: &[u64]) -> Vec<io::Result<Vec<u8>>> {
    let mut buffers: Vec<Vec<u8>> = numbers
        .iter()
        .map(|&number| vec![0xaa; store.page_bytes(number).unwrap_or(store.max_page_bytes())])
        .collect();
    let mut reads: Vec<PageRead<'_>> = numbers
        .iter()
        .zip(&mut buffers)
        .map(|(&page, into)| PageRead {
            page,
            into,
            // The store has to report success.
            result: Err(io::Error::other("not read")),
        })
        .collect();
    store.read_batch(&mut reads);
    let results: Vec<_> = reads.into_iter().map(|read| read.result).collect();
    results
        .into_iter()
        .zip(buffers)
        .map(|(result, bytes)| result.map(|()| bytes))
        .collect()
}

/// Writes pages in one batch.
pub fn write_batch(store: &(impl PageStore + ?Sized), pages: &[(u64, Vec<u8>)]) -> Vec<io::Result<()>> {
    let mut writes: Vec<PageWrite<'_>> = pages
        .iter()
        .map(|(page, bytes)| PageWrite {
            page: *page,
            bytes,
            result: Err(io::Error::other("not written")),
        })
        .collect();
    store.write_batch(&mut writes);
    writes.into_iter().map(|write| write.result).collect()
}

/// Returns the error's kind and text.
pub fn refused<T: std::fmt::Debug>(result: io::Result<T>) -> (io::ErrorKind, String) {
    let error = result.expect_err("this cannot work");
    (error.kind(), error.to_string())
}
