//! Temperature: what is read much is not compressed, what is read little is compressed well.
//!
//! Hot are records, of which there are copies beside the tree (`tree::hot`). Leaves are warm or cold: one read in some that no hot record
//! answers is counted at its leaf. A pass over all leaves, some times a second while the tree is used, sees how reads are spread
//! (`census`), decides below how many a leaf should be cold (`plan`), and compacts leaves into the temperature that they should have, as far as its share of a processor goes (`pass`). What each temperature holds and costs is measured on the tree's own
//! records, when the cold leaves' dictionary is trained (`measure`).

mod census;
mod measure;
mod pass;
mod plan;
mod timing;

use std::time::Instant;

pub(crate) use self::pass::Share;
use self::plan::{Costs, Factor, Plan};
use self::timing::Timing;
pub(crate) use self::timing::{Answered, ReadTimer};
use crate::tree::compact::compress::Settings;
use crate::tree::error::TreeError;
use crate::tree::hot::HotRecords;
use crate::tree::node::layout::Temperature;
use crate::tree::upkeep::training::Dictionaries;
use crate::tree::{DictionaryChoice, TemperatureRule};
use leafpress_base::sync::{Mutex, MutexGuard};
use leafpress_codec::{DictionaryPool, Engine};

/// One read in so many is counted.
const SAMPLED_IN: u64 = 4;
/// Raw bytes at which a cold leaf's frame is closed.
const COLD_FRAME_BYTES: usize = 4 << 10;

/// One read in so many, of those that no hot record answers, may make its record hot, by the temperature of its leaf: to copy a record
/// takes a small part of the time that a read of a cold leaf takes, and a larger one of that of a warm leaf.
const HEATED_FROM_COLD_IN: u64 = 4;
const HEATED_FROM_WARM_IN: u64 = 16;

/// One read in so many is timed.
const TIMED_IN: u64 = 64;
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Whether a thread's read is counted, by how many it has done.
#[inline(always)]
pub(crate) fn is_counted(reads: u64) -> bool {
    one_in(SAMPLED_IN, reads)
}

/// Whether a thread's read of a leaf may make its record hot, by how many it has done.
#[inline(always)]
pub(crate) fn may_heat(reads: u64, leaf: Temperature) -> bool {
    one_in(
        match leaf {
            Temperature::Cold => HEATED_FROM_COLD_IN,
            Temperature::Warm => HEATED_FROM_WARM_IN,
        },
        reads,
    )
}

/// Whether a thread's read is timed, by how many it has done: none of those that may make a record hot.
#[inline(always)]
fn is_timed(reads: u64) -> bool {
    reads.wrapping_mul(GOLDEN) > u64::MAX - u64::MAX / TIMED_IN
}

/// Whether a number is one of so many. A thread's reads may come in rounds of any length: the multiples of this factor are spread evenly
/// whichever of them are taken.
#[inline(always)]
fn one_in(many: u64, number: u64) -> bool {
    number.wrapping_mul(GOLDEN) < u64::MAX / many
}

/// What a tree needs for several temperatures.
pub(crate) struct Temperatures {
    pub hot: HotRecords,
    pub cold_dictionaries: Dictionaries,
    cold_frame_bytes: usize,
    rule: TemperatureRule,
    /// Taken for a pass.
    passes: Mutex<Passes>,
    /// What the last pass decided, for `stats`.
    said: Mutex<Option<Said>>,
}

/// What passes remember.
struct Passes {
    /// What the tree's records cost, once there were enough.
    costs: Option<Costs>,
    /// The paper's factor, where the rule is to choose it.
    factor: Factor,
    /// What the caller's reads took.
    timing: Timing,
    /// User bytes of the tree when that was measured.
    measured_at_bytes: u64,
    /// Of leaves that became cold since: their user bytes, and what they hold.
    cooled_user_bytes: u64,
    cooled_held_bytes: u64,
    last: Instant,
    last_halving: Instant,
    /// Seconds that the leaves' counts stand for.
    counted_seconds: f64,
    /// Reads that hot records answered in these, counted as those are, and all of the tree's life.
    hot_reads: f64,
    all_hot_reads: u64,
    /// Operations of the tree when the last pass began.
    operations: u64,
    /// Whether the last pass had nothing left to do, and no count was left.
    is_at_rest: bool,
}

/// Whoever has it keeps passes off.
pub(crate) struct Hold<'t> {
    _passes: MutexGuard<'t, Passes>,
}

#[derive(Clone, Copy)]
struct Said {
    costs: Costs,
    plan: Plan,
    /// The paper's factor, where the rule chose it.
    factor: Option<f64>,
    seconds: f64,
}

/// What a tree's caller says of its temperatures.
pub(crate) struct Given<'g> {
    pub cold_engine: &'g dyn Engine,
    pub dictionary: &'g DictionaryChoice,
    pub dictionary_bytes: Option<usize>,
    pub dictionary_pool: Option<DictionaryPool>,
    pub cold_frame_bytes: Option<usize>,
    pub rule: TemperatureRule,
}

impl Temperatures {
    pub(crate) fn new(given: Given<'_>) -> Result<Self, TreeError> {
        // A dictionary of the caller's is the warm leaves'.
        let choice = match given.dictionary {
            DictionaryChoice::Given(_) => &DictionaryChoice::Auto,
            choice => choice,
        };
        let now = Instant::now();
        Ok(Self {
            cold_dictionaries: Dictionaries::new(
                choice,
                given.cold_engine.supports_dictionary(),
                given.dictionary_bytes,
                given.dictionary_pool,
            )?,
            hot: HotRecords::default(),
            cold_frame_bytes: given.cold_frame_bytes.unwrap_or(COLD_FRAME_BYTES),
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
            said: Mutex::new(None),
        })
    }

    /// Keeps passes off until it is dropped.
    pub(crate) fn hold(&self) -> Hold<'_> {
        Hold {
            _passes: self.passes.lock(),
        }
    }

    pub(crate) fn cold_settings(&self, settings: Settings) -> Settings {
        Settings {
            frame_bytes: self.cold_frame_bytes.min(settings.leaf_bytes),
            ..settings
        }
    }

    /// Why leaves are as warm and as cold as they are, in words.
    pub(crate) fn reason(&self) -> String {
        match *self.said.lock() {
            None => "all leaves are warm until there are enough records to measure on".to_owned(),
            Some(Said {
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
