//! Leaves without a tree above them, for the fuzz target `leaf`: compressed from arbitrary records, and read by every
//! accessor.
//!
//! Compiled for the crate's own tests and with the feature `fuzz`; not part of the public interface. The internal
//! accessors trust their callers to pass valid slots and frames; here invalid ones return `None`.

mod view;

use bumpalo::Bump;

pub use self::view::LeafView;
use crate::tree::Tree;
use crate::tree::compact::builder::{Record, RecordValue, keep};
use crate::tree::compact::compress::{Buffers, BuiltLeaves, compress_block};
use crate::tree::compact::landed::owned_large;
use crate::tree::compact::merge::Compaction;
use crate::tree::compact::split_hint::SplitHint;
use crate::tree::error::{MAX_KEY_BYTES, MAX_VALUE_BYTES, TreeError};
use crate::tree::node::hash_bits::fingerprint;
use crate::tree::node::landing::{Change, LandedWrite};
use crate::tree::node::large::{Large, MAX_INLINE_VALUE_BYTES, NewLarge};
use crate::tree::node::leaf::NewLeaf;
use leafpress_base::reclaim::node_heap::NodeHeap;
use leafpress_codec::Scratch;

/// Returns the fingerprint that a leaf stores for `key`.
pub fn fingerprint_of(key: &[u8]) -> u8 {
    fingerprint(crate::tree::hash::hash(key))
}

/// Neighbouring leaves that no tree leads to, and the separators between them.
pub struct Leaves {
    /// Provides options, engine, dictionary and memory; it holds no records.
    tree: Tree,
    leaves: Vec<NewLeaf>,
    separators: Vec<Vec<u8>>,
}

/// Large values that no leaf owns yet; freed when dropped.
#[derive(Default)]
struct Unowned(Vec<NewLarge>);

impl Unowned {
    /// Compresses and adds a value. The caller must not use it after the leaves that own it are freed, or after `self`
    /// is dropped without `hand_over`.
    fn add<'g>(&mut self, value: &[u8], tree: &Tree) -> Result<Large<'g>, TreeError> {
        // SAFETY: the tree, which owns the value's memory, is dropped last, and callers respect the value's lifetime as
        // documented.
        let (new, large) = unsafe {
            let new = Large::compress(value, &*tree.core.engines.warm, &tree.core.memory, &mut Vec::new())?;
            let node = new.large().node();
            (new, Large::from_node(node))
        };
        self.0.push(new);
        Ok(large)
    }

    /// Transfers the ownership of the values to a leaf.
    fn hand_over(mut self) {
        self.0.drain(..).for_each(NewLarge::publish);
    }
}

/// Checks the preconditions of compaction: keys ascend, and keys and values are within the tree's limits.
fn check<'r>(records: impl Iterator<Item = (&'r [u8], usize)>) -> Result<(), TreeError> {
    let mut last: Option<&[u8]> = None;
    for (key, value_len) in records {
        if key.len() > MAX_KEY_BYTES {
            return Err(TreeError::KeyTooLong { len: key.len() });
        }
        if value_len > MAX_VALUE_BYTES {
            return Err(TreeError::ValueTooLong { len: value_len });
        }
        if last.is_some_and(|last| last >= key) {
            return Err(TreeError::Invalid("keys to be compressed do not ascend".to_owned()));
        }
        last = Some(key);
    }
    Ok(())
}

impl Leaves {
    /// Compresses `records`, whose keys ascend, into as many leaves as necessary, with the options of `tree`.
    ///
    /// # Errors
    /// As [`Tree::insert`], and [`TreeError::Invalid`] when the keys do not ascend.
    pub fn build(tree: Tree, records: &[(&[u8], &[u8])]) -> Result<Self, TreeError> {
        check(records.iter().map(|(key, value)| (*key, value.len())))?;
        let (mut buffers, arena, mut unowned) = (Buffers::default(), Bump::new(), Unowned::default());
        let mut owned = Vec::with_capacity(records.len());
        for (key, value) in records {
            let value = if value.len() > MAX_INLINE_VALUE_BYTES {
                RecordValue::Large(unowned.add(value, &tree)?)
            } else {
                RecordValue::Inline(value)
            };
            owned.push(Record { key, value, mark: 0 });
        }
        let mut compression = tree.core.compression(&mut buffers, &arena);
        compression.begin();
        let BuiltLeaves { leaves, separators } = compression.compress_all(owned, SplitHint::Within)?;
        unowned.hand_over();
        Ok(Self {
            tree,
            leaves,
            separators,
        })
    }

