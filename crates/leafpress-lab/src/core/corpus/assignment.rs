//! Assigns a corpus's values to keys: the common rule of every command that stores values under its own keys.
//!
//! While the corpus has a value for every key, no two keys are loaded with the same one, and those that are taken are
//! spread over the whole corpus, whether there are as many keys as values or far fewer.

use std::fmt;

/// In which order keys are loaded with values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairing {
    /// Neighbouring keys have neighbouring values: a record's own, or under dense keys runs of the data in its own
    /// order.
    InOrder,
    /// Neighbouring keys have values from far apart, as keys that are not in the data's order have.
    Apart,
}

/// Runs of neighbouring values have about this many bytes, so that pages of neighbouring keys hold what neighbours in
/// the data.
const RUN_BYTES: u64 = 64 << 10;
/// A sample has at least this many runs, while it has as many keys.
const MIN_RUNS: u64 = 128;

/// From the number of a key and its version to the number of a value.
#[derive(Debug, Clone)]
pub struct Assignment {
    values: u64,
    /// From one version's value to the next; coprime to the number of values.
    version_stride: u64,
    order: Order,
}

#[derive(Debug, Clone)]
enum Order {
    /// Runs of `1 << run_bits` neighbouring values. The start of run n is moved on by `n * gap / 2^32` values.
    Runs { run_bits: u32, gap: u64 },
    /// Offset of a key's value from its predecessor's; coprime to the number of values.
    Stride(u64),
}

impl Assignment {
    /// Creates the rule for `keys` keys and a corpus of `values` values, at least one, of `value_bytes` on average.
    pub fn new(values: u64, value_bytes: f64, keys: u64, pairing: Pairing) -> Self {
        let order = match pairing {
            Pairing::InOrder => {
                let of_bytes = (RUN_BYTES as f64 / value_bytes.max(1.0)) as u64;
                let run = of_bytes.min(keys / MIN_RUNS).max(1);
                let run_bits = run.ilog2();
                let gaps = keys.div_ceil(1 << run_bits).saturating_sub(1).max(1);
                let spare = values.saturating_sub(keys);
                // Neither is over 2^33 or so: a corpus has some hundred megabytes, and a dump of records has none to
                // spare.
                let gap = ((u128::from(spare) << GAP_BITS) / u128::from(gaps)) as u64;
                Order::Runs { run_bits, gap }
            }
            // A different section from that of the versions: otherwise a key's second value would be the next key's
            // first.
            Pairing::Apart => Order::Stride(coprime_near(values, SILVER_SECTION)),
        };
        Self {
            values,
            version_stride: coprime_near(values, GOLDEN_SECTION),
            order,
        }
    }

    /// Returns the value that a key holds in a version.
    ///
    /// Version 0 is loaded. Later versions come from far apart, so that neighbouring keys do not get the same value.
    #[inline]
    pub fn value(&self, id: u64, version: u32) -> u64 {
        let first = match self.order {
            Order::Runs { run_bits, gap } => {
                id.wrapping_add(((u128::from(id >> run_bits) * u128::from(gap)) >> GAP_BITS) as u64)
            }
            Order::Stride(stride) => id.wrapping_mul(stride),
        };
        first.wrapping_add(u64::from(version).wrapping_mul(self.version_stride)) % self.values
    }
}

/// There are fewer values than keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeats {
    /// Number of values.
    pub values: u64,
    /// Number of keys.
    pub keys: u64,
}

impl fmt::Display for Repeats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { values, keys } = self;
        let times = *keys as f64 / (*values).max(1) as f64;
        write!(
            f,
            "The data has {values} value{} for {keys} keys, so each is stored {times:.1} times. Repeated values \
             compress better than the data does; use more data or fewer keys for representative ratios.",
            if *values == 1 { "" } else { "s" }
        )
    }
}

const GAP_BITS: u32 = 32;
const GOLDEN_SECTION: f64 = 0.618_033_988_749_894_9;
const SILVER_SECTION: f64 = 0.414_213_562_373_095;

/// A number near this section of `n` that has no common factor with it: its multiples visit all of `0..n`, and
/// consecutive ones are far apart.
fn coprime_near(n: u64, section: f64) -> u64 {
    fn gcd(a: u64, b: u64) -> u64 {
        if b == 0 { a } else { gcd(b, a % b) }
    }
    let near = (n as f64 * section) as u64;
    (near.max(1)..).find(|&candidate| gcd(candidate, n) == 1).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(values: u64, keys: u64, pairing: Pairing) -> Vec<u64> {
        let assignment = Assignment::new(values, 128.0, keys, pairing);
        (0..keys).map(|id| assignment.value(id, 0)).collect()
    }

    /// Keys have distinct values from every part of the data, however many more values there are.
    #[test]
    fn values_are_distinct_and_of_the_whole_data() {
        for pairing in [Pairing::InOrder, Pairing::Apart] {
            for (values, keys) in [
                (7, 3),
                (10, 9),
                (1000, 999),
                (5000, 128),
                (500_000, 50_000),
                (60_001, 40_000),
            ] {
                let mut taken = first(values, keys, pairing);
                taken.sort_unstable();
                let what = format!("{keys} of {values}, {pairing:?}");
                assert!(taken.windows(2).all(|pair| pair[0] < pair[1]), "{what}: repeated");
                assert!(taken.last() < Some(&values), "{what}");
                if keys < 100 {
                    continue;
                }
                for part in 0..20 {
                    let (start, end) = (values * part / 20, values * (part + 1) / 20);
                    let inside = taken.iter().filter(|value| (start..end).contains(value)).count() as f64;
                    let even = keys as f64 / 20.0;
                    assert!(
                        (even * 0.5..=even * 1.6).contains(&inside),
                        "{what}: {inside} in part {part}"
                    );
                }
            }
        }
    }

    #[test]
    fn in_order_neighbours_stay_neighbours() {
        assert_eq!(first(1000, 1000, Pairing::InOrder), (0..1000).collect::<Vec<_>>());
        let taken = first(500_000, 50_000, Pairing::InOrder);
        let breaks = taken.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
        assert!((100..400).contains(&breaks), "{breaks} runs");
        assert!(taken.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn describes_repeated_values() {
        let few = Assignment::new(128, 128.0, 50_000, Pairing::InOrder);
        assert!((0..50_000).all(|id| few.value(id, 0) == id % 128));
        let note = Repeats {
            values: 128,
            keys: 50_000,
        }
        .to_string();
        assert!(
            note.contains("128 values for 50000 keys") && note.contains("390.6 times"),
            "{note}"
        );
    }

    #[test]
    fn strides_visit_every_cut() {
        for n in [1, 2, 3, 4, 5, 6, 10, 12, 97, 100, 1 << 12] {
            for section in [GOLDEN_SECTION, SILVER_SECTION] {
                let stride = coprime_near(n, section);
                let visited: std::collections::HashSet<_> = (0..n).map(|i| i * stride % n).collect();
                assert_eq!(visited.len() as u64, n, "stride {stride} of {n}");
            }
        }
    }
}
