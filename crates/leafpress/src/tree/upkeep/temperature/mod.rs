//! Temperature: frequently read records are not compressed, rarely read leaves are compressed more strongly.
//!
//! Records are hot if they have a copy outside of the leaves (`tree::hot`). Leaves are warm or cold: a sample of the
//! reads that no hot record answers is counted at its leaf. A pass over all leaves, some times a second while the tree
//! is used, determines the distribution of reads (`census`), decides the threshold below which leaves should be cold
//! (`plan`), and compacts leaves into their new temperature, within a share of processor time (`pass`). The size and
//! cost of each temperature are measured on the tree's own records, when the cold leaves' dictionary is trained
//! (`measure`).

mod census;
mod measure;
mod pass;
mod plan;
mod timing;

use std::time::Instant;

pub(crate) use self::pass::CompactionTime;
use self::plan::{Costs, Factor, Plan};
use self::timing::Timing;
pub(crate) use self::timing::{Answered, ReadTimer};
use crate::tree::compact::settings::Settings;
use crate::tree::error::TreeError;
use crate::tree::node::layout::Temperature;
use crate::tree::upkeep::sizing::compresses_records;
use crate::tree::upkeep::training::Dictionaries;
use crate::tree::{DictionaryChoice, TemperatureRule};
use leafpress_base::sync::{Mutex, MutexGuard};
use leafpress_codec::{Codec, Dictionary, DictionaryPool, Engine};

/// One in this number of reads is counted.
const SAMPLED_IN: u64 = 4;
/// Raw bytes at which a cold leaf's frame is closed, unless its records are compressed one by one.
const COLD_FRAME_BYTES: usize = 4 << 10;
/// The codec of cold leaves whose records are compressed one by one.
pub(crate) const COLD_RECORD_CODEC: Codec = Codec::OnPairHuffman;

/// One in this number of the reads that no hot record answers may make its record hot, depending on the temperature of
/// its leaf: copying a record takes a small fraction of the time of a read of a cold leaf, and a larger one of that of
/// a warm leaf.
const HEATED_FROM_COLD_IN: u64 = 4;
const HEATED_FROM_WARM_IN: u64 = 64;
/// The same while there is much room for hot records.
const HEATED_WHILE_FILLING_IN: u64 = 8;

/// One in this number of reads is timed.
const TIMED_IN: u64 = 64;
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Returns whether a thread's read is counted, given the number of its reads so far.
#[inline(always)]
pub(crate) fn is_counted(reads: u64) -> bool {
    one_in(SAMPLED_IN, reads)
}

/// Returns whether a thread's read of a leaf may make its record hot, given the number of its reads so far.
#[inline(always)]
pub(crate) fn may_heat(reads: u64, leaf: Temperature, is_filling: bool) -> bool {
    one_in(
        match leaf {
            Temperature::Cold => HEATED_FROM_COLD_IN,
            Temperature::Warm if is_filling => HEATED_WHILE_FILLING_IN,
            Temperature::Warm => HEATED_FROM_WARM_IN,
        },
        reads,
    )
}

/// Returns whether a thread's read is timed, given the number of its reads so far; never for a read that may make a
/// record hot.
#[inline(always)]
fn is_timed(reads: u64) -> bool {
    reads.wrapping_mul(GOLDEN) > u64::MAX - u64::MAX / TIMED_IN
}

/// Selects one in `many` numbers. A thread's reads may be periodic with any period: the multiples of this factor are
/// evenly distributed for every such subsequence.
#[inline(always)]
fn one_in(many: u64, number: u64) -> bool {
    number.wrapping_mul(GOLDEN) < u64::MAX / many
}

/// State of a tree with several temperatures.
pub(crate) struct Temperatures {
    pub cold_dictionaries: Dictionaries,
    cold_frame_bytes: usize,
    /// Whether the frame length of cold leaves is given, and thus their codec.
    is_framed: bool,
    rule: TemperatureRule,
    /// Held during a pass.
    passes: Mutex<Passes>,
    /// The decision of the last pass, for `stats`.
    last_decision: Mutex<Option<LastDecision>>,
}

