//! How full the leaves are that a split makes.

/// Which side of a split is filled, because the records came at the other end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SplitHint {
    AtEnd,
    AtStart,
    Within,
}
