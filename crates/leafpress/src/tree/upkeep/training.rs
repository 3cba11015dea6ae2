//! The tree's dictionary: which one is current, and how it is trained from the tree's own leaves.
//!
//! A leaf points to the dictionary its frames were compressed with. A new dictionary is made current first; every compress that begins
//! after that uses it. The sweep that follows takes each leaf's lock in turn, so that it waits for compresses that began earlier, and
//! compresses again what is still of an older dictionary. When it has passed without an error no leaf in the tree points to one, and
//! the older ones are retired.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::codec::{CAN_TRAIN, Codec, Dictionary, Scratch, saves_enough};
use crate::mem::OutOfMemory;
use crate::mem::room::{TryGrow, boxed, collected, room_for};
use crate::mem::transient::Transient;
use crate::mem::trim;
use crate::reclaim::memory::{MAX_WAITS, Memory};
use crate::sync::{AtomicPtr, Mutex, Patience};
use crate::tree::compact::compress::Settings;
use crate::tree::core::Core;
use crate::tree::error::Error;
use crate::tree::node::layout::FINGERPRINTS;
use crate::tree::node::leaf::Decoder;
use crate::tree::options::DictionaryChoice;
use crate::tree::upkeep::defragment::Sweep;

/// Leaves a tree has when a dictionary is first trained.
pub(crate) const FIRST_TRAINING_LEAVES: usize = 16;
/// User bytes of the tree for each byte of the dictionary, whose size is the next power of two, as that of the tables derived from it is.
const USER_BYTES_PER_DICTIONARY_BYTE: u64 = 256;
const SMALLEST_BYTES: u64 = 4 << 10;
const LARGEST_BYTES: u64 = 32 << 10;
/// LZ4 looks its dictionary up in tables that should stay in the first-level cache beside it.
const LARGEST_LZ4_BYTES: u64 = 16 << 10;
/// Samples for each byte of the dictionary, and of one for which they would be more than [`MANY_SAMPLE_BYTES`]: what is beyond
/// helps little and takes its time.
const SAMPLE_BYTES_PER_DICTIONARY_BYTE: usize = 100;
const FEW_SAMPLE_BYTES_PER_DICTIONARY_BYTE: usize = 50;
const MANY_SAMPLE_BYTES: usize = FEW_SAMPLE_BYTES_PER_DICTIONARY_BYTE * LARGEST_BYTES as usize;
/// A dictionary of half the size may be the better one in a small tree, or one of half that.
const SIZES_TRIED: usize = 3;
/// A new dictionary saves one byte in so many at least: every leaf is compressed again with it.
const LEAST_SAVED_IN: u64 = 100;
/// A frame is no longer than this.
const MAX_SAMPLE_BYTES: usize = 64 << 10;
/// One sample in so many is kept from the training to judge the result by.
const HELD_OUT: usize = 5;

/// A tree's dictionaries.
pub(crate) struct Dictionaries {
    current: AtomicPtr<Dictionary>,
    /// All that a leaf may point to, the current one last.
    versions: Mutex<Vec<NonNull<Dictionary>>>,
    /// What only retired leaves point to, with the epoch that began after those were retired.
    outdated: Mutex<Vec<(u64, Vec<NonNull<Dictionary>>)>>,
    /// Taken while training.
    pub training: Mutex<()>,
    pub auto: bool,
    max_bytes: Option<usize>,
    /// The size for which one was last trained; 0 before the first time.
    trained_for_bytes: AtomicUsize,
}

// SAFETY: the pointers are to dictionaries that this struct owns, which are shared between threads.
unsafe impl Send for Dictionaries {}
// SAFETY: as above.
unsafe impl Sync for Dictionaries {}

impl Dictionaries {
    pub(crate) fn new(
        choice: &DictionaryChoice,
        supported: bool,
        max_bytes: Option<usize>,
    ) -> Result<Self, OutOfMemory> {
        let this = Self {
            current: AtomicPtr::new(std::ptr::null_mut()),
            versions: Mutex::new(Vec::new()),
            outdated: Mutex::new(Vec::new()),
            training: Mutex::new(()),
            auto: supported && CAN_TRAIN && matches!(choice, DictionaryChoice::Auto),
            max_bytes,
            trained_for_bytes: AtomicUsize::new(0),
        };
        if let (DictionaryChoice::Given(dictionary), true) = (choice, supported) {
            this.install(dictionary.clone())?;
        }
        Ok(this)
    }

