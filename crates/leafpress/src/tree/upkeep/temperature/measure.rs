//! The cold leaves' dictionary, and the measured size and cost of each temperature for the tree's own records.

use bumpalo::Bump;

use super::plan::{Cost, Costs};
use super::{COLD_RECORD_CODEC, Temperatures};
use crate::tree::compact::builder::{LeafBuilder, Part, form_for};
use crate::tree::compact::compress::{Buffers, Compression};
use crate::tree::compact::settings::Settings;
use crate::tree::compact::split_hint::SplitHint;
use crate::tree::error::TreeError;
use crate::tree::inner::TreeInner;
use crate::tree::node::decoder::Decoder;
use crate::tree::node::layout::Temperature;
use crate::tree::upkeep::defragment::PassKind;
use crate::tree::upkeep::samples::Samples;
use crate::tree::upkeep::samples::sample_bytes_for;
use crate::tree::upkeep::sizing::{MIN_GAIN_IN, Prices, REST_OF_READ_NS, records_of};
use crate::tree::upkeep::trainer::{Aim, Trained, Trainer, largest_bytes};
use crate::tree::upkeep::training::on_a_thread_of_its_own;
use leafpress_base::mem::trim;
use leafpress_codec::{Codec, Dictionary, EngineOptions, Scratch, TrialGoal};

/// Maximum bytes of a cold dictionary. Wide frames are rarely read: the savings of a larger one outweigh its tables.
const LARGEST_BYTES: u64 = 112 << 10;

/// The codec whose prices decide between the codecs of cold leaves.
const COLD_PRICES: Codec = Codec::Trial {
    goal: TrialGoal::Memory,
};

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
            let costs = self.costs(newest, user_bytes)?;
            trim::return_working_memory();
            Ok::<_, TreeError>(Measured { dictionary, costs })
        })?;
        if let Some(trained) = measured.dictionary {
            temperatures.cold_dictionaries.install(trained)?;
            self.sweep(PassKind::Dictionary)?;
            temperatures.cold_dictionaries.retire_older(&self.memory);
        }
        Ok(measured.costs)
    }

    /// Trains dictionaries for both codecs of cold leaves, and returns the one to change to, if any.
    fn trained_cold(&self, temperatures: &Temperatures, user_bytes: u64) -> Result<Option<Dictionary>, TreeError> {
        let dictionaries = &temperatures.cold_dictionaries;
        if !dictionaries.auto {
            return Ok(None);
        }
        let now = self.settings.now();
        let in_frames = (self.engines.cold.codec(), temperatures.cold_frame_settings(now));
        let in_records = (COLD_RECORD_CODEC, temperatures.cold_record_settings(now));
        let standing = dictionaries.standing(in_frames.0, false)?;
        let current = dictionaries.current();
        let current_codec = match current.and_then(Dictionary::codec) {
            Some(COLD_RECORD_CODEC) => COLD_RECORD_CODEC,
            _ => in_frames.0,
        };
        let runs = self.runs()?;
        let mut trial = self
            .trial(&runs, user_bytes)?
            .filter(|_| !temperatures.is_framed && self.sizing.auto);
        let mut best: Option<(f64, Option<Trained>)> = None;
        for (codec, settings) in [in_frames, in_records] {
            let is_current = codec == current_codec;
            if !is_current && trial.is_none() {
                continue;
            }
            let trainer = Trainer {
                engine: &*self.engines.cold,
                codec,
                max_bytes: dictionaries.max_bytes,
                largest_bytes: if codec == COLD_RECORD_CODEC {
                    largest_bytes(codec)
                } else {
                    LARGEST_BYTES
                },
            };
            let bytes = trainer.bytes_for(user_bytes);
            if codec == in_frames.0 {
                dictionaries.begin(bytes);
            }
            let samples = self.cold_samples(sample_bytes_for(bytes, false), user_bytes, settings)?;
            let aim = Aim {
                bytes,
                sampled_bytes: bytes,
                user_bytes,
                raw_bytes: user_bytes,
            };
            let trained = trainer.train(&samples, &standing.among(codec, is_current), aim, &|| false)?;
            let newest = trained.as_ref().map(|trained| &trained.dictionary);
            trim::return_large_blocks();
            let price = match (&mut trial, newest) {
                (None, _) => 0.0,
                (Some(_), None) if !is_current => continue,
                (Some(trial), newest) => {
                    let dictionary = newest.or(current.filter(|_| is_current));
                    trial
                        .run_as(Temperature::Cold, dictionary)?
                        .price(Prices::of(COLD_PRICES))
                }
            };
            // A change of the codec has to pay off.
            let price = if is_current {
                price * (1.0 - 1.0 / MIN_GAIN_IN)
            } else {
                price
            };
            if best.as_ref().is_none_or(|(least, _)| price < *least) {
                best = Some((price, trained));
            }
        }
        let trained = best.and_then(|(_, trained)| trained);
        Ok(trained.map(|trained| dictionaries.offered(trained)))
    }

    /// Returns frames in the form of cold leaves with these settings, about `bytes` of them, of leaves spread over a
    /// tree of `user_bytes`.
    fn cold_samples(&self, bytes: usize, user_bytes: u64, settings: Settings) -> Result<Samples, TreeError> {
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
                settings,
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

    /// Measures the size and cost of each temperature of a tree of `user_bytes`, with this dictionary for cold leaves.
    fn costs(&self, cold: Option<&Dictionary>, user_bytes: u64) -> Result<Option<Costs>, TreeError> {
        let runs = self.runs()?;
        let Some(mut trial) = self.trial(&runs, user_bytes)? else {
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
