//! How operations choose keys.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rand_xoshiro::rand_core::Rng;

use super::Permutation;
use super::permutation::below;
use super::zipf::{Zipf, unit};
use crate::core::LabError;
use crate::core::words::serde_as_text;

/// A distribution by which operations choose keys. Hot keys are scattered over the key space, except for `latest`,
/// whose hot keys are neighbours by nature.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Distribution {
    /// Every key alike.
    #[default]
    Uniform,
    /// The key of rank r with a probability proportional to `1 / r^theta`, theta > 0: see `Zipf` for how it is drawn.
    Zipfian {
        /// The skew; 0.99 by default, as YCSB.
        theta: f64,
    },
    /// The hottest share `h` of the keys takes the share `1 - h` of the operations, and so on within it, 0 < h < 0.5
    /// (same paper).
    SelfSimilar {
        /// The hot share; 0.2 by default: the 80:20 rule.
        h: f64,
    },
    /// Writes go round the key space in order; reads choose keys by how lately they were written, zipfian.
    Latest {
        /// The skew; 0.99 by default.
        theta: f64,
    },
    /// A share of the operations is on a share of the keys, evenly within each.
    HotSet {
        /// Percent of the keys that are hot, more than 0 and less than 100; 20 by default.
        keys_pct: f64,
        /// Percentage of operations on them, 0 to 100; 80 by default.
        operations_pct: f64,
    },
}

impl Distribution {
    /// The default hot set: 80% of the operations on 20% of the keys.
    pub const HOT_SET: Self = Self::HotSet {
        keys_pct: 20.0,
        operations_pct: 80.0,
    };

    pub(crate) fn validate(self) -> Result<(), LabError> {
        let good = match self {
            Self::Uniform => true,
            Self::Zipfian { theta } | Self::Latest { theta } => theta > 0.0 && theta.is_finite(),
            Self::SelfSimilar { h } => h > 0.0 && h < 0.5,
            Self::HotSet {
                keys_pct,
                operations_pct,
            } => keys_pct > 0.0 && keys_pct < 100.0 && (0.0..=100.0).contains(&operations_pct),
        };
        if good {
            Ok(())
        } else {
            Err(LabError::option("distribution", format!("{self}: {}", Self::HELP)))
        }
    }

    const HELP: &str = "known: uniform, zipfian[:THETA] and latest[:THETA] with THETA > 0, self-similar[:H] with 0 < H \
                        < 0.5, hotset[:KEYS_PCT:OPERATIONS_PCT] or KEYS_PCT,OPERATIONS_PCT with 0 < KEYS_PCT < 100 and \
                        0 <= OPERATIONS_PCT <= 100";
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.write_str("uniform"),
            Self::Zipfian { theta } => write!(f, "zipfian:{theta}"),
            Self::SelfSimilar { h } => write!(f, "self-similar:{h}"),
            Self::Latest { theta } => write!(f, "latest:{theta}"),
            Self::HotSet {
                keys_pct,
                operations_pct,
            } => write!(f, "hotset:{keys_pct}:{operations_pct}"),
        }
    }
}

impl FromStr for Distribution {
    type Err = LabError;

    /// Also by the names that others have: `even`, `zipf`, PiBench's `SELFSIMILAR`, and `X,Y` for `hotset:X:Y`.
    fn from_str(s: &str) -> Result<Self, LabError> {
        let word = s.trim().to_ascii_lowercase();
        let word = match word.split_once(',') {
            Some((keys, operations)) if !word.contains(':') => format!("hotset:{}:{}", keys.trim(), operations.trim()),
            _ => word,
        };
        let mut words = word.split(':');
        let name = words.next().unwrap_or_default();
        let numbers: Option<Vec<f64>> = words.map(|word| word.parse().ok()).collect();
        let distribution = match (name, numbers.as_deref()) {
            ("uniform" | "even", Some([])) => Some(Self::Uniform),
            ("zipfian" | "zipf", Some([])) => Some(Self::Zipfian { theta: 0.99 }),
            ("zipfian" | "zipf", Some(&[theta])) => Some(Self::Zipfian { theta }),
            ("self-similar" | "selfsimilar", Some([])) => Some(Self::SelfSimilar { h: 0.2 }),
            ("self-similar" | "selfsimilar", Some(&[h])) => Some(Self::SelfSimilar { h }),
            ("latest", Some([])) => Some(Self::Latest { theta: 0.99 }),
            ("latest", Some(&[theta])) => Some(Self::Latest { theta }),
            ("hotset", Some([])) => Some(Self::HOT_SET),
            ("hotset", Some(&[keys_pct, operations_pct])) => Some(Self::HotSet {
                keys_pct,
                operations_pct,
            }),
            _ => None,
        };
        let distribution = distribution
            .ok_or_else(|| LabError::option("distribution", format!("unknown distribution `{s}`; {}", Self::HELP)))?;
        distribution.validate()?;
        Ok(distribution)
    }
}

serde_as_text!(Distribution);

/// Draws ranks by the shape of a [`Distribution`]; 0 is the hottest.
#[derive(Debug, Clone)]
pub(crate) struct Ranks {
    n: u64,
    law: Law,
}

