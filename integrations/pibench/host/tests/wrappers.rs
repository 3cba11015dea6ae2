//! The host against wrappers of our own, good and bad.

#[path = "../../test_support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use leafpress_pibench_host::{CallError, FIND_BUFFER_BYTES, Library, LoadError, TreeOptions, available};
use tempfile::TempDir;

/// Returns the wrapper `name`, compiled; `None`, which is printed, if there is no compiler.
fn wrapper(name: &str) -> Option<PathBuf> {
    let compiler = support::cxx_compilers().into_iter().find(|_| available());
    if compiler.is_none() {
        println!("skipped: no C++ compiler");
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/wrappers/{name}.cpp"));
    Some(support::compile(&compiler?, &["-shared", "-fPIC"], &source, "so"))
}

/// Returns the wrapper at `path`, which is one of ours.
fn open(path: &Path, options: &TreeOptions) -> Result<Library, LoadError> {
    // SAFETY: the wrappers of these tests keep to the interface, but for what the host checks; other files are not
    // libraries, or lack `create_tree`.
    unsafe { Library::open(path, options) }
}

fn faulty(how: &str) -> Option<Result<Library, LoadError>> {
    let options = TreeOptions {
        pool_path: how.into(),
        ..TreeOptions::default()
    };
    Some(open(&wrapper("faulty")?, &options))
}

#[test]
fn a_good_wrapper_does_what_a_map_does() {
    let Some(path) = wrapper("std_map") else { return };
    let tree = open(&path, &TreeOptions::default()).unwrap();
    assert_eq!(tree.path(), path);
    let mut model = BTreeMap::new();
    let mut random = 1u64;
    let mut value_out = [0; 8];
    let mut records = vec![7; 3];
    for step in 0..20_000u64 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let key = (random >> 33 & 511).to_be_bytes();
        let value = step.to_le_bytes();
        match random >> 60 {
            0..4 => assert_eq!(
                tree.insert(&key, &value).unwrap(),
                match model.entry(key) {
                    std::collections::btree_map::Entry::Vacant(entry) => {
                        entry.insert(value);
                        true
                    }
                    std::collections::btree_map::Entry::Occupied(_) => false,
                }
            ),
            4..7 => {
                let slot = model.get_mut(&key);
                assert_eq!(tree.update(&key, &value).unwrap(), slot.is_some());
                if let Some(slot) = slot {
                    *slot = value;
                }
            }
            7..10 => assert_eq!(tree.remove(&key).unwrap(), model.remove(&key).is_some()),
            10..14 => {
                let found = tree.find(&key, &mut value_out).unwrap();
                assert_eq!(found.then_some(&value_out), model.get(&key));
            }
            _ => {
                let count = tree.scan(&key, 10, 16, &mut records).unwrap();
                let expected: Vec<_> = model.range(key..).take(10).map(|(k, v)| [*k, *v].concat()).collect();
                assert_eq!(count, expected.len());
                assert_eq!(records, expected.concat());
            }
        }
    }
    assert!(!model.is_empty());
}

#[test]
fn many_threads_call_one_tree() {
    let Some(path) = wrapper("std_map") else { return };
    let tree = open(&path, &TreeOptions::default()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let tree = &tree;
            scope.spawn(move || {
                let mut value = [0; FIND_BUFFER_BYTES];
                let mut records = Vec::new();
                for id in 0..500u64 {
                    let key = (thread << 32 | id).to_be_bytes();
                    assert!(tree.insert(&key, &id.to_be_bytes()).unwrap());
                    assert!(tree.find(&key, &mut value).unwrap());
                    assert_eq!(value[..8], id.to_be_bytes());
                    // This thread's records are the last up to here, and the next thread's keys are above.
                    let count = tree.scan(&key, 1, 16, &mut records).unwrap();
                    assert_eq!((count, &records[..]), (1, &[key, id.to_be_bytes()].concat()[..]));
                }
            });
        }
    });
    let mut records = Vec::new();
    assert_eq!(tree.scan(&[], 5000, 16, &mut records).unwrap(), 2000);
    assert!(records.chunks(16).is_sorted_by(|a, b| a[..8] < b[..8]));
}

