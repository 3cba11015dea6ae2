//! Which accesses hit which space, in the long run, with independent page accesses.
//!
//! Everything rests on one idea (Che, Tung, Wang, "Hierarchical Web caching systems", IEEE JSAC 2002; Fricker, Robert,
//! Roberts, "A versatile and accurate approximation for LRU cache performance", ITC 2012): in a large cache the time
//! within which a page must be requested again is the same for all pages, the *characteristic time*. It is the one at
//! which as many pages are cached as there is room for. For a clock it is the time of a round, and a page's counter is
//! a Markov chain over rounds (Nicola, Dan, Dias, "Analysis of the generalized clock buffer replacement scheme for
//! database transaction processing", SIGMETRICS 1992). Times are counted in accesses.

use super::formulas::{Events, Tier};

/// Room in pages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Room {
    /// In the raw space.
    pub raw_pages: f64,
    /// In the compressed space.
    pub compressed_pages: f64,
}

/// Computes the events of an ideal choice: the hottest pages are raw, the next hottest compressed; `mass` gives the
/// share of the accesses to a number of the hottest pages. A miss is read into the raw space, and one page is
/// compressed and one leaves for it.
pub fn ideal(mass: impl Fn(f64) -> f64, room: Room) -> Events {
    two_levels(
        mass(room.raw_pages),
        mass(room.raw_pages + room.compressed_pages),
        room,
        0.0,
    )
}

/// Computes the events of LRU: both spaces are one LRU list, of which the front is raw: `hits` gives the hit ratio of
/// an LRU cache of a number of pages. A compressed page that is hit becomes raw, so every hit on one compresses
/// another.
pub fn lru(hits: impl Fn(f64) -> f64, room: Room) -> Events {
    two_levels(
        hits(room.raw_pages),
        hits(room.raw_pages + room.compressed_pages),
        room,
        1.0,
    )
}

fn two_levels(raw: f64, both: f64, room: Room, restored: f64) -> Events {
    let compressed_hits = (both - raw).max(0.0);
    let restorations = compressed_hits * restored;
    let compressions = if room.compressed_pages > 0.0 {
        (1.0 - raw - compressed_hits).max(0.0) + restorations
    } else {
        0.0
    };
    Events {
        raw_hits: raw,
        compressed_hits,
        compressions,
        restorations,
    }
}

/// Computes the hit ratio of an LRU cache of `room` pages by Che's approximation: it contains the pages requested
/// within the characteristic time.
pub fn lru_hit_ratio(tiers: &[Tier], room: f64) -> f64 {
    let all: f64 = tiers.iter().map(|tier| tier.pages).sum();
    if room >= all {
        return 1.0;
    }
    if room <= 0.0 {
        return 0.0;
    }
    let cached = |time: f64, tier: &Tier| tier.pages * -f64::exp_m1(-tier.rate * time);
    let over = |time_log: f64| tiers.iter().map(|tier| cached(time_log.exp(), tier)).sum::<f64>() - room;
    let time = root(over, TIME_LOGS).exp();
    tiers.iter().map(|tier| tier.rate * cached(time, tier)).sum()
}

/// Logarithms of the times that are looked through.
const TIME_LOGS: (f64, f64) = (-12.0, 60.0);

/// Where a figure that does not fall becomes 0: regula falsi, with the end that stays halved (Dowell, Jarratt, BIT
/// 1971).
fn root(figure: impl Fn(f64) -> f64, (mut low, mut high): (f64, f64)) -> f64 {
    let (mut at_low, mut at_high) = (figure(low), figure(high));
    if at_low >= 0.0 {
        return low;
    }
    if at_high <= 0.0 {
        return high;
    }
    let mut kept = 0;
    for turn in 0..200 {
        // A bisection now and then, since the figures may differ by many orders of magnitude.
        let next = if turn % 3 == 2 {
            (low + high) / 2.0
        } else {
            (low * at_high - high * at_low) / (at_high - at_low)
        };
        let at_next = figure(next);
        if at_next < 0.0 {
            (low, at_low) = (next, at_next);
            at_high = if kept == 1 { at_high / 2.0 } else { at_high };
            kept = 1;
        } else {
            (high, at_high) = (next, at_next);
            at_low = if kept == -1 { at_low / 2.0 } else { at_low };
            kept = -1;
        }
        if high - low < 1e-9 || at_next == 0.0 {
            break;
        }
    }
    (low + high) / 2.0
}

