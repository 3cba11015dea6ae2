//! Costs of reading, compressing and decoding a page, and compression ratios, measured at run time.
//!
//! Times of single calls on a busy machine are occasionally a thousand times too long, if the thread was preempted. So
//! an exponential moving average clips every value at a small multiple of itself: one outlier changes it by some
//! percent, and a lasting change is followed within some hundred calls. Of calls that end at the same moment on two
//! threads one may be lost.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Shorter pages are in the first class, longer ones in the last.
const MIN_BYTES: u32 = 512;
const MAX_BYTES: u32 = 1 << 20;
/// Number of size classes of pages, one per doubling.
pub(crate) const CLASSES: usize = (MAX_BYTES.ilog2() - MIN_BYTES.ilog2() + 1) as usize;

/// Returns the class of a page of this length.
pub(crate) fn class(raw_bytes: u32) -> usize {
    let doublings = raw_bytes.max(1).ilog2().saturating_sub(MIN_BYTES.ilog2());
    (doublings as usize).min(CLASSES - 1)
}

/// Parameters of a moving average.
#[derive(Debug, Clone, Copy)]
struct Averaging {
    /// A value is clipped at this multiple of the mean.
    most_times: f32,
    /// The weight of a value, after the first ones.
    weight: f32,
}

/// Some slow reads are the store's own; but on a busy machine most are caused by the scheduler.
const READ: Averaging = Averaging {
    most_times: 4.0,
    weight: 1.0 / 512.0,
};
/// A codec has no slow calls of its own.
const CODEC: Averaging = Averaging {
    most_times: 3.0,
    weight: 1.0 / 256.0,
};

/// Minimum of the clipping bound, in nanoseconds, so that a mean near 0 can rise.
const MIN_MOST_NS: f32 = 1_000.0;

/// Number of calls from which a mean is used for decisions.
const ENOUGH_CALLS: u32 = 8;

/// Number of lengths of compressed pages kept as a sample.
pub(crate) const SIZES: usize = 64;

/// An exponential moving average: an `f32` and the number of values so far.
#[derive(Debug, Default)]
struct Mean(AtomicU64);

impl Mean {
    fn parts(bits: u64) -> (f32, u32) {
        (f32::from_bits((bits >> 32) as u32), bits as u32)
    }

    /// Adds a value. `least_most` is the minimum of the clipping bound.
    fn add(&self, value: f32, averaging: Averaging, least_most: f32) {
        let bits = self.0.load(Relaxed);
        let (mean, values) = Self::parts(bits);
        let mean = if values == 0 {
            value
        } else {
            // Larger weights at first make the mean forget a bad beginning fast.
            let weight = (2.0 / (values as f32 + 2.0)).max(averaging.weight);
            mean + (value.min((mean * averaging.most_times).max(least_most)) - mean) * weight
        };
        let new = (u64::from(mean.to_bits()) << 32) | u64::from(values.saturating_add(1));
        let _ = self.0.compare_exchange(bits, new, Relaxed, Relaxed);
    }

    /// Returns the mean; [`None`] before `values` values.
    fn get(&self, values: u32) -> Option<f64> {
        let (mean, seen) = Self::parts(self.0.load(Relaxed));
        (seen >= values.max(1)).then_some(f64::from(mean))
    }
}

/// The mean of each class, and that of all calls together.
#[derive(Debug, Default)]
struct Means {
    classes: [Mean; CLASSES],
    all: Mean,
}

impl Means {
    fn add(&self, raw_bytes: u32, ns: u64, averaging: Averaging) {
        for mean in [&self.classes[class(raw_bytes)], &self.all] {
            mean.add(ns as f32, averaging, MIN_MOST_NS);
        }
    }

    /// Nanoseconds by class. A class without calls takes the value of the nearest class with calls; `scaled` states
    /// whether time is proportional to the length.
    fn table(&self, scaled: bool) -> Option<[f64; CLASSES]> {
        self.all.get(ENOUGH_CALLS)?;
        let mut table = [0.0; CLASSES];
        for (class, entry) in table.iter_mut().enumerate() {
            let known = (0..CLASSES).filter_map(|class| Some((class, self.classes[class].get(1)?)));
            let (nearest, ns) = known.min_by_key(|(other, _)| other.abs_diff(class))?;
            let doublings = if scaled { class as i32 - nearest as i32 } else { 0 };
            *entry = ns * 2f64.powi(doublings);
        }
        Some(table)
    }
}

