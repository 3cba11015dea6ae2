//! Latencies of one thread.

use hdrhistogram::Histogram;
use quanta::Clock;

use super::outcome::OPERATIONS;
use super::{Latencies, Operation, WindowLatency};
use crate::core::LabError;
use crate::core::latency::{LONGEST_NS, histogram, summary};

/// An operation that was measured, in the clock's ticks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pending {
    pub operation: Operation,
    pub start: u64,
    pub end: u64,
    /// Its intended start, in nanoseconds from the run's start. Used only in an open loop.
    pub intended: u64,
}

/// Operations that wait for the histograms. Few enough for the second-level cache; many enough that folding them, whose
/// accesses to memory do not depend on one another, costs each of them little.
const PENDING: usize = 1024;

/// Latency windows are multiples of the sampling window of at least this: closing one goes over whole histograms.
const MIN_WINDOW_MS: u64 = 100;

/// Length of a latency window in milliseconds.
fn window_of(sampling_ms: u64) -> u64 {
    sampling_ms * MIN_WINDOW_MS.div_ceil(sampling_ms).max(1)
}

/// Latencies of one thread: histograms, filled about a thousand operations at a time, outside of what is measured.
///
/// In a closed loop they are in the clock's ticks, which are turned into nanoseconds in the end.
///
/// On its own cache lines: threads' recorders are created one after the other.
#[repr(align(128))]
#[derive(Debug)]
pub(super) struct Recorder {
    clock: Clock,
    origin: u64,
    pending: Vec<Pending>,
    /// Of finished windows.
    by_operation: [Histogram<u64>; 6],
    /// Of the window in progress.
    current: [Histogram<u64>; 6],
    /// From the actual start, in an open loop.
    service: Option<Histogram<u64>>,
    window_ns: u64,
    window_number: u64,
    windows: Vec<Window>,
}

/// A finished window: the values of its histograms that occurred.
#[derive(Debug)]
struct Window {
    number: u64,
    counts: Vec<(u64, u64)>,
}

/// Ticks are shorter than nanoseconds, but not by more than this.
const TICKS_PER_NS: u64 = 8;

fn tick_histogram() -> Result<Histogram<u64>, LabError> {
    Histogram::new_with_bounds(1, LONGEST_NS * TICKS_PER_NS, 3)
        .map_err(|e| LabError::System(format!("cannot make a histogram: {e}")))
}

impl Recorder {
    pub(super) fn new(clock: Clock, open_loop: bool, sampling_ms: u64) -> Result<Self, LabError> {
        let one = tick_histogram()?;
        Ok(Self {
            clock,
            origin: 0,
            pending: Vec::with_capacity(PENDING),
            by_operation: std::array::from_fn(|_| one.clone()),
            current: std::array::from_fn(|_| one.clone()),
            service: open_loop.then_some(one),
            window_ns: window_of(sampling_ms).saturating_mul(1_000_000),
            window_number: 0,
            windows: Vec::new(),
        })
    }

    /// The run starts at this reading of the clock.
    pub(super) fn start(&mut self, origin: u64) {
        self.origin = origin;
    }

    #[inline]
    pub(super) fn push(&mut self, pending: Pending) {
        self.pending.push(pending);
    }

    /// Makes room for `more` operations, by flushing pending ones to the histograms if necessary.
    #[inline]
    pub(super) fn make_room(&mut self, more: usize) {
        if self.pending.capacity() - self.pending.len() < more {
            self.fold();
        }
    }

    /// Puts what is pending into the histograms.
    fn fold(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        let mut rest = pending.as_slice();
        while let Some(first) = rest.first() {
            // One thread's operations end one after another, and those of a fold mostly in one window.
            let number = self.window_of(first);
            let same = if rest.last().is_some_and(|last| self.window_of(last) == number) {
                rest.len()
            } else {
                rest.partition_point(|one| self.window_of(one) == number)
            };
            if number != self.window_number {
                self.close_window();
                self.window_number = number;
            }
            let (window, later) = rest.split_at(same.max(1));
            self.record(window);
            rest = later;
        }
        self.pending = pending;
        self.pending.clear();
    }

    /// The number of the window in which an operation ended.
    fn window_of(&self, one: &Pending) -> u64 {
        self.clock.delta_as_nanos(self.origin, one.end) / self.window_ns
    }

    /// Records operations of the window in progress.
    fn record(&mut self, window: &[Pending]) {
        let Some(service) = &mut self.service else {
            for one in window {
                self.current[one.operation as usize].saturating_record(one.end.saturating_sub(one.start));
            }
            return;
        };
        for one in window {
            service.saturating_record(self.clock.delta_as_nanos(one.start, one.end));
            let end = self.clock.delta_as_nanos(self.origin, one.end);
            self.current[one.operation as usize].saturating_record(end.saturating_sub(one.intended));
        }
    }

    fn close_window(&mut self) {
        let mut counts = Vec::new();
        for (sum, current) in self.by_operation.iter_mut().zip(&mut self.current) {
            if current.is_empty() {
                continue;
            }
            let recorded = current.iter_recorded();
            counts.extend(recorded.map(|value| (value.value_iterated_to(), value.count_at_value())));
            // Cannot fail: all histograms have the same bounds.
            let _ = sum.add(&*current);
            current.reset();
        }
        if !counts.is_empty() {
            self.windows.push(Window {
                number: self.window_number,
                counts,
            });
        }
    }

