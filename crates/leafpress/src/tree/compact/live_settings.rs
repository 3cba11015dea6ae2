//! The settings in force. Frame and leaf lengths and the place of keys may change while threads compact; a compaction
//! uses the values that it read at its start.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::tree::compact::settings::Settings;

/// A tree's settings.
pub(crate) struct LiveSettings {
    /// The settings that change, read by one load since they belong together.
    changing: AtomicU64,
    sub_pages: usize,
    inline_value_bytes: usize,
}

/// The bits of a length.
const LENGTH_BITS: u32 = 21;
const LENGTH_MASK: u64 = (1 << LENGTH_BITS) - 1;

impl LiveSettings {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            changing: changing(&settings).into(),
            sub_pages: settings.sub_pages,
            inline_value_bytes: settings.inline_value_bytes,
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
        // Relaxed: no other data depends on the settings.
        let bits = self.changing.load(Ordering::Relaxed);
        Settings {
            leaf_bytes: (bits & LENGTH_MASK) as usize,
            frame_bytes: (bits >> LENGTH_BITS & LENGTH_MASK) as usize,
            written_frame_bytes: (bits >> (2 * LENGTH_BITS) & LENGTH_MASK) as usize,
            keys_in_blocks: bits >> (3 * LENGTH_BITS) != 0,
            sub_pages: self.sub_pages,
            inline_value_bytes: self.inline_value_bytes,
        }
    }

    /// Returns the settings for a compaction that a writer executes or waits for: an insertion should not recompress
    /// the neighbouring records. Background passes cut such frames again.
    #[inline]
    pub(crate) fn while_writing(&self) -> Settings {
        let now = self.now();
        Settings {
            frame_bytes: now.frame_bytes.min(now.written_frame_bytes),
            ..now
        }
    }

    /// Sets the lengths and the place of keys for compactions that begin from now on. Sub-pages and the bound of inline
    /// values do not change.
    pub(crate) fn set(&self, settings: &Settings) {
        self.changing.store(changing(settings), Ordering::Relaxed);
    }
}

fn changing(settings: &Settings) -> u64 {
    settings.leaf_bytes as u64
        | (settings.frame_bytes as u64) << LENGTH_BITS
        | (settings.written_frame_bytes as u64) << (2 * LENGTH_BITS)
        | u64::from(settings.keys_in_blocks) << (3 * LENGTH_BITS)
}
