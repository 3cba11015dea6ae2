//! A permutation of 0..n in constant memory.

/// A pseudo-random permutation of `0..n`: four rounds of a Feistel network over `Z_a x Z_b` with `a * b >= n` (Black
/// and Rogaway, "Ciphers with arbitrary finite domains", 2002), walking until the result is below n. `a * b` exceeds n
/// by at most `2 * sqrt(n) + 1`, so it seldom walks.
#[derive(Debug, Clone)]
pub struct Permutation {
    n: u64,
    a: u64,
    b: u64,
    round_keys: [u64; 4],
}

impl Permutation {
    /// Creates a permutation of `0..n`, drawn by `seed`; n is 1 to 2^62.
    pub fn new(n: u64, seed: u64) -> Self {
        let n = n.clamp(1, 1 << 62);
        let a = n.isqrt().max(1);
        let b = n.div_ceil(a);
        let round_keys = std::array::from_fn(|round| mix(seed.wrapping_add(mix(round as u64 + 1))));
        Self { n, a, b, round_keys }
    }

    /// How many numbers it permutes.
    #[cfg(feature = "bench")]
    pub(crate) fn len(&self) -> u64 {
        self.n
    }

    /// Returns the position of `index`, which must be below n.
    #[inline]
    pub fn apply(&self, index: u64) -> u64 {
        let mut x = index;
        loop {
            let (mut left, mut right) = (x / self.b, x % self.b);
            for pair in self.round_keys.chunks_exact(2) {
                left = add_mod(left, below(mix(right ^ pair[0]), self.a), self.a);
                right = add_mod(right, below(mix(left ^ pair[1]), self.b), self.b);
            }
            x = left * self.b + right;
            if x < self.n {
                return x;
            }
        }
    }
}

#[inline]
fn add_mod(x: u64, y: u64, modulus: u64) -> u64 {
    let sum = x + y;
    if sum >= modulus { sum - modulus } else { sum }
}

/// Scales a random number to `0..n` (Lemire 2019, without the rejection: the bias is below n / 2^64).
#[inline]
pub fn below(random: u64, n: u64) -> u64 {
    ((u128::from(random) * u128::from(n)) >> 64) as u64
}

pub use leafpress_base::random::mix;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_hit_once() {
        for n in [1, 2, 3, 7, 10, 100, 1000, 4096, 10_007] {
            for seed in 0..3 {
                let permutation = Permutation::new(n, seed);
                let mut hit = vec![false; n as usize];
                for index in 0..n {
                    let to = permutation.apply(index) as usize;
                    assert!(!std::mem::replace(&mut hit[to], true), "n {n} seed {seed}: {to} twice");
                }
            }
        }
    }

    #[test]
    fn it_is_far_from_the_identity_and_seeds_differ() {
        let n = 10_000;
        let (one, two) = (Permutation::new(n, 1), Permutation::new(n, 2));
        let fixed = (0..n).filter(|&i| one.apply(i) == i).count();
        let same = (0..n).filter(|&i| one.apply(i) == two.apply(i)).count();
        // Both have expectation 1.
        assert!(fixed < 15 && same < 15, "{fixed} fixed points, {same} common");
        let ascending = (1..n).filter(|&i| one.apply(i) > one.apply(i - 1)).count();
        assert!(
            (4_700..5_300).contains(&ascending),
            "{ascending} ascents of 5000 expected"
        );
    }
}
