//! Shared test fixtures of the model.

use super::{Access, Method, Options, Outcome, Overhead, Replacement, evaluate};

/// The thesis's example, corrected, with this access and replacement, and all memory for pages.
pub(super) fn options(access: &str, replacement: Replacement) -> Options {
    Options {
        access: Access::parse(access).unwrap(),
        replacement,
        overhead: Overhead::None,
        ..Options::new(Method::Corrected)
    }
}

/// The thesis's example as published.
pub(super) fn published() -> Outcome {
    evaluate(&Options {
        shares: vec![0, 25, 50, 75, 100],
        ..Options::new(Method::AsPublished)
    })
    .unwrap()
}

/// Numbers that look random, the same every time: `below` of them.
pub(super) fn random(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    crate::core::keys::below(crate::core::keys::mix(*state), below)
}
