//! Messages about invalid arguments: one line that begins with the flag.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::process::Stdio;

use tempfile::TempDir;

use crate::common::{assert_bad_input, leafpress, run, stderr, stdout};

#[test]
fn reports_invalid_numbers_plainly() {
    for (arguments, words) in [
        (
            "eval --background-threads=x",
            &["--background-threads: `x` is not a whole number"][..],
        ),
        (
            "eval --background-threads=-1",
            &["--background-threads: `-1` is negative"],
        ),
        (
            "pool --workers=99999999999999999999",
            &["--workers: `99999999999999999999`", "too large"],
        ),
        ("cache --backend-us=x", &["--backend-us: `x` is not a number"]),
        ("cache --backend-us=", &["--backend-us: it is empty"]),
        ("pool --bytes=1X", &["--bytes: invalid size `1X`"]),
        (
            "bench leafpress:none --tree leaf_bytes=8X",
            &["--tree: leaf_bytes: invalid size `8X`"],
        ),
        (
            "bench leafpress:none --pool_size=1X",
            &["--pool_size: invalid size `1X`"],
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
            ["--trace-format", "trace:FILE"],
        ),
        (
            "model --data-bytes 20G --trace-sample 0.1",
            ["--trace-sample", "trace:FILE"],
        ),
        ("model --data-bytes 20G --skip-junk", ["--skip-junk", "trace:FILE"]),
        (
            "advise . --device-us 100 --data-bytes 1G -m 1M --trace-format x",
            ["--trace-format", "trace:FILE"],
        ),
        ("eval --keys 10 --iaa-codecs x", ["--iaa-codecs", "\"x\""]),
        ("eval --keys 10 --zlib-accel-codecs lz4", ["--zlib-accel-codecs", "lz4"]),
        ("bench btreemap --skew=-7", ["--skew", "at least 0"]),
    ] {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        assert_bad_input(&run(&arguments), &words);
    }
}

/// Data is read by more than one process, so a pipe would be empty for the second one, or keep it waiting.
#[test]
fn pipes_are_refused_and_keep_nobody_waiting() {
    let directory = TempDir::new().expect("a temporary directory");
    let made = std::process::Command::new("mkfifo")
        .args(["pipe", "pipe.csv", "pipe.so"])
        .current_dir(directory.path())
        .status()
        .expect("mkfifo runs");
    assert!(made.success());
    for arguments in [
        "eval --keys 10 --data pipe",
        "eval --records jsonl:/id --data /dev/stdin",
        "codecs --data pipe",
        "peers --keys 10 --data /dev/stdin",
        "pool --data pipe",
        "cache -m 8M --data pipe",
        "cache -m 8M --trace pipe.csv",
        "bench --value_source corpus:/dev/stdin btreemap",
    ] {
        let mut child = leafpress()
            .current_dir(directory.path())
            .args(arguments.split(' '))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("leafpress starts");
        // The pipe stays open until the command has ended, so that a reader would wait.
        let writer = child.stdin.take();
        let output = child.wait_with_output().expect("it ends");
        drop(writer);
        assert_bad_input(&output, &["is a pipe", "save it to a file first"]);
    }
    let output = leafpress()
        .current_dir(directory.path())
        .args(["bench", "./pipe.so"])
        .output();
    assert_bad_input(
        &output.expect("leafpress starts"),
        &["INPUT ./pipe.so: is not a regular file"],
    );
    assert_eq!(
        std::fs::read_dir(directory.path()).expect("a directory").count(),
        3,
        "nothing was begun"
    );
}

