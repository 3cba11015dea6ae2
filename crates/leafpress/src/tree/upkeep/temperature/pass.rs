//! A pass over all leaves that changes their temperatures as planned.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::census::{Census, reads_per_byte};
use super::plan::Plan;
use super::{LastDecision, Passes, SAMPLED_IN, Temperatures};
use crate::tree::TemperatureRule;
use crate::tree::error::TreeError;
use crate::tree::hot::HotRecords;
use crate::tree::inner::TreeInner;
use crate::tree::node::layout::Temperature;
use crate::tree::thread_state::Count;
use crate::tree::upkeep::training::FIRST_TRAINING_LEAVES;
use crate::tree::write::{Cut, Locked, WritePath};

/// Interval at which counts are halved, or at the first pass after it.
const HALVE_EVERY: Duration = Duration::from_secs(2);
/// The costs are measured again when the number of records has grown by this factor.
const MEASURED_AGAIN: u64 = 4;
/// The data counts as changed when leaves that become cold are larger than the measured ones by this percentage...
const DRIFT_PCT: f64 = 15.0;
/// ...and have at least these user bytes in total.
const DRIFT_BYTES: u64 = 1 << 20;
/// Divisor of the user bytes that bounds the hot records, where they answer at least this percentage of the reads, and
/// where they do not: small enough to waste little, and large enough to detect a change.
const HOT_DIVISOR: u64 = 16;
const HOT_READS_PCT: f64 = 20.0;
const FEW_HOT_DIVISOR: u64 = 64;
/// Fractions of a processor that compaction may use: into warm leaves, which readers wait for; into cold ones; and into
/// cold ones while the tree is unused.
const WARMING: f64 = 0.25;
const COOLING: f64 = 0.1;
const COOLING_AT_REST: f64 = 0.5;

/// The time limit of a pass for compaction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompactionTime {
    /// Its share of the time since the last one.
    Limited,
    /// No limit.
    Unlimited,
}

/// Time left for compaction.
struct Left {
    warming: Duration,
    cooling: Duration,
    /// Whether writers may continue, so that recently written leaves do not become cold.
    writers_may_come: bool,
    /// Whether work is left.
    is_short: bool,
}