/// A page's popularity counts its hits up to this, as the pool's.
const MAX_POPULARITY: usize = 63;
/// Maximum popularity after a hand has passed.
const HALVED: usize = MAX_POPULARITY / 2 + 1;
/// The hits per round for which rounds are evaluated: from, to, and a step, as logarithms.
const HITS_LOGS: (f64, f64, f64) = (-12.0, 4.0, 0.05);

/// Behaviour of a page in the pool's two spaces for a number of hits per round. See [`Clock::new`].
#[derive(Debug, Clone, Copy)]
struct Stay {
    /// Logarithms of the figures of [`InRaw`].
    raw_read_log: f64,
    raw_restored_log: f64,
    in_log: InLog,
}

/// Rounds in the raw space of a page that was read, and of one that was restored.
#[derive(Debug, Clone, Copy)]
struct InRaw {
    read: f64,
    restored: f64,
}

/// Behaviour of a page in the compressed space.
#[derive(Debug, Clone, Copy, Default)]
struct InLog {
    /// Rounds that its blocks take room.
    blocks: f64,
    /// Rounds until it is restored or leaves.
    compressed: f64,
    /// The chance that it is restored before it leaves.
    restored: f64,
}

/// The pool: a clock of raw pages over a log of compressed ones.
///
/// A page that was read enters the clock with popularity 0, and each hit adds 1. When the hand passes a page of
/// popularity 0, it is compressed; others have it halved. In the log a page begins with 0 again; the hit that makes it
/// `promote_after_hits` brings it back into the clock, with that popularity. When a round of the log ends, a page of
/// popularity 0 leaves, others have it halved. A block whose page was restored takes room until its round ends.
#[derive(Debug, Clone)]
pub struct Clock {
    promote_after_hits: f64,
    stays: Vec<Stay>,
}

impl Clock {
    /// Creates the chains of a pool with this `promote_after_hits`, 1 to 63.
    pub fn new(promote_after_hits: u8) -> Self {
        let promote_after_hits = usize::from(promote_after_hits).clamp(1, MAX_POPULARITY);
        let (from, to, step) = HITS_LOGS;
        let steps = ((to - from) / step).round() as usize;
        let stays = (0..=steps).map(|at| stay((from + at as f64 * step).exp(), promote_after_hits));
        Self {
            promote_after_hits: promote_after_hits as f64,
            stays: stays.collect(),
        }
    }

    /// Returns the chains next to a logarithm of hits per round, and the part of the way from the first to the second;
    /// `None` for more hits than there are chains for.
    fn near(&self, hits_log: f64) -> Option<(&Stay, &Stay, f64)> {
        let (from, to, step) = HITS_LOGS;
        if hits_log >= to {
            return None;
        }
        let at = ((hits_log - from) / step).max(0.0);
        let before = (at as usize).min(self.stays.len() - 2);
        Some((&self.stays[before], &self.stays[before + 1], at - before as f64))
    }

    /// Returns the rounds in the raw space of a page with these hits per round, by interpolation.
    fn in_raw(&self, hits_log: f64) -> InRaw {
        let (read_log, restored_log) = match self.near(hits_log) {
            Some((one, other, part)) => (
                between(one.raw_read_log, other.raw_read_log, part),
                between(one.raw_restored_log, other.raw_restored_log, part),
            ),
            // It stays for ever.
            None => {
                let last = self.stays[self.stays.len() - 1];
                (last.raw_read_log, last.raw_restored_log)
            }
        };
        InRaw {
            read: read_log.exp(),
            restored: restored_log.exp(),
        }
    }

    /// Returns a page's stay in the log with these hits per round, by interpolation.
    fn in_log(&self, hits_log: f64) -> InLog {
        match self.near(hits_log) {
            Some((one, other, part)) => InLog {
                blocks: between(one.in_log.blocks, other.in_log.blocks, part),
                compressed: between(one.in_log.compressed, other.in_log.compressed, part),
                restored: between(one.in_log.restored, other.in_log.restored, part),
            },
            // It is restored within its first round.
            None => InLog {
                blocks: 1.0,
                compressed: self.promote_after_hits / hits_log.exp(),
                restored: 1.0,
            },
        }
    }