/// State kept between passes.
struct Passes {
    /// The costs of the tree's records, once there were enough.
    costs: Option<Costs>,
    /// The factor of the deviation rule, where it is adaptive.
    factor: Factor,
    /// Times of the caller's reads.
    timing: Timing,
    /// User bytes of the tree at the time of the measurement.
    measured_at_bytes: u64,
    /// Of leaves that became cold since: their user bytes, and their size.
    cooled_user_bytes: u64,
    cooled_held_bytes: u64,
    last: Instant,
    last_halving: Instant,
    /// Seconds over which the leaves' counts were accumulated.
    counted_seconds: f64,
    /// Reads answered by hot records in that time, aged like the leaves' counts, and in the tree's life.
    hot_reads: f64,
    all_hot_reads: u64,
    /// Operations of the tree when the last pass began.
    operations: u64,
    /// Whether the last pass had nothing left to do, and no counts were left.
    is_at_rest: bool,
}

/// Keeps passes from starting while it exists.
pub(crate) struct Hold<'t> {
    _passes: MutexGuard<'t, Passes>,
}

#[derive(Clone, Copy)]
struct LastDecision {
    costs: Costs,
    plan: Plan,
    /// The factor of the deviation rule, where it is adaptive.
    factor: Option<f64>,
    seconds: f64,
}

/// The configuration of a tree's temperatures.
pub(crate) struct TemperatureConfig<'g> {
    pub cold_engine: &'g dyn Engine,
    pub dictionary: &'g DictionaryChoice,
    pub dictionary_bytes: Option<usize>,
    pub dictionary_pool: Option<DictionaryPool>,
    pub cold_frame_bytes: Option<usize>,
    pub rule: TemperatureRule,
}

impl Temperatures {
    pub(crate) fn new(given: TemperatureConfig<'_>) -> Result<Self, TreeError> {
        // A configured dictionary is the warm leaves'.
        let choice = match given.dictionary {
            DictionaryChoice::Given(_) | DictionaryChoice::Initial(_) => &DictionaryChoice::Auto,
            choice => choice,
        };
        let now = Instant::now();
        Ok(Self {
            cold_dictionaries: Dictionaries::new(
                choice,
                given.cold_engine,
                given.dictionary_bytes,
                given.dictionary_pool,
            )?,
            cold_frame_bytes: given.cold_frame_bytes.unwrap_or(COLD_FRAME_BYTES),
            is_framed: given.cold_frame_bytes.is_some(),
            rule: given.rule,
            passes: Mutex::new(Passes {
                costs: None,
                factor: Factor::default(),
                timing: Timing::default(),
                measured_at_bytes: 0,
                cooled_user_bytes: 0,
                cooled_held_bytes: 0,
                last: now,
                last_halving: now,
                counted_seconds: 0.0,
                hot_reads: 0.0,
                all_hot_reads: 0,
                operations: 0,
                is_at_rest: true,
            }),
            last_decision: Mutex::new(None),
        })
    }

    /// Keeps passes from starting until the result is dropped.
    pub(crate) fn hold(&self) -> Hold<'_> {
        Hold {
            _passes: self.passes.lock(),
        }
    }

    /// Returns the settings of leaves compressed with this cold dictionary.
    pub(crate) fn cold_settings(&self, settings: Settings, dictionary: Option<&Dictionary>) -> Settings {
        match dictionary.and_then(Dictionary::codec) {
            Some(codec) if compresses_records(codec) => self.cold_record_settings(settings),
            _ => self.cold_frame_settings(settings),
        }
    }

    fn cold_frame_settings(&self, settings: Settings) -> Settings {
        Settings {
            frame_bytes: self.cold_frame_bytes.min(settings.leaf_bytes),
            keys_in_blocks: false,
            ..settings
        }
    }

    fn cold_record_settings(&self, settings: Settings) -> Settings {
        Settings {
            frame_bytes: 1,
            keys_in_blocks: true,
            ..settings
        }
    }

    /// Explains the temperatures of leaves, in words.
    pub(crate) fn reason(&self) -> String {
        match *self.last_decision.lock() {
            None => "all leaves are warm until there are enough records to measure on".to_owned(),
            Some(LastDecision {
                costs,
                plan,
                factor,
                seconds,
            }) => {
                let factor = factor.map(|factor| format!(", {factor:.2} deviations above the mean"));
                format!("{costs}; {}{}", plan.in_words(seconds), factor.unwrap_or_default())
            }
        }
    }
}
