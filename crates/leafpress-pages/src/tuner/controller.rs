//! The controller of the fraction of the budget for raw pages, given the cost at each fraction.
//!
//! The fraction stays until another promises a sufficient gain, several times in a row and in the same direction; then
//! it moves there in bounded steps, re-evaluating before each, until hardly anything is left to gain (hysteresis). The
//! known costs are delayed and based on a sample: without the two thresholds the fraction would follow the noise.

/// The relative gain that starts a move, and the one that starts a move over a hump, where an error is expensive.
const WORTH_MOVING: f64 = 0.02;
const WORTH_A_HUMP: f64 = 0.04;
/// The relative gain below which a move ends.
const WORTH_GOING_ON: f64 = 0.005;
/// The number of consecutive decisions that have to agree before a move; before a move over a hump for a large gain;
/// and for a small one.
const AGREEING: u32 = 2;
const AGREEING_ON_HUMP: u32 = 4;
const AGREEING_ON_HUMP_FOR_LITTLE: u32 = 16;
/// Fractions below this are small.
const LITTLE: f64 = 0.1;
/// A cost above this multiple of the current one is a hump.
const HUMP: f64 = 1.1;
/// Maximum step.
const STEP: f64 = 0.15;
/// Minimum step.
const MIN_STEP: f64 = 0.004;

/// The fraction and the direction of its movement.
#[derive(Debug, Clone)]
pub(crate) struct Controller {
    fraction: f64,
    moving: bool,
    /// The direction that the last decisions preferred, -1, 0 or 1, and the number of those decisions.
    wish: i8,
    agreeing: u32,
}

impl Controller {
    /// Creates a controller with an initial fraction, 0 to 1.
    pub(crate) fn new(fraction: f64) -> Self {
        Self {
            fraction,
            moving: false,
            wish: 0,
            agreeing: 0,
        }
    }

    /// The fraction.
    pub(crate) fn fraction(&self) -> f64 {
        self.fraction
    }

    /// Ends a move in progress.
    pub(crate) fn rest(&mut self) {
        self.moving = false;
        self.wish = 0;
        self.agreeing = 0;
    }

    /// Returns the next fraction if it changes. `costs` are those of `fractions`, which descend from 1.
    pub(crate) fn decide(&mut self, fractions: &[f64], costs: &[f64]) -> Option<f64> {
        let best = (0..costs.len()).min_by(|&a, &b| costs[a].total_cmp(&costs[b]))?;
        let here = cost_at(self.fraction, fractions, costs);
        let gain = 1.0 - costs[best] / here.max(f64::MIN_POSITIVE);
        let way = target(best, fractions, costs) - self.fraction;
        let between = |fraction: f64| (fraction - self.fraction) * (fraction - fractions[best]) < 0.0;
        let hump = (0..costs.len()).any(|index| between(fractions[index]) && costs[index] > here * HUMP);
        let (worth, agreeing) = match (self.moving, hump) {
            (true, _) => (WORTH_GOING_ON, AGREEING),
            (false, false) => (WORTH_MOVING, AGREEING),
            (false, true) if gain < LITTLE => (WORTH_A_HUMP, AGREEING_ON_HUMP_FOR_LITTLE),
            (false, true) => (WORTH_A_HUMP, AGREEING_ON_HUMP),
        };
        if gain < worth || way.abs() < MIN_STEP {
            self.rest();
            return None;
        }
        let direction = if way > 0.0 { 1 } else { -1 };
        if self.wish != direction {
            self.rest();
            self.wish = direction;
        }
        self.agreeing += 1;
        if !self.moving && self.agreeing < agreeing {
            return None;
        }
        self.moving = true;
        self.fraction += way.clamp(-STEP, STEP);
        // Sums of steps that should be 1 are inexact.
        if self.fraction > 1.0 - MIN_STEP {
            self.fraction = 1.0;
        }
        Some(self.fraction)
    }
}

