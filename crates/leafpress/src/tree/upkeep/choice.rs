//! The training of a dictionary for each codec that a tree may use, and the choice among them.

use crate::tree::compact::builder::Record;
use crate::tree::compact::settings::Settings;
use crate::tree::error::TreeError;
use crate::tree::node::decoder::Engines;
use crate::tree::upkeep::samples::{Sampled, Samples};
use crate::tree::upkeep::sizing::{Bench, Candidate, Outcome, Rule, Trial, compresses_records};
use crate::tree::upkeep::trainer::{Aim, Standing, Trained, Trainer, codecs_of, largest_bytes};
use leafpress_base::mem::room::{TryGrow, room_for};
use leafpress_base::mem::trim;
use leafpress_base::reclaim::node_heap::{Flush, NodeHeap};
use leafpress_codec::{Codec, Dictionary};

/// What is known of a tree.
#[derive(Clone, Copy)]
pub(super) struct Known {
    pub user_bytes: u64,
    /// Raw bytes in its frames.
    pub raw_bytes: u64,
}

/// The inputs of a choice.
pub(super) struct Choosing<'c> {
    pub engines: &'c Engines,
    /// Configured maximum bytes of a dictionary.
    pub max_bytes: Option<usize>,
    pub standing: &'c Standing,
    /// Samples for dictionaries; `None` where none is trained.
    pub sampled: Option<Sampled>,
    pub known: Known,
    pub rule: Rule,
    /// The settings in force.
    pub now: Settings,
    pub marks: bool,
    pub is_stopped: &'c dyn Fn() -> bool,
}

/// A better dictionary, codec or lengths.
pub(super) struct Improvement {
    pub trained: Option<Trained>,
    /// The settings to change to, if any, and why.
    pub lengths: Option<(Option<Settings>, Outcome)>,
    /// Serial number of the dictionary that it was compared with.
    pub before: Option<u64>,
}

impl Choosing<'_> {
    /// Trains dictionaries, and chooses among them by trials on runs of neighbouring records, which `runs` returns;
    /// `None` where there are no trials.
    pub(super) fn run<'r>(
        mut self,
        runs: Option<impl FnOnce() -> Result<Vec<Vec<Record<'r>>>, TreeError>>,
    ) -> Result<Improvement, TreeError> {
        let before = self.standing.current.as_ref().map(|current| current.taken.serial());
        let current = self.current_codec();
        let mut trained = match self.sampled.take() {
            Some(sampled) => self.train_each(sampled, |codec| codec == current || runs.is_some())?,
            None => Vec::new(),
        };
        let chosen = match runs {
            Some(runs) if !(self.is_stopped)() => self.choose(runs, current, &trained),
            _ => Ok(None),
        };
        // The dictionary is useful even if no better lengths are found.
        let chosen = if trained.iter().any(|(codec, _)| *codec == current) {
            chosen.unwrap_or(None)
        } else {
            chosen?
        };
        let (codec, lengths) = match chosen {
            None => (current, None),
            Some((codec, settings, outcome)) => (codec, Some((settings, outcome))),
        };
        let index = trained.iter().position(|(other, _)| *other == codec);
        let trained = index.map(|index| trained.swap_remove(index).1);
        if let Some(trained) = &trained {
            // Done here, so that the first reader does not have to.
            trained.dictionary.prepare_to_read(codec)?;
        }
        Ok(Improvement {
            trained,
            lengths,
            before,
        })
    }

    fn codecs(&self) -> &[Codec] {
        codecs_of(&self.rule.codec)
    }

    /// Returns the codec in force.
    fn current_codec(&self) -> Codec {
        let current = self.standing.current.as_ref();
        let of_dictionary = current.and_then(|current| current.taken.codec());
        let known = of_dictionary.filter(|codec| self.codecs().contains(codec));
        known.unwrap_or(self.codecs()[0])
    }

    /// Trains the best dictionary for each codec that is to be tried.
    fn train_each(
        &self,
        sampled: Sampled,
        is_tried: impl Fn(Codec) -> bool,
    ) -> Result<Vec<(Codec, Trained)>, TreeError> {
        let codecs = || self.codecs().iter().copied().filter(|codec| is_tried(*codec));
        let mut trained = room_for(self.codecs().len())?;
        let Sampled {
            dictionary_bytes,
            frames,
            records,
        } = sampled;
        // Samples are freed as early as possible.
        if let Some(records) = records {
            for codec in codecs().filter(|codec| compresses_records(*codec)) {
                let best = self.train(codec, &records, dictionary_bytes)?;
                trained.try_extend(best.map(|best| (codec, best)))?;
            }
            drop(records);
            for codec in codecs().filter(|codec| !compresses_records(*codec)) {
                let best = self.train(codec, &frames, dictionary_bytes)?;
                trained.try_extend(best.map(|best| (codec, best)))?;
            }
        } else {
            for codec in codecs() {
                let best = self.train(codec, &frames, dictionary_bytes)?;
                trained.try_extend(best.map(|best| (codec, best)))?;
            }
        }
        Ok(trained)
    }

    /// Trains the best dictionary for a codec from samples for a dictionary of `sampled_bytes`.
    fn train(&self, codec: Codec, samples: &Samples, sampled_bytes: usize) -> Result<Option<Trained>, TreeError> {
        let trainer = Trainer {
            engine: &*self.engines.warm,
            codec,
            max_bytes: self.max_bytes,
            largest_bytes: largest_bytes(codec),
        };
        let aim = Aim {
            bytes: trainer.bytes_for(self.known.user_bytes).min(sampled_bytes),
            sampled_bytes,
            user_bytes: self.known.user_bytes,
            raw_bytes: self.known.raw_bytes,
        };
        let standing = self.standing.among(codec, codec == self.current_codec());
        let trained = trainer.train(samples, &standing, aim, self.is_stopped);
        // What one training leaves would add to what the next one takes.
        trim::return_large_blocks();
        trained
    }

    /// Returns the codec and settings that are best by trials, and the outcome; `None` where there are too few records,
    /// or it `is_stopped`.
    fn choose<'r>(
        &self,
        runs: impl FnOnce() -> Result<Vec<Vec<Record<'r>>>, TreeError>,
        current: Codec,
        trained: &[(Codec, Trained)],
    ) -> Result<Option<(Codec, Option<Settings>, Outcome)>, TreeError> {
        let memory = NodeHeap::new(Flush::InBatches);
        let bench = Bench {
            engines: self.engines,
            memory: &memory,
            now: self.now,
            temperatures: None,
            marks: self.marks,
        };
        let Some(mut trial) = Trial::new(bench, runs()?, self.known.user_bytes) else {
            return Ok(None);
        };
        let dictionary_for = |wanted: Codec| -> Option<&Dictionary> {
            let trained = trained.iter().find(|(codec, _)| *codec == wanted);
            trained.map(|(_, trained)| &trained.dictionary)
        };
        let in_force = self.standing.current.as_ref().map(|current| &current.judged);
        let mut candidates: Vec<Candidate<'_>> = room_for(1 + trained.len())?;
        candidates.try_push(Candidate {
            codec: current,
            dictionary: dictionary_for(current).or(in_force),
        })?;
        for (codec, trained) in trained.iter().filter(|(codec, _)| *codec != current) {
            candidates.try_push(Candidate {
                codec: *codec,
                dictionary: Some(&trained.dictionary),
            })?;
        }
        let chosen = self.rule.choose(&mut trial, &candidates, self.is_stopped)?;
        Ok(chosen.map(|chosen| (candidates[chosen.candidate].codec, chosen.settings, chosen.outcome)))
    }
}
