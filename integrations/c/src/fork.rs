//! Detects whether this process made a handle: a fork's child has its memory, and none of its threads.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::failure::Failure;
use crate::lp_status::LP_FORKED;

/// Forks between the first process that made a handle and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The process that a handle was made in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process(u32);

extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

impl Process {
    /// Returns the current process.
    ///
    /// Registers a counter of forks with the C library at the first call; the C library drops it when it unloads this
    /// library.
    pub fn this() -> Self {
        static COUNTS: Once = Once::new();
        COUNTS.call_once(|| {
            // SAFETY: the handler only increments a number. Without memory for it, forks are not detected.
            unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        });
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// Returns whether it is the current process.
    #[inline]
    pub fn is_this(self) -> bool {
        self.0 == FORKS.load(Ordering::Relaxed)
    }

    #[inline]
    pub fn check(self) -> Result<(), Failure> {
        if self.is_this() {
            return Ok(());
        }
        Err(Failure::fixed(
            LP_FORKED,
            c"the handle was made before this process was forked: open another in the child",
        ))
    }
}
