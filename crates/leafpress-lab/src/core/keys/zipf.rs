//! Zipfian ranks: rank r of n with a probability proportional to `1 / r^theta`, in constant time and memory.

use rand_xoshiro::rand_core::Rng;

/// A number in [0, 1), evenly.
#[inline]
pub(crate) fn unit(rng: &mut impl Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// A sampler of ranks from 0 to n - 1.
///
/// Below a theta of 1 it is the closed form of Gray et al. ("Quickly generating billion-record synthetic databases",
/// 1994), which YCSB and PiBench use and which is approximate past the second rank. It is undefined from 1 on, where
/// ranks are drawn by rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate variates from
/// monotone discrete distributions", 1996), which is exact.
#[derive(Debug, Clone)]
pub(crate) enum Zipf {
    /// 0 <= theta < 1.
    ClosedForm(ClosedForm),
    /// theta >= 1.
    RejectionInversion(RejectionInversion),
}

impl Zipf {
    /// A sampler of `n` ranks, at least one.
    pub(crate) fn new(n: u64, theta: f64) -> Self {
        if theta < 1.0 {
            Self::ClosedForm(ClosedForm::new(n, theta, zeta_between(0, n, theta)))
        } else {
            Self::RejectionInversion(RejectionInversion::new(n, theta))
        }
    }

    /// The distribution over more ranks; `n` must not decrease.
    #[cfg(feature = "bench")]
    pub(crate) fn grow(&mut self, n: u64) {
        match self {
            Self::ClosedForm(one) => {
                let added = zeta_between(one.n as u64, n, one.theta);
                *one = ClosedForm::new(n, one.theta, one.zeta_n + added);
            }
            Self::RejectionInversion(one) => *one = RejectionInversion::new(n, one.theta),
        }
    }

    /// A rank below n.
    #[inline]
    pub(crate) fn rank(&self, rng: &mut impl Rng) -> u64 {
        match self {
            Self::ClosedForm(one) => one.rank(unit(rng)),
            Self::RejectionInversion(one) => one.rank(rng),
        }
    }
}

/// Gray et al. 1994, section 3.2.
#[derive(Debug, Clone)]
pub(crate) struct ClosedForm {
    n: f64,
    #[cfg(feature = "bench")]
    theta: f64,
    alpha: f64,
    zeta_n: f64,
    eta: f64,
    /// Bounds of the uniform number for ranks 0 and 1, which the closed form would miss.
    second: f64,
}

impl ClosedForm {
    fn new(n: u64, theta: f64, zeta_n: f64) -> Self {
        let nf = n as f64;
        let eta = (1.0 - (2.0 / nf).powf(1.0 - theta)) / (1.0 - zeta_between(0, 2.min(n), theta) / zeta_n);
        Self {
            n: nf,
            #[cfg(feature = "bench")]
            theta,
            alpha: 1.0 / (1.0 - theta),
            zeta_n,
            eta,
            second: 1.0 + 0.5_f64.powf(theta),
        }
    }

    /// A rank below n, for a `u` in [0, 1).
    #[inline]
    fn rank(&self, u: f64) -> u64 {
        let uz = u * self.zeta_n;
        if uz < 1.0 {
            return 0;
        }
        if uz < self.second {
            return 1;
        }
        let rank = (self.n * (self.eta * u - self.eta + 1.0).powf(self.alpha)) as u64;
        rank.min(self.n as u64 - 1)
    }
}

/// Draws a point under the hat `x^-theta` by inverting its integral, rounds it to a rank, and draws again where the
/// point is over the rank's bar. Fewer than one draw in ten is rejected.
#[derive(Debug, Clone)]
pub(crate) struct RejectionInversion {
    n: f64,
    theta: f64,
    /// The hat's integral at the left of the first bar and at the right of the last.
    from: f64,
    to: f64,
    /// A point rounded by at most this is never above the bar.
    squeeze: f64,
}

impl RejectionInversion {
    fn new(n: u64, theta: f64) -> Self {
        let mut one = Self {
            n: n as f64,
            theta,
            from: 0.0,
            to: 0.0,
            squeeze: 0.0,
        };
        // The first bar has no hat: all of it is drawn.
        one.from = one.integral(1.5) - 1.0;
        one.to = one.integral(one.n + 0.5);
        one.squeeze = 2.0 - one.inverse(one.integral(2.5) - one.bar(2.0));
        one
    }

    #[inline]
    fn rank(&self, rng: &mut impl Rng) -> u64 {
        loop {
            let u = self.to + unit(rng) * (self.from - self.to);
            let x = self.inverse(u);
            let k = x.round().clamp(1.0, self.n);
            if k - x <= self.squeeze || u >= self.integral(k + 0.5) - self.bar(k) {
                return k as u64 - 1;
            }
        }
    }

    /// Height of the bar of rank x, from 1.
    fn bar(&self, x: f64) -> f64 {
        x.powf(-self.theta)
    }

    /// An integral of `x^-theta`: `(x^(1 - theta) - 1) / (1 - theta)`, and `ln x` where theta is 1.
    fn integral(&self, x: f64) -> f64 {
        power_integral(1.0, x, 1.0 - self.theta)
    }

    /// The inverse of [`RejectionInversion::integral`].
    fn inverse(&self, y: f64) -> f64 {
        // Rounding may bring it below -1, where the logarithm is undefined.
        let t = (y * (1.0 - self.theta)).max(-1.0);
        let ln_over = if t.abs() < NEAR_ZERO {
            1.0 - t / 2.0
        } else {
            t.ln_1p() / t
        };
        (ln_over * y).exp()
    }
}

/// Nearer to zero than this, the first terms of a series are all that a number holds.
const NEAR_ZERO: f64 = 1e-8;

/// The integral of `x^(power - 1)` between two numbers over 0, also where `power` is 0 or nearly so.
pub(crate) fn power_integral(from: f64, to: f64, power: f64) -> f64 {
    let ln = (to / from).ln();
    let t = power * ln;
    let expm1_over = if t.abs() < NEAR_ZERO {
        1.0 + t / 2.0
    } else {
        t.exp_m1() / t
    };
    from.powf(power) * ln * expm1_over
}

/// The sum of `1 / i^theta` for i in `from + 1..=to`: exact for the first million terms, the midpoint integral beyond
/// (relative error below 1e-13).
pub(super) fn zeta_between(from: u64, to: u64, theta: f64) -> f64 {
    const EXACT: u64 = 1 << 20;
    let exact = to.min(EXACT);
    let head: f64 = (from + 1..=exact).map(|i| (i as f64).powf(-theta)).sum();
    let (from, to) = (from.max(exact) as f64 + 0.5, to as f64 + 0.5);
    head + power_integral(from, to, 1.0 - theta)
}
