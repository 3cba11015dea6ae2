//! Thread scheduling priority.

/// Lowers the priority of the calling thread, where the system supports that per thread: its work can wait, and on few
/// processors it would otherwise delay the foreground threads.
#[cfg(not(any(shuttle, miri)))]
pub fn give_way() {
    /// The lowest priority that a thread can request.
    #[cfg(target_os = "linux")]
    const NICEST: libc::c_int = 19;
    // SAFETY: the call takes no pointers. On Linux it affects the calling thread alone; an error leaves the thread
    // unchanged.
    #[cfg(target_os = "linux")]
    let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICEST) };
}
