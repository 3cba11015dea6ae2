//! How full a split makes its leaves.

/// The side of a split that is filled, because the records were inserted at the other end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SplitHint {
    AtEnd,
    AtStart,
    Within,
}