/// A terminal would obey the control characters in names of columns and files.
#[test]
fn nothing_that_a_terminal_obeys_is_printed() {
    let directory = TempDir::new().expect("a temporary directory");
    let name = "a\u{1b}[2J.csv";
    std::fs::write(directory.path().join(name), "id,\u{1b}]0;title\u{7}\u{1b}[2J\n1,2\n").expect("written");
    for arguments in [
        ["eval", "--data", name, "--records", "csv:missing"],
        ["eval", "--data", "missing\u{1b}[2J", "--records", "csv:id"],
        ["suite", name, "--codecs", "none", "--quick"],
        ["eval", "--keys", "1\u{1b}[2J", "--seconds", "1"],
    ] {
        let output = leafpress().current_dir(directory.path()).args(arguments).output();
        let output = output.expect("leafpress starts");
        for text in [stdout(&output), stderr(&output)] {
            assert!(
                !text.contains('\u{1b}') && !text.contains('\u{7}'),
                "{arguments:?}: {text:?}"
            );
        }
        if arguments[0] == "eval" {
            assert!(stderr(&output).contains("\\u{1b}[2J"), "{arguments:?}: {output:?}");
        }
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

/// Each flag and argument that takes what is there already, with a path that cannot be it: which one, and what is
/// wrong, is said first, and nothing was begun. `{}` is the path.
#[test]
fn a_path_that_cannot_be_used_is_blamed_by_its_flag() {
    let directory = TempDir::new().expect("a temporary directory");
    let here = |name: &str| directory.path().join(name);
    std::fs::write(here("empty"), "").expect("written");
    std::fs::create_dir(here("folder")).expect("made");
    std::fs::write(here("words"), "some words ".repeat(2000)).expect("written");
    let (missing, empty, folder) = ("./missing", "./empty", "./folder");
    // Blocks of a device may be in a directory, and files on it, so some take one.
    let every = [missing, empty, folder];
    let files = [missing, empty];
    let cases: [(&str, &str, &[&str]); 22] = [
        ("advise --quick -c none --device-us 100 {}", "{}: ", &every),
        (
            "advise --quick -c none --device-us 100 --distribution trace:{} words",
            "--distribution trace:{}: ",
            &every,
        ),
        (
            "advise --memory 4M --trace {} words",
            "--trace {}: ",
            &[missing, folder],
        ),
        (
            "advise --quick -c none --device-json {} words",
            "--device-json {}: ",
            &every,
        ),
        ("advise --quick -c none --fio-json {} words", "--fio-json {}: ", &every),
        ("advise --quick -c none --device {} words", "--device {}: ", &files),
        ("bench btreemap --records tsv --data {}", "--data {}: ", &every),
        (
            "bench btreemap -n 10 -p 10 --value_source corpus:{}",
            "--value_source corpus:{}: ",
            &every,
        ),
        ("bench {}", "INPUT {}: ", &every),
        ("bench --compare btreemap {}", "INPUT {}: ", &every),
        ("cache -m 8M -d 0.05 --data {}", "--data {}: ", &every),
        ("cache -m 8M --mrc --trace {}", "--trace {}: ", &[missing, folder]),
        ("cache -m 8M -d 0.05 --cachebench {}", "--cachebench {}: ", &every),
        (
            "cache -m 8M -d 0.05 --disk 64M --disk-path {}/file",
            "--disk-path {}/file: ",
            &files,
        ),
        ("codecs -c none --data {}", "--data {}: ", &every),
        ("device --fio-json {}", "--fio-json {}: ", &every),
        ("device -d 0.02 -b 4K -Q 1 {}", "{}: ", &files),
        ("doctor --dir {}", "--dir {}: ", &files),
        ("eval --keys 10 --data {}", "--data {}: ", &every),
        (
            "model -m 64K --distribution trace:{} --codec-costs lz4=2.5,10,2 --device-us 100",
            "--distribution trace:{}: ",
            &every,
        ),
        ("peers --keys 10 --data {}", "--data {}: ", &every),
        ("pool -m 1M -d 0.05 -c none --data {}", "--data {}: ", &every),
    ];
    let suites = [
        ("suite --quick -c none {}", "{}: ", &every[..]),
        ("suite --records tsv {}", "{}: ", &every),
    ];
    for (command, blamed, paths) in cases.into_iter().chain(suites) {
        for path in paths {
            let words = command.replace("{}", path);
            let output = leafpress()
                .current_dir(directory.path())
                .args(words.split(' '))
                .output()
                .expect("leafpress starts");
            assert_bad_input(&output, &[]);
            let message = stderr(&output);
            let start = format!("error: {}", blamed.replace("{}", path));
            assert!(message.starts_with(&start), "{words}: {message}");
            assert!(message.len() > start.len() + 5, "{words}: it says why: {message}");
            // Once to blame it, and once more at most in what is to be done.
            assert!(message.matches(path).count() <= 2, "{words}: {message}");
        }
    }
}

/// Each flag that says where files go, where none can go.
#[test]
fn output_that_cannot_be_written_is_blamed_by_its_flag() {
    let directory = TempDir::new().expect("a temporary directory");
    std::fs::write(directory.path().join("words"), "some words ".repeat(2000)).expect("written");
    for (command, flag) in [
        ("advise --quick -c none --device-us 100 words", "--out"),
        ("bench btreemap -n 10 -p 10", "--out"),
        ("bench btreemap -n 10 -p 10", "--json"),
        ("bench btreemap -n 10 -p 10", "--html"),
        ("cache -m 8M -d 0.05 --engines leafpress --working-set 8M", "--out"),
        ("device words -d 0.02 -b 4K -Q 1", "--out"),
        ("eval --keys 10 -c none --data words", "--out"),
        ("model --data-bytes 20G -m 2G", "--out"),
        ("peers --keys 10 -c none --data words", "--out"),
        ("pool --data words --page-bytes 1K -m 128K -c none", "--out"),
        ("suite --quick -c none words", "--out"),
    ] {
        let output = leafpress()
            .current_dir(directory.path())
            .args(command.split(' '))
            .args([flag, "words/in"])
            .output()
            .expect("leafpress starts");
        assert_bad_input(&output, &["words/in"]);
        let message = stderr(&output);
        assert!(message.starts_with(&format!("error: {flag}")), "{command}: {message}");
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
