//! The choice of raw bytes per frame and user bytes per leaf, and of the codec where it is not given, by trials on the
//! tree's own records.
//!
//! A longer frame compresses better, since neighbours have much in common, and takes longer to read. Sample runs of
//! neighbouring leaves are rebuilt with each candidate codec and length, by the code that builds the tree's leaves, and
//! their records are read as a reader does. The resulting bytes per record and time per read are combined into a price,
//! and the cheapest combination is chosen.

mod copied_runs;
mod trial;

use crate::tree::compact::settings::Settings;
use crate::tree::error::TreeError;
use crate::tree::inner::TreeInner;
pub(super) use crate::tree::upkeep::sizing::copied_runs::CopiedRuns;
pub(crate) use crate::tree::upkeep::sizing::copied_runs::RunPlaces;
use crate::tree::upkeep::sizing::trial::Tried;
pub(super) use crate::tree::upkeep::sizing::trial::{Bench, Trial, records_of};
use leafpress_base::mem::room::{TryGrow, room_for};
use leafpress_base::sync::Mutex;
use leafpress_codec::{Codec, Dictionary, Scratch, TrialGoal};

/// The exchange rate between memory and processor time: per cent of read time that 1% of memory is worth, for a record
/// that is read occasionally. It depends on the codec: one chosen for speed implies another rate than one chosen for
/// its ratio. See `docs/experiments/024-frames-for-medium-records.md` and `045-codec-by-trial.md`.
fn time_for_bytes(codec: Codec) -> f64 {
    match codec {
        Codec::Trial {
            goal: TrialGoal::Balance,
        } => 2.0,
        Codec::Trial {
            goal: TrialGoal::Memory,
        } => 5.0,
        Codec::None | Codec::Lz4 { .. } => 5.0,
        _ => 8.0,
    }
}

/// The rest of a read in nanoseconds, which trials do not include: the search for the leaf, and cache misses.
pub(super) const REST_OF_READ_NS: f64 = 300.0;
/// Records with fewer user bytes keep the codec's default frames, which were measured for them
/// (`docs/experiments/014-frames-and-leaves.md`), unless the price of others is much lower: a dictionary provides most
/// of the context that neighbours would, and a write should not recompress many records.
const SHORT_RECORD_BYTES: f64 = 200.0;
const MIN_GAIN_OF_SHORT: f64 = 4.0;
/// A codec or length is changed only if the price falls by at least `1 / MIN_GAIN_IN`, since every leaf is
/// recompressed.
pub(super) const MIN_GAIN_IN: f64 = 8.0;
/// Beyond a length whose price exceeds the lowest by this factor, longer ones are not tried.
const HOPELESS: f64 = 4.0;
/// Candidate frame lengths; those below the codec's default are skipped.
const FRAME_BYTES: [usize; 5] = [1, 512, 1 << 10, 2 << 10, 4 << 10];
/// Minimum number of frames per leaf: a leaf of few frames splits unevenly, and most of a tree's leaves are not as full
/// as those in the trial.
const MIN_FRAMES: usize = 8;
/// Candidate leaf lengths; the first is the initial one.
const LEAF_BYTES: [usize; 2] = [16 << 10, 32 << 10];

/// Returns the initial raw bytes of a frame.
fn first_frame_bytes(codec: Codec) -> usize {
    match codec {
        Codec::Trial { .. } => codec.candidates().first().map_or(1, |first| first_frame_bytes(*first)),
        Codec::None | Codec::Lz4 { .. } | Codec::Lz4Hc { .. } | Codec::Auto { .. } => 1,
        _ if compresses_records(codec) => 1,
        Codec::Zstd { .. } => 512,
        // Deflate in all its implementations.
        _ => 2 << 10,
    }
}

/// Returns whether the codec compresses each record alone as well as with its neighbours, and decodes it as fast.
pub(super) fn compresses_records(codec: Codec) -> bool {
    matches!(codec, Codec::OnPair { .. } | Codec::OnPairHuffman)
}

/// The configured lengths.
#[derive(Clone, Copy)]
pub(crate) struct ConfiguredLengths {
    pub frame_bytes: Option<usize>,
    pub leaf_bytes: Option<usize>,
    pub inline_value_bytes: usize,
    pub sub_pages: usize,
    pub keys_in_blocks: Option<bool>,
}

/// How a tree's lengths are determined.
pub(crate) struct Sizing {
    /// Whether they are chosen, or the codec is.
    pub auto: bool,
    rule: Rule,
    /// What replaces the codec's exchange rate, if it was set.
    worth: Mutex<Option<MemoryWorth>>,
    /// Why they are not chosen.
    fixed: &'static str,
    last: Mutex<Outcome>,
}