/// Costs of the work on a page, by class, in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Prices {
    pub(crate) read: [f64; CLASSES],
    pub(crate) compress: [f64; CLASSES],
    pub(crate) decompress: [f64; CLASSES],
}

/// Ratios of stored to raw bytes of recently compressed pages, in 65536ths; 0 for unused elements.
pub(crate) type Sizes = [u32; SIZES];

/// Replaces the size of an incompressible page.
pub(crate) const UNSHRINKABLE: u32 = u32::MAX;

/// The costs of a pool. Recording takes some nanoseconds and no lock.
#[derive(Debug)]
pub(crate) struct Costs {
    read: Means,
    compress: Means,
    decompress: Means,
    /// The fraction of victims that were compressed by threads that needed room, instead of worker threads ahead of
    /// them.
    in_line: Mean,
    /// The fraction of the worker threads' time, 0 to 1, that other threads would have used: the bits of an `f32`.
    busy: AtomicU32,
    /// Stored bytes over raw bytes.
    fraction: Mean,
    sizes: [AtomicU32; SIZES],
    next_size: AtomicU32,
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            read: Means::default(),
            compress: Means::default(),
            decompress: Means::default(),
            in_line: Mean::default(),
            busy: AtomicU32::new(1f32.to_bits()),
            fraction: Mean::default(),
            sizes: [const { AtomicU32::new(0) }; SIZES],
            next_size: AtomicU32::new(0),
        }
    }
}

impl Costs {
    /// Records that the store took `ns` to read a page.
    pub(crate) fn read(&self, raw_bytes: u32, ns: u64) {
        self.read.add(raw_bytes, ns, READ);
    }

    /// Records that compressing a page took `ns`; it takes `stored` bytes, or is incompressible.
    pub(crate) fn compress(&self, raw_bytes: u32, ns: u64, stored: Option<u32>) {
        self.compress.add(raw_bytes, ns, CODEC);
        let fraction = stored.map(|stored| f64::from(stored) / f64::from(raw_bytes.max(1)));
        self.fraction.add(fraction.unwrap_or(1.0).min(1.0) as f32, CODEC, 1.0);
        let size = fraction.map_or(UNSHRINKABLE, |fraction| ((fraction.min(1.0) * 65536.0) as u32).max(1));
        let next = self.next_size.fetch_add(1, Relaxed) as usize % SIZES;
        self.sizes[next].store(size, Relaxed);
    }

    /// Records that a victim was compressed, by a thread that needed room (`in_line`) or by a worker thread ahead of
    /// need.
    pub(crate) fn compressed(&self, in_line: bool) {
        self.in_line.add(f32::from(u8::from(in_line)), CODEC, 1.0);
    }

    /// Sets the fraction of the worker threads' time that other threads would have used: 0 if a processor is idle, 1 if
    /// none is.
    pub(crate) fn set_busy(&self, busy: f64) {
        self.busy.store((busy as f32).to_bits(), Relaxed);
    }

    /// Returns that fraction.
    pub(crate) fn busy(&self) -> f64 {
        f64::from(f32::from_bits(self.busy.load(Relaxed)))
    }

    /// Returns the fraction of the time of compressing for which accesses wait.
    fn waited_for(&self) -> f64 {
        let in_line = self.in_line.get(ENOUGH_CALLS).unwrap_or(1.0);
        in_line + (1.0 - in_line) * self.busy()
    }

    /// Records that decoding a page took `ns`.
    pub(crate) fn decompress(&self, raw_bytes: u32, ns: u64) {
        self.decompress.add(raw_bytes, ns, CODEC);
    }

    /// Moving average of the time to read a page from the store, in nanoseconds; 0 before the first.
    pub(crate) fn store_read_ns(&self) -> f64 {
        self.read.all.get(1).unwrap_or(0.0)
    }

    /// Moving average of the time to compress a page, in nanoseconds; 0 before the first.
    pub(crate) fn compress_ns(&self) -> f64 {
        self.compress.all.get(1).unwrap_or(0.0)
    }

    /// Moving average of the time to decode a page, in nanoseconds; 0 before the first.
    pub(crate) fn decompress_ns(&self) -> f64 {
        self.decompress.all.get(1).unwrap_or(0.0)
    }