/// PiBench's newer branches have `bulk_load` before `find`, and some of them `tls_setup` after `scan`.
#[test]
fn wrappers_of_newer_branches_are_called_through_their_own_interface() {
    for (name, has_tls_setup) in [
        ("bulk_map", true),
        ("bulk_map_override", true),
        ("bulk_map_plain", false),
    ] {
        let Some(path) = wrapper(name) else { return };
        let tree = open(&path, &TreeOptions::default()).unwrap();
        let (one, two, mut value) = (*b"key.1...", *b"key.2...", [0; 8]);
        if has_tls_setup {
            let error = tree.find(&one, &mut value).unwrap_err().to_string();
            assert!(error.ends_with("tls_setup was not called"), "{name}: {error}");
        }
        tree.attach_thread().unwrap();
        assert!(!tree.find(&one, &mut value).unwrap(), "{name}");
        assert!(!tree.update(&one, b"value 1.").unwrap(), "{name}");
        assert!(!tree.remove(&one).unwrap(), "{name}");
        assert!(tree.insert(&one, b"value 1.").unwrap(), "{name}");
        assert!(!tree.insert(&one, b"value 2.").unwrap(), "{name}");
        assert!(tree.update(&one, b"value 3.").unwrap(), "{name}");
        assert!(tree.insert(&two, b"value 4.").unwrap(), "{name}");
        assert!(tree.find(&one, &mut value).unwrap(), "{name}");
        assert_eq!(&value, b"value 3.", "{name}");
        let mut records = Vec::new();
        assert_eq!(tree.scan(&one, 9, 16, &mut records).unwrap(), 2, "{name}");
        assert_eq!(records, b"key.1...value 3.key.2...value 4.", "{name}");
        assert!(tree.remove(&one).unwrap(), "{name}");
        assert!(!tree.find(&one, &mut value).unwrap(), "{name}");
    }
}

#[test]
fn a_wrapper_of_an_unknown_interface_is_refused() {
    for (name, message) in [
        ("bulk_map_anonymous", "cannot determine which interface "),
        (
            "not_a_tree",
            "returned an object that is not a PiBench tree: its class has 3 virtual methods",
        ),
    ] {
        let Some(path) = wrapper(name) else { return };
        let refusal_text = refusal(&path);
        assert!(refusal_text.contains(message), "{refusal_text}");
    }
    // The fork's three bytes are where these branches have a pointer.
    for name in ["bulk_map", "bulk_map_plain"] {
        let Some(path) = wrapper(name) else { return };
        let options = TreeOptions {
            protocol: 2,
            ..TreeOptions::default()
        };
        let error = open(&path, &options).unwrap_err();
        assert!(matches!(error, LoadError::ForkOptions { .. }), "{error}");
    }
}

#[test]
fn every_option_reaches_the_wrapper() {
    let Some(path) = wrapper("echo") else { return };
    let options = TreeOptions {
        key_size: 31,
        value_size: 4,
        // Longer than the text that std::string keeps inside itself.
        pool_path: OsStr::from_bytes(
            b"/a/pool/whose/name/is/long/enough\0 with a zero byte, and \xff that is not text",
        )
        .into(),
        pool_size: usize::MAX,
        num_threads: 48,
        protocol: 2,
        clock_type: 3,
        gc_enabled: 1,
    };
    let tree = open(&path, &options).unwrap();
    let mut text = Vec::new();
    let count = tree.scan(b"", 1000, 1, &mut text).unwrap();
    assert_eq!(count, text.len());
    let rest = format!("] {} 48 2 3 1", usize::MAX);
    let expected = [b"31 4 [", options.pool_path.as_os_str().as_bytes(), rest.as_bytes()].concat();
    assert_eq!(text, expected);
    assert!(tree.insert(b"the key", b"the key").unwrap());
    assert!(!tree.insert(b"the key", b"the kez").unwrap());
}

