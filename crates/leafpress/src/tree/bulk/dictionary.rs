//! A tree's first dictionary, trained from the beginning of a run before any of it is compressed.

use std::ops::Range;

use bumpalo::Bump;

use crate::tree::bulk::batch::Batch;
use crate::tree::compact::builder::{LeafBuilder, Part, Record, RecordValue, form_for};
use crate::tree::compact::compress::{Buffers, Compression};
use crate::tree::compact::settings::Settings;
use crate::tree::compact::split_hint::SplitHint;
use crate::tree::error::TreeError;
use crate::tree::hash::hash;
use crate::tree::inner::TreeInner;
use crate::tree::node::hash_bits::sub_page;
use crate::tree::upkeep::samples::sample_bytes_for;
use crate::tree::upkeep::samples::{Ahead, Sampled, Samples};
use crate::tree::upkeep::sizing::RunPlaces;
use crate::tree::upkeep::training::FIRST_TRAINING_LEAVES;
use leafpress_base::mem::room::{TryGrow, collected};
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
        let _ = self.train_first(
            bytes as u64,
            |dictionary_bytes| self.samples_of(head, dictionary_bytes),
            || self.runs_of(head),
        );
        trim::return_freed();
    }

    /// Returns samples for a dictionary of this number of bytes from the frames that the records would be cut into.
    fn samples_of(&self, head: &[Batch], dictionary_bytes: usize) -> Result<Ahead, TreeError> {
        let bytes = head.iter().map(Batch::bytes).sum::<usize>();
        let takes_records = !self.engines.warm.codec().candidates().is_empty();
        let sample_bytes = sample_bytes_for(dictionary_bytes, takes_records);
        let step = bytes.div_ceil(sample_bytes.max(1)).max(1);
        let now = self.settings.now();
        let (frames, raw_bytes) = self.every_frame_in(step, head, now)?;
        let in_records = Settings {
            frame_bytes: 1,
            keys_in_blocks: true,
            ..now
        };
        let records = takes_records.then(|| self.every_frame_in(step, head, in_records));
        let records = records.transpose()?.map(|(records, _)| records);
        let sampled = Sampled {
            dictionary_bytes,
            frames,
            records,
        };
        Ok(Ahead { sampled, raw_bytes })
    }

    /// Returns one of every `step` frames that the records would be cut into with these settings, and the bytes of all.
    fn every_frame_in(&self, step: usize, head: &[Batch], settings: Settings) -> Result<(Samples, u64), TreeError> {
        let bytes = head.iter().map(Batch::bytes).sum::<usize>();
        let mut samples = Samples::for_frames(bytes / step)?;
        let (mut raw_bytes, mut seen, mut pushed) = (0, 0, Ok(()));
        for batch in head {
            self.for_each_frame(batch, settings, |raw| {
                raw_bytes += raw.len() as u64;
                seen += 1;
                if seen % step == 0 && pushed.is_ok() {
                    pushed = samples.push(raw);
                }
            })?;
        }
        pushed?;
        Ok((samples, raw_bytes))
    }

    /// Returns runs of neighbouring records for trials, spread over the batches.
    fn runs_of<'b>(&self, head: &'b [Batch]) -> Result<Vec<Vec<Record<'b>>>, TreeError> {
        let settings = self.settings.now();
        let bytes = head.iter().map(Batch::bytes).sum::<usize>();
        let mut places = RunPlaces::among(bytes / settings.leaf_bytes);
        let mut runs: Vec<Vec<Record<'b>>> = Vec::new();
        for batch in head {
            for (index, leaf) in batch.leaves(0..batch.len(), &settings).enumerate() {
                let Some(in_run) = places.next_leaf() else { continue };
                if in_run == 0 || index == 0 {
                    runs.try_push(Vec::new())?;
                }
                if let Some(run) = runs.last_mut() {
                    run.try_extend(self.inline_records(batch, leaf)?)?;
                }
            }
        }
        Ok(runs)
    }

    /// Returns the records of a range whose values are stored in frames.
    fn inline_records<'b>(&self, batch: &'b Batch, range: Range<usize>) -> Result<Vec<Record<'b>>, TreeError> {
        let inline_bytes = self.settings.inline_value_bytes();
        let inline = batch.records(range).filter(|(_, value)| value.len() <= inline_bytes);
        Ok(collected(inline.map(|(key, value)| Record {
            key,
            value: RecordValue::Inline(value),
            mark: 0,
        }))?)
    }

    /// Calls `visit` with each frame's raw bytes. Records with large values, which are not stored in frames, are
    /// skipped.
    fn for_each_frame(&self, batch: &Batch, settings: Settings, mut visit: impl FnMut(&[u8])) -> Result<(), TreeError> {
        // This engine's output is the frame itself.
        let plain = Codec::None.open(&EngineOptions::default())?;
        let (mut buffers, arena) = (Buffers::default(), Bump::new());
        let mut compression = Compression {
            settings,
            engine: &*plain,
            dictionary: None,
            ..self.compression(&mut buffers, &arena)
        };
        let sub_pages = settings.sub_pages;
        for leaf in batch.leaves(0..batch.len(), &settings) {
            let records = self.inline_records(batch, leaf)?;
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
