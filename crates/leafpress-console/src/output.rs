//! Where results go: standard output, and a directory for files.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use leafpress_lab::report;

use crate::failure::Failure;

/// `text` as it may be shown on a terminal: names of files and columns, and messages of libraries, may hold control characters, which a
/// terminal obeys, and marks that change the direction of what follows. They are written as escapes (`\u{1b}`); line ends and tabs stay.
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
/// [`Failure::ReaderGone`] when nobody reads any more, [`Failure::Failed`] when it cannot be written.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(printable(text).as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Err(Failure::ReaderGone),
        Err(e) => Err(Failure::failed(format!("cannot write to standard output: {e}"))),
    }
}

/// Writes a report for people, no line of it longer than the terminal is wide but for what cannot be wrapped.
///
/// # Errors
/// As [`print()`].
pub fn print_report(text: &str) -> Result<(), Failure> {
    print(&report::narrow(text))
}

/// Has reports made for the terminal, if standard output is one, or for as many columns as `COLUMNS` says.
pub fn fit_terminal() {
    if let Some(columns) = columns(io::stdout()) {
        report::set_page_width(columns);
    }
}

/// How wide the terminal of a stream is: as `COLUMNS` says, or as it says itself. `None` without both.
fn columns(stream: impl AsFd) -> Option<usize> {
    let given = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let given = given.filter(|columns| *columns > 0);
    given.or_else(|| terminal_size::terminal_size_of(stream).map(|(terminal_size::Width(columns), _)| columns.into()))
}

/// A message for standard error, [`printable`]: a line where programs read it, wrapped at words where people do.
pub fn message(text: &str) -> String {
    let text = printable(text);
    match columns(io::stderr()).filter(|_| io::stderr().is_terminal()) {
        Some(columns) => report::wrapped_to(columns, &text, "", "  ").trim_end().to_owned(),
        None => text.into_owned(),
    }
}

/// Writes a message to standard error. Nobody is left to be told when that fails.
pub fn tell(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", message(text));
}

/// `leafpress-results/COMMAND/20260418T021637Z`: UTC, as the ZipCache evaluation names its directories.
pub fn default_directory(command: &str) -> PathBuf {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    Path::new("leafpress-results")
        .join(command)
        .join(now.replace(['-', ':'], ""))
}

/// Makes a directory and those above it.
///
/// # Errors
/// [`Failure::BadInput`] with the option that names one that cannot be made.
pub fn make_directory(option: &str, directory: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(directory).map_err(|e| {
        let reason = match e.kind() {
            io::ErrorKind::AlreadyExists => "is no directory".to_owned(),
            _ => e.to_string(),
        };
        Failure::bad_input(format!(
            "--{option} {}: {reason}; name a directory that can be written",
            directory.display()
        ))
    })
}

/// The error of a file that is to be written below `--out`.
pub fn unwritable(error: &impl std::fmt::Display) -> Failure {
    Failure::bad_input(format!("--out: {error}; name a directory that can be written"))
}

/// A command line that can be typed again: `program` and the words behind the first, quoted where a shell needs it.
pub fn command_line(program: &str, words: impl Iterator<Item = OsString>) -> String {
    let words = words.skip(1).map(|word| quoted(&word.to_string_lossy()));
    std::iter::once(program.to_owned())
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

/// A word as a shell takes it: quoted where it needs to be.
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
