//! The plugin as its users load it: through our own host, and from a C++ program that calls it as PiBench does.

#[path = "../../test_support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use leafpress_pibench_host::{FIND_BUFFER_BYTES, Library, LoadError, TreeOptions, available};

/// Returns the shared library, which cargo has put next to the test.
fn plugin() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let plugin = test.with_file_name("libleafpress_pibench.so");
    assert!(plugin.exists(), "{} is not there", plugin.display());
    plugin
}

/// Returns the tree through the host; `None`, which is printed, in a build without one.
fn open(options: &TreeOptions) -> Option<Result<Library, LoadError>> {
    if !available() {
        println!("skipped: no C++ compiler");
        return None;
    }
    // SAFETY: our own plugin, built with this test.
    Some(unsafe { Library::open(&plugin(), options) })
}

/// Runs the C++ program, built by each C++ compiler of the machine, with `LEAFPRESS_TREE` and the program's arguments.
/// No results when there is no compiler, which is printed.
fn drive(tree: &str, arguments: [&str; 3]) -> Vec<Output> {
    drive_with("driver.cpp", tree, arguments)
}

/// As [`drive`], with this program.
fn drive_with(program: &str, tree: &str, arguments: [&str; 3]) -> Vec<Output> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(program);
    let compilers = support::cxx_compilers();
    if compilers.is_empty() {
        println!("skipped: no C++ compiler");
    }
    compilers
        .iter()
        .map(|compiler| {
            Command::new(support::compile(compiler, &["-ldl"], &source, "driver"))
                .arg(plugin())
                .args(arguments)
                .env("LEAFPRESS_TREE", tree)
                .output()
                .unwrap()
        })
        .collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_host_drives_the_plugin_like_a_map() {
    let options = TreeOptions {
        key_size: 12,
        value_size: 40,
        num_threads: 4,
        protocol: 2,
        clock_type: 3,
        gc_enabled: 1,
        ..TreeOptions::default()
    };
    let Some(tree) = open(&options) else { return };
    let tree = tree.unwrap();
    let mut random = fastrand::Rng::with_seed(1729);
    let mut model = BTreeMap::new();
    let mut value_out = vec![0; FIND_BUFFER_BYTES];
    let mut records = Vec::new();
    for step in 0..30_000 {
        let key = format!("user{:08}", random.u32(..2000)).into_bytes();
        let value = format!("{step:<40}").into_bytes();
        match random.u8(..10) {
            0..4 => {
                assert_eq!(tree.insert(&key, &value).unwrap(), !model.contains_key(&key));
                model.entry(key).or_insert(value);
            }
            4 => {
                let slot = model.get_mut(&key);
                assert_eq!(tree.update(&key, &value).unwrap(), slot.is_some());
                if let Some(slot) = slot {
                    *slot = value;
                }
            }
            5 => assert_eq!(tree.remove(&key).unwrap(), model.remove(&key).is_some()),
            6..9 => {
                let found = tree.find(&key, &mut value_out).unwrap();
                assert_eq!(found.then_some(&value_out[..40]), model.get(&key).map(Vec::as_slice));
            }
            _ => {
                let requested = random.usize(..50);
                let count = tree.scan(&key, requested, 52, &mut records).unwrap();
                let expected: Vec<u8> = model
                    .range(key..)
                    .take(requested)
                    .flat_map(|(key, value)| [key.as_slice(), value].concat())
                    .collect();
                assert_eq!((count, &records), (expected.len() / 52, &expected));
            }
        }
    }
    assert!(model.len() > 500);
}

