//! Errors of opening, reading and writing state the cause and the file.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::store_support::{methods, page, read, read_batch, refused, scratch};
use leafpress_pages::store::{AutoOnOff, DirectoryStore, FileStore, MAX_PAGE_BYTES, MemoryStore, PageStore};

/// Returns the kind of an error that names `path`.
fn named<T: std::fmt::Debug>(result: io::Result<T>, path: &Path) -> io::ErrorKind {
    let (kind, text) = refused(result);
    assert!(text.contains(path.to_str().unwrap()), "{text}");
    kind
}

#[test]
fn reports_paths_that_are_not_files() {
    let directory = scratch();
    let missing = directory.path().join("missing");
    assert_eq!(
        named(FileStore::open(&missing, 4096), &missing),
        io::ErrorKind::NotFound
    );
    assert_eq!(named(DirectoryStore::open(&missing), &missing), io::ErrorKind::NotFound);
    assert!(!missing.exists());
    let in_missing = missing.join("file");
    assert_eq!(
        named(FileStore::create(&in_missing, 4096), &in_missing),
        io::ErrorKind::NotFound
    );
    assert_eq!(
        named(FileStore::open(directory.path(), 4096), directory.path()),
        io::ErrorKind::IsADirectory
    );
    let read_only = FileStore::options().read_only(true);
    assert_eq!(
        named(read_only.open(directory.path(), 4096), directory.path()),
        io::ErrorKind::IsADirectory
    );
    for device in ["/dev/full", "/dev/zero"].map(Path::new) {
        assert_eq!(
            named(FileStore::open(device, 4096), device),
            io::ErrorKind::InvalidInput
        );
    }
    let file = directory.path().join("file");
    fs::write(&file, b"x").unwrap();
    assert_eq!(named(DirectoryStore::open(&file), &file), io::ErrorKind::NotADirectory);
    // Existing files are neither truncated nor removed.
    assert_eq!(
        named(FileStore::create(&file, 4096), &file),
        io::ErrorKind::AlreadyExists
    );
    assert_eq!(fs::read(&file).unwrap(), b"x");
}

/// Opening a pipe would wait for another process at its other end.
#[test]
fn a_pipe_is_refused_at_once() {
    let directory = scratch();
    let pipe = directory.path().join("pipe");
    let name = std::ffi::CString::new(pipe.to_str().unwrap()).unwrap();
    // SAFETY: the path is a C string.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    assert_eq!(named(FileStore::open(&pipe, 4096), &pipe), io::ErrorKind::InvalidInput);
    let store = DirectoryStore::open(directory.path()).unwrap();
    assert_eq!((store.len(), store.skipped()), (0, 1));
}

#[test]
fn page_lengths_out_of_bounds() {
    let directory = scratch();
    let path = directory.path().join("pages");
    for len in [0, 1, 511, MAX_PAGE_BYTES + 1, usize::MAX] {
        assert_eq!(
            named(FileStore::create(&path, len), &path),
            io::ErrorKind::InvalidInput,
            "{len}"
        );
        let options = DirectoryStore::options().longest_page_bytes(len);
        assert_eq!(
            named(options.open(directory.path()), directory.path()),
            io::ErrorKind::InvalidInput,
            "{len}"
        );
    }
    assert!(!path.exists());
    for len in [0, MAX_PAGE_BYTES + 1] {
        assert_eq!(refused(MemoryStore::new(len)).0, io::ErrorKind::InvalidInput, "{len}");
    }
    assert_eq!(
        refused(MemoryStore::from_pages(Vec::<Vec<u8>>::new())).0,
        io::ErrorKind::InvalidInput
    );
    assert_eq!(
        refused(MemoryStore::from_pages([vec![0; MAX_PAGE_BYTES + 1]])).0,
        io::ErrorKind::InvalidInput
    );
    let read_only = FileStore::options().read_only(true);
    assert_eq!(named(read_only.create(&path, 4096), &path), io::ErrorKind::InvalidInput);
}

#[test]
fn writes_and_buffers_of_a_wrong_length() {
    let directory = scratch();
    let path = directory.path().join("pages");
    let memory = MemoryStore::new(4096).unwrap();
    let file = FileStore::create(&path, 4096).unwrap();
    let files = DirectoryStore::options()
        .longest_page_bytes(4096)
        .open(directory.path())
        .unwrap();
    for store in [&memory as &dyn PageStore, &file, &files] {
        store.write(0, &page(0, 0, 4096)).unwrap();
        for len in [0, 4097, MAX_PAGE_BYTES] {
            assert_eq!(
                refused(store.write(0, &vec![0; len])).0,
                io::ErrorKind::InvalidInput,
                "{len}"
            );
        }
        assert_eq!(refused(store.read(0, &mut [0; 5000])).0, io::ErrorKind::UnexpectedEof);
        assert_eq!(refused(store.read(0, &mut [0; 4000])).0, io::ErrorKind::InvalidInput);
        assert!(read(store, 0).unwrap() == page(0, 0, 4096));
        assert!(store.write(u64::MAX, &page(1, 0, 4096)).is_err());
        assert_eq!(store.len(), 1);
    }
    assert_eq!(
        named(file.write(u64::MAX, &[0; 4096]), &path),
        io::ErrorKind::FileTooLarge
    );
    assert_eq!(
        named(files.write(0, &[0; 511]), directory.path()),
        io::ErrorKind::InvalidInput
    );
}