    /// The dictionary to compress with. The caller's guard, the lock `training`, or its being the only one at the tree, keeps it.
    pub(crate) fn current(&self) -> Option<&Dictionary> {
        // SAFETY: the current dictionary is owned by `versions`, and retired only after another has become current.
        unsafe { self.current.load(Ordering::Acquire).as_ref() }
    }

    fn install(&self, dictionary: Dictionary) -> Result<(), OutOfMemory> {
        let mut versions = self.versions.lock();
        versions.try_grow(1)?;
        let dictionary = NonNull::from(Box::leak(boxed(dictionary)?));
        versions.push(dictionary);
        self.current.store(dictionary.as_ptr(), Ordering::Release);
        Ok(())
    }

    /// Whether a leaf may point to `dictionary`, which may be none.
    pub(crate) fn holds(&self, dictionary: *const Dictionary) -> bool {
        dictionary.is_null()
            || self
                .versions
                .lock()
                .iter()
                .any(|held| held.as_ptr().cast_const() == dictionary)
    }

    /// Bytes of all of them, and of the tables made from them.
    pub(crate) fn held_bytes(&self) -> u64 {
        // SAFETY: both lists own what they lead to.
        let held = |dictionary: &NonNull<Dictionary>| unsafe { dictionary.as_ref() }.held_bytes() as u64;
        let outdated = self.outdated.lock();
        let versions = self.versions.lock();
        versions
            .iter()
            .chain(outdated.iter().flat_map(|(_, dictionaries)| dictionaries))
            .map(held)
            .sum()
    }

    /// Retires all but the current one, to which every leaf in the tree points by now.
    fn retire_older(&self, memory: &Memory) {
        let current = self.current.load(Ordering::Acquire);
        {
            let (mut outdated, mut versions) = (self.outdated.lock(), self.versions.lock());
            let Ok(mut older) = room_for(versions.len()).and_then(|older| outdated.try_grow(1).map(|()| older)) else {
                // They stay until others have become older.
                return;
            };
            older.extend(versions.extract_if(.., |dictionary| dictionary.as_ptr() != current));
            if !older.is_empty() {
                outdated.push((memory.epochs.begin(), older));
            }
        }
        let mut patience = Patience::default();
        for _ in 0..MAX_WAITS {
            if self.free_outdated(memory) {
                break;
            }
            patience.wait();
        }
    }

    /// Frees the retired ones that no reader of a retired leaf is at any more. Returns whether that was all.
    pub(crate) fn free_outdated(&self, memory: &Memory) -> bool {
        let mut outdated = self.outdated.lock();
        for (_, dictionaries) in outdated.extract_if(.., |(since, _)| memory.is_over(*since)) {
            for dictionary in dictionaries {
                // SAFETY: it came from `Box::leak`, no leaf in the tree points to it, and who reads a retired leaf has a guard.
                drop(unsafe { Box::from_raw(dictionary.as_ptr()) });
            }
        }
        outdated.is_empty()
    }
}

impl Drop for Dictionaries {
    fn drop(&mut self) {
        let mut outdated = self.outdated.lock();
        let outdated = outdated.drain(..).flat_map(|(_, dictionaries)| dictionaries);
        for dictionary in self.versions.lock().drain(..).chain(outdated) {
            // SAFETY: it came from `Box::leak`, and the tree's leaves are gone.
            drop(unsafe { Box::from_raw(dictionary.as_ptr()) });
        }
    }
}

/// What a training found to be better than what there is.
struct Found {
    dictionary: Option<Dictionary>,
    lengths: Option<Settings>,
}

/// What a tree would hold.
struct Judged {
    pressed_bytes: u64,
    /// The dictionary and its tables.
    dictionary_bytes: u64,
}

impl Judged {
    fn held(&self) -> u64 {
        self.pressed_bytes + self.dictionary_bytes
    }
}

impl Core {
    /// Trains a dictionary from the tree's leaves and, if it saves more than it costs, makes it current and compresses every leaf
    /// with it. Returns whether it did.
    pub(crate) fn train_dictionary(&self) -> Result<bool, Error> {
        if !self.dictionaries.auto && !self.sizing.auto {
            return Ok(false);
        }
        let _training = self.dictionaries.training.lock();
        self.train_and_sweep()
    }

