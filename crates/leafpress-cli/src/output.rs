//! Where results go: standard output, and a directory for files.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::failure::Failure;

/// Writes `text` to standard output. `println!` panics when the reader has gone; this does not.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Err(Failure::ReaderGone),
        Err(e) => Err(Failure::failed(format!("cannot write to standard output: {e}"))),
    }
}

/// `leafpress-results/COMMAND/20260418T021637Z`: UTC, as the ZipCache evaluation names its directories.
pub fn default_directory(command: &str) -> PathBuf {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    Path::new("leafpress-results")
        .join(command)
        .join(now.replace(['-', ':'], ""))
}