impl TreeInner {
    /// Changes the temperatures of leaves as planned. Returns how long the census took, without compaction. Leaves that
    /// cannot be compacted stay unchanged.
    ///
    /// # Errors
    /// [`TreeError::OutOfMemory`], or that of training.
    pub(crate) fn temper(&self, time: CompactionTime) -> Result<Duration, TreeError> {
        let Some(temperatures) = &self.temperatures else {
            return Ok(Duration::ZERO);
        };
        let passes = match time {
            CompactionTime::Unlimited => Some(temperatures.passes.lock()),
            // A thread that holds passes off may wait for the thread that runs this pass, so it must not block.
            CompactionTime::Limited => temperatures.passes.try_lock(),
        };
        let Some(mut passes) = passes else {
            return Ok(Duration::ZERO);
        };
        let operations = [Count::Gets, Count::Puts, Count::Removes, Count::Replaced]
            .map(|count| self.contexts.sum(count))
            .iter()
            .fold(0_u64, |sum, count| sum.wrapping_add(*count));
        let is_used = operations != passes.operations;
        let now = Instant::now();
        let elapsed = now - passes.last;
        passes.last = now;
        passes.operations = operations;
        if !is_used && passes.is_at_rest {
            (passes.counted_seconds, passes.hot_reads) = (0.0, 0.0);
            return Ok(Duration::ZERO);
        }
        passes.counted_seconds += elapsed.as_secs_f64();
        let hot_reads = self.contexts.sum(Count::GetHotHits);
        passes.hot_reads += hot_reads.wrapping_sub(passes.all_hot_reads) as f64 / SAMPLED_IN as f64;
        passes.all_hot_reads = hot_reads;
        let census = self.census()?;
        let looked = now.elapsed();
        self.measure_if_due(temperatures, &mut passes, &census)?;
        let Some(trial) = passes.costs else {
            passes.is_at_rest = !is_used;
            return Ok(looked);
        };
        passes.timing.look(&self.contexts);
        let costs = passes.timing.corrected(&trial);
        let plan = match temperatures.rule {
            TemperatureRule::Costs { slowdown_pct } => {
                Plan::by_costs(&census, passes.hot_reads, &costs, passes.counted_seconds, slowdown_pct)
            }
            TemperatureRule::Deviation { factor } => Plan::by_deviation(&census, factor),
            TemperatureRule::AdaptiveDeviation { slowdown_pct } => {
                let wanted = Plan::by_costs(&census, 0.0, &costs, passes.counted_seconds, slowdown_pct);
                passes.factor.approach(&census, &wanted);
                Plan::by_deviation(&census, passes.factor.0)
            }
        };
        let reads = passes.hot_reads + census.reads.iter().sum::<u64>() as f64;
        let hot_part = if passes.hot_reads * 100.0 > reads * HOT_READS_PCT {
            HOT_DIVISOR
        } else {
            FEW_HOT_DIVISOR
        };
        let record_bytes = census.user_bytes / census.records.max(1) + HotRecords::RECORD_BYTES;
        let (records, budget_bytes) = match temperatures.rule {
            TemperatureRule::Costs { .. } => {
                let records = census.user_bytes / HOT_DIVISOR / record_bytes;
                (records, census.user_bytes / hot_part)
            }
            TemperatureRule::Deviation { .. } | TemperatureRule::AdaptiveDeviation { .. } => (0, 0),
        };
        // A cache sets the budget of its hot records, and ages them, itself.
        let hot = self.hot.as_ref().filter(|_| !self.marks);
        if let Some(hot) = hot {
            // If there is no memory for another table, the old one is kept.
            let _ = hot.set_budget(budget_bytes, records, &self.memory, &self.memory.enter()?);
        }
        *temperatures.last_decision.lock() = Some(LastDecision {
            costs,
            plan,
            factor: match temperatures.rule {
                TemperatureRule::AdaptiveDeviation { .. } => Some(passes.factor.0),
                _ => None,
            },
            seconds: passes.counted_seconds,
        });
        let mut left = match time {
            CompactionTime::Unlimited => Left {
                warming: Duration::MAX,
                cooling: Duration::MAX,
                writers_may_come: false,
                is_short: false,
            },
            CompactionTime::Limited => Left {
                warming: elapsed.mul_f64(WARMING),
                cooling: elapsed.mul_f64(if is_used { COOLING } else { COOLING_AT_REST }),
                writers_may_come: true,
                is_short: false,
            },
        };
        let halves = now - passes.last_halving >= HALVE_EVERY;
        if halves {
            passes.last_halving = now;
        }
        let mut is_hot = hot.is_some_and(|hot| hot.count(&self.memory) > 0);
        self.temper_all(&plan, halves, &mut passes, &mut left)?;
        if halves {
            passes.counted_seconds /= 2.0;
            passes.hot_reads /= 2.0;
            if let Some(hot) = hot {
                is_hot = hot.age(&self.memory.enter()?);
            }
        }
        passes.is_at_rest = !is_used && !is_hot && !left.is_short && census.reads.iter().all(|reads| *reads == 0);
        if halves {
            // Hot records are allocated and freed between the leaves.
            self.background.defragment_if_holes(self);
        } else {
            self.background.defragment_if_due(self);
        }
        Ok(looked)
    }