    /// Moving average of the ratio of raw to stored bytes, in which an incompressible page counts as 1; 0 before the
    /// first.
    pub(crate) fn ratio(&self) -> f64 {
        self.fraction.get(1).map_or(0.0, |fraction| 1.0 / fraction.max(1e-6))
    }

    /// Returns the costs for decisions; [`None`] until some pages were read and some compressed. Compressing costs the
    /// part of it for which accesses wait. Before the first decoding, that is assumed to cost half of compressing.
    pub(crate) fn prices(&self) -> Option<Prices> {
        let compress = self.compress.table(true)?;
        let waited_for = self.waited_for();
        Some(Prices {
            read: self.read.table(false)?,
            compress: compress.map(|ns| ns * waited_for),
            decompress: self.decompress.table(true).unwrap_or(compress.map(|ns| ns / 2.0)),
        })
    }

    /// Returns the sizes of the last compressed pages.
    pub(crate) fn sizes(&self) -> Sizes {
        std::array::from_fn(|index| self.sizes[index].load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outlier_moves_a_mean_by_some_percent() {
        let costs = Costs::default();
        for _ in 0..1_000 {
            costs.compress(4096, 10_000, Some(1_000));
        }
        costs.compress(4096, 5_000_000, Some(1_000));
        assert!(
            (10_000.0..10_100.0).contains(&costs.compress_ns()),
            "{}",
            costs.compress_ns()
        );
        assert!((4.0..4.2).contains(&costs.ratio()), "{}", costs.ratio());
    }

    #[test]
    fn a_lasting_change_is_followed_both_ways() {
        let costs = Costs::default();
        for ns in [20_000, 500_000, 5_000, 0, 3_000_000] {
            for _ in 0..6_000 {
                costs.read(4096, ns);
            }
            let (mean, ns) = (costs.store_read_ns(), ns as f64);
            assert!((mean - ns).abs() <= ns * 0.05 + 10.0, "{mean} for {ns}");
        }
    }

    #[test]
    fn a_first_call_that_was_slow_is_soon_forgotten() {
        let costs = Costs::default();
        costs.decompress(4096, 5_000_000);
        for _ in 0..100 {
            costs.decompress(4096, 2_000);
        }
        assert!(costs.decompress_ns() < 10_000.0, "{}", costs.decompress_ns());
    }

    #[test]
    fn compressing_costs_what_is_waited_for() {
        let costs = Costs::default();
        for number in 0..4_000 {
            costs.read(4096, 20_000);
            costs.compress(4096, 10_000, Some(1_000));
            costs.compressed(number % 4 == 0);
        }
        let price = || costs.prices().unwrap().compress[class(4096)];
        // No processor is idle.
        assert_eq!(price(), 10_000.0);
        costs.set_busy(0.0);
        assert!((2_400.0..2_600.0).contains(&price()), "{}", price());
        costs.set_busy(0.5);
        assert!((6_200.0..6_300.0).contains(&price()), "{}", price());
    }

    #[test]
    fn classes_without_calls_take_after_the_nearest() {
        let costs = Costs::default();
        assert_eq!(costs.prices(), None);
        for _ in 0..100 {
            costs.read(8192, 50_000);
            costs.compress(8192, 8_000, None);
        }
        let Some(prices) = costs.prices() else {
            panic!("reading and compressing are known");
        };
        let prices_of = |raw_bytes| {
            let class = class(raw_bytes);
            (prices.read[class], prices.compress[class], prices.decompress[class])
        };
        assert_eq!(prices_of(8192), (50_000.0, 8_000.0, 4_000.0));
        assert_eq!(prices_of(9000), prices_of(8192));
        assert_eq!(prices_of(4096), (50_000.0, 4_000.0, 2_000.0));
        assert_eq!(prices_of(32768), (50_000.0, 32_000.0, 16_000.0));
        assert!(costs.sizes().contains(&UNSHRINKABLE));
        assert_eq!(costs.ratio(), 1.0);
    }

    #[test]
    fn lengths_have_classes() {
        assert_eq!(class(0), 0);
        assert_eq!(class(1), 0);
        assert_eq!(class(512), 0);
        assert_eq!(class(1023), 0);
        assert_eq!(class(1024), 1);
        assert_eq!(class(1 << 20), CLASSES - 1);
        assert_eq!(class(u32::MAX), CLASSES - 1);
    }
}
