//! A directory of files as pages: which files are used, their order, and the effects on the directory.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::store_support::{page, read, read_batch, refused, scratch};
use leafpress_pages::store::{DirectoryStore, MAX_PAGE_BYTES, PageStore};

fn put(directory: &Path, name: impl AsRef<Path>, number: u64, len: usize) {
    let path = directory.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, page(number, 0, len)).unwrap();
}

/// File names below a directory, sorted.
fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn files_of_any_length_in_the_order_of_their_paths() {
    let directory = scratch();
    // In the order of paths; a directory's files are at the position of its name.
    let files = [
        ("a", 512),
        ("b/1", 4096),
        ("b/c/d", 777),
        ("b/e", MAX_PAGE_BYTES),
        ("b.txt", 513),
        ("c", 1000),
    ];
    for &(name, len) in files.iter().rev() {
        let number = files.iter().position(|&(other, _)| other == name).unwrap();
        put(directory.path(), name, number as u64, len);
    }
    for (name, len) in [("b/short", 511), ("empty", 0), ("zlong", MAX_PAGE_BYTES + 1)] {
        put(directory.path(), name, 99, len);
    }
    let store = DirectoryStore::open(directory.path()).unwrap();
    assert_eq!(
        (store.len(), store.skipped(), store.max_page_bytes()),
        (6, 3, MAX_PAGE_BYTES)
    );
    assert_eq!(store.bytes(), files.iter().map(|&(_, len)| len as u64).sum::<u64>());
    let batch = read_batch(&store, &[0, 1, 2, 3, 4, 5]);
    for ((number, (name, len)), bytes) in (0..).zip(files).zip(batch) {
        assert!(read(&store, number).unwrap() == page(number, 0, len), "{name}");
        assert!(bytes.unwrap() == page(number, 0, len), "{name}");
    }
}

#[test]
fn opens_no_more_than_the_requested_pages() {
    let directory = scratch();
    for n in 0..10 {
        put(directory.path(), format!("{n}"), n, 1000);
    }
    put(directory.path(), "0short", 0, 5);
    let with_pages = |pages| {
        DirectoryStore::options()
            .max_pages(pages)
            .open(directory.path())
            .unwrap()
            .len()
    };
    assert_eq!([0, 1, 5, 10, 11, u64::MAX].map(with_pages), [0, 1, 5, 10, 10, 10]);
    let with_bytes = |bytes| {
        DirectoryStore::options()
            .max_bytes(bytes)
            .open(directory.path())
            .unwrap()
            .len()
    };
    assert_eq!(
        [0, 999, 1000, 4999, 5000, 10_000, u64::MAX].map(with_bytes),
        [0, 0, 1, 4, 5, 10, 10]
    );
    let store = DirectoryStore::options()
        .max_pages(4)
        .max_bytes(3500)
        .open(directory.path())
        .unwrap();
    assert_eq!((store.len(), store.bytes()), (3, 3000));
    // A page after the last is a new file, and none of those excluded.
    store.write(3, &page(3, 7, 1000)).unwrap();
    assert_eq!(fs::read(directory.path().join("3")).unwrap(), page(3, 0, 1000));
    assert!(read(&store, 3).unwrap() == page(3, 7, 1000));
}

#[test]
fn the_longest_page_bounds_writes() {
    let directory = scratch();
    let empty = DirectoryStore::open(directory.path()).unwrap();
    assert_eq!(empty.max_page_bytes(), MAX_PAGE_BYTES);
    put(directory.path(), "a", 0, 2000);
    put(directory.path(), "b", 1, 900);
    let store = DirectoryStore::open(directory.path()).unwrap();
    assert_eq!(store.max_page_bytes(), 2000);
    assert_eq!(
        refused(store.write(1, &page(1, 1, 2001))).0,
        io::ErrorKind::InvalidInput
    );
    // A shorter file would not be a page at the next opening.
    assert_eq!(store.min_page_bytes(), 512);
    assert_eq!(refused(store.write(1, &page(1, 1, 511))).0, io::ErrorKind::InvalidInput);
    store.write(1, &page(1, 1, 512)).unwrap();
    store.write(1, &page(1, 1, 1999)).unwrap();
    assert_eq!(store.page_bytes(1).unwrap(), 1999);
    let options = DirectoryStore::options().longest_page_bytes(1000);
    let store = options.open(directory.path()).unwrap();
    assert_eq!((store.len(), store.skipped(), store.max_page_bytes()), (0, 2, 1000));
    let store = options.longest_page_bytes(5000).open(directory.path()).unwrap();
    store.write(0, &page(0, 1, 5000)).unwrap();
    assert!(read(&store, 0).unwrap() == page(0, 1, 5000));
}

