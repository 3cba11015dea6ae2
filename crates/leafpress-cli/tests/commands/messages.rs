//! What is said of arguments that cannot work: one line that begins with the flag.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use tempfile::TempDir;

use crate::common::{assert_bad_input, leafpress, run, stderr};

#[test]
fn numbers_that_are_none_are_told_plainly() {
    for (arguments, words) in [
        (
            "eval --background-threads=x",
            &["--background-threads: `x` is no whole number"][..],
        ),
        (
            "eval --background-threads=-1",
            &["--background-threads: `-1` is under 0"],
        ),
        (
            "pool --workers=99999999999999999999",
            &["--workers: `99999999999999999999`", "too large"],
        ),
        ("cache --backend-us=x", &["--backend-us: `x` is no number"]),
        ("cache --backend-us=", &["--backend-us: it is empty"]),
        ("pool --bytes=1X", &["--bytes: `1X` is no number of bytes"]),
        (
            "bench leafpress:none --tree leaf_bytes=8X",
            &["--tree: leaf_bytes: `8X` is no number of bytes"],
        ),
        (
            "bench leafpress:none --pool_size=1X",
            &["--pool_size: `1X` is no number of bytes"],
        ),
        ("doctor --jsn", &["unexpected argument '--jsn' found; tip:", "--json"]),
    ] {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let output = run(&arguments);
        assert_bad_input(&output, words);
        assert!(
            !stderr(&output).contains("literal") && !stderr(&output).contains("invalid digit"),
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn flags_without_what_they_are_about_are_refused() {
    for (arguments, words) in [
        (
            "model --data-bytes 20G --trace-format u64le",
            ["--trace-format", "--trace"],
        ),
        (
            "model --data-bytes 20G --trace-sample 0.1",
            ["--trace-sample", "--trace"],
        ),
        ("model --data-bytes 20G --skip-junk", ["--skip-junk", "--trace"]),
        (
            "advise . --device-us 100 --data-bytes 1G -m 1M --trace-format x",
            ["--trace-format", "trace:FILE"],
        ),
        ("eval --keys 10 --iaa-codecs x", ["--iaa-codecs", "\"x\""]),
        ("eval --keys 10 --zlib-accel-codecs lz4", ["--zlib-accel-codecs", "lz4"]),
        ("bench btreemap --skew 7", ["--skew", "less than 1"]),
    ] {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        assert_bad_input(&run(&arguments), &words);
    }
}

#[test]
fn data_is_blamed_by_its_flag() {
    let directory = TempDir::new().expect("a temporary directory");
    for (flag, value) in [
        ("--data", "/no/such/data"),
        ("--data", "/dev/zero"),
        ("--trace", "/no/such/trace.csv"),
        ("--cachebench", "/no/such/file.json"),
    ] {
        let output = leafpress()
            .current_dir(directory.path())
            .args(["cache", "-m", "8M", flag, value])
            .output()
            .expect("leafpress starts");
        assert_bad_input(&output, &[&format!("{flag} {value}: ")]);
    }
    for command in ["cache", "codecs", "eval", "peers", "pool"] {
        let output = leafpress()
            .current_dir(directory.path())
            .args([command, "--data", ""])
            .output()
            .expect("leafpress starts");
        assert_bad_input(&output, &["--data: it is empty"]);
    }
}

/// A device that is read for ever, in every command that reads data.
#[test]
fn devices_without_an_end_are_refused() {
    for arguments in [
        "codecs --data /dev/zero",
        "eval --keys 10 --data /dev/zero",
        "peers --keys 10 --data /dev/zero",
    ] {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        assert_bad_input(&run(&arguments), &["--data /dev/zero: is a character device"]);
    }
}

#[test]
fn what_is_not_utf_8_is_named() {
    let flag = OsString::from_vec(b"--threads=\xff".to_vec());
    let output = leafpress().arg("eval").arg(flag).output().expect("leafpress starts");
    assert_bad_input(&output, &["--threads=", "\\xFF", "not UTF-8"]);
}

/// A directory may have any name.
#[test]
fn output_goes_to_directories_of_any_name() {
    let directory = TempDir::new().expect("a temporary directory");
    let name = directory.path().join(OsString::from_vec(b"n\xff".to_vec()));
    for (command, flag) in [
        (
            "eval --keys 100 --seconds 0.05 --codecs none --workloads read_only -t 1",
            "--out",
        ),
        (
            "pool --data packages -m 2M -d 0.05 -c lz4 --sweep-share 50 -q",
            "--scratch",
        ),
    ] {
        std::fs::create_dir_all(&name).expect("made");
        let output = leafpress()
            .current_dir(directory.path())
            .args(command.split(' '))
            .arg(flag)
            .arg(&name)
            .output()
            .expect("leafpress starts");
        assert!(output.status.success(), "{command}: {}", stderr(&output));
    }
}

#[test]
fn the_systems_numbers_are_left_out() {
    let directory = TempDir::new().expect("a temporary directory");
    let file = directory.path().join("file");
    std::fs::write(&file, "").expect("written");
    let output = leafpress()
        .args(["pool", "--data", "packages", "-m", "2M", "-d", "0.05", "--scratch"])
        .arg(&file)
        .output()
        .expect("leafpress starts");
    assert_bad_input(&output, &["--scratch", "Not a directory;"]);
    assert!(!stderr(&output).contains("os error"), "{}", stderr(&output));
}
