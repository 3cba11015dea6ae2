//! Waits of some microseconds, accurate to about a microsecond, without spinning all the time.

use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use super::system::{set_timer_slack_ns, timer_slack_ns};

/// Length of the final part of a wait that is spun, to cover late wakeups: Linux wakes a thread 5 to 12 us late with
/// minimal timer slack, and 55 to 65 us late otherwise.
const SPIN: Duration = Duration::from_micros(if cfg!(target_os = "linux") { 15 } else { 60 });

/// Returns when `wait` has passed since `start`.
pub fn until(start: Instant, wait: Duration) {
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

/// Sleeps with the thread's timer slack (50 us by default) minimised, and restores it afterwards.
#[cfg(target_os = "linux")]
fn sleep_precisely(duration: Duration) {
    let slack_ns = timer_slack_ns();
    // Real-time threads have no timer slack.
    if slack_ns <= 1 {
        return std::thread::sleep(duration);
    }
    set_timer_slack_ns(1);
    std::thread::sleep(duration);
    set_timer_slack_ns(slack_ns);
}

#[cfg(not(target_os = "linux"))]
fn sleep_precisely(duration: Duration) {
    std::thread::sleep(duration);
}

#[cfg(test)]
mod tests {
    use super::*;

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
        set_timer_slack_ns(70_000);
        until(Instant::now(), Duration::from_micros(200));
        assert_eq!(timer_slack_ns(), 70_000);
    }
}
