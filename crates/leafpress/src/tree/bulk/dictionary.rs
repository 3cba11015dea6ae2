//! A tree's first dictionary, trained from the beginning of a run before any of it is compressed.

use bumpalo::Bump;

use crate::tree::bulk::batch::Batch;
use crate::tree::compact::builder::{LeafBuilder, Part, Record, RecordValue, form_for};
use crate::tree::compact::compress::{Buffers, Compression};
use crate::tree::compact::split_hint::SplitHint;
use crate::tree::error::TreeError;
use crate::tree::hash::hash;
use crate::tree::inner::TreeInner;
use crate::tree::node::hash_bits::sub_page;
use crate::tree::upkeep::samples::{Ahead, Samples};
use crate::tree::upkeep::training::FIRST_TRAINING_LEAVES;
use leafpress_base::mem::room::collected;
use leafpress_base::mem::trim;
use leafpress_codec::{Codec, EngineOptions};

impl TreeInner {
    /// Trains a dictionary from a run's beginning, if the tree has none and the records suffice. If there is no memory
    /// for it, the tree continues without a dictionary.
    pub(super) fn train_ahead(&self, head: &[Batch]) {
        let bytes = head.iter().map(Batch::bytes).sum::<usize>();
        let leaves = bytes / self.settings.now().leaf_bytes;
        if leaves < FIRST_TRAINING_LEAVES || !self.lacks_dictionary() {
            return;
        }
        self.background.will_train_at(self.next_training_leaves(leaves));
        let _ = self.train_first(bytes as u64, |wanted_bytes| {
            self.samples_of(head, bytes.div_ceil(wanted_bytes.max(1)).max(1))
        });
        trim::return_freed();
    }

    /// Returns one of every `step` frames that the records would be cut into.
    fn samples_of(&self, head: &[Batch], step: usize) -> Result<Ahead, TreeError> {
        let bytes = head.iter().map(Batch::bytes).sum::<usize>();
        let mut ahead = Ahead {
            samples: Samples::for_frames(bytes / step)?,
            raw_bytes: 0,
        };
        let mut seen = 0;
        let mut pushed = Ok(());
        for batch in head {
            self.for_each_frame(batch, |raw| {
                ahead.raw_bytes += raw.len() as u64;
                seen += 1;
                if seen % step == 0 && pushed.is_ok() {
                    pushed = ahead.samples.push(raw);
                }
            })?;
        }
        pushed?;
        Ok(ahead)
    }

    /// Calls `visit` with each frame's raw bytes. Records with large values, which are not stored in frames, are
    /// skipped.
    fn for_each_frame(&self, batch: &Batch, mut visit: impl FnMut(&[u8])) -> Result<(), TreeError> {
        // This engine's output is the frame itself.
        let plain = Codec::None.open(&EngineOptions::default())?;
        let (mut buffers, arena) = (Buffers::default(), Bump::new());
        let mut compression = Compression {
            engine: &*plain,
            dictionary: None,
            ..self.compression(&mut buffers, &arena)
        };
        let sub_pages = self.settings.now().sub_pages;
        for leaf in batch.leaves(0..batch.len(), &self.settings.now()) {
            let inline = batch
                .records(leaf)
                .filter(|(_, value)| value.len() <= self.settings.inline_value_bytes());
            let records = collected(inline.map(|(key, value)| Record {
                key,
                value: RecordValue::Inline(value),
                mark: 0,
            }))?;
            compression.begin();
            let mut builder = LeafBuilder::new(form_for(&records, &compression.settings));
            for page in 0..sub_pages {
                let is_on_it = |record: &Record<'_>| sub_page(hash(record.key), sub_pages) == page;
                compression.compress_sub_page(&mut builder, records.iter().copied().filter(is_on_it))?;
            }
            if sub_pages == 0 {
                builder.records = records;
                compression.compress_tail(&mut builder, 0, SplitHint::Within)?;
            }
            for part in &builder.parts {
                if let Part::Compressed { start, end, .. } = part {
                    visit(&compression.buffers.blocks[*start..*end]);
                }
            }
        }
        Ok(())
    }
}