    fn measure_if_due(
        &self,
        temperatures: &Temperatures,
        passes: &mut Passes,
        census: &Census,
    ) -> Result<(), TreeError> {
        if census.leaves < FIRST_TRAINING_LEAVES as u64 {
            return Ok(());
        }
        let grew = census.user_bytes / MEASURED_AGAIN >= passes.measured_at_bytes;
        let drifted = passes.costs.is_some_and(|costs| {
            let expected = costs.cold.held_per_user_byte * passes.cooled_user_bytes as f64;
            passes.cooled_user_bytes >= DRIFT_BYTES
                && passes.cooled_held_bytes as f64 > expected * (1.0 + DRIFT_PCT / 100.0)
        });
        if !grew && !drifted {
            return Ok(());
        }
        passes.measured_at_bytes = census.user_bytes.max(1);
        (passes.cooled_user_bytes, passes.cooled_held_bytes) = (0, 0);
        if let Some(costs) = self.measure_temperatures(temperatures, census.user_bytes)? {
            passes.costs = Some(costs);
        }
        Ok(())
    }

    fn temper_all(&self, plan: &Plan, halves: bool, passes: &mut Passes, left: &mut Left) -> Result<(), TreeError> {
        for shard in &self.shards {
            let mut key = Vec::new();
            loop {
                if self.background.stopped.load(Ordering::Relaxed) {
                    return Ok(());
                }
                let guard = self.memory.enter()?;
                let work = WritePath {
                    core: self,
                    shard,
                    context: self.contexts.get()?,
                    guard: &guard,
                };
                let (leaf, end) = shard.descend_up(&key, &guard)?;
                let now = leaf.temperature();
                let wanted = plan.wanted(now, reads_per_byte(leaf));
                // It would become warm again with the next writes.
                let is_written = left.writers_may_come && wanted == Temperature::Cold && leaf.is_written();
                left.is_short |= is_written;
                if halves {
                    leaf.halve_reads();
                }
                if wanted != now && leaf.count() > 0 && !is_written {
                    let allowed = match wanted {
                        Temperature::Cold => &mut left.cooling,
                        _ => &mut left.warming,
                    };
                    if allowed.is_zero() {
                        left.is_short = true;
                    } else {
                        let began = Instant::now();
                        work.change(&key, wanted, !left.writers_may_come, passes)?;
                        *allowed = allowed.saturating_sub(began.elapsed());
                    }
                }
                match end {
                    Some(end) => key = end,
                    None => break,
                }
            }
        }
        Ok(())
    }
}

impl WritePath<'_> {
    /// Compacts the leaf that holds `key` into one of another temperature; if it is locked, waits only if `waits` is
    /// set.
    fn change(&self, key: &[u8], wanted: Temperature, waits: bool, passes: &mut Passes) -> Result<(), TreeError> {
        let (leaf, parent, locked) = loop {
            let (leaf, parent) = self.shard.descend(key, self.guard);
            match self.try_lock(leaf) {
                Some(locked) => break (leaf, parent, locked),
                None if waits => drop(Locked::lock(leaf)),
                None => return Ok(()),
            }
        };
        let user_bytes = leaf.header().live_user_bytes.load(Ordering::Relaxed);
        let mut tools = self.core.take_tools(self.context, self.guard)?;
        let changed = self.compact_frames_locked(&locked, parent, key, &[], Cut::Anew, wanted, &mut tools);
        self.core.return_tools(self.context, tools, self.guard);
        drop(locked);
        if !matches!(changed, Ok(true)) {
            // If there is no memory, or a frame is corrupt, the leaf stays unchanged.
            return Ok(());
        }
        self.context.count(match wanted {
            Temperature::Warm => Count::Warmed,
            Temperature::Cold => Count::Cooled,
        });
        let (new, _) = self.shard.descend(key, self.guard);
        // Not counted if the leaf was split.
        if wanted == Temperature::Cold && new.header().live_user_bytes.load(Ordering::Relaxed) == user_bytes {
            passes.cooled_user_bytes += user_bytes;
            passes.cooled_held_bytes += new.header().node.requested_bytes() as u64;
        }
        Ok(())
    }
}
