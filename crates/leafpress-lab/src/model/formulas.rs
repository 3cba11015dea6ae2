//! The kernel of the model: formulas over plain numbers, no input or output, nothing remembered. What is iterated is
//! iterated a bounded number of times. It is written so that it can be ported line by line.
//!
//! Symbols: T bytes of memory, of which the share C holds compressed pages; B bytes per page; N pages of data; R raw
//! bytes over compressed ones. Shares and ratios of accesses are 0 to 1. A time in [`super::replacement`] is counted in
//! accesses.

use crate::core::keys::{Distribution, power_integral};

/// Computes the share of the data that fits into `memory_bytes`, 0 to 1: the thesis's `g = ((T (1 - C) + T C R) / B) /
/// N`, where `compressed` is C, the share of the memory for compressed pages, and `ratio` is R, raw bytes over
/// compressed ones. `B N` is `data_bytes`. With C = 0 it is the thesis's `f = (T / B) / N` (Harper, "Viability of
/// Time-Memory Trade-Offs in Large Data Sets", 2018, chapter 4).
pub fn share_that_fits(memory_bytes: f64, compressed: f64, ratio: f64, data_bytes: f64) -> f64 {
    if data_bytes <= 0.0 {
        return 1.0;
    }
    ((memory_bytes * (1.0 - compressed) + memory_bytes * compressed * ratio) / data_bytes).clamp(0.0, 1.0)
}

/// Computes the chance that a cached page is a compressed one, all cached pages alike: the thesis's `P = C R / ((1 - C)
/// + C R)`.
pub fn chance_compressed(compressed: f64, ratio: f64) -> f64 {
    let pages = (1.0 - compressed) + compressed * ratio;
    if pages > 0.0 { compressed * ratio / pages } else { 0.0 }
}

/// Computes the microseconds per page in the thesis: `(comp + decomp) HR P + (disk + comp) (1 - HR)`. A miss costs a
/// compression for any C.
pub fn published_us(hit_ratio: f64, chance: f64, compress_us: f64, decompress_us: f64, device_us: f64) -> f64 {
    (compress_us + decompress_us) * hit_ratio * chance + (device_us + compress_us) * (1.0 - hit_ratio)
}

/// Computes the microseconds per page of an uncompressed cache in the thesis: `disk (1 - HR)`.
pub fn published_raw_us(hit_ratio: f64, device_us: f64) -> f64 {
    device_us * (1.0 - hit_ratio)
}

/// Mean events per access.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Events {
    /// Hits on raw pages.
    pub raw_hits: f64,
    /// Hits on compressed pages; each is decoded.
    pub compressed_hits: f64,
    /// Pages compressed.
    pub compressions: f64,
    /// Compressed pages that became raw again.
    pub restorations: f64,
}

impl Events {
    /// Returns the hit ratio, 0 to 1.
    pub fn hit_ratio(&self) -> f64 {
        (self.raw_hits + self.compressed_hits).clamp(0.0, 1.0)
    }
}

/// Microseconds that events cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// Of finding and handing out a page, hit or miss.
    pub hit_us: f64,
    /// Cost of reading a page from the device: its latency at the expected load.
    pub device_us: f64,
    /// Of compressing a page.
    pub compress_us: f64,
    /// Of decoding a page.
    pub decompress_us: f64,
    /// The share of compressions that threads of the cache do in the background, and no access waits for, 0 to 1.
    pub background: f64,
}

/// Computes the microseconds per page, corrected: events times their costs.
pub fn corrected_us(events: &Events, costs: &Costs) -> f64 {
    costs.hit_us
        + events.compressed_hits * costs.decompress_us
        + events.compressions * costs.compress_us * (1.0 - costs.background)
        + (1.0 - events.hit_ratio()) * costs.device_us
}