/// How lengths are chosen.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    given: ConfiguredLengths,
    /// The tree's codec.
    pub(super) codec: Codec,
    worth: Option<MemoryWorth>,
}

/// What memory and writes are worth in a cache.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct MemoryWorth {
    /// The nanoseconds that 1% more memory saves a read, times 100: the misses that it avoids, times the cost of one.
    pub memory_ns: f64,
    /// Records that are written for each read.
    pub writes_per_read: f64,
}

/// Upper bound of the exchange rate that results from [`MemoryWorth`].
const MAX_TIME_FOR_BYTES: f64 = 20.0;

/// How bytes and times are combined into a price.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prices {
    /// The exchange rate: see [`time_for_bytes`].
    time_for_bytes: f64,
    writes_per_read: f64,
    /// In a cache the time of an access with the settings in force; 0 in other trees.
    current_ns: f64,
}

impl Prices {
    /// Returns the prices of a codec's trees.
    pub(super) fn of(codec: Codec) -> Self {
        Self {
            time_for_bytes: time_for_bytes(codec),
            writes_per_read: 0.0,
            current_ns: 0.0,
        }
    }

    /// Returns the prices in a cache, given the result with the settings in force.
    fn in_cache(worth: MemoryWorth, now: &Tried) -> Self {
        let MemoryWorth {
            memory_ns,
            writes_per_read,
        } = worth;
        let current_ns = now.access_ns(writes_per_read);
        Self {
            time_for_bytes: (memory_ns / current_ns).min(MAX_TIME_FOR_BYTES),
            writes_per_read,
            current_ns,
        }
    }

    /// Returns the factor of a price that the times determine. In a cache the mean time of an access counts: a price is
    /// the exponential of that time, misses included, over the current one. A logarithm of the times would make a codec
    /// that is faster than the current one look better than it is.
    fn of_times(&self, tried: &Tried) -> f64 {
        let ns = tried.access_ns(self.writes_per_read);
        if self.current_ns > 0.0 {
            (ns / self.current_ns).exp()
        } else {
            ns
        }
    }
}

/// A codec to try, with its dictionary.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'d> {
    pub codec: Codec,
    pub dictionary: Option<&'d Dictionary>,
}

/// The result of a choice.
pub(super) struct Chosen {
    /// Index of the candidate.
    pub candidate: usize,
    /// The settings to change to; [`None`] where they stay.
    pub settings: Option<Settings>,
    pub outcome: Outcome,
}

/// The result of the last trial.
#[derive(Clone, Copy)]
#[allow(clippy::large_enum_variant, reason = "a tree has one")]
pub(super) enum Outcome {
    /// There was none, or too few records.
    Untried,
    /// Records have this number of bytes, and other lengths would save little.
    Short(u64),
    Tried(Choice),
}

/// A choice that was made.
#[derive(Clone, Copy)]
pub(super) struct Choice {
    records: usize,
    /// The previous codec and lengths.
    before: Tried,
    chosen: Tried,
    /// The best of another codec, where there was one to try.
    other: Option<Tried>,
}

impl Sizing {
    /// Creates the sizing of a tree from the configured lengths, and the initial settings, those of `first_codec`: the
    /// tree's codec, or the one of a given dictionary.
    pub(crate) fn new(codec: Codec, first_codec: Codec, given: ConfiguredLengths) -> (Self, Settings) {
        let fixed = if given.sub_pages > 0 {
            "sub-pages take the place of frames"
        } else if !codec.candidates().is_empty() {
            ""
        } else if given.frame_bytes.is_some() {
            "given by the caller"
        } else if codec == Codec::None {
            "without a codec neighbours save nothing"
        } else if compresses_records(codec) {
            "the codec compresses each record alone"
        } else {
            ""
        };
        let rule = Rule {
            given,
            codec,
            worth: None,
        };
        let sizing = Self {
            rule,
            worth: Mutex::new(None),
            // Times are meaningless under model checkers, and trials take too long there.
            auto: fixed.is_empty() && !cfg!(any(shuttle, miri)),
            fixed,
            last: Mutex::new(Outcome::Untried),
        };
        (sizing, rule.first(first_codec))
    }

    /// Returns the rule in force.
    pub(super) fn rule(&self) -> Rule {
        Rule {
            worth: *self.worth.lock(),
            ..self.rule
        }
    }

