//! Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;

/// A flag that the first Ctrl-C sets, so that the work ends and keeps what is finished. The second one ends the process.
///
/// # Errors
/// [`Failure::Failed`] when the system refuses.
pub fn flag() -> Result<Arc<AtomicBool>, Failure> {
    let cancel = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&cancel);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
    .map_err(|e| Failure::failed(format!("cannot watch for Ctrl-C: {e}")))?;
    Ok(cancel)
}
