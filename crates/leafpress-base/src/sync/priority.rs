//! How the system schedules a thread.

/// Has the calling thread give way to others, where the system has that for single threads: what it does can wait, and where there are
/// few processors it would keep the caller's thread from one.
#[cfg(not(any(shuttle, miri)))]
pub fn give_way() {
    /// The least that a thread can ask for.
    #[cfg(target_os = "linux")]
    const NICEST: libc::c_int = 19;
    // SAFETY: it takes no pointers. Linux has it for the calling thread alone; a refusal leaves the thread as it was.
    #[cfg(target_os = "linux")]
    let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICEST) };
}
