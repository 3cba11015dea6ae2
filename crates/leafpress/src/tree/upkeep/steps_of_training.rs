//! Training in steps: samples are collected a leaf at a time and then processed. With upkeep by the caller they are
//! processed on a thread that only has copies, and takes no lock that the tree's readers or writers take, so the
//! process may fork meanwhile. Otherwise [`TreeInner::train_dictionary`] does all steps at once.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::tree::compact::settings::Settings;
use crate::tree::error::TreeError;
use crate::tree::inner::TreeInner;
use crate::tree::node::decoder::Engines;
use crate::tree::thread_state::Count;
use crate::tree::upkeep::choice::{Choosing, Improvement, Known};
use crate::tree::upkeep::defragment::PassKind;
use crate::tree::upkeep::samples::{Sampler, raw_bytes_of};
use crate::tree::upkeep::sizing::{CopiedRuns, Rule};
use crate::tree::upkeep::trainer::Standing;
use crate::tree::walk::Walk;
use leafpress_base::sync::threads;
use leafpress_codec::Scratch;

/// The collection of samples for a training.
pub(super) struct Collecting {
    walk: Walk,
    phase: Phase,
}

enum Phase {
    /// Counting the bytes that samples can be chosen from.
    Counting(Counted),
    Sampling(Box<Sampling>),
}

#[derive(Clone, Copy, Default)]
struct Counted {
    leaves: usize,
    user_bytes: u64,
    raw_bytes: u64,
    inline_bytes: usize,
}

/// The counts, and the samples taken so far.
struct Sampling {
    counted: Counted,
    /// The samples for dictionaries.
    frames: Option<Sampler>,
    runs: Option<CopiedRuns>,
    scratch: Scratch,
}

impl Collecting {
    pub(super) fn begin() -> Self {
        Self {
            walk: Walk::default(),
            phase: Phase::Counting(Counted::default()),
        }
    }

    /// Visits one leaf; returns false when all were visited.
    ///
    /// # Errors
    /// [`TreeError::OutOfMemory`] or [`TreeError::Codec`].
    pub(super) fn step(&mut self, core: &TreeInner) -> Result<bool, TreeError> {
        match &mut self.phase {
            Phase::Counting(counted) => {
                let more = self.walk.step(core, &mut |leaf| {
                    let header = leaf.header();
                    counted.leaves += 1;
                    counted.user_bytes += header.live_user_bytes.load(Ordering::Relaxed);
                    counted.raw_bytes += raw_bytes_of(leaf);
                    counted.inline_bytes += header.inline_bytes as usize;
                    Ok(())
                })?;
                if !more {
                    let sampling = Sampling::begin(core, *counted)?;
                    (self.walk, self.phase) = (Walk::default(), Phase::Sampling(Box::new(sampling)));
                }
                Ok(true)
            }
            Phase::Sampling(sampling) => {
                let Sampling {
                    frames, runs, scratch, ..
                } = &mut **sampling;
                self.walk.step(core, &mut |leaf| {
                    if let Some(sampler) = frames {
                        sampler.visit(leaf, &core.engines, scratch)?;
                    }
                    if let Some(runs) = runs {
                        runs.visit(leaf, &core.engines, scratch)?;
                    }
                    Ok(())
                })
            }
        }
    }

    /// Returns the training of the collected samples. The caller holds the lock `training` of the dictionaries. With
    /// `copies` the training has copies of the dictionaries that it compares with.
    ///
    /// # Errors
    /// [`TreeError::OutOfMemory`].
    pub(super) fn collected(self, core: &TreeInner, copies: bool) -> Result<Option<Training>, TreeError> {
        let Phase::Sampling(sampling) = self.phase else {
            return Ok(None);
        };
        let trainer = core.trainer();
        Ok(Some(Training {
            engines: Engines {
                warm: Arc::clone(&core.engines.warm),
                cold: Arc::clone(&core.engines.cold),
            },
            max_bytes: trainer.max_bytes,
            standing: core.dictionaries.standing(trainer.codec, copies)?,
            rule: core.sizing.rule(),
            now: core.settings.now(),
            marks: core.marks,
            sampling: *sampling,
            is_stopped: Arc::default(),
        }))
    }
}

impl Sampling {
    fn begin(core: &TreeInner, counted: Counted) -> Result<Self, TreeError> {
        core.background.training_begins(core);
        let frames = match core.dictionaries.auto {
            false => None,
            true => {
                let bytes = core.dictionaries.begin(core.trainer().bytes_for(counted.user_bytes));
                let takes_records = !core.sizing.rule().codec.candidates().is_empty();
                Some(Sampler::new(bytes, counted.inline_bytes, takes_records)?)
            }
        };
        Ok(Self {
            counted,
            frames,
            runs: core.sizing.auto.then(|| CopiedRuns::among(counted.leaves)),
            scratch: Scratch::default(),
        })
    }
}

/// A training, with all its inputs.
pub(super) struct Training {
    engines: Engines,
    max_bytes: Option<usize>,
    standing: Standing,
    rule: Rule,
    now: Settings,
    marks: bool,
    sampling: Sampling,
    /// Set when the result is not needed any more.
    is_stopped: Arc<AtomicBool>,
}

