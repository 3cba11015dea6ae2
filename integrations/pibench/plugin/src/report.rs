//! Lines on standard error: the only way to say anything through PiBench's interface. See the crate's documentation.

use std::any::Any;
use std::fmt::Display;
use std::io::Write;

/// Writes one line; if there is no standard error, nothing.
pub(crate) fn line(message: impl Display) {
    // Not eprintln, which panics when standard error is closed.
    let _ = writeln!(std::io::stderr(), "leafpress-pibench: {message}");
}

/// What a panic said.
pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