    /// Computes the events per access with this room. Pages go round: read, raw, compressed, raw again or gone. A
    /// page's time in each place is its rounds there times their length; the two lengths are those at which both spaces
    /// are full.
    pub fn events(&self, tiers: &[Tier], room: Room) -> Events {
        let read = tiers.iter().filter(|tier| tier.rate > 0.0);
        let read: Vec<Read> = read.map(|tier| Read::new(*tier)).collect();
        if room.raw_pages >= read.iter().map(|read| read.tier.pages).sum() {
            return Events {
                raw_hits: 1.0,
                ..Events::default()
            };
        }
        let with_raw_time = |raw_time: f64| {
            let raw: Vec<InRaw> = read
                .iter()
                .map(|read| self.in_raw(read.rate_log + raw_time.ln()))
                .collect();
            let total = |log_time: f64| self.total(&read, &raw, raw_time, log_time);
            if room.compressed_pages <= 0.0 {
                return total(0.0);
            }
            let over = |log: f64| total(log.exp()).blocks - room.compressed_pages;
            total(root(over, TIME_LOGS).exp())
        };
        let raw_time = if room.raw_pages <= 0.0 {
            0.0
        } else {
            let over = |log: f64| with_raw_time(log.exp()).raw - room.raw_pages;
            root(over, TIME_LOGS).exp()
        };
        let total = with_raw_time(raw_time);
        Events {
            raw_hits: total.raw_hits.clamp(0.0, 1.0),
            compressed_hits: total.compressed_hits.clamp(0.0, 1.0 - total.raw_hits.clamp(0.0, 1.0)),
            compressions: total.compressions,
            restorations: total.restorations,
        }
    }

    /// Sums over all pages, for rounds of these lengths and what the pages do in the raw space; a log of length 0 is
    /// none.
    fn total(&self, read: &[Read], raw: &[InRaw], raw_time: f64, log_time: f64) -> Total {
        let time_log = log_time.ln();
        let mut total = Total::default();
        for (Read { tier, rate_log }, in_raw) in read.iter().zip(raw) {
            let in_log = if log_time > 0.0 {
                self.in_log(rate_log + time_log)
            } else {
                InLog::default()
            };
            let InLog { blocks, compressed, .. } = in_log;
            // Times compressed, for each time it is read.
            let times = 1.0 / (1.0 - in_log.restored.min(1.0 - 1e-12));
            let raw = raw_time * (in_raw.read + (times - 1.0) * in_raw.restored);
            let cycle = 1.0 / tier.rate + raw + times * compressed * log_time;
            let part = tier.pages / cycle;
            total.raw += part * raw;
            total.blocks += part * times * blocks * log_time;
            total.raw_hits += part * raw * tier.rate;
            total.compressed_hits += part * times * compressed * log_time * tier.rate;
            if log_time > 0.0 {
                total.compressions += part * times;
                total.restorations += part * (times - 1.0);
            }
        }
        total
    }
}

/// Pages that are read at all.
struct Read {
    tier: Tier,
    rate_log: f64,
}

impl Read {
    fn new(tier: Tier) -> Self {
        Self {
            tier,
            rate_log: tier.rate.ln(),
        }
    }
}

fn between(one: f64, other: f64, part: f64) -> f64 {
    one + (other - one) * part
}

#[derive(Debug, Clone, Copy, Default)]
struct Total {
    raw: f64,
    blocks: f64,
    raw_hits: f64,
    compressed_hits: f64,
    compressions: f64,
    restorations: f64,
}

