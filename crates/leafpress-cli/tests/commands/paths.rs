//! Paths are any bytes, in every command that takes one: they go to the runs' processes and into the files.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::common::{leafpress, stderr, succeeded};
use tempfile::TempDir;

/// A run of `command` in `directory`, where `{}` in its words stands for `name`; it must end well.
#[track_caller]
fn well(directory: &Path, command: &str, name: &OsStr) -> String {
    let words = command.split(' ').map(|word| {
        let Some((before, after)) = word.split_once("{}") else {
            return OsString::from(word);
        };
        let mut word = OsString::from(before);
        word.push(name);
        word.push(after);
        word
    });
    let output = leafpress()
        .args(words)
        .current_dir(directory)
        .output()
        .expect("leafpress starts");
    succeeded(&output)
}

#[test]
fn data_may_have_any_name() {
    let directory = TempDir::new().expect("a temporary directory");
    let name = OsStr::from_bytes(b"d\xff\xfeta");
    let data = b"some\twords that are here and there\n".repeat(2000);
    std::fs::write(directory.path().join(name), data).expect("a file");
    for command in [
        "eval --keys 200 -d 0.05 -t 1 -c none --workloads read_only --out {}.out --data {}",
        "peers --keys 200 -d 0.05 --rounds 1 -c none --out out --data {}",
        "pool -d 0.1 -w 1 --page-bytes 1K -m 128K --scratch . --out out --data ./{}",
        "codecs -c none --data {}",
        "suite -c none --quick --out out {}",
        "cache --engines leafpress -m 4M --working-set 8M -d 0.1 --out out --data {}",
        "bench btreemap -n 100 -p 100 --value_source corpus:{} --json {}.json",
        "bench --compare btreemap leafpress -n 100 -p 100 --value_source corpus:./{} --html {}.html",
        "bench btreemap -n 1 -p 100 --records tsv --data {}",
        "advise --quick -c lz4 --device-us 100 {}",
        "device -b 4K -q 1 -d 0.05 {}",
    ] {
        well(directory.path(), command, name);
    }
}

#[test]
fn traces_may_have_any_name() {
    let directory = TempDir::new().expect("a temporary directory");
    let numbers: String = (0..2000).map(|number| format!("{}\n", number * number % 97)).collect();
    let name = OsStr::from_bytes(b"\xff.keys");
    std::fs::write(directory.path().join(name), numbers).expect("a file");
    std::fs::write(directory.path().join("words"), b"some words ".repeat(2000)).expect("a file");
    for command in [
        "advise --quick -c lz4 --device-us 100 --distribution trace:{} words",
        "advise --trace {} --memory 4M words",
        "model --distribution trace:{} -m 64K --codec-costs lz4=2.5,10,2 --device-us 100",
        "cache --engines leafpress -m 4M --trace {} --data words --out out",
    ] {
        well(directory.path(), command, name);
    }
}

/// A library is found by its name, and its pool's path reaches it unchanged.
#[test]
fn a_library_may_have_any_name() {
    for arguments in [
        ["bench", "{}", "-n"],
        ["bench", "--input={}", "-n"],
        ["bench", "--compare", "{}"],
    ] {
        let name = OsStr::from_bytes(b"/no/\xff");
        let words = arguments.iter().map(|word| match word.split_once("{}") {
            Some((before, _)) => OsString::from_iter([OsStr::new(before), name]),
            None => (*word).into(),
        });
        let words = words.filter(|word| word != "-n");
        let output = leafpress().args(words).output().expect("leafpress starts");
        assert_eq!(output.status.code(), Some(2));
        let message = stderr(&output);
        assert!(
            message.starts_with("error: INPUT /no/") && message.contains("No such file"),
            "{message}"
        );
    }
}
