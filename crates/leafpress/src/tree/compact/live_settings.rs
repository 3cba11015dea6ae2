//! The settings in force. The lengths of frames and leaves may change while threads compact; a compaction goes by what it found when it
//! began.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::tree::compact::compress::Settings;

/// A tree's settings.
pub(crate) struct LiveSettings {
    /// Leaf bytes in the upper half and frame bytes in the lower: one load, since they belong together.
    lengths: AtomicU64,
    sub_pages: usize,
    inline_value_bytes: usize,
    /// Frames that a writer cuts are no longer than these raw bytes: those that the tree began with.
    written_frame_bytes: usize,
}

impl LiveSettings {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            lengths: lengths(&settings).into(),
            sub_pages: settings.sub_pages,
            inline_value_bytes: settings.inline_value_bytes,
            written_frame_bytes: settings.frame_bytes,
        }
    }

    /// Longest value that leaves and landing buffers hold themselves.
    #[inline]
    pub(crate) fn inline_value_bytes(&self) -> usize {
        self.inline_value_bytes
    }

    /// What holds now.
    #[inline]
    pub(crate) fn now(&self) -> Settings {
        // Nothing else is read that was written before a change.
        let lengths = self.lengths.load(Ordering::Relaxed);
        Settings {
            leaf_bytes: (lengths >> 32) as usize,
            frame_bytes: lengths as u32 as usize,
            sub_pages: self.sub_pages,
            inline_value_bytes: self.inline_value_bytes,
        }
    }

    /// What holds for a compaction that a writer does or waits for: a put should not compress its neighbours again. The background cuts
    /// what was written anew.
    #[inline]
    pub(crate) fn while_writing(&self) -> Settings {
        let now = self.now();
        Settings {
            frame_bytes: now.frame_bytes.min(self.written_frame_bytes),
            ..now
        }
    }

    /// Has compactions that begin from now on make frames and leaves of these lengths. The form of leaves stays.
    pub(crate) fn set_lengths(&self, settings: &Settings) {
        self.lengths.store(lengths(settings), Ordering::Relaxed);
    }
}

fn lengths(settings: &Settings) -> u64 {
    (settings.leaf_bytes as u64) << 32 | settings.frame_bytes as u64
}
