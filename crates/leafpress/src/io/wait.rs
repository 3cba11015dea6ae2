//! Waiting for some microseconds, to the microsecond or so, without keeping a processor busy all the while.

use std::time::{Duration, Instant};

/// Time before the end from which the processor is kept: what a sleep may come late by. Linux wakes a thread 5 to 12 us late once it is
/// told not to gather wakeups, and by 55 to 65 us otherwise.
const SPIN: Duration = Duration::from_micros(if cfg!(target_os = "linux") { 15 } else { 60 });

/// Returns when `wait` has passed since `start`.
pub(crate) fn until(start: Instant, wait: Duration) {
    let Some(end) = start.checked_add(wait) else {
        return;
    };
    let left = end.saturating_duration_since(Instant::now());
    if left > SPIN {
        sleep_precisely(left - SPIN);
    }
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

/// Sleeps with the thread's timer slack, 50 us unless somebody changed it, out of the way; the thread has it back afterwards.
#[cfg(target_os = "linux")]
fn sleep_precisely(duration: Duration) {
    // SAFETY: the call takes no pointer and changes nothing.
    let slack_ns = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK, 0, 0, 0, 0) };
    let set = |ns: libc::c_ulong| {
        // SAFETY: the call takes no pointer; it changes when this thread's timers may fire, and nothing else.
        let _ = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, ns, 0, 0, 0) };
    };
    match libc::c_ulong::try_from(slack_ns) {
        Ok(slack_ns) if slack_ns > 1 => {
            set(1);
            std::thread::sleep(duration);
            set(slack_ns);
        }
        // Real-time threads have none.
        _ => std::thread::sleep(duration),
    }
}

#[cfg(not(target_os = "linux"))]
fn sleep_precisely(duration: Duration) {
    std::thread::sleep(duration);
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::until;

    #[test]
    fn never_returns_early() {
        for us in [0, 1, 20, 110, 500] {
            let wait = Duration::from_micros(us);
            let start = Instant::now();
            until(start, wait);
            assert!(start.elapsed() >= wait);
        }
    }

    #[test]
    fn a_time_that_has_passed_is_not_waited_for() {
        let start = Instant::now();
        std::thread::sleep(Duration::from_millis(2));
        until(start, Duration::from_millis(1));
        assert!(start.elapsed() >= Duration::from_millis(2));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_thread_keeps_its_timer_slack() {
        // SAFETY: the calls take no pointer and change this thread's timer slack only.
        let slack = unsafe {
            libc::prctl(libc::PR_SET_TIMERSLACK, 70_000_u64, 0, 0, 0);
            until(Instant::now(), Duration::from_micros(200));
            libc::prctl(libc::PR_GET_TIMERSLACK, 0, 0, 0, 0)
        };
        assert_eq!(slack, 70_000);
    }
}
