//! Output of results: standard output, and a directory for files.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use leafpress_lab::report::{self, Document};

use crate::failure::Failure;

/// Escapes `text` for a terminal: names of files and columns, and messages of libraries, may contain control
/// characters, which a terminal obeys, and marks that change the direction of what follows. They are written as escapes
/// (`\u{1b}`); line ends and tabs stay.
///
/// Everything that this program prints goes through here: [`print()`], [`message`] and the progress bar call it.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_unsafe = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t')) || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_unsafe(c) {
            escaped.extend(c.escape_unicode());
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// Writes `text` to standard output, [`printable`]. `println!` panics when the reader has gone; this does not.
///
/// # Errors
/// [`Failure::ReaderGone`] when the reader has gone, [`Failure::Failed`] when it cannot be written.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(printable(text).as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Err(Failure::ReaderGone),
        Err(e) => Err(Failure::failed(format!("cannot write to standard output: {e}"))),
    }
}

/// Writes a report for people, wrapped to the terminal's width except for text that cannot be wrapped.
///
/// # Errors
/// See [`print()`].
pub fn print_report(text: &str) -> Result<(), Failure> {
    print(&report::narrow(text))
}

/// Prints a report, writes its files into `out`, and prints where they are. The files are written even if the reader of
/// standard output goes away.
///
/// # Errors
/// See [`print()`]; [`Failure::Failed`] when a file cannot be written.
pub fn show(report: &Document<'_>, command_line: &str, out: Option<&Path>) -> Result<(), Failure> {
    let printed = print_report(&report.text());
    if let Some(out) = out {
        let written = report
            .write(command_line, out)
            .map_err(|e| Failure::failed(e.to_string()))?;
        print(&format!("\n{written}"))?;
    }
    printed
}

/// Sets the report width to that of the terminal, if standard output is one, or to `COLUMNS`.
pub fn fit_terminal() {
    if let Some(columns) = columns(io::stdout()) {
        report::set_page_width(columns);
    }
}

/// The width of a stream's terminal: `COLUMNS`, or the terminal's own. `None` without either.
fn columns(stream: impl AsFd) -> Option<usize> {
    let columns_variable = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let columns_variable = columns_variable.filter(|columns| *columns > 0);
    columns_variable
        .or_else(|| terminal_size::terminal_size_of(stream).map(|(terminal_size::Width(columns), _)| columns.into()))
}

/// Formats a message for standard error, [`printable`]: one line for programs, wrapped at words for people.
pub fn message(text: &str) -> String {
    let text = printable(text);
    match columns(io::stderr()).filter(|_| io::stderr().is_terminal()) {
        Some(columns) => report::wrapped_to(columns, &text, "", "  ").trim_end().to_owned(),
        None => text.into_owned(),
    }
}

/// Writes a message to standard error. An error of that write is ignored, since it cannot be reported.
pub fn print_message(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", message(text));
}

/// Returns `leafpress-results/COMMAND/20260418T021637Z`: UTC, as the ZipCache evaluation names its directories.
pub fn default_directory(command: &str) -> PathBuf {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    Path::new("leafpress-results")
        .join(command)
        .join(now.replace(['-', ':'], ""))
}

/// Creates a directory and its parents.
///
/// # Errors
/// [`Failure::BadInput`] with the option that names a directory that cannot be created.
pub fn make_directory(option: &str, directory: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(directory).map_err(|e| {
        let reason = match e.kind() {
            io::ErrorKind::AlreadyExists => "is not a directory".to_owned(),
            _ => e.to_string(),
        };
        Failure::bad_input(format!(
            "--{option} {}: {reason}; name a writable directory",
            directory.display()
        ))
    })
}

/// Returns the error of a file that cannot be written under `--out`.
pub fn unwritable(error: &impl std::fmt::Display) -> Failure {
    Failure::bad_input(format!("--out: {error}; name a writable directory"))
}

/// Returns a command line that can be typed again: `program` and the remaining words, quoted where a shell needs it.
pub fn command_line(program: &str, words: impl Iterator<Item = OsString>) -> String {
    let words = words.skip(1).map(|word| quoted(&word.to_string_lossy()));
    std::iter::once(program.to_owned())
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns a word, quoted for a shell where needed.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::{message, printable};

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        let plain = "a\tb\n\u{e4}\u{1f600}";
        assert!(matches!(printable(plain), Cow::Borrowed(text) if text == plain));
        for (text, shown) in [
            ("\x1b]0;title\x07", "\\u{1b}]0;title\\u{7}"),
            ("a\rb\x08\x7f\0", "a\\u{d}b\\u{8}\\u{7f}\\u{0}"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("\u{202e}txt.exe\u{2066}", "\\u{202e}txt.exe\\u{2066}"),
        ] {
            assert_eq!(printable(text), shown);
            assert_eq!(message(text), shown);
        }
    }
}
