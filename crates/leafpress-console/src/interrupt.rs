//! Ctrl-C, and SIGTERM as `kill`, `timeout` and job schedulers send it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::failure::Failure;

/// The signal that came first; 0 before one came.
static SIGNAL: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

/// Returns a flag that the first Ctrl-C or SIGTERM sets, so that the work ends and keeps finished results. A second one
/// exits.
///
/// # Errors
/// [`Failure::Failed`] when the system refuses.
pub fn flag() -> Result<Arc<AtomicBool>, Failure> {
    let cancel = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The order matters: a signal ends the process if an earlier one has set the flag.
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&cancel))
            .and_then(|_| flag::register_usize(signal, Arc::clone(&SIGNAL), signal as usize))
            .and_then(|_| flag::register(signal, Arc::clone(&cancel)))
            .map_err(|e| Failure::failed(format!("cannot watch for signals: {e}")))?;
    }
    Ok(cancel)
}

/// The exit code of work that a signal ended, as in shells: 130 for Ctrl-C, 143 for SIGTERM.
pub(crate) fn exit_code() -> u8 {
    match SIGNAL.load(Ordering::Relaxed) {
        0 => 130,
        signal => u8::try_from(128 + signal).unwrap_or(130),
    }
}