#[test]
fn threads_insert_and_scan_at_once() {
    let options = TreeOptions {
        key_size: 10,
        value_size: 10,
        ..TreeOptions::default()
    };
    let Some(tree) = open(&options) else { return };
    let tree = tree.unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let tree = &tree;
            scope.spawn(move || {
                let mut records = Vec::new();
                for id in 0..500 {
                    let key = format!("{thread}.{id:08}").into_bytes();
                    assert!(tree.insert(&key, &key).unwrap());
                    let count = tree.scan(&key, 20, 20, &mut records).unwrap();
                    // The thread's own last record comes first; other threads' follow, each whole and in order.
                    assert!(count >= 1 && records[..10] == key[..]);
                    assert!(records.chunks(20).all(|record| record[..10] == record[10..]));
                    assert!(records.chunks(20).is_sorted_by(|a, b| a < b));
                }
            });
        }
    });
    assert_eq!(tree.scan(b"", 5000, 20, &mut Vec::new()).unwrap(), 2000);
}

#[test]
fn sizes_that_no_tree_holds_are_refused() {
    for (key_size, value_size) in [(1025, 8), (8, (64 << 20) + 1), (usize::MAX, usize::MAX)] {
        let options = TreeOptions {
            key_size,
            value_size,
            ..TreeOptions::default()
        };
        let Some(opened) = open(&options) else { return };
        assert!(matches!(opened, Err(LoadError::NullTree { .. })), "{opened:?}");
    }
}

#[test]
fn a_cpp_program_drives_the_plugin_as_pibench_does() {
    for tree in [
        "",
        "codec=none",
        "codec=lz4,shards=4",
        "codec=zstd:1,dictionary=off,leaf_bytes=1024,background_threads=1",
        "codec=deflate:1,layout=hashed:4,landing_bytes=0",
    ] {
        for arguments in [
            ["", "8", "8"],
            ["user", "8", "100"],
            ["", "4", "9"],
            ["a longer prefix/", "128", "1400"],
        ] {
            for output in drive(tree, arguments) {
                assert!(
                    output.status.success(),
                    "LEAFPRESS_TREE={tree:?} {arguments:?}: {} {} {}",
                    output.status,
                    text(&output.stdout),
                    text(&output.stderr)
                );
                // The one refusal that the program provokes on its second tree, once.
                let message = text(&output.stderr);
                assert_eq!(message.lines().count(), 1, "{message}");
                assert!(
                    message.starts_with("leafpress-pibench: insert failed: a key of "),
                    "{message}"
                );
                assert!(message.contains("bytes, and the tree was made for"), "{message}");
            }
        }
    }
}

/// PiBench's newer branches have `bulk_load` before `find`.
#[test]
fn a_program_of_a_newer_branch_drives_the_plugin() {
    for tree in ["", "codec=none,interface=bulk_load"] {
        for output in drive_with("driver_bulk_load.cpp", tree, ["user", "8", "100"]) {
            let message = text(&output.stderr);
            assert!(
                output.status.success(),
                "LEAFPRESS_TREE={tree:?}: {} {} {message}",
                output.status,
                text(&output.stdout)
            );
            // The refusal of a size that the program provokes on its second tree.
            assert_eq!(message.lines().count(), 1, "{message}");
        }
    }
}

#[test]
fn a_bad_option_makes_no_tree_and_one_line() {
    for (tree, arguments, message) in [
        (
            "codec=lz5",
            ["", "8", "8"],
            "LEAFPRESS_TREE: codec=lz5: unknown codec \"lz5\"",
        ),
        ("shards=0", ["", "8", "8"], "LEAFPRESS_TREE: shards: 0 is out of bounds"),
        (
            "colour=red",
            ["", "8", "8"],
            "LEAFPRESS_TREE: unknown option \"colour\"",
        ),
        (
            "",
            ["", "1025", "8"],
            "keys of 1025 bytes are longer than the limit of 1024",
        ),
        (
            "",
            ["", "8", "67108865"],
            "values of 67108865 bytes are longer than the limit of 67108864",
        ),
    ] {
        for output in drive(tree, arguments) {
            assert_eq!(output.status.code(), Some(3), "{}", text(&output.stdout));
            let line = text(&output.stderr);
            assert!(line.starts_with(&format!("leafpress-pibench: {message}")), "{line}");
            assert_eq!(line.lines().count(), 1, "{line}");
        }
    }
}