    /// Sets what memory and writes are worth in a tree whose codec is [`TrialGoal::Memory`]. It applies from the next
    /// training on.
    pub(crate) fn set_worth(&self, worth: MemoryWorth) {
        if let Codec::Trial {
            goal: TrialGoal::Memory,
        } = self.rule.codec
        {
            *self.worth.lock() = Some(worth);
        }
    }

    /// Records the result of a trial.
    pub(super) fn note(&self, outcome: Outcome) {
        *self.last.lock() = outcome;
    }

    /// Explains the frame and leaf lengths, in words.
    pub(crate) fn reason(&self) -> String {
        if !self.fixed.is_empty() {
            return self.fixed.to_owned();
        }
        let mut reason = match *self.last.lock() {
            Outcome::Untried => "the codec's own until there are enough records to try others".to_owned(),
            Outcome::Short(bytes) => {
                format!("the codec's own: others would save little of records of {bytes} bytes")
            }
            Outcome::Tried(choice) => self.explain(choice),
        };
        if let Some(MemoryWorth {
            memory_ns,
            writes_per_read,
        }) = *self.worth.lock()
        {
            let (saved_ns, writes) = (memory_ns / 100.0, writes_per_read * 100.0);
            reason +=
                &format!("; assumed: 1% of memory saves {saved_ns:.1} ns per read, {writes:.0} writes for 100 reads");
        }
        reason
    }

    fn explain(&self, choice: Choice) -> String {
        let Choice {
            records,
            before,
            chosen,
            other,
        } = choice;
        let lengths = |tried: &Tried| {
            let Tried {
                codec,
                settings,
                bytes_per_record,
                read_ns,
                write_ns,
            } = tried;
            let codec = match self.rule.codec.candidates() {
                [] => String::new(),
                _ => format!("{codec} in "),
            };
            let frame = match settings.frame_bytes {
                1 => "one record".to_owned(),
                bytes => format!("{bytes} bytes"),
            };
            format!(
                "{codec}frames of {frame} in leaves of {} KiB: {bytes_per_record:.0} bytes per record, read in \
                 {read_ns:.0} ns, compressed for a write in {write_ns:.0} ns",
                settings.leaf_bytes >> 10
            )
        };
        let mut reason = format!("by {records} records: {}", lengths(&chosen));
        if (chosen.codec, chosen.settings) != (before.codec, before.settings) {
            reason += &format!("; before, {}", lengths(&before));
        }
        if let Some(other) = other.filter(|other| other.codec != before.codec) {
            reason += &format!("; next best, {}", lengths(&other));
        }
        reason
    }
}

impl Rule {
    /// Returns the initial settings of a codec.
    fn first(&self, codec: Codec) -> Settings {
        let frame_bytes = self.given.frame_bytes.unwrap_or(first_frame_bytes(codec));
        let [short, long] = LEAF_BYTES;
        let leaf_bytes = self
            .given
            .leaf_bytes
            .unwrap_or(if frame_bytes > short { long } else { short });
        let frame_bytes = frame_bytes.min(leaf_bytes);
        Settings {
            leaf_bytes,
            frame_bytes,
            written_frame_bytes: frame_bytes,
            sub_pages: self.given.sub_pages,
            inline_value_bytes: self.given.inline_value_bytes,
            keys_in_blocks: self.given.keys_in_blocks.unwrap_or(compresses_records(codec)),
        }
    }

