//! Which operation comes next.

use rand_xoshiro::rand_core::Rng;

use super::Ratios;
use super::outcome::{OPERATIONS, Operation};
use crate::core::LabError;

/// Chooses operations with the ratios' probabilities, to within 2^-53.
#[derive(Debug, Clone)]
pub(super) struct Mix {
    /// Operations that have a share, and for each the number below which a random number chooses it or one before it.
    choices: Vec<(Operation, u64)>,
    last: Operation,
}

impl Mix {
    pub(super) fn new(ratios: &Ratios) -> Result<Self, LabError> {
        let sum = ratios.sum();
        let mut choices = Vec::with_capacity(OPERATIONS.len());
        let mut before = 0.0;
        for operation in OPERATIONS {
            let share = ratios.of(operation);
            if share > 0.0 {
                before += share;
                // Saturates at 2^64 - 1 for the last one, which is chosen without looking anyway.
                choices.push((operation, (before / sum * 2_f64.powi(64)) as u64));
            }
        }
        let Some((last, _)) = choices.pop() else {
            return Err(LabError::option("read_ratio", "all ratios are 0"));
        };
        Ok(Self { choices, last })
    }

    #[inline]
    pub(super) fn draw(&self, rng: &mut impl Rng) -> Operation {
        if self.choices.is_empty() {
            return self.last;
        }
        let random = rng.next_u64();
        for &(operation, bound) in &self.choices {
            if random < bound {
                return operation;
            }
        }
        self.last
    }
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;

    /// PiBench draws 256 operations once and repeats them: of 0.99 reads and 0.01 inserts no insert is ever run.
    #[test]
    fn operations_follow_their_ratios() {
        const DRAWS: u64 = 1_000_000;
        for ratios in [
            Ratios {
                read: 0.99,
                insert: 0.01,
                ..Ratios::NONE
            },
            Ratios {
                read: 0.9999,
                remove: 0.0001,
                ..Ratios::NONE
            },
            Ratios {
                read: 0.3,
                insert: 0.1,
                update: 0.25,
                remove: 0.05,
                scan: 0.2,
                read_modify_write: 0.1,
            },
            Ratios {
                read: 1.0 / 3.0,
                insert: 1.0 / 3.0,
                update: 1.0 / 3.0 + 5e-7,
                ..Ratios::NONE
            },
        ] {
            let mix = Mix::new(&ratios).unwrap();
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(1729);
            let mut seen = [0_u64; OPERATIONS.len()];
            for _ in 0..DRAWS {
                seen[mix.draw(&mut rng) as usize] += 1;
            }
            for operation in OPERATIONS {
                let expected = ratios.of(operation) / ratios.sum() * DRAWS as f64;
                let deviation = (expected * (1.0 - expected / DRAWS as f64)).sqrt();
                let seen = seen[operation as usize] as f64;
                assert!(
                    (seen - expected).abs() <= 5.0 * deviation,
                    "{operation:?}: {seen} for {expected} in {ratios:?}"
                );
            }
        }
    }

    #[test]
    fn an_operation_without_a_share_never_comes() {
        let mix = Mix::new(&Ratios {
            scan: 1.0,
            ..Ratios::NONE
        })
        .unwrap();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        assert!((0..1000).all(|_| mix.draw(&mut rng) == Operation::Scan));
        assert!(Mix::new(&Ratios::NONE).is_err());
    }
}