#[test]
fn read_only_stores() {
    for (_, options) in methods() {
        let directory = scratch();
        let path = directory.path().join("pages");
        fs::write(&path, page(0, 0, 10_000)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        let store = options.read_only(true).open(&path, 4096).unwrap();
        assert!(store.is_read_only() && store.describe().contains("read-only"));
        assert_eq!(
            named(store.write(0, &[0; 4096]), &path),
            io::ErrorKind::PermissionDenied
        );
        assert_eq!(
            named(store.write(2, &[0; 4096]), &path),
            io::ErrorKind::PermissionDenied
        );
        assert_eq!(named(store.remove(0), &path), io::ErrorKind::PermissionDenied);
        store.sync().unwrap();
        assert!(read(&store, 2).unwrap() == page(0, 0, 10_000)[8192..]);
        let files = DirectoryStore::options()
            .read_only(true)
            .open(directory.path())
            .unwrap();
        assert_eq!(
            named(files.write(0, &[0; 4096]), directory.path()),
            io::ErrorKind::PermissionDenied
        );
        assert_eq!(
            named(files.remove(0), directory.path()),
            io::ErrorKind::PermissionDenied
        );
        assert!(read(&files, 0).unwrap() == page(0, 0, 10_000));
    }
}

#[test]
fn a_file_without_permission_to_write() {
    let directory = scratch();
    let path = directory.path().join("pages");
    fs::write(&path, page(0, 0, 4096)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    // A directory's file could be replaced nevertheless: it is not.
    let files = DirectoryStore::open(directory.path()).unwrap();
    assert_eq!(
        named(files.write(0, &[0; 4096]), &path),
        io::ErrorKind::PermissionDenied
    );
    if File::options().write(true).open(&path).is_ok() {
        eprintln!("skipped: this user may write to every file");
        return;
    }
    assert_eq!(
        named(FileStore::open(&path, 4096), &path),
        io::ErrorKind::PermissionDenied
    );
}

#[test]
fn a_file_that_was_cut_short() {
    for (_, options) in methods() {
        let directory = scratch();
        let path = directory.path().join("pages");
        fs::write(&path, page(0, 0, 10 * 4096 + 100)).unwrap();
        let store = options.open(&path, 4096).unwrap();
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(5 * 4096 + 700)
            .unwrap();
        let batch = read_batch(&store, &(0..11).collect::<Vec<_>>());
        for (n, from_batch) in (0..11_u64).zip(batch) {
            let alone = read(&store, n);
            if n < 5 {
                assert!(alone.unwrap() == from_batch.unwrap());
                continue;
            }
            for result in [alone, from_batch] {
                assert_eq!(named(result, &path), io::ErrorKind::UnexpectedEof, "{store}: page {n}");
            }
        }
        // Written pages are present again.
        store.write(7, &page(7, 1, 4096)).unwrap();
        assert!(read(&store, 7).unwrap() == page(7, 1, 4096));
    }
}

#[test]
fn reports_requested_features_that_do_not_work() {
    let directory = scratch();
    let path = directory.path().join("pages");
    let direct = FileStore::options().direct(AutoOnOff::On);
    let (kind, text) = refused(direct.create(&path, 5000));
    assert_eq!(kind, io::ErrorKind::Unsupported);
    assert!(text.contains("direct I/O does not work"), "{text}");
    assert!(!path.exists(), "made, and left behind");
    let store = FileStore::create(&path, 5000).unwrap();
    assert!(
        !store.is_direct() && store.describe().contains("no direct I/O"),
        "{store}"
    );
}

#[test]
fn a_file_system_in_memory() {
    let Ok(directory) = tempfile::tempdir_in("/dev/shm") else {
        eprintln!("skipped: there is no /dev/shm to write to");
        return;
    };
    let path = directory.path().join("pages");
    let store = FileStore::create(&path, 4096).unwrap();
    if store.is_direct() {
        eprintln!("skipped: /dev/shm is not in memory: {store}");
        return;
    }
    assert!(store.describe().contains("no direct I/O"), "{store}");
    for n in 0..100 {
        store.write(n, &page(n, 0, 4096)).unwrap();
    }
    store.remove(5).unwrap();
    for (n, bytes) in (6..100).zip(read_batch(&store, &(6..100).collect::<Vec<_>>())) {
        assert!(bytes.unwrap() == page(n, 0, 4096));
    }
    let direct = FileStore::options().direct(AutoOnOff::On);
    assert_eq!(named(direct.open(&path, 4096), &path), io::ErrorKind::Unsupported);
}