#[test]
fn a_wrapper_that_writes_wide_values_overwrites_nothing() {
    let Some(path) = wrapper("echo") else { return };
    let options = TreeOptions {
        value_size: 4,
        ..TreeOptions::default()
    };
    let tree = open(&path, &options).unwrap();
    let mut buffer = *b"............";
    assert!(tree.find(b"", &mut buffer[2..6]).unwrap());
    assert_eq!(&buffer, b"..ABCD......");
    let mut roomy = [b'.'; FIND_BUFFER_BYTES];
    assert!(tree.find(b"", &mut roomy).unwrap());
    assert_eq!(&roomy[..4], b"ABCD");
    assert_eq!(
        tree.find(b"", &mut buffer[..3]),
        Err(CallError::ShortBuffer {
            value_size: 4,
            buffer_bytes: 3
        })
    );
}

/// PiBench's wrapper for LevelDB takes the value for a C string.
#[test]
fn a_zero_byte_follows_every_value() {
    let Some(path) = wrapper("echo") else { return };
    let tree = open(&path, &TreeOptions::default()).unwrap();
    let values = vec![b'v'; 5000];
    for length in [0, 1, 8, FIND_BUFFER_BYTES - 1, FIND_BUFFER_BYTES, 4999] {
        assert!(tree.update(b"key", &values[..length]).unwrap(), "{length}");
    }
}

#[test]
fn reports_a_create_tree_that_fails() {
    for (how, message) in [
        (
            "null",
            "made no tree: it returned null for keys of 8 and values of 8 bytes",
        ),
        ("create leaking", "threw std::runtime_error: the pool is leaking"),
        ("create text", "threw a bare text"),
        ("create string", "threw a string"),
        ("create number", "threw an exception of type int"),
        (
            "create oddity",
            "threw an exception of type (anonymous namespace)::Oddity",
        ),
    ] {
        let Some(opened) = faulty(how) else { return };
        let error = opened.unwrap_err().to_string();
        assert!(
            error.starts_with("create_tree of ") && error.contains("faulty-"),
            "{error}"
        );
        assert!(error.ends_with(message), "{error}");
    }
}

#[test]
fn reports_calls_that_throw() {
    let Some(tree) = faulty("leaking") else { return };
    let tree = tree.unwrap();
    let what = "std::runtime_error: the pool is leaking".to_owned();
    let threw = |method| {
        Err(CallError::Threw {
            method,
            what: what.clone(),
        })
    };
    let mut records = vec![1, 2, 3];
    for _ in 0..2 {
        assert_eq!(tree.find(b"k", &mut [0; 8]), threw("find"));
        assert_eq!(tree.insert(b"k", b"v"), threw("insert"));
        assert_eq!(tree.update(b"k", b"v"), threw("update"));
        assert_eq!(tree.remove(b"k"), threw("remove"));
    }
    let error = tree.scan(b"k", 1, 16, &mut records).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the wrapper's scan threw std::runtime_error: the pool is leaking"
    );
    assert!(records.is_empty());
}

