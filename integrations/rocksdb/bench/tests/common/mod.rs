//! Runs the command and looks at what it did.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Returns the command with the bundled samples and no variable of the caller's that it reads.
pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leafpress-rocksdb"));
    command.env("LEAFPRESS_DATA", data());
    command.env_remove("LEAFPRESS_QPL");
    command
}

/// Where the bundled samples are.
pub fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../data")
}

pub fn run(arguments: &[&str]) -> Output {
    command().args(arguments).output().expect("the command starts")
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("standard output is UTF-8")
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("standard error is UTF-8")
}

/// Exit code 0; what it printed.
#[track_caller]
pub fn success(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    stdout(&output)
}

/// Exit code 2 and one line on standard error that has every one of `words`; nothing on standard output.
#[track_caller]
pub fn bad_input(arguments: &[&str], words: &[&str]) {
    let output = run(arguments);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "exit code of {arguments:?}: {message}");
    assert_eq!(stdout(&output), "", "nothing is printed before the error");
    assert_eq!(message.lines().count(), 1, "one line: {message}");
    assert!(message.starts_with("error: "), "{message}");
    for word in words {
        assert!(message.contains(word), "no `{word}` in: {message}");
    }
}

/// Text in which every run of figures, with what belongs to them, is one `#`, and the machine and directories are left
/// out: the layout.
pub fn masked(text: &str) -> String {
    let mut masked = String::new();
    for line in text.lines() {
        if line.starts_with('─') {
            masked += "---\n";
            continue;
        }
        let mut words = Vec::new();
        for word in line.split_whitespace() {
            let plain = word.trim_matches(|c: char| "+-,;%x*().".contains(c));
            let figure = plain.starts_with(|c: char| c.is_ascii_digit());
            match figure || plain == "NA" {
                true if words.last() == Some(&"#") => {}
                true => words.push("#"),
                false => words.push(word),
            }
        }
        masked += &words.join(" ");
        masked.push('\n');
    }
    masked
}

/// A tab-separated table: names of columns, and rows by name.
pub struct Table {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Table {
    pub fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut lines = text
            .lines()
            .map(|line| line.split('\t').map(str::to_owned).collect::<Vec<_>>());
        let columns = lines.next().expect("names of columns");
        let rows: Vec<_> = lines.collect();
        assert!(
            rows.iter().all(|row| row.len() == columns.len()),
            "all rows have all columns"
        );
        Self { columns, rows }
    }

    #[track_caller]
    pub fn get(&self, row: usize, column: &str) -> &str {
        let at = self.columns.iter().position(|name| name == column);
        &self.rows[row][at.unwrap_or_else(|| panic!("no column {column}"))]
    }

    #[track_caller]
    pub fn number(&self, row: usize, column: &str) -> f64 {
        let text = self.get(row, column);
        text.parse()
            .unwrap_or_else(|_| panic!("{column}: {text} is not a number"))
    }
}

/// The report of a directory: complete, and readable without a network.
#[track_caller]
pub fn assert_page(directory: &Path, words: &[&str]) {
    let page = std::fs::read_to_string(directory.join("report.html")).expect("a page");
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    for outside in ["http://", "https://", "<script src", "<link"] {
        let page = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!page.contains(outside), "the page wants {outside}");
    }
    for word in words {
        assert!(page.contains(word), "no `{word}` in the page");
    }
    assert!(!page.contains("NaN") && !page.contains(">inf"), "a figure is none");
}