    fn train_and_sweep(&self) -> Result<bool, Error> {
        let found = on_a_thread_of_its_own(&|| {
            let found = self.trained_and_sized();
            trim::return_working_memory();
            found
        })?;
        // One that is trained is compressed with by every leaf, which then has frames of the new length too.
        if let Some(lengths) = &found.lengths {
            self.settings.set_lengths(lengths);
        }
        let is_trained = found.dictionary.is_some();
        if let Some(trained) = found.dictionary {
            self.dictionaries.install(trained)?;
        }
        if found.lengths.is_some() {
            self.sweep(Sweep::Anew)?;
        } else if is_trained {
            self.sweep(Sweep::Dictionary)?;
        }
        if is_trained {
            self.dictionaries.retire_older(&self.memory);
        }
        Ok(is_trained)
    }

    /// A better dictionary and better lengths, if there are.
    fn trained_and_sized(&self) -> Result<Found, Error> {
        let dictionary = if self.dictionaries.auto { self.trained()? } else { None };
        let lengths = self.better_lengths(dictionary.as_ref().or(self.dictionaries.current()));
        // A dictionary is good without them.
        let lengths = if dictionary.is_some() {
            lengths.unwrap_or(None)
        } else {
            lengths?
        };
        Ok(Found { dictionary, lengths })
    }

    /// Most bytes of a dictionary for a tree of so many user bytes.
    fn dictionary_bytes_for(&self, user_bytes: u64) -> usize {
        self.dictionaries.max_bytes.unwrap_or_else(|| {
            let largest = match self.engine.codec() {
                Codec::Lz4 { .. } | Codec::Lz4Hc { .. } => LARGEST_LZ4_BYTES,
                _ => LARGEST_BYTES,
            };
            let share = user_bytes / USER_BYTES_PER_DICTIONARY_BYTE;
            share.next_power_of_two().clamp(SMALLEST_BYTES, largest) as usize
        })
    }

    /// Leaves at which a dictionary is trained again when it is trained at so many: twice as many while it grows with the tree, then
    /// four times.
    pub(crate) fn next_training_leaves(&self, leaves: usize) -> usize {
        let bytes = self.dictionary_bytes_for(leaves as u64 * self.settings.now().leaf_bytes as u64);
        let grown = bytes == self.dictionary_bytes_for(u64::MAX);
        leaves.next_power_of_two().saturating_mul(if grown { 4 } else { 2 })
    }

    /// Whether the tree has grown since a dictionary was last trained to where it would have a larger one.
    pub(crate) fn outgrew_dictionary(&self) -> bool {
        let last = self.dictionaries.trained_for_bytes.load(Ordering::Relaxed);
        self.dictionaries.auto
            && last > 0
            && last < self.dictionary_bytes_for(u64::MAX)
            && self
                .user_bytes()
                .is_ok_and(|user_bytes| last < self.dictionary_bytes_for(user_bytes))
    }

    /// Whether a dictionary is to be trained and never was.
    pub(crate) fn lacks_dictionary(&self) -> bool {
        self.dictionaries.auto && self.dictionaries.trained_for_bytes.load(Ordering::Relaxed) == 0
    }

    /// Trains the tree's first dictionary from frames that are yet to come into it, of which `collect` gives so many
    /// bytes, for so many user bytes. If it saves more than it costs, it becomes current, and what the tree has already
    /// is compressed with it.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] or [`Error::Codec`]; nothing has changed, or some leaves have the new dictionary.
    pub(crate) fn train_first(
        &self,
        user_bytes: u64,
        collect: impl Fn(usize) -> Result<Ahead, Error> + Sync,
    ) -> Result<(), Error> {
        let _training = self.dictionaries.training.lock();
        if !self.lacks_dictionary() {
            return Ok(());
        }
        let trained = on_a_thread_of_its_own(&|| {
            let bytes = self.begin_training(user_bytes);
            let trained = collect(sample_bytes_for(bytes))
                .and_then(|Ahead { samples, raw_bytes }| self.trained_from(&samples, bytes, user_bytes, raw_bytes));
            trim::return_working_memory();
            trained
        })?;
        let Some(trained) = trained else { return Ok(()) };
        self.dictionaries.install(trained)?;
        self.sweep(Sweep::Dictionary)?;
        self.dictionaries.retire_older(&self.memory);
        Ok(())
    }