impl Training {
    pub(super) fn run(mut self) -> Result<Improvement, TreeError> {
        let Counted {
            user_bytes, raw_bytes, ..
        } = self.sampling.counted;
        let choosing = Choosing {
            engines: &self.engines,
            max_bytes: self.max_bytes,
            standing: &self.standing,
            sampled: self.sampling.frames.take().map(|sampler| sampler.sampled),
            known: Known { user_bytes, raw_bytes },
            rule: self.rule,
            now: self.now,
            marks: self.marks,
            is_stopped: &|| self.is_stopped.load(Ordering::Relaxed),
        };
        let runs = self.sampling.runs.as_ref();
        choosing.run(runs.map(|runs| || runs.records()))
    }
}

type Ended = Result<Result<Improvement, TreeError>, Box<dyn Any + Send>>;

/// A training on its thread. If it is dropped, the thread ends by itself: it owns all that it needs.
pub(super) struct Running {
    thread: Thread,
    is_stopped: Arc<AtomicBool>,
}

#[allow(clippy::large_enum_variant, reason = "a tree has one")]
enum Thread {
    /// Under model checkers, which have their own threads, the training is done immediately.
    #[cfg_attr(any(shuttle, miri), allow(dead_code))]
    Started(threads::Thread<Result<Improvement, TreeError>>),
    Ended(Ended),
}

impl Running {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`TreeError::Thread`].
    pub(super) fn start(training: Training, core: &TreeInner) -> Result<Self, TreeError> {
        let is_stopped = Arc::clone(&training.is_stopped);
        let thread = Self::thread(training).inspect_err(|_| {
            core.contexts
                .get()
                .inspect(|context| context.count(Count::BgErrors))
                .ok();
        })?;
        core.background.set_training(true);
        Ok(Self { thread, is_stopped })
    }

    #[cfg(not(any(shuttle, miri)))]
    fn thread(training: Training) -> Result<Thread, TreeError> {
        // Allocations for a new thread abort if there is no memory: see `on_a_thread_of_its_own`.
        leafpress_base::mem::room::room_for::<u8>(super::training::ROOM_FOR_A_THREAD)?;
        let work = move || {
            leafpress_base::sync::priority::give_way();
            let found = training.run();
            leafpress_base::mem::trim::return_large_blocks();
            found
        };
        let started = threads::spawn("leafpress-train", work);
        started.map(Thread::Started).map_err(|error| TreeError::Thread {
            reason: error.to_string(),
        })
    }

    #[cfg(any(shuttle, miri))]
    fn thread(training: Training) -> Result<Thread, TreeError> {
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| training.run()));
        Ok(Thread::Ended(found))
    }

    pub(super) fn has_ended(&self) -> bool {
        match &self.thread {
            Thread::Started(thread) => thread.is_finished(),
            Thread::Ended(_) => true,
        }
    }

    /// Waits for the result. A panic is recorded like that of any other background thread, and yields no result.
    ///
    /// # Errors
    /// The training's error.
    pub(super) fn found(mut self, core: &TreeInner) -> Result<Option<Improvement>, TreeError> {
        let ended: Ended = match std::mem::replace(&mut self.thread, Thread::Ended(Err(Box::new(())))) {
            Thread::Started(thread) => thread.join(),
            Thread::Ended(ended) => ended,
        };
        match ended {
            Ok(found) => found.map(Some),
            Err(panic) => {
                core.background.health.note(panic);
                Ok(None)
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }
}

impl TreeInner {
    /// Makes the result current, unless the dictionary was replaced meanwhile. Returns the pass that has to follow. The
    /// caller holds the lock `training` of the dictionaries.
    ///
    /// # Errors
    /// [`TreeError::OutOfMemory`]; nothing has changed then, except possibly the lengths.
    pub(super) fn put_in_force(&self, found: Option<Improvement>) -> Result<Option<PassKind>, TreeError> {
        let Some(Improvement {
            trained,
            lengths,
            before,
        }) = found
        else {
            return Ok(None);
        };
        let mut kind = None;
        if let Some(trained) = trained {
            // Lengths are chosen for a dictionary.
            if self.dictionaries.current_serial() != before {
                return Ok(None);
            }
            self.dictionaries.install(self.dictionaries.offered(trained))?;
            kind = Some(PassKind::Dictionary);
        }
        if let Some((lengths, outcome)) = lengths {
            self.sizing.note(outcome);
            if let Some(lengths) = lengths {
                self.settings.set(&lengths);
                kind = Some(PassKind::Anew);
            }
        }
        Ok(kind)
    }

    /// Retires all dictionaries but this one, which a pass without an error has given to all leaves, if it is still the
    /// current one.
    pub(super) fn retire_dictionaries_older_than(&self, serial: u64) {
        let _training = self.dictionaries.training.lock();
        if self.dictionaries.current_serial() == Some(serial) {
            self.dictionaries.retire_older(&self.memory);
        }
    }
}