/// Computes the pages per second of `workers` that each wait for their page, limited by a device with `device_iops`
/// reads per second. Unlimited if a page costs no time.
pub fn pages_per_second(us_per_page: f64, workers: f64, hit_ratio: f64, device_iops: Option<f64>) -> f64 {
    let demanded = if us_per_page > 0.0 {
        workers * 1e6 / us_per_page
    } else {
        f64::INFINITY
    };
    match device_iops {
        Some(iops) if hit_ratio < 1.0 => demanded.min(iops / (1.0 - hit_ratio)),
        _ => demanded,
    }
}

/// Ranks whose terms are summed one by one. Beyond, the midpoint integral and its first correction (Euler, Maclaurin)
/// are right to nine digits.
const EXACT_RANKS: f64 = 32.0;

/// Computes the sum of `1 / r^theta` over the ranks r up to `ranks`; of a rank that is only partly in, that part.
pub fn harmonic(ranks: f64, theta: f64) -> f64 {
    let exact = ranks.min(EXACT_RANKS);
    let mut sum = 0.0;
    let mut rank = 1.0;
    while rank <= exact {
        sum += f64::powf(rank, -theta);
        rank += 1.0;
    }
    if ranks <= EXACT_RANKS {
        return sum + (ranks - (rank - 1.0)).max(0.0) * rank.powf(-theta);
    }
    let (from, to, power) = (EXACT_RANKS + 0.5, ranks + 0.5, 1.0 - theta);
    let correction = theta / 24.0 * (to.powf(-theta - 1.0) - from.powf(-theta - 1.0));
    sum + power_integral(from, to, power) + correction
}

/// Computes the share of the accesses on the hottest share `fits` of `pages`.
///
/// For a hot set it is the thesis's 80/20 rule: with X of the pages getting Y of the accesses,
/// `Y min(f, X) / X + (1 - Y) max(0, f - X) / (1 - X)`. For a self-similar choice it is `f^(ln(1 - h) / ln h)`, for a
/// zipfian one (and `latest`, whose hot pages move) `H(f N) / H(N)`.
pub fn mass_of_hottest(law: Distribution, pages: f64, fits: f64) -> f64 {
    let fits = fits.clamp(0.0, 1.0);
    match law {
        Distribution::Uniform => fits,
        Distribution::HotSet {
            keys_pct,
            operations_pct,
        } => {
            let (hot, accesses) = hotter(keys_pct / 100.0, operations_pct / 100.0);
            accesses * fits.min(hot) / hot + (1.0 - accesses) * (fits - hot).max(0.0) / (1.0 - hot)
        }
        Distribution::SelfSimilar { h } => fits.powf((1.0 - h).ln() / h.ln()),
        Distribution::Zipfian { theta } | Distribution::Latest { theta } => {
            (harmonic(fits * pages, theta) / harmonic(pages, theta)).min(1.0)
        }
    }
}

/// A hot set's share of the pages and of the accesses. When the cold pages are the busier ones per page, they are the
/// hot set.
fn hotter(pages: f64, accesses: f64) -> (f64, f64) {
    if accesses < pages {
        (1.0 - pages, 1.0 - accesses)
    } else {
        (pages, accesses)
    }
}

/// Pages that are alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tier {
    /// How many.
    pub pages: f64,
    /// The share of all accesses that one of them gets.
    pub rate: f64,
}

/// Growth factor of tiers of a smooth distribution.
const TIER_GROWTH: f64 = 1.12;

/// Returns the tiers of `pages` by access frequency, the hottest first.
pub fn tiers(law: Distribution, pages: f64) -> Vec<Tier> {
    let mut ends = Vec::new();
    match law {
        Distribution::Uniform => {}
        Distribution::HotSet {
            keys_pct,
            operations_pct,
        } => ends.push(hotter(keys_pct / 100.0, operations_pct / 100.0).0 * pages),
        Distribution::SelfSimilar { .. } | Distribution::Zipfian { .. } | Distribution::Latest { .. } => {
            let mut end: f64 = 1.0;
            while end < pages {
                ends.push(end);
                end = if end < EXACT_RANKS {
                    end + 1.0
                } else {
                    end * TIER_GROWTH
                };
            }
        }
    }
    ends.push(pages);
    let mut tiers = Vec::new();
    let (mut from, mut mass) = (0.0, 0.0);
    for end in ends {
        let with = mass_of_hottest(law, pages, end / pages);
        if end > from {
            tiers.push(Tier {
                pages: end - from,
                rate: (with - mass).max(0.0) / (end - from),
            });
        }
        (from, mass) = (end, with);
    }
    tiers
}

