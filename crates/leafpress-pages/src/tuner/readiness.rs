//! Whether the miniatures have observed enough for a decision.

/// The state of the observations since the last decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// Too few observations.
    TooLittle,
    /// The caches are filling up.
    Filling,
    /// Enough for a decision.
    Enough,
}

/// The observations at a check that was not too early.
pub(crate) struct Look {
    /// [`Readiness::Filling`] or [`Readiness::Enough`].
    pub readiness: Readiness,
    /// Whether the miniature whose fullness is checked has no room left.
    pub is_full: bool,
    /// The factor by which past counters are multiplied, 0 to 1.
    pub aging: f32,
}

/// Counts the observations between checks.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Accesses since the last check that distinguish the miniatures.
    progress: usize,
    /// Such accesses still to be skipped.
    unseen: usize,
    /// Number of sampled pages, and of pages evicted from the miniature whose fullness is checked, at the last check.
    len_before: usize,
    evictions_before: u64,
}

impl Progress {
    /// Returns true if observations count.
    pub(crate) fn counts(&self) -> bool {
        self.unseen == 0
    }

    /// Counts accesses that distinguish the miniatures.
    pub(crate) fn saw(&mut self, accesses: usize) {
        if self.counts() {
            self.progress += accesses;
        }
        self.unseen = self.unseen.saturating_sub(accesses);
    }

    /// Skips the next accesses, which meet miniatures in an outdated state.
    pub(crate) fn skip(&mut self, accesses: usize) {
        self.unseen = self.unseen.max(accesses);
    }

    /// Checks the observations since the last check, if they are enough: `len` pages are sampled now, and `evictions`
    /// have left the miniature whose fullness is checked. If one access in `filling` is for a new page, a cache that is
    /// not full is filling up.
    pub(crate) fn look(&mut self, len: usize, evictions: u64, filling: usize) -> Option<Look> {
        if self.progress < (len / 4).max(256) {
            return None;
        }
        let grown = len.saturating_sub(self.len_before);
        let is_full = evictions > self.evictions_before;
        let progress = std::mem::take(&mut self.progress);
        self.len_before = len;
        self.evictions_before = evictions;
        // While pages are only added all miniatures have the same misses, and those that compress have only its cost.
        let (readiness, aging) = if grown > progress / if is_full { 2 } else { filling } {
            (Readiness::Filling, 0.0)
        } else {
            let half_life = (2 * len).max(4096);
            (
                Readiness::Enough,
                0.5f64.powf(progress as f64 / half_life as f64) as f32,
            )
        };
        Some(Look {
            readiness,
            is_full,
            aging,
        })
    }
}