#[derive(Debug, Clone)]
enum Law {
    Uniform,
    /// Also of `latest`, whose ranks are ages.
    Zipfian(Zipf),
    SelfSimilar {
        exponent: f64,
    },
    HotSet {
        /// Only a set that grows needs it.
        #[cfg(feature = "bench")]
        keys_pct: f64,
        hot: u64,
        hot_operations: f64,
    },
}

impl Ranks {
    /// Ranks below `n`.
    pub(crate) fn new(distribution: Distribution, n: u64) -> Self {
        let law = match distribution {
            Distribution::Uniform => Law::Uniform,
            Distribution::Zipfian { theta } | Distribution::Latest { theta } => Law::Zipfian(Zipf::new(n, theta)),
            Distribution::SelfSimilar { h } => Law::SelfSimilar {
                exponent: h.ln() / (1.0 - h).ln(),
            },
            Distribution::HotSet {
                keys_pct,
                operations_pct,
            } => Law::HotSet {
                #[cfg(feature = "bench")]
                keys_pct,
                hot: hot_ranks(n, keys_pct),
                hot_operations: operations_pct / 100.0,
            },
        };
        Self { n, law }
    }

    /// How many there are.
    pub(crate) fn n(&self) -> u64 {
        self.n
    }

    /// There are `n` ranks now, not fewer than before.
    #[cfg(feature = "bench")]
    pub(crate) fn grow(&mut self, n: u64) {
        if n <= self.n {
            return;
        }
        self.n = n;
        match &mut self.law {
            Law::Zipfian(zipf) => zipf.grow(n),
            Law::HotSet { keys_pct, hot, .. } => *hot = hot_ranks(n, *keys_pct),
            Law::Uniform | Law::SelfSimilar { .. } => {}
        }
    }

    /// A rank below n, which is not 0.
    #[inline]
    pub(crate) fn draw(&self, rng: &mut impl Rng) -> u64 {
        let n = self.n;
        let rank = match &self.law {
            Law::Uniform => below(rng.next_u64(), n),
            Law::Zipfian(zipf) => zipf.rank(rng),
            Law::SelfSimilar { exponent } => (n as f64 * unit(rng).powf(*exponent)) as u64,
            Law::HotSet {
                hot, hot_operations, ..
            } => {
                if unit(rng) < *hot_operations || *hot == n {
                    below(rng.next_u64(), *hot)
                } else {
                    hot + below(rng.next_u64(), n - hot)
                }
            }
        };
        rank.min(n - 1)
    }
}

fn hot_ranks(n: u64, keys_pct: f64) -> u64 {
    ((n as f64 * keys_pct / 100.0).round() as u64).clamp(1, n.max(1))
}

/// Chooses keys by a [`Distribution`]. Clones share what must be shared: the write position of `latest`.
#[derive(Debug, Clone)]
pub struct Chooser {
    ranks: Ranks,
    order: Order,
}

/// From a rank to a key.
#[derive(Debug, Clone)]
enum Order {
    /// Ranks are keys.
    Plain,
    Scattered {
        scatter: Permutation,
        /// Added to ranks: other keys are hot.
        moved_by: u64,
    },
    /// Ranks are ages.
    Latest { written: Arc<AtomicU64> },
}

impl Chooser {
    /// Creates a chooser over the numbers `0..keys`; `seed` decides which keys are hot.
    pub fn new(distribution: Distribution, keys: u64, seed: u64) -> Self {
        Self {
            ranks: Ranks::new(distribution, keys),
            order: match distribution {
                Distribution::Uniform => Order::Plain,
                Distribution::Latest { .. } => Order::Latest {
                    written: Arc::new(AtomicU64::new(keys)),
                },
                _ => Order::Scattered {
                    scatter: Permutation::new(keys, seed),
                    moved_by: 0,
                },
            },
        }
    }

    /// Moves the hot set by half the ranks. This has no effect on distributions without one, `uniform`
    /// and `latest`.
    pub fn move_hot_keys(&mut self) {
        let keys = self.ranks.n();
        if let Order::Scattered { moved_by, .. } = &mut self.order {
            *moved_by = (*moved_by + keys / 2) % keys;
        }
    }

    /// Chooses the key of a read or the start of a scan.
    #[inline]
    pub fn read(&self, rng: &mut impl Rng) -> u64 {
        let keys = self.ranks.n();
        match &self.order {
            Order::Plain => self.ranks.draw(rng),
            Order::Scattered { scatter, moved_by } => {
                let rank = self.ranks.draw(rng) + moved_by;
                scatter.apply(if rank < keys { rank } else { rank - keys })
            }
            Order::Latest { written } => {
                let newest = written.load(Ordering::Relaxed) - 1;
                (newest - self.ranks.draw(rng)) % keys
            }
        }
    }

    /// Chooses the key of a write.
    #[inline]
    pub fn write(&self, rng: &mut impl Rng) -> u64 {
        match &self.order {
            Order::Latest { written } => written.fetch_add(1, Ordering::Relaxed) % self.ranks.n(),
            _ => self.read(rng),
        }
    }
}

#[cfg(test)]
#[path = "distribution_tests.rs"]
mod tests;