/// Computes the tiers of blocks that are made of `pieces` of these pages each, with random neighbours: a block is
/// requested when any of its pages is. The number of blocks is that of the pages over `pieces`.
///
/// The distribution of a sum of independent rates, by doubling; between steps, rates within a tenth of each other
/// become one tier.
pub fn gathered(tiers: &[Tier], pieces: u32) -> Vec<Tier> {
    let mut left = pieces.max(1);
    let mut doubled = tiers.to_vec();
    let mut gathered: Option<Vec<Tier>> = None;
    loop {
        if left % 2 == 1 {
            gathered = Some(match gathered {
                Some(before) => neighbours(&before, &doubled),
                None => doubled.clone(),
            });
        }
        left /= 2;
        if left == 0 {
            break;
        }
        doubled = neighbours(&doubled, &doubled);
    }
    let mut tiers = gathered.unwrap_or_default();
    // Up to the number of blocks that equals that of pages.
    let blocks = 1.0 / f64::from(pieces.max(1));
    tiers.iter_mut().for_each(|tier| tier.pages *= blocks);
    tiers
}

/// Computes the tiers of pages, from tiers of objects that span this many pages: each access to one is an access to
/// each of its pages.
pub fn spread(mut tiers: Vec<Tier>, pages_an_access: f64) -> Vec<Tier> {
    for tier in &mut tiers {
        tier.pages *= pages_an_access;
        tier.rate /= pages_an_access;
    }
    tiers
}

/// Rates whose ratio is less are taken for one.
const SAME_RATE: f64 = 1.1;

/// Tiers of pairs, one of each, as many as there are of the first.
fn neighbours(ones: &[Tier], others: &[Tier]) -> Vec<Tier> {
    let all: f64 = others.iter().map(|tier| tier.pages).sum();
    let mut pairs = Vec::with_capacity(ones.len() * others.len());
    for one in ones {
        pairs.extend(others.iter().map(|other| Tier {
            pages: one.pages * other.pages / all,
            rate: one.rate + other.rate,
        }));
    }
    pairs.sort_by(|one, other| other.rate.total_cmp(&one.rate));
    let mut tiers: Vec<Tier> = Vec::new();
    let mut highest = f64::INFINITY;
    for pair in pairs {
        match tiers.last_mut() {
            Some(tier) if pair.rate * SAME_RATE >= highest => {
                let pages = tier.pages + pair.pages;
                if pages > 0.0 {
                    tier.rate = (tier.rate * tier.pages + pair.rate * pair.pages) / pages;
                }
                tier.pages = pages;
            }
            _ => {
                highest = pair.rate;
                tiers.push(pair);
            }
        }
    }
    tiers
}

/// Computes the share of the accesses on the hottest `pages` of some tiers.
pub fn mass_of_tiers(tiers: &[Tier], pages: f64) -> f64 {
    let (mut left, mut mass) = (pages.max(0.0), 0.0);
    for tier in tiers {
        let taken = left.min(tier.pages);
        mass += taken * tier.rate;
        left -= taken;
    }
    mass
}

/// Returns where `figure` falls below or rises above 0 between `from` and `to`, as an argument: bisection. The signs at
/// the ends differ.
pub fn bisect(figure: impl Fn(f64) -> f64, from: f64, to: f64) -> f64 {
    let (mut low, mut high) = (from, to);
    let rising = figure(low) < 0.0;
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if (figure(middle) < 0.0) == rising {
            low = middle;
        } else {
            high = middle;
        }
        if high - low < 1e-9 {
            break;
        }
    }
    (low + high) / 2.0
}

#[cfg(test)]
#[path = "formulas_tests.rs"]
mod tests;