    /// Chooses among the candidates, of which the first is the codec in force, by trials on records of the tree; `None`
    /// where it `is_stopped`.
    pub(super) fn choose(
        &self,
        trial: &mut Trial<'_, '_>,
        candidates: &[Candidate<'_>],
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Chosen>, TreeError> {
        let now = trial.bench().now;
        let Some(current) = candidates.first() else {
            return Ok(None);
        };
        let before = trial.run(current, now)?;
        let prices = self
            .worth
            .map_or(Prices::of(self.codec), |worth| Prices::in_cache(worth, &before));
        let price = |tried: &Tried| tried.price(prices);
        let mut best_of_each: Vec<Tried> = room_for(candidates.len())?;
        let mut is_short = false;
        for candidate in candidates {
            let start = if best_of_each.is_empty() {
                before
            } else {
                trial.run(candidate, self.first(candidate.codec))?
            };
            let Some((tried, keeps_first)) = self.best_lengths(trial, candidate, start, prices, is_stopped)? else {
                return Ok(None);
            };
            is_short |= best_of_each.is_empty() && keeps_first;
            best_of_each.try_push(tried)?;
        }
        let Some((candidate, chosen)) = cheapest(best_of_each.iter().enumerate(), price) else {
            return Ok(None);
        };
        if candidate == 0 && is_short {
            return Ok(Some(Chosen {
                candidate,
                settings: (chosen.settings != now).then_some(chosen.settings),
                outcome: Outcome::Short(trial.user_bytes_per_record() as u64),
            }));
        }
        let is_worth_it = price(&before) - price(&chosen) >= price(&before) / MIN_GAIN_IN;
        let (candidate, chosen) = if is_worth_it { (candidate, chosen) } else { (0, before) };
        let others = best_of_each.iter().enumerate().filter(|(index, _)| *index != candidate);
        Ok(Some(Chosen {
            candidate,
            settings: (chosen.settings != now).then_some(chosen.settings),
            outcome: Outcome::Tried(Choice {
                records: trial.records,
                before,
                chosen,
                other: cheapest(others, price).map(|(_, other)| other),
            }),
        }))
    }

    /// Returns the best lengths for a candidate, which was tried with some already, and whether its first ones are kept
    /// since its records are short; `None` where it `is_stopped`.
    fn best_lengths(
        &self,
        trial: &mut Trial<'_, '_>,
        candidate: &Candidate<'_>,
        start: Tried,
        prices: Prices,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Option<(Tried, bool)>, TreeError> {
        let codec = candidate.codec;
        if self.given.frame_bytes.is_some() || codec == Codec::None || compresses_records(codec) {
            return Ok((!is_stopped()).then_some((start, false)));
        }
        let price = |tried: &Tried| tried.price(prices);
        let given = start.settings;
        let mut best = start;
        let leaf_lengths = match self.given.leaf_bytes {
            Some(_) => &[given.leaf_bytes][..],
            None => &LEAF_BYTES[..],
        };
        for &leaf_bytes in leaf_lengths {
            let shortest = best.settings.frame_bytes;
            for frame_bytes in FRAME_BYTES {
                let settings = Settings {
                    leaf_bytes,
                    frame_bytes,
                    ..given
                };
                // Longer leaves are not tried with shorter frames than shorter leaves.
                let least = if leaf_bytes == leaf_lengths[0] {
                    first_frame_bytes(codec)
                } else {
                    shortest
                };
                if settings == given || frame_bytes < least || frame_bytes * MIN_FRAMES > leaf_bytes {
                    continue;
                }
                if is_stopped() {
                    return Ok(None);
                }
                let tried = trial.run(candidate, settings)?;
                if price(&tried) < price(&best) {
                    best = tried;
                } else if price(&tried) > price(&best) * HOPELESS {
                    break;
                }
            }
        }
        let first = self.first(codec);
        if trial.user_bytes_per_record() < SHORT_RECORD_BYTES && best.settings != first {
            let tried = trial.run(candidate, first)?;
            if price(&best) * MIN_GAIN_OF_SHORT > price(&tried) {
                return Ok(Some((tried, true)));
            }
        }
        Ok(Some((best, false)))
    }
}

/// Returns the cheapest result, with its index.
fn cheapest<'t>(
    tried: impl Iterator<Item = (usize, &'t Tried)>,
    price: impl Fn(&Tried) -> f64,
) -> Option<(usize, Tried)> {
    let cheapest = tried.min_by(|(_, a), (_, b)| price(a).total_cmp(&price(b)));
    cheapest.map(|(index, tried)| (index, *tried))
}

impl TreeInner {
    /// Returns a trial with these records of the tree, which has `user_bytes`, if there are enough.
    pub(super) fn trial<'r>(
        &'r self,
        runs: &'r CopiedRuns,
        user_bytes: u64,
    ) -> Result<Option<Trial<'r, 'r>>, TreeError> {
        let bench = Bench {
            engines: &self.engines,
            memory: &self.memory,
            now: self.settings.now(),
            temperatures: self.temperatures.as_ref(),
            marks: self.marks,
        };
        Ok(Trial::new(bench, runs.records()?, user_bytes))
    }

    /// Returns the records of runs of leaves spread over the tree.
    pub(super) fn runs(&self) -> Result<CopiedRuns, TreeError> {
        let mut leaves = 0;
        self.for_each_leaf(&self.memory.enter()?, |_| leaves += 1);
        let (mut runs, mut scratch) = (CopiedRuns::among(leaves), Scratch::default());
        self.for_each_leaf_in_turn(|leaf| runs.visit(leaf, &self.engines, &mut scratch))?;
        Ok(runs)
    }
}

#[cfg(test)]
mod tests;
