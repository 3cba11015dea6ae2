//! The settings of compaction: lengths of leaves and frames, and the form of leaves.

/// The settings of compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settings {
    /// User bytes at which a leaf splits.
    pub leaf_bytes: usize,
    /// Raw bytes at which a frame is closed; 1 makes every record a frame.
    pub frame_bytes: usize,
    /// Maximum of `frame_bytes` for frames cut by writers.
    pub written_frame_bytes: usize,
    /// Sub-pages of a hashed leaf; 0 for ordered leaves.
    pub sub_pages: usize,
    /// Longest value that leaves and landing buffers store inline.
    pub inline_value_bytes: usize,
    /// Whether the codec decodes a single record fast enough that the keys of one-record frames are in their blocks.
    pub keys_in_blocks: bool,
}

impl Settings {
    /// Returns whether every record is a frame of its own.
    pub(crate) fn single(&self) -> bool {
        self.frame_bytes <= 1 && self.sub_pages == 0
    }

    /// Returns whether leaves of fingerprints are keyed: see [`crate::tree::node::layout::KEYED`].
    pub(crate) fn keyed(&self) -> bool {
        self.keys_in_blocks && self.single()
    }
}