#[test]
fn reports_scans_that_return_nonsense() {
    for (how, expected) in [
        ("negative", CallError::NegativeCount { count: -7 }),
        ("too many", CallError::TooMany { count: 4, requested: 3 }),
        ("nowhere", CallError::NoValues { count: 3, address: 0 }),
        (
            "wild",
            CallError::NoValues {
                count: 3,
                address: 0x10,
            },
        ),
    ] {
        let Some(tree) = faulty(how) else { return };
        let mut records = vec![1];
        assert_eq!(tree.unwrap().scan(b"", 3, 16, &mut records), Err(expected));
        assert!(records.is_empty());
    }
    let Some(empty) = faulty("empty") else { return };
    let empty = empty.unwrap();
    assert_eq!(empty.scan(b"", 3, 16, &mut Vec::new()), Ok(0));
    let requested = i32::MAX as usize + 1;
    assert_eq!(
        empty.scan(b"", requested, 16, &mut Vec::new()),
        Err(CallError::ScanTooLong { requested })
    );
    let Some(nowhere) = faulty("nowhere") else { return };
    let error = nowhere.unwrap().scan(b"", 3, usize::MAX, &mut Vec::new());
    assert!(
        matches!(error, Err(CallError::OutOfMemory { count: 3, .. })),
        "{error:?}"
    );
}

#[test]
fn dropping_deletes_the_tree() {
    let directory = TempDir::new().unwrap();
    let mark = directory.path().join("mark");
    let Some(tree) = faulty(&format!("mark {}", mark.display())) else {
        return;
    };
    let tree = tree.unwrap();
    assert!(!mark.exists());
    drop(tree);
    assert_eq!(std::fs::read(&mark).unwrap(), b"destroyed");
}

/// Returns the whole text of the error that opening `path` gives.
fn refusal(path: &Path) -> String {
    let error = open(path, &TreeOptions::default()).unwrap_err();
    assert!(error.source().is_none(), "the text is whole without its source");
    error.to_string()
}

#[test]
fn rejects_foreign_libraries_with_the_loaders_message() {
    let Some(foreign) = wrapper("foreign") else { return };
    let message = refusal(&foreign);
    assert!(
        message.contains("is not a PiBench wrapper, as it exports no create_tree"),
        "{message}"
    );
    assert!(message.contains("undefined symbol: create_tree"), "{message}");

    let directory = TempDir::new().unwrap();
    let missing = directory.path().join("missing.so");
    let message = refusal(&missing);
    assert!(
        message.starts_with(&format!("cannot load {}: ", missing.display())),
        "{message}"
    );
    assert!(message.contains("No such file or directory"), "{message}");

    let text = directory.path().join("text.so");
    std::fs::write(
        &text,
        "#!/bin/sh\necho this is not a shared library at all, and longer than a header\n",
    )
    .unwrap();
    let message = refusal(&text);
    assert!(message.contains("invalid ELF header"), "{message}");

    let message = refusal(directory.path());
    assert!(message.contains("cannot read file data: Is a directory"), "{message}");

    let message = refusal(Path::new("zero\0byte.so"));
    assert!(message.starts_with("cannot load zero"), "{message}");

    let message = refusal(Path::new(""));
    assert!(message.ends_with("the path is empty"), "{message}");
}

#[test]
fn a_build_without_a_compiler_reports_it() {
    if available() {
        println!("skipped: this build has the C++ shim");
        return;
    }
    let message = refusal(Path::new("any.so"));
    assert!(
        message.starts_with("cannot load any.so: this build has no PiBench host"),
        "{message}"
    );
    assert!(
        message.contains("no working C++20 compiler was found when it was built ("),
        "{message}"
    );
}

/// A mistake in the shim must not pass for a missing compiler.
#[test]
fn a_build_with_a_compiler_has_the_shim() {
    let directory = TempDir::new().unwrap();
    let source = directory.path().join("concept.cpp");
    std::fs::write(
        &source,
        "template <typename T> concept Any = true;\n#include <string>\nAny auto text = std::string();\n",
    )
    .unwrap();
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let compiled = Command::new(&compiler)
        .args(["-std=c++20", "-c", "-o"])
        .arg(directory.path().join("concept.o"))
        .arg(&source)
        .output();
    match compiled {
        Ok(output) if output.status.success() => assert!(available(), "{compiler} compiles C++20"),
        _ => println!("skipped: no C++ compiler"),
    }
}
