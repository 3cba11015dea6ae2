//! The input of compression: records, and frames that are kept unchanged.
//!
//! A [`LeafBuilder`] is the content of one future leaf (or of several, when it has grown past a leaf): frames kept
//! unchanged from a leaf, and newly compressed frames. Nothing of it is published; dropping it discards it.

use std::ops::Range;

use bumpalo::Bump;

use crate::tree::compact::settings::Settings;
use crate::tree::error::TreeError;
use crate::tree::node::key_order::common_prefix;
use crate::tree::node::large::Large;
use crate::tree::node::layout::SINGLE;
use crate::tree::node::leaf::Leaf;
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::{TryGrow, short_lived_room_for};

/// A record to be compressed.
#[derive(Clone, Copy)]
pub(crate) struct Record<'b> {
    pub key: &'b [u8],
    pub value: RecordValue<'b>,
    /// See [`crate::tree::node::layout::READ`].
    pub mark: u8,
}

/// The value of a record.
#[derive(Clone, Copy)]
pub(crate) enum RecordValue<'b> {
    Inline(&'b [u8]),
    /// A compressed block that is the record's whole frame; only in builders of one-record frames. In a keyed builder
    /// the block holds the key behind the builder's prefix as well. `raw_len` is the length of the value.
    Compressed {
        block: &'b [u8],
        raw_len: usize,
    },
    Large(Large<'b>),
}

impl Record<'_> {
    pub(crate) fn value_len(&self) -> usize {
        match self.value {
            RecordValue::Inline(value) => value.len(),
            RecordValue::Compressed { raw_len, .. } => raw_len,
            RecordValue::Large(_) => 0,
        }
    }

    /// Returns the user bytes that its frame holds.
    pub(crate) fn inline_bytes(&self) -> usize {
        self.key.len() + self.value_len()
    }
}

/// A part of a leaf builder: one frame, or a sequence of them.
#[derive(Clone, Copy)]
pub(crate) enum Part<'b> {
    /// Frames `from..to` of a leaf, unchanged.
    Kept { leaf: Leaf<'b>, from: usize, to: usize },
    /// One frame, compressed from the builder's records `from..to` into its blocks at `start..end`.
    Compressed {
        from: usize,
        to: usize,
        start: usize,
        end: usize,
        raw_len: usize,
    },
}

impl<'b> Part<'b> {
    /// Returns the part's records, numbered within its leaf or its builder.
    pub(crate) fn slots(&self) -> Range<usize> {
        match self {
            Part::Kept { leaf, from, to } if leaf.has(SINGLE) => *from..*to,
            Part::Kept { leaf, from, to } => {
                let sections = leaf.sections();
                leaf.slots(&sections, *from).start..leaf.slots(&sections, to - 1).end
            }
            Part::Compressed { from, to, .. } => *from..*to,
        }
    }

    /// Returns its frames, each as a part.
    pub(crate) fn single_frames(self) -> impl Iterator<Item = Part<'b>> {
        let frames = match self {
            Part::Kept { from, to, .. } => from..to,
            Part::Compressed { .. } => 0..1,
        };
        frames.map(move |frame| match self {
            Part::Kept { leaf, .. } => Part::Kept {
                leaf,
                from: frame,
                to: frame + 1,
            },
            built => built,
        })
    }
}

/// How a leaf builder's keys are stored.
#[derive(Clone)]
pub(crate) enum Form<'b> {
    Packed {
        key_len: usize,
        prefix: &'b [u8],
    },
    Fingerprints {
        prefix: &'b [u8],
        hashed: bool,
        /// Whether blocks hold the keys: see [`crate::tree::node::layout::KEYED`].
        keyed: bool,
    },
}

/// The content of future leaves.
pub(crate) struct LeafBuilder<'b> {
    pub form: Form<'b>,
    pub parts: Vec<Part<'b>>,
    pub records: Vec<Record<'b>>,
    /// User bytes in the frames.
    pub inline_bytes: usize,
    /// The leaf that has exactly these keys, when no key was added or removed.
    pub same_keys: Option<Leaf<'b>>,
}

/// Copies `bytes` into the arena.
pub(crate) fn keep<'b>(arena: &'b Bump, bytes: &[u8]) -> Result<&'b [u8], TreeError> {
    // An empty arena would access static memory that all empty arenas of all threads share.
    if bytes.is_empty() {
        return Ok(&[]);
    }
    arena
        .try_alloc_slice_copy(bytes)
        .map(|copy| &*copy)
        .map_err(|_| TreeError::OutOfMemory { bytes: bytes.len() })
}

/// Returns the form for ordered `records`.
pub(crate) fn form_for<'b>(records: &[Record<'b>], settings: &Settings) -> Form<'b> {
    let sub_pages = settings.sub_pages;
    let (Some(first), Some(last)) = (records.first(), records.last()) else {
        return if sub_pages > 0 {
            Form::Fingerprints {
                prefix: &[],
                hashed: true,
                keyed: false,
            }
        } else {
            Form::Packed {
                key_len: 0,
                prefix: &[],
            }
        };
    };
    let common = common_prefix(first.key, last.key);
    let key_len = first.key.len();
    let prefix_len = key_len.saturating_sub(8);
    // Records are in key order: a common prefix of the first and the last is common to all.
    let packed = sub_pages == 0 && common >= prefix_len && records.iter().all(|record| record.key.len() == key_len);
    if packed {
        Form::Packed {
            key_len,
            prefix: &first.key[..prefix_len],
        }
    } else {
        Form::Fingerprints {
            prefix: &first.key[..common],
            hashed: sub_pages > 0,
            keyed: settings.keyed(),
        }
    }
}

impl Form<'_> {
    /// Returns whether a key can be added to frames of this form without changing them.
    pub(crate) fn fits(&self, key: &[u8]) -> bool {
        match self {
            Form::Packed { key_len, prefix } => key.len() == *key_len && key.starts_with(prefix),
            Form::Fingerprints { prefix, .. } => key.starts_with(prefix),
        }
    }

    /// Returns the approximate bytes that a record takes in its frame; at least 1, so that a frame's records are
    /// bounded.
    pub(crate) fn raw_bytes(&self, record: &Record<'_>) -> usize {
        match self {
            Form::Packed { .. } => record.value_len().max(1),
            Form::Fingerprints { .. } => record.inline_bytes().max(1),
        }
    }

    pub(crate) fn prefix(&self) -> &[u8] {
        match self {
            Form::Packed { prefix, .. } | Form::Fingerprints { prefix, .. } => prefix,
        }
    }
}

impl<'b> LeafBuilder<'b> {
    pub(crate) fn new(form: Form<'b>) -> Self {
        Self {
            form,
            parts: Vec::new(),
            records: Vec::new(),
            inline_bytes: 0,
            same_keys: None,
        }
    }

    /// Creates a builder with room for `changes` changes.
    pub(crate) fn with_room(form: Form<'b>, changes: usize) -> Result<Self, OutOfMemory> {
        Ok(Self {
            parts: short_lived_room_for(changes * 2 + 1)?,
            records: short_lived_room_for(changes)?,
            ..Self::new(form)
        })
    }

    /// Keeps frames `from..to` of `leaf` unchanged. The caller adds their user bytes to `inline_bytes`.
    pub(crate) fn keep(&mut self, leaf: Leaf<'b>, from: usize, to: usize) -> Result<(), OutOfMemory> {
        if from < to {
            self.parts.try_push(Part::Kept { leaf, from, to })?;
        }
        Ok(())
    }
}