#[test]
fn new_pages_are_files_named_by_their_number() {
    let directory = scratch();
    put(directory.path(), "sub/a", 0, 600);
    let store = DirectoryStore::options()
        .longest_page_bytes(4096)
        .open(directory.path())
        .unwrap();
    store.write(12, &page(12, 0, 4096)).unwrap();
    assert_eq!(store.len(), 13);
    assert_eq!(refused(read(&store, 5)).0, io::ErrorKind::NotFound);
    assert_eq!(names(directory.path()), ["00000000000000000012", "sub"]);
    assert!(read(&store, 12).unwrap() == page(12, 0, 4096));
    store.remove(12).unwrap();
    store.remove(0).unwrap();
    assert_eq!(names(directory.path()), ["sub"]);
    assert_eq!(names(&directory.path().join("sub")), [""; 0]);
    store.write(0, &page(0, 1, 700)).unwrap();
    assert_eq!(names(directory.path()), ["00000000000000000000", "sub"]);
    store.sync().unwrap();
}

#[test]
fn a_file_that_is_not_the_stores_is_not_written_over() {
    let directory = scratch();
    let name = "00000000000000000000";
    put(directory.path(), name, 5, 100);
    let store = DirectoryStore::open(directory.path()).unwrap();
    assert_eq!((store.len(), store.skipped()), (0, 1));
    let (kind, text) = refused(store.write(0, &page(0, 0, 4096)));
    assert_eq!(kind, io::ErrorKind::AlreadyExists);
    assert!(text.contains(name), "{text}");
    assert_eq!(fs::read(directory.path().join(name)).unwrap(), page(5, 0, 100));
    assert_eq!(names(directory.path()), [name]);
    // An empty file is left by an interrupted write.
    fs::write(directory.path().join(name), b"").unwrap();
    store.write(0, &page(0, 0, 4096)).unwrap();
    assert!(read(&store, 0).unwrap() == page(0, 0, 4096));
}

#[test]
fn what_an_interrupted_write_left_behind() {
    let directory = scratch();
    put(directory.path(), "a", 0, 1000);
    put(directory.path(), ".leafpress-123-4.tmp", 1, 1000);
    put(directory.path(), "sub/.leafpress-99999-0.tmp", 2, 1000);
    // Files of other programs.
    let others = [".leafpress-notes.tmp", ".leafpress-1-2.tmp.bak", "x.tmp"];
    for name in others {
        put(directory.path(), name, 3, 1000);
    }
    let store = DirectoryStore::options()
        .read_only(true)
        .open(directory.path())
        .unwrap();
    assert_eq!((store.len(), store.skipped()), (4, 0));
    assert_eq!(names(directory.path()).len(), 6, "read-only means that");
    let store = DirectoryStore::open(directory.path()).unwrap();
    assert_eq!((store.len(), store.skipped()), (4, 0));
    assert_eq!(names(directory.path()), [others[1], others[0], "a", "sub", "x.tmp"]);
    assert_eq!(names(&directory.path().join("sub")), [""; 0]);
    // Those after the limit too.
    put(directory.path(), "zz/.leafpress-5-5.tmp", 2, 1000);
    DirectoryStore::options().max_pages(1).open(directory.path()).unwrap();
    assert_eq!(names(&directory.path().join("zz")), [""; 0]);
}

#[test]
fn links() {
    let elsewhere = scratch();
    put(elsewhere.path(), "target", 7, 1234);
    let directory = scratch();
    let at = |name: &str| directory.path().join(name);
    put(directory.path(), "a", 0, 1000);
    symlink(directory.path(), at("loop")).unwrap();
    symlink("self", at("self")).unwrap();
    symlink("missing", at("dangling")).unwrap();
    symlink(elsewhere.path().join("target"), at("link")).unwrap();
    symlink(elsewhere.path(), at("other")).unwrap();
    let store = DirectoryStore::open(directory.path()).unwrap();
    assert_eq!(
        (store.len(), store.skipped()),
        (2, 2),
        "the dangling link and the one to itself"
    );
    assert!(read(&store, 1).unwrap() == page(7, 0, 1234));
    store.write(1, &page(1, 1, 1000)).unwrap();
    assert!(read(&store, 1).unwrap() == page(1, 1, 1000));
    assert!(!at("link").is_symlink());
    assert!(
        fs::read(elsewhere.path().join("target")).unwrap() == page(7, 0, 1234),
        "the target was written"
    );
    // The directory itself may be a link.
    symlink(directory.path(), elsewhere.path().join("door")).unwrap();
    let store = DirectoryStore::open(elsewhere.path().join("door")).unwrap();
    assert_eq!(store.len(), 2);
    assert!(read(&store, 1).unwrap() == page(1, 1, 1000));
}

