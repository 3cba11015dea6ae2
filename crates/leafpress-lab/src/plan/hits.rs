//! Hit ratio by the share of the records that is held.

use std::sync::atomic::{AtomicBool, Ordering};

use leafpress_pages::pool::{PolicyKind, PolicySimulation};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use serde::Serialize;

use crate::cache::{Curve, HitCurves};
use crate::core::LabError;
use crate::core::keys::{Distribution, unit};
use crate::model::mass_of_hottest;

/// Objects of a simulation, each of which stands for records of neighbouring popularity.
const OBJECTS: u64 = 1 << 14;
/// Requests of a simulation: before hits are counted, and counted.
const REQUESTS: (u64, u64) = (100_000, 200_000);
/// The shares of a curve: this many halvings, and steps within each.
const HALVINGS: u32 = 10;
const STEPS: u32 = 2;
/// The least share of a trace's records that a curve has, in halvings.
const TRACE_HALVINGS: u32 = 20;
/// Requests between checks for cancellation.
const LOOK_EVERY: u64 = 1 << 14;

/// The hit ratios of caches that evict by S3-FIFO, as ours does.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hits {
    /// Shares of the records, rising to 1, and the hit ratio with each.
    pub points: Vec<(f64, f64)>,
}

impl Hits {
    /// Computes the hit ratios of independent requests for this number of records.
    ///
    /// Small caches with `OBJECTS` objects are simulated. An object has the mean popularity of as many records as it
    /// stands for: only those of similar popularity are taken for one, so that the result is that of all records.
    ///
    /// # Errors
    /// [`LabError::Cancelled`].
    pub fn of_distribution(
        distribution: Distribution,
        records: f64,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Self, LabError> {
        let objects = (records.round() as u64).clamp(1, OBJECTS);
        let mass = |object: u64| mass_of_hottest(distribution, records, object as f64 / objects as f64);
        let ends: Vec<f64> = (1..=objects).map(mass).collect();
        let steps = HALVINGS * STEPS;
        let mut points = Vec::new();
        for step in (1..=steps).rev() {
            let share = (-f64::from(step) / f64::from(STEPS)).exp2();
            points.push((share, simulated(&ends, share, cancel)?));
            progress(f64::from(steps - step) / f64::from(steps));
        }
        points.push((1.0, 1.0));
        let hottest = |share: f64| mass_of_hottest(distribution, records, share);
        Ok(Self {
            points: with_smaller_shares(points, records, hottest),
        })
    }

    /// Computes the hit ratios of a trace with this number of keys and this mean length of its records. First requests
    /// for a record are misses.
    pub(super) fn of_trace(curves: &HitCurves, keys: u64, record_bytes: f64) -> Self {
        let all_bytes = keys as f64 * (record_bytes + curves.entry_bytes as f64);
        let shares = (0..=TRACE_HALVINGS * STEPS).rev();
        let shares = shares.map(|step| (-f64::from(step) / f64::from(STEPS)).exp2());
        Self {
            points: shares
                .map(|share| (share, curves.hit_ratio(Curve::S3Fifo, share * all_bytes)))
                .collect(),
        }
    }

    /// Returns the hit ratio with a share of the records, interpolated between those of the next shares.
    pub fn at(&self, share: f64) -> f64 {
        let behind = self.points.partition_point(|(of, _)| *of < share);
        match (
            behind.checked_sub(1).map(|before| self.points[before]),
            self.points.get(behind),
        ) {
            (Some((low, from)), Some((high, to))) => from + (to - from) * (share / low).ln() / (high / low).ln(),
            (Some((_, last)), None) => last,
            (None, Some((high, first))) => first * share.max(0.0) / high,
            (None, None) => 0.0,
        }
    }

    /// Returns the least share of the records with which the hit ratio is this, at most 1.
    pub fn share_for(&self, hit_ratio: f64) -> f64 {
        let Some(enough) = self.points.iter().position(|(_, hits)| *hits >= hit_ratio) else {
            return 1.0;
        };
        let (high, to) = self.points[enough];
        let Some((low, from)) = enough.checked_sub(1).map(|before| self.points[before]) else {
            return high;
        };
        low * (high / low).powf((hit_ratio - from) / (to - from).max(1e-12))
    }
}

/// Adds shares below the least of a simulation, down to that of one record: a cache has the same part of the requests
/// for the records that it could hold, whose popularity is `hottest`, as with the least simulated share.
fn with_smaller_shares(points: Vec<(f64, f64)>, records: f64, hottest: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    let Some((least, hits)) = points.first().copied() else {
        return points;
    };
    let part = hits / hottest(least).max(f64::MIN_POSITIVE);
    let halved = std::iter::successors(Some(least / 2.0), |share| Some(share / 2.0));
    let mut all: Vec<_> = halved
        .take_while(|share| share * records >= 1.0)
        .map(|share| (share, part * hottest(share)))
        .collect();
    all.reverse();
    all.extend(points);
    all
}

/// The hit ratio of a cache with a share of the objects, whose cumulative popularity is `ends`.
fn simulated(ends: &[f64], share: f64, cancel: &AtomicBool) -> Result<f64, LabError> {
    let objects = ends.len();
    let capacity = (objects as f64 * share).round().max(1.0) as u64;
    let mut cache = PolicySimulation::new(PolicyKind::S3Fifo, capacity)
        .ok_or_else(|| LabError::System("no memory to simulate a cache".into()))?;
    // It begins full. The hottest come last, so that what it holds is near to what it will hold.
    for object in (0..objects as u64).rev() {
        cache.access(object, 1);
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut hits = 0_u64;
    let (before, counted) = REQUESTS;
    for number in 0..before + counted {
        if number % LOOK_EVERY == 0 && cancel.load(Ordering::Relaxed) {
            return Err(LabError::Cancelled);
        }
        let drawn = unit(&mut rng);
        let object = ends.partition_point(|end| *end < drawn).min(objects - 1);
        let is_hit = cache.access(object as u64, 1);
        hits += u64::from(is_hit && number >= before);
    }
    Ok(hits as f64 / counted as f64)
}
