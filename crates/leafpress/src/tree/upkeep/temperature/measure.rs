//! The cold leaves' dictionary, and the measured size and cost of each temperature for the tree's own records.

use bumpalo::Bump;

use super::Temperatures;
use super::plan::{Cost, Costs};
use crate::tree::compact::builder::{LeafBuilder, Part, form_for};
use crate::tree::compact::compress::{Buffers, Compression};
use crate::tree::compact::split_hint::SplitHint;
use crate::tree::error::TreeError;
use crate::tree::inner::TreeInner;
use crate::tree::node::decoder::Decoder;
use crate::tree::node::layout::Temperature;
use crate::tree::upkeep::defragment::Sweep;
use crate::tree::upkeep::samples::Samples;
use crate::tree::upkeep::sizing::{REST_OF_READ_NS, records_of};
use crate::tree::upkeep::trainer::{Aim, Trainer, sample_bytes_for};
use crate::tree::upkeep::training::on_a_thread_of_its_own;
use leafpress_base::mem::trim;
use leafpress_codec::{Codec, Dictionary, EngineOptions, Scratch};

/// Maximum bytes of a cold dictionary. Wide frames are rarely read: the savings of a larger one outweigh its tables.
const LARGEST_BYTES: u64 = 112 << 10;

/// The result of a measurement.
struct Measured {
    dictionary: Option<Dictionary>,
    costs: Option<Costs>,
}

impl TreeInner {
    /// Trains the cold leaves' dictionary for a tree of `user_bytes`, recompresses cold leaves with it if that pays
    /// off, and measures the cost of each temperature; returns `None` where there are too few records.
    pub(super) fn measure_temperatures(
        &self,
        temperatures: &Temperatures,
        user_bytes: u64,
    ) -> Result<Option<Costs>, TreeError> {
        let _training = temperatures.cold_dictionaries.training.lock();
        let measured = on_a_thread_of_its_own(&|| {
            let dictionary = self.trained_cold(temperatures, user_bytes)?;
            let newest = dictionary.as_ref().or(temperatures.cold_dictionaries.current());
            let costs = self.costs(newest)?;
            trim::return_working_memory();
            Ok::<_, TreeError>(Measured { dictionary, costs })
        })?;
        if let Some(trained) = measured.dictionary {
            temperatures.cold_dictionaries.install(trained)?;
            self.sweep(Sweep::Dictionary)?;
            temperatures.cold_dictionaries.retire_older(&self.memory);
        }
        Ok(measured.costs)
    }

    fn trained_cold(&self, temperatures: &Temperatures, user_bytes: u64) -> Result<Option<Dictionary>, TreeError> {
        if !temperatures.cold_dictionaries.auto {
            return Ok(None);
        }
        let trainer = Trainer {
            engine: &*self.engines.cold,
            max_bytes: temperatures.cold_dictionaries.max_bytes,
            largest_bytes: LARGEST_BYTES,
        };
        let bytes = temperatures.cold_dictionaries.begin(trainer.bytes_for(user_bytes));
        let samples = self.cold_samples(sample_bytes_for(bytes), user_bytes)?;
        let aim = Aim {
            bytes,
            user_bytes,
            raw_bytes: user_bytes,
        };
        temperatures.cold_dictionaries.train(&trainer, &samples, aim)
    }

    /// Returns frames in the form of cold leaves, about `bytes` of them, of leaves spread over a tree of `user_bytes`.
    fn cold_samples(&self, bytes: usize, user_bytes: u64) -> Result<Samples, TreeError> {
        let step = user_bytes.div_ceil(bytes.max(1) as u64).max(1);
        let mut samples = Samples::for_frames((bytes as u64).min(user_bytes) as usize)?;
        // This engine's output is the frame itself.
        let plain = Codec::None.open(&EngineOptions::default())?;
        let (mut buffers, mut arena, mut scratch) = (Buffers::default(), Bump::new(), Scratch::default());
        let mut seen = 0;
        self.for_each_leaf_in_turn(|leaf| {
            seen += 1;
            if seen % step != 0 {
                return Ok(());
            }
            arena.reset();
            let records = records_of(leaf, &mut Decoder::new(&self.engines, &mut scratch), &arena)?;
            if records.is_empty() {
                return Ok(());
            }
            let mut compression = Compression {
                engine: &*plain,
                dictionary: None,
                ..self.compression_for(Temperature::Cold, &mut buffers, &arena)
            };
            compression.begin();
            let mut builder = LeafBuilder::new(form_for(&records, &compression.settings));
            builder.records = records;
            compression.compress_tail(&mut builder, 0, SplitHint::Within)?;
            for part in &builder.parts {
                if let Part::Compressed { start, end, .. } = part {
                    samples.push(&compression.buffers.blocks[*start..*end])?;
                }
            }
            Ok(())
        })?;
        Ok(samples)
    }

    /// Measures the size and cost of each temperature, with this dictionary for cold leaves.
    fn costs(&self, cold: Option<&Dictionary>) -> Result<Option<Costs>, TreeError> {
        let runs = self.runs()?;
        let Some(mut trial) = self.trial(&runs)? else {
            return Ok(None);
        };
        let user_bytes = trial.user_bytes_per_record();
        let mut cost = |temperature, dictionary| {
            let tried = trial.run_as(temperature, dictionary)?;
            Ok::<_, TreeError>(Cost {
                held_per_user_byte: tried.bytes_per_record / user_bytes,
                read_ns: tried.read_ns + REST_OF_READ_NS,
            })
        };
        let costs = Costs {
            warm: cost(Temperature::Warm, self.dictionaries.current())?,
            cold: cost(Temperature::Cold, cold)?,
            hot_read_ns: 0.0,
            hot_read_warm_ns: 0.0,
        };
        Ok(Some(costs))
    }
}