#[test]
fn keeps_pages_with_names_that_are_not_text() {
    let directory = scratch();
    let name = OsStr::from_bytes(b"\xff\xfe \n\x80");
    if fs::write(directory.path().join(name), page(0, 0, 900)).is_err() {
        eprintln!("skipped: the file system wants names that are text");
        return;
    }
    let store = DirectoryStore::open(directory.path()).unwrap();
    assert!(read(&store, 0).unwrap() == page(0, 0, 900));
    store.write(0, &page(0, 1, 800)).unwrap();
    assert_eq!(fs::read(directory.path().join(name)).unwrap(), page(0, 1, 800));
    store.remove(0).unwrap();
    assert!(names(directory.path()).is_empty());
}

#[test]
fn files_that_others_change() {
    let directory = scratch();
    for n in 0..6 {
        put(directory.path(), format!("{n}"), n, 1000);
    }
    put(directory.path(), "long", 6, 4096);
    let store = DirectoryStore::open(directory.path()).unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::remove_file(at("0")).unwrap();
    let (kind, text) = refused(read(&store, 0));
    assert_eq!(kind, io::ErrorKind::NotFound);
    assert!(text.contains(at("0").to_str().unwrap()), "{text}");
    assert_eq!(refused(store.page_bytes(0)).0, io::ErrorKind::NotFound);
    store.remove(0).unwrap();
    // Shorter or longer: reported once, and right the next time.
    fs::write(at("1"), page(1, 1, 700)).unwrap();
    assert_eq!(refused(read(&store, 1)).0, io::ErrorKind::UnexpectedEof);
    assert!(read(&store, 1).unwrap() == page(1, 1, 700));
    fs::write(at("2"), page(2, 1, 3000)).unwrap();
    let (kind, text) = refused(read(&store, 2));
    assert_eq!(kind, io::ErrorKind::InvalidData);
    assert!(text.contains("from 1000 to 3000 bytes"), "{text}");
    assert!(read(&store, 2).unwrap() == page(2, 1, 3000));
    // Too long for a page: an error while it is.
    fs::write(at("3"), page(3, 1, 5000)).unwrap();
    for _ in 0..2 {
        assert_eq!(refused(read(&store, 3)).0, io::ErrorKind::InvalidData);
    }
    fs::remove_file(at("4")).unwrap();
    fs::create_dir(at("4")).unwrap();
    assert!(read(&store, 4).is_err() && store.write(4, &page(4, 0, 1000)).is_err());
    assert!(store.remove(4).is_err());
    // Removed by another program, and removed by the store.
    fs::remove_file(at("5")).unwrap();
    store.remove(5).unwrap();
    assert_eq!(refused(store.page_bytes(5)).0, io::ErrorKind::NotFound);
    assert_eq!(store.len(), 7);
    assert!(
        names(directory.path()).iter().all(|name| !name.starts_with('.')),
        "temporary files"
    );
}

#[test]
fn a_rewritten_file_keeps_its_permissions() {
    let directory = scratch();
    put(directory.path(), "a", 0, 1000);
    fs::set_permissions(directory.path().join("a"), fs::Permissions::from_mode(0o640)).unwrap();
    let store = DirectoryStore::open(directory.path()).unwrap();
    store.write(0, &page(0, 1, 1000)).unwrap();
    let mode = fs::metadata(directory.path().join("a")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
}

/// A reader sees the old page or the new one.
#[test]
fn a_page_is_never_seen_half_written() {
    let directory = scratch();
    put(directory.path(), "a", 0, 65536);
    let store = DirectoryStore::open(directory.path()).unwrap();
    let versions: Vec<_> = (0..200).map(|version| page(0, version, 65536)).collect();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                let bytes = fs::read(directory.path().join("a")).unwrap();
                assert!(versions.contains(&bytes));
            }
        });
        for bytes in &versions {
            store.write(0, bytes).unwrap();
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
