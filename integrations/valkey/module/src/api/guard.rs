//! No panic may cross the boundary to C: that would be undefined behaviour.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::context::log_warning;

/// Runs a callback of the server; logs a panic, and returns `otherwise` then.
pub fn guarded<R>(what: &str, otherwise: R, run: impl FnOnce() -> R) -> R {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result,
        Err(panic) => {
            log_warning(&format!(
                "a defect in the leafpress module, in {what}: {}",
                panic_message(&*panic)
            ));
            otherwise
        }
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
}
