//! The settings in force. Frame and leaf lengths may change while threads compact; a compaction uses the values that it
//! read at its start.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::tree::compact::compress::Settings;

/// A tree's settings.
pub(crate) struct LiveSettings {
    /// Leaf bytes in the upper half and frame bytes in the lower: both are read by one load, since they belong
    /// together.
    lengths: AtomicU64,
    sub_pages: usize,
    inline_value_bytes: usize,
    keys_in_blocks: bool,
    /// Maximum raw bytes of frames cut by writers: the tree's initial frame length.
    written_frame_bytes: usize,
}

impl LiveSettings {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            lengths: lengths(&settings).into(),
            sub_pages: settings.sub_pages,
            inline_value_bytes: settings.inline_value_bytes,
            keys_in_blocks: settings.keys_in_blocks,
            written_frame_bytes: settings.frame_bytes,
        }
    }

    /// Returns the length of the longest value that leaves and landing buffers store inline.
    #[inline]
    pub(crate) fn inline_value_bytes(&self) -> usize {
        self.inline_value_bytes
    }

    /// Returns the current settings.
    #[inline]
    pub(crate) fn now(&self) -> Settings {
        // Relaxed: no other data depends on the lengths.
        let lengths = self.lengths.load(Ordering::Relaxed);
        Settings {
            leaf_bytes: (lengths >> 32) as usize,
            frame_bytes: lengths as u32 as usize,
            sub_pages: self.sub_pages,
            inline_value_bytes: self.inline_value_bytes,
            keys_in_blocks: self.keys_in_blocks,
        }
    }

    /// Returns the settings for a compaction that a writer executes or waits for: an insertion should not recompress
    /// the neighbouring records. Background passes cut such frames again.
    #[inline]
    pub(crate) fn while_writing(&self) -> Settings {
        let now = self.now();
        Settings {
            frame_bytes: now.frame_bytes.min(self.written_frame_bytes),
            ..now
        }
    }

    /// Sets the frame and leaf lengths for compactions that begin from now on. The form of leaves does not change.
    pub(crate) fn set_lengths(&self, settings: &Settings) {
        self.lengths.store(lengths(settings), Ordering::Relaxed);
    }
}

fn lengths(settings: &Settings) -> u64 {
    (settings.leaf_bytes as u64) << 32 | settings.frame_bytes as u64
}