    /// The size to train for, for so many user bytes, which is noted.
    fn begin_training(&self, user_bytes: u64) -> usize {
        let bytes = self.dictionary_bytes_for(user_bytes);
        self.dictionaries.trained_for_bytes.store(bytes, Ordering::Relaxed);
        bytes
    }

    /// A dictionary trained from the tree's leaves, if it saves more than it costs.
    fn trained(&self) -> Result<Option<Dictionary>, Error> {
        let (user_bytes, raw_bytes) = (self.user_bytes()?, self.raw_bytes()?);
        let bytes = self.begin_training(user_bytes);
        let samples = self.samples(sample_bytes_for(bytes))?;
        self.trained_from(&samples, bytes, user_bytes, raw_bytes)
    }

    /// A dictionary of at most `bytes`, trained from these frames, if it saves more than it costs in a tree of so many
    /// user bytes, and raw bytes in its frames.
    fn trained_from(
        &self,
        samples: &Samples,
        bytes: usize,
        user_bytes: u64,
        raw_bytes: u64,
    ) -> Result<Option<Dictionary>, Error> {
        let parts = |held_out: bool| {
            let samples = samples.each().enumerate();
            samples
                .filter(move |(index, _)| (index % HELD_OUT == 0) == held_out)
                .map(|(_, sample)| sample)
        };
        let training: Vec<&[u8]> = collected(parts(false))?;
        let judges: Vec<&[u8]> = collected(parts(true))?;
        let before = self.judge(&judges, raw_bytes, self.dictionaries.current())?;
        let mut best: Option<(Judged, Dictionary)> = None;
        for size in self.sizes_to_try(bytes, user_bytes) {
            let training: Vec<&[u8]> = collected(training.iter().step_by(bytes / size).copied())?;
            // Too little data, or data without anything in common, is no error: the tree does without a dictionary.
            let Ok(trained) = Dictionary::train(self.engine.codec(), &training, size) else {
                continue;
            };
            let judged = self.judge(&judges, raw_bytes, Some(&trained))?;
            if best.as_ref().is_none_or(|(least, _)| judged.held() < least.held()) {
                best = Some((judged, trained));
            }
        }
        Ok(best
            .filter(|(after, _)| {
                let saved = before.pressed_bytes.saturating_sub(after.pressed_bytes);
                saved * LEAST_SAVED_IN > before.pressed_bytes && after.held() < before.held()
            })
            .map(|(_, trained)| trained))
    }

    /// `bytes`, and smaller sizes if what a dictionary holds is much for the tree and the size is not the caller's.
    fn sizes_to_try(&self, bytes: usize, user_bytes: u64) -> impl Iterator<Item = usize> {
        let small_tree = user_bytes <= bytes as u64 * USER_BYTES_PER_DICTIONARY_BYTE;
        let least = if small_tree && self.dictionaries.max_bytes.is_none() {
            SMALLEST_BYTES as usize
        } else {
            bytes
        };
        let sizes = (0..SIZES_TRIED).map(move |halved| bytes >> halved);
        sizes.take_while(move |size| *size >= least)
    }

    /// Raw bytes of all frames, about: in packed leaves keys are not in the frames.
    fn raw_bytes(&self) -> Result<u64, Error> {
        let mut bytes = 0;
        self.for_each_leaf(&self.memory.enter()?, |leaf| {
            let header = leaf.header();
            let keys = if leaf.has(FINGERPRINTS) {
                0
            } else {
                leaf.count() * usize::from(header.key_len)
            };
            bytes += u64::from(header.inline_bytes).saturating_sub(keys as u64);
        });
        Ok(bytes)
    }

    /// What a tree with so many raw bytes in its frames would hold with `dictionary`, by frames that it was not trained from.
    fn judge(&self, frames: &[&[u8]], raw_bytes: u64, dictionary: Option<&Dictionary>) -> Result<Judged, Error> {
        let (mut raw, mut built) = (0u64, 0u64);
        let mut block = Vec::new();
        for frame in frames {
            raw += frame.len() as u64;
            built += self.pressed_len(frame, dictionary, &mut block)?;
        }
        Ok(Judged {
            pressed_bytes: (u128::from(built) * u128::from(raw_bytes) / u128::from(raw.max(1))) as u64,
            dictionary_bytes: dictionary.map_or(0, |dictionary| dictionary.held_bytes() as u64),
        })
    }