/// Interpolates the cost of any fraction linearly.
fn cost_at(fraction: f64, fractions: &[f64], costs: &[f64]) -> f64 {
    let Some(after) = fractions.iter().position(|&other| other <= fraction) else {
        return costs.last().copied().unwrap_or(0.0);
    };
    if after == 0 || fractions[after] == fraction {
        return costs[after];
    }
    let (before, part) = (
        after - 1,
        (fraction - fractions[after]) / (fractions[after - 1] - fractions[after]),
    );
    let cost = costs[after] + (costs[before] - costs[after]) * part;
    // All victims are compressed at any fraction below 1, none at 1: between them the cost is a step, not a line.
    if before == 0 { cost.max(costs[after]) } else { cost }
}

/// Returns the minimum of the parabola through the best fraction and its neighbours, at most halfway to either.
fn target(best: usize, fractions: &[f64], costs: &[f64]) -> f64 {
    if best == 0 || best + 1 == fractions.len() {
        return fractions[best];
    }
    let (left, right) = (
        fractions[best + 1] - fractions[best],
        fractions[best - 1] - fractions[best],
    );
    let (rise_left, rise_right) = (costs[best + 1] - costs[best], costs[best - 1] - costs[best]);
    // cost(x) = a x² + b x around the best.
    let a = (rise_left / left - rise_right / right) / (left - right);
    let b = rise_right / right - a * right;
    if !(a > 0.0 && a.is_finite()) {
        return fractions[best];
    }
    fractions[best] + (-b / (2.0 * a)).clamp(left / 2.0, right / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRACTIONS: [f64; 6] = [1.0, 0.8, 0.6, 0.4, 0.2, 0.05];

    /// Decides until nothing changes, and returns the fractions on the way.
    fn run(start: f64, costs: [f64; 6]) -> Vec<f64> {
        let mut controller = Controller::new(start);
        let mut way = vec![start];
        for _ in 0..40 {
            way.extend(controller.decide(&FRACTIONS, &costs));
        }
        way
    }

    #[test]
    fn goes_to_the_best_from_anywhere_in_bounded_steps_and_stays() {
        let costs = [10.0, 8.0, 6.0, 5.0, 6.0, 9.0];
        for start in [0.0, 0.05, 0.3, 0.5, 0.77, 1.0] {
            let way = run(start, costs);
            let end = way[way.len() - 1];
            assert!((0.35..0.45).contains(&end), "{way:?}");
            assert!(
                way.windows(2).all(|pair| (pair[1] - pair[0]).abs() <= STEP + 1e-9),
                "{way:?}"
            );
            assert!(way.len() <= 8, "{way:?}");
        }
    }

    #[test]
    fn small_gains_do_not_move_it() {
        assert_eq!(run(0.5, [10.0, 9.95, 9.9, 9.85, 9.8, 9.9]), [0.5]);
    }

    #[test]
    fn goes_all_the_way_to_no_compression_and_back() {
        let way = run(0.5, [9.0, 10.0, 11.0, 12.0, 13.0, 14.0]);
        assert_eq!(way.last(), Some(&1.0), "{way:?}");
        // Just below 1 all victims are compressed for nothing.
        let way = run(0.99, [9.0, 10.0, 11.0, 12.0, 13.0, 14.0]);
        assert_eq!(way.last(), Some(&1.0), "{way:?}");
        let way = run(1.0, [9.0, 8.0, 7.0, 6.0, 5.0, 4.0]);
        assert_eq!(way.last(), Some(&0.05), "{way:?}");
    }

    #[test]
    fn crosses_a_hump() {
        let way = run(1.0, [6.0, 8.0, 9.0, 8.0, 5.0, 7.0]);
        let end = way[way.len() - 1];
        assert!((0.15..0.25).contains(&end), "{way:?}");
        // A small gain is not enough.
        assert_eq!(run(1.0, [6.0, 8.0, 9.0, 8.0, 5.8, 7.0]), [1.0]);
    }

    #[test]
    fn noise_that_points_both_ways_does_not_move_it() {
        let mut controller = Controller::new(0.5);
        for round in 0..100 {
            let mut costs = [10.0; 6];
            costs[if round % 2 == 0 { 1 } else { 4 }] = 9.0;
            assert_eq!(controller.decide(&FRACTIONS, &costs), None);
        }
    }

    #[test]
    fn without_estimates_the_fraction_stays() {
        assert_eq!(Controller::new(0.5).decide(&FRACTIONS, &[0.0; 6]), None);
        assert_eq!(Controller::new(0.5).decide(&[], &[]), None);
    }
}