/// Rounds of a page with `hits` hits a round on average.
fn stay(hits: f64, promote_after_hits: usize) -> Stay {
    let chance = poisson(hits);
    // The raw space: from a popularity after the hand's pass to the next.
    let mut raw = Chain::new(HALVED);
    let next = |before: usize, new: usize| (before + new).min(MAX_POPULARITY);
    for before in 0..HALVED {
        raw.rewards[before] = [1.0, 0.0, 0.0];
        for (new, &chance) in chance.iter().enumerate() {
            match next(before, new) {
                0 => raw.ends[before] += chance,
                popularity => raw.steps[before][popularity / 2] += chance,
            }
        }
    }
    let rounds = raw.solve();
    let restored = chance
        .iter()
        .enumerate()
        .map(|(new, chance)| chance * rounds[next(promote_after_hits, new) / 2][0]);
    // The log: it is restored by the hit that is `needed` more than it has, or leaves, or goes another round.
    let mut log = Chain::new(HALVED);
    for before in 0..HALVED.min(promote_after_hits) {
        let needed = promote_after_hits - before;
        let missed: f64 = chance[..needed].iter().sum();
        let hit_more: f64 = chance[(needed + 1).min(chance.len())..].iter().sum();
        let is_restored = (1.0 - missed).max(0.0);
        // The mean of the lesser of the time of the hit that restores it and the round, which is 1.
        let lived = missed + needed as f64 * hit_more / hits;
        log.rewards[before] = [1.0, lived.min(1.0), is_restored];
        log.ends[before] = is_restored;
        for (new, &chance) in chance[..needed].iter().enumerate() {
            match before + new {
                0 => log.ends[before] += chance,
                popularity => log.steps[before][popularity / 2] += chance,
            }
        }
    }
    let [blocks, compressed, is_restored] = log.solve()[0];
    Stay {
        raw_read_log: rounds[0][0].ln(),
        raw_restored_log: (1.0 + restored.sum::<f64>()).ln(),
        in_log: InLog {
            blocks,
            compressed,
            restored: is_restored.min(1.0),
        },
    }
}

/// Probabilities of 0, 1, 2, .. hits with a mean of `mean`; the last is that of this many or more.
fn poisson(mean: f64) -> [f64; MAX_POPULARITY + 2] {
    let mut chances = [0.0; MAX_POPULARITY + 2];
    let (mut chance, mut sum) = ((-mean).exp(), 0.0);
    for (hits, slot) in chances.iter_mut().enumerate() {
        *slot = chance;
        sum += chance;
        chance *= mean / (hits + 1) as f64;
    }
    chances[MAX_POPULARITY + 1] += (1.0 - sum).max(0.0);
    chances
}

/// Rewards are cut off here: a page that stays this many rounds stays forever.
const FOR_EVER: f64 = 1e15;

/// A Markov chain that ends some time, with rewards for each step.
struct Chain {
    steps: Vec<Vec<f64>>,
    ends: Vec<f64>,
    rewards: Vec<[f64; 3]>,
}

impl Chain {
    fn new(states: usize) -> Self {
        Self {
            steps: vec![vec![0.0; states]; states],
            ends: vec![0.0; states],
            rewards: vec![[0.0; 3]; states],
        }
    }

    /// The rewards that are expected until the end, from each state. States are eliminated without a subtraction, so
    /// that a chain that hardly ever ends costs no digits (Grassmann, Taksar, Heyman, Operations Research 1985). States
    /// that lead nowhere have none.
    fn solve(mut self) -> Vec<[f64; 3]> {
        let states = self.ends.len();
        let mut leaves = vec![0.0; states];
        for last in (0..states).rev() {
            leaves[last] = self.ends[last] + self.steps[last][..last].iter().sum::<f64>();
            if leaves[last] <= 0.0 {
                continue;
            }
            for state in 0..last {
                let times = self.steps[state][last] / leaves[last];
                if times == 0.0 {
                    continue;
                }
                for to in 0..last {
                    self.steps[state][to] += times * self.steps[last][to];
                }
                self.ends[state] += times * self.ends[last];
                for reward in 0..3 {
                    self.rewards[state][reward] += times * self.rewards[last][reward];
                }
            }
        }
        let mut solved: Vec<[f64; 3]> = Vec::with_capacity(states);
        for ((rewards, steps), leaves) in self.rewards.iter().zip(&self.steps).zip(leaves) {
            let mut expected = [0.0; 3];
            if leaves > 0.0 {
                for (reward, expected) in expected.iter_mut().enumerate() {
                    // Only states that are solved, those below, are left to go to.
                    let below = solved.iter().zip(steps).map(|(below, step)| below[reward] * step);
                    *expected = ((rewards[reward] + below.sum::<f64>()) / leaves).min(FOR_EVER);
                }
            }
            solved.push(expected);
        }
        solved
    }
}

#[cfg(test)]
#[path = "replacement_tests.rs"]
mod tests;