    fn pressed_len(&self, raw: &[u8], dictionary: Option<&Dictionary>, block: &mut Vec<u8>) -> Result<u64, Error> {
        block.clear();
        let stored = self.engine.compress(raw, dictionary, block)?;
        Ok(if saves_enough(stored, raw.len()) {
            stored
        } else {
            raw.len()
        } as u64)
    }

    /// Raw frames from leaves spread over the tree, about `bytes` of them.
    fn samples(&self, bytes: usize) -> Result<Samples, Error> {
        let mut held = 0;
        self.for_each_leaf(&self.memory.enter()?, |leaf| {
            held += leaf.header().inline_bytes as usize
        });
        // Every nth frame of every leaf, with n such that they come to about `bytes`; a step that is no multiple of the frames
        // a leaf has, so that all places in a leaf are sampled.
        let step = held.div_ceil(bytes.max(1)).max(1);
        let mut scratch = Scratch::default();
        let mut samples = Samples::for_frames(bytes.min(held))?;
        let mut seen = 0;
        self.for_each_leaf_in_turn(|leaf| {
            let sections = leaf.sections();
            let mut decoder = Decoder::new(&*self.engine, &mut scratch);
            for frame in 0..leaf.frames() {
                seen += 1;
                if seen % step == 0 {
                    let raw_len = leaf.raw_len(&sections, frame);
                    let raw = leaf.decode(&sections, frame, raw_len, &mut decoder)?;
                    samples.push(raw)?;
                }
            }
            Ok(())
        })?;
        Ok(samples)
    }
}

/// Bytes of samples for a dictionary of so many.
fn sample_bytes_for(bytes: usize) -> usize {
    (bytes * SAMPLE_BYTES_PER_DICTIONARY_BYTE)
        .min(MANY_SAMPLE_BYTES)
        .max(bytes * FEW_SAMPLE_BYTES_PER_DICTIONARY_BYTE)
}

/// What is known of frames that are yet to come into a tree.
pub(crate) struct Ahead {
    pub samples: Samples,
    /// Of all of them.
    pub raw_bytes: u64,
}

/// Samples, back to back.
pub(crate) struct Samples {
    bytes: Transient,
    ends: Vec<usize>,
}

impl Samples {
    /// Room for samples of about so many bytes: a frame more at a leaf's end, and another where the tree has grown
    /// since, fit as well.
    pub(crate) fn for_frames(bytes: usize) -> Result<Self, Error> {
        Self::with_capacity(bytes + bytes / 4 + MAX_SAMPLE_BYTES)
    }

    fn with_capacity(bytes: usize) -> Result<Self, Error> {
        let room = Transient::with_capacity(bytes).ok_or(Error::OutOfMemory { bytes })?;
        Ok(Self {
            bytes: room,
            ends: Vec::new(),
        })
    }

    /// Takes a sample, unless it is empty or there are enough.
    pub(crate) fn push(&mut self, sample: &[u8]) -> Result<(), OutOfMemory> {
        if !sample.is_empty() && self.bytes.push(sample) {
            self.ends.try_push(self.bytes.bytes().len())?;
        }
        Ok(())
    }

    fn each(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, &end)| &self.bytes.bytes()[start..end])
    }
}

/// Does `work` on a thread that ends with it, and so gives the memory that it freed back to the allocator: these keep what a thread has
/// freed for that thread, and the one that tends the tree lives as long as the tree. Without another thread to be had, on this one.
#[cfg(not(any(shuttle, miri)))]
fn on_a_thread_of_its_own<T: Send>(work: &(dyn Fn() -> T + Sync)) -> T {
    std::thread::scope(|scope| {
        let spawned = std::thread::Builder::new()
            .name("leafpress-train".into())
            .spawn_scoped(scope, work);
        match spawned {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => work(),
        }
    })
}

/// The model checkers have their own threads, and no memory to give back.
#[cfg(any(shuttle, miri))]
fn on_a_thread_of_its_own<T: Send>(work: &(dyn Fn() -> T + Sync)) -> T {
    work()
}
