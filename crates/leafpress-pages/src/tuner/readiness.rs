//! Whether the miniatures have seen enough to decide on.

/// What the miniatures have seen since the last decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// Too little.
    TooLittle,
    /// The caches are filling up.
    Filling,
    /// Enough to decide on.
    Enough,
}

/// What was seen at a look that was not too early.
pub(crate) struct Look {
    /// [`Readiness::Filling`] or [`Readiness::Enough`].
    pub readiness: Readiness,
    /// Whether the miniature that is asked about it has no room left.
    pub is_full: bool,
    /// What the past counts from now on, 0 to 1.
    pub aging: f32,
}

/// Counts what the miniatures see, from one look to the next.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Accesses since the last look that tell the miniatures apart.
    progress: usize,
    /// Such accesses still to come before they count again.
    unseen: usize,
    /// Pages followed, and pages that had left the miniature that is asked whether it is full, at the last look.
    len_before: usize,
    evictions_before: u64,
}

impl Progress {
    /// Whether what the miniatures see counts.
    pub(crate) fn counts(&self) -> bool {
        self.unseen == 0
    }

    /// So many accesses that tell the miniatures apart have been seen.
    pub(crate) fn saw(&mut self, accesses: usize) {
        if self.counts() {
            self.progress += accesses;
        }
        self.unseen = self.unseen.saturating_sub(accesses);
    }

    /// The next accesses find the miniatures as the world was before, and do not count.
    pub(crate) fn skip(&mut self, accesses: usize) {
        self.unseen = self.unseen.max(accesses);
    }

    /// Looks at what was seen since the last look, where that is enough: `len` pages are followed now, and `evictions` have left the
    /// miniature that is asked whether it is full. One access in `filling` that is a new page's means that a cache that is not full fills up.
    pub(crate) fn look(&mut self, len: usize, evictions: u64, filling: usize) -> Option<Look> {
        if self.progress < (len / 4).max(256) {
            return None;
        }
        let grown = len.saturating_sub(self.len_before);
        let is_full = evictions > self.evictions_before;
        let progress = std::mem::take(&mut self.progress);
        self.len_before = len;
        self.evictions_before = evictions;
        // While pages only come all miniatures have the same misses, and those that compress have only its cost.
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