    /// Closes the last window with what is still pending.
    fn finish(&mut self) {
        self.fold();
        self.close_window();
    }

    /// A recorded figure in nanoseconds.
    fn nanoseconds(&self, figure: u64) -> u64 {
        if self.service.is_some() {
            figure
        } else {
            self.clock.delta_as_nanos(0, figure)
        }
    }

    fn in_nanoseconds(&self, recorded: &Histogram<u64>) -> Result<Histogram<u64>, LabError> {
        let mut converted = histogram()?;
        for value in recorded.iter_recorded() {
            converted.saturating_record_n(self.nanoseconds(value.value_iterated_to()), value.count_at_value());
        }
        Ok(converted)
    }

    /// The latencies of all threads.
    pub(super) fn merge(recorders: Vec<Self>, sampling_ms: u64) -> Result<Latencies, LabError> {
        let mut recorders = recorders.into_iter();
        let Some(mut all) = recorders.next() else {
            return Ok(Latencies::default());
        };
        all.finish();
        for mut other in recorders {
            other.finish();
            for (mine, theirs) in all.by_operation.iter_mut().zip(&other.by_operation) {
                let _ = mine.add(theirs);
            }
            if let (Some(mine), Some(theirs)) = (&mut all.service, &other.service) {
                let _ = mine.add(theirs);
            }
            all.windows.append(&mut other.windows);
        }
        let mut together = histogram()?;
        let mut by_operation = Vec::new();
        for operation in OPERATIONS {
            let one = all.in_nanoseconds(&all.by_operation[operation as usize])?;
            let _ = together.add(&one);
            by_operation.extend(summary(&one).map(|latency| (operation, latency)));
        }
        Ok(Latencies {
            all: summary(&together),
            by_operation,
            // Already in nanoseconds.
            service: all.service.as_ref().and_then(summary),
            windows: all.window_latencies(window_of(sampling_ms))?,
        })
    }

    /// The windows of all threads, in order.
    fn window_latencies(&mut self, window_ms: u64) -> Result<Vec<WindowLatency>, LabError> {
        self.windows.sort_by_key(|window| window.number);
        let mut latencies = Vec::new();
        let mut together = histogram()?;
        for same in self.windows.chunk_by(|a, b| a.number == b.number) {
            together.reset();
            for &(value, count) in same.iter().flat_map(|window| &window.counts) {
                together.saturating_record_n(self.nanoseconds(value), count);
            }
            latencies.push(WindowLatency {
                start_ms: same[0].number * window_ms,
                samples: together.len(),
                p50_ns: together.value_at_quantile(0.5),
                p99_ns: together.value_at_quantile(0.99),
                max_ns: together.max(),
            });
        }
        Ok(latencies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ticks of a mocked clock are nanoseconds.
    fn recorder(open_loop: bool) -> Recorder {
        let (clock, _) = Clock::mock();
        Recorder::new(clock, open_loop, 30).unwrap()
    }

    fn pending(start: u64, end: u64, intended: u64) -> Pending {
        Pending {
            operation: Operation::Read,
            start,
            end,
            intended,
        }
    }

    #[test]
    fn an_open_loop_counts_from_the_intended_start() {
        let mut recorder = recorder(true);
        recorder.start(1000);
        // Intended start 100 ns into the run, started at 600 ns, took 50 ns.
        recorder.push(pending(1600, 1650, 100));
        let latencies = Recorder::merge(vec![recorder], 30).unwrap();
        assert_eq!(latencies.all.unwrap().max_ns, 550);
        assert_eq!(latencies.service.unwrap().max_ns, 50);
    }

    #[test]
    fn windows_of_all_threads_are_merged_in_order() {
        let mut recorders = Vec::new();
        for thread in 0..2_u64 {
            let mut recorder = recorder(false);
            recorder.start(0);
            for window in [0_u64, 2, 5] {
                let end = window * 120_000_000 + 500_000;
                recorder.push(pending(end - 100 - 100 * thread, end, 0));
            }
            recorders.push(recorder);
        }
        let latencies = Recorder::merge(recorders, 30).unwrap();
        let starts: Vec<_> = latencies.windows.iter().map(|w| (w.start_ms, w.samples)).collect();
        assert_eq!(starts, [(0, 2), (240, 2), (600, 2)]);
        assert!(latencies.windows.iter().all(|w| (100..=101).contains(&w.p50_ns)));
        assert!(
            latencies.windows.iter().all(|w| (200..=202).contains(&w.max_ns)),
            "{latencies:?}"
        );
        assert_eq!(latencies.by_operation.len(), 1);
        assert!(latencies.service.is_none());
    }

    #[test]
    fn latency_windows_are_multiples_of_the_sampling_window() {
        for (sampling, window) in [(1, 100), (30, 120), (100, 100), (1000, 1000), (70, 140)] {
            assert_eq!(window_of(sampling), window);
        }
    }

    #[test]
    fn without_samples_there_is_no_latency() {
        let latencies = Recorder::merge(vec![recorder(true)], 30).unwrap();
        assert_eq!(latencies, Latencies::default());
    }
}