    /// Replaces the leaf at `index` by itself with `changes`, as one leaf or several. A change is a value or, for
    /// `None`, a removal; the keys ascend and belong to the leaf, and there is at most one change more than a landing
    /// buffer holds. With `anew` every frame is recompressed, otherwise only those touched by a change. On an error
    /// nothing has changed.
    ///
    /// # Errors
    /// As [`Tree::insert`], and [`TreeError::Invalid`] for changes that do not ascend or that belong elsewhere.
    pub fn compact(&mut self, index: usize, changes: &[(&[u8], Option<&[u8]>)], anew: bool) -> Result<(), TreeError> {
        check(changes.iter().map(|(key, value)| (*key, value.map_or(0, <[u8]>::len))))?;
        let elsewhere = changes.iter().any(|(key, _)| self.leaf_for(key) != index);
        let Some(leaf) = self.leaves.get(index).filter(|_| !elsewhere) else {
            return Err(TreeError::Invalid("a change belongs to another leaf".to_owned()));
        };
        let leaf = leaf.leaf();
        let core = &*self.tree.core;
        let (mut buffers, mut scratch, arena) = (Buffers::default(), Scratch::default(), Bump::new());
        let (mut unowned, mut block) = (Unowned::default(), Vec::new());
        let mut entries = Vec::with_capacity(changes.len());
        for (key, value) in changes {
            let change = match value {
                None => Change::Remove,
                Some(value) if value.len() > MAX_INLINE_VALUE_BYTES => {
                    Change::PutLarge(unowned.add(value, &self.tree)?)
                }
                Some(value) if core.settings.while_writing().single() => {
                    block.clear();
                    let Buffers {
                        raw, incompressible, ..
                    } = &mut buffers;
                    match leaf.raw_record(key, value, raw)? {
                        None => Change::Put(value),
                        Some(record) => {
                            compress_block(
                                record,
                                &*core.engines.warm,
                                leaf.dictionary(),
                                incompressible,
                                &mut block,
                            )?;
                            Change::Compressed {
                                block: keep(&arena, &block)?,
                                raw_len: value.len(),
                            }
                        }
                    }
                }
                Some(value) => Change::Put(value),
            };
            entries.push(LandedWrite::new(key, change, None));
        }
        let mut compaction = Compaction {
            compression: core.compression(&mut buffers, &arena),
            scratch: &mut scratch,
            dead: Vec::new(),
            leads_to: &|key, _| self.leaf_for(key) == index,
        };
        let BuiltLeaves { leaves, separators } = compaction.run(&leaf, &entries, anew)?;
        let dead = std::mem::take(&mut compaction.dead);
        unowned.hand_over();
        self.leaves.splice(index..=index, leaves);
        self.separators.splice(index..index, separators);
        // SAFETY: only the old leaf owned the values, and it is freed.
        unsafe {
            for large in dead {
                NodeHeap::free(large.node());
            }
        }
        Ok(())
    }

    /// Returns the index of the leaf that `key` belongs to.
    pub fn leaf_for(&self, key: &[u8]) -> usize {
        self.separators.partition_point(|separator| separator.as_slice() <= key)
    }

    /// Returns the leaves, in key order.
    pub fn iter(&self) -> impl Iterator<Item = LeafView<'_>> {
        self.leaves
            .iter()
            .map(|leaf| LeafView::new(leaf.leaf(), &self.tree.core.engines))
    }

    /// Returns the separators between the leaves: one fewer than there are leaves.
    pub fn separators(&self) -> &[Vec<u8>] {
        &self.separators
    }
}

impl Drop for Leaves {
    fn drop(&mut self) {
        for leaf in self.leaves.drain(..) {
            for large in owned_large(leaf.leaf()) {
                // SAFETY: the leaves and their values are only reachable through `self`, and the tree, which owns their
                // memory, is still alive.
                unsafe { NodeHeap::free(large.node()) };
            }
        }
    }
}

#[cfg(test)]
mod tests;
