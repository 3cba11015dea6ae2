//! The tree's dictionaries: which one is current, and how it is trained from the tree's own leaves.
//!
//! A leaf points to the dictionary with which its frames were compressed. A new dictionary is first made current; every
//! compression that begins afterwards uses it. The following sweep takes each leaf's lock in turn, so that it waits for
//! compressions that began earlier, and recompresses leaves with an older dictionary. When it has completed without an
//! error, no leaf in the tree points to an older one, and these are retired.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::tree::Tree;
use crate::tree::compact::builder::Record;
use crate::tree::error::TreeError;
use crate::tree::inner::TreeInner;
use crate::tree::options::{DictionaryChoice, Upkeep};
use crate::tree::upkeep::choice::{Choosing, Improvement, Known};
use crate::tree::upkeep::samples::Ahead;
use crate::tree::upkeep::steps_of_training::{Collecting, Training};
use crate::tree::upkeep::trainer::{Candidate, Standing, Trained, Trainer, codecs_of, largest_bytes};
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::{TryGrow, boxed, room_for};
use leafpress_base::mem::trim;
use leafpress_base::reclaim::node_heap::{MAX_WAITS, NodeHeap};
use leafpress_base::sync::{AtomicPtr, Mutex, Patience};
#[cfg(not(any(shuttle, miri)))]
use leafpress_base::sync::{plain, threads};
use leafpress_codec::{Codec, Dictionary, DictionaryPool, Engine};

/// Number of leaves at which a dictionary is first trained.
pub(crate) const FIRST_TRAINING_LEAVES: usize = 16;
/// Memory that must be available before a thread is started: many times what is allocated for one.
#[cfg(not(any(shuttle, miri)))]
pub(super) const ROOM_FOR_A_THREAD: usize = 64 << 10;

/// A tree's dictionaries.
pub(crate) struct Dictionaries {
    current: AtomicPtr<Dictionary>,
    /// All dictionaries that a leaf in the tree may point to, the current one last.
    versions: Mutex<Vec<NonNull<Dictionary>>>,
    /// Dictionaries that only retired leaves point to, with the epoch that began after those were retired.
    outdated: Mutex<Vec<(u64, Vec<NonNull<Dictionary>>)>>,
    /// Held while training.
    pub training: Mutex<()>,
    pub auto: bool,
    /// Dictionaries shared with other trees.
    pool: Option<DictionaryPool>,
    pub(super) max_bytes: Option<usize>,
    /// The size for which one was last trained; 0 before the first time.
    trained_for_bytes: AtomicUsize,
}

// SAFETY: the pointers are to dictionaries that this struct owns, and `Dictionary` is `Send` and `Sync`.
unsafe impl Send for Dictionaries {}
// SAFETY: shared access to the dictionaries is read-only, and the lists are behind mutexes.
unsafe impl Sync for Dictionaries {}

impl Dictionaries {
    pub(crate) fn new(
        choice: &DictionaryChoice,
        engine: &dyn Engine,
        max_bytes: Option<usize>,
        pool: Option<DictionaryPool>,
    ) -> Result<Self, OutOfMemory> {
        let supported = engine.supports_dictionary();
        let auto = supported && engine.codec().can_train() && choice.trains();
        let this = Self {
            current: AtomicPtr::new(std::ptr::null_mut()),
            versions: Mutex::new(Vec::new()),
            outdated: Mutex::new(Vec::new()),
            training: Mutex::new(()),
            auto,
            pool: pool.filter(|_| auto),
            max_bytes,
            trained_for_bytes: AtomicUsize::new(0),
        };
        if let (Some(dictionary), true) = (choice.first(), supported) {
            this.install(dictionary.clone())?;
        }
        Ok(this)
    }

    /// Returns the dictionary to compress with. It is protected by the caller's guard, the lock `training`, or
    /// exclusive access to the tree.
    pub(crate) fn current(&self) -> Option<&Dictionary> {
        // SAFETY: the current dictionary is owned by `versions`, and retired only after another has become current; the
        // caller's guard, lock or exclusive access keeps it from being freed.
        unsafe { self.current.load(Ordering::Acquire).as_ref() }
    }

    /// Returns the serial number of the current dictionary.
    pub(super) fn current_serial(&self) -> Option<u64> {
        self.current().map(Dictionary::serial)
    }

    pub(super) fn install(&self, dictionary: Dictionary) -> Result<(), OutOfMemory> {
        let mut versions = self.versions.lock();
        versions.try_grow(1)?;
        let dictionary = NonNull::from(Box::leak(boxed(dictionary)?));
        versions.push(dictionary);
        self.current.store(dictionary.as_ptr(), Ordering::Release);
        Ok(())
    }

    /// Returns whether a leaf may point to `dictionary`, which may be null.
    pub(crate) fn holds(&self, dictionary: *const Dictionary) -> bool {
        dictionary.is_null()
            || self
                .versions
                .lock()
                .iter()
                .any(|held| held.as_ptr().cast_const() == dictionary)
    }

    /// Records the size for which a dictionary is trained.
    pub(super) fn begin(&self, bytes: usize) -> usize {
        self.trained_for_bytes.store(bytes, Ordering::Relaxed);
        bytes
    }

    /// Returns the existing dictionaries that a training compares with, for a codec or its candidates. The caller
    /// protects the current one.
    ///
    /// # Errors
    /// [`OutOfMemory`].
    pub(super) fn standing(&self, codec: Codec, copies: bool) -> Result<Standing, OutOfMemory> {
        let candidate = |dictionary: &Dictionary, is_shared| -> Result<Candidate, OutOfMemory> {
            Ok(Candidate {
                judged: match copies {
                    true => dictionary.copy()?,
                    false => dictionary.clone(),
                },
                taken: dictionary.clone(),
                is_shared,
            })
        };
        let current = self.current();
        let mut shared = Vec::new();
        if let Some(pool) = &self.pool {
            for codec in codecs_of(&codec) {
                for dictionary in pool.for_codec(*codec)? {
                    if Some(dictionary.serial()) != current.map(Dictionary::serial) {
                        shared.try_push((*codec, candidate(&dictionary, true)?))?;
                    }
                }
            }
        }
        let current = current.map(|dictionary| candidate(dictionary, self.sharers(dictionary) > 1));
        Ok(Standing {
            current: current.transpose()?,
            shared,
        })
    }

    /// Offers a trained dictionary to the pool, and returns it.
    pub(super) fn offered(&self, trained: Trained) -> Dictionary {
        if let (true, Some(pool), Some(codec)) = (trained.is_new, &self.pool, trained.dictionary.codec()) {
            pool.offer(codec, &trained.dictionary);
        }
        trained.dictionary
    }

    /// Returns how many trees share this dictionary.
    pub(super) fn sharers(&self, dictionary: &Dictionary) -> usize {
        match self.pool {
            // Clones held by the caller are not trees.
            None => 1,
            Some(_) => dictionary.sharers().max(1),
        }
    }

    /// Returns the bytes of all dictionaries and of their tables; of shared ones, this tree's share.
    pub(crate) fn held_bytes(&self) -> u64 {
        let held = |dictionary: &NonNull<Dictionary>| {
            // SAFETY: the dictionaries of both lists are owned by them, and not freed while the lists are locked.
            let dictionary = unsafe { dictionary.as_ref() };
            dictionary.held_bytes().div_ceil(self.sharers(dictionary)) as u64
        };
        let outdated = self.outdated.lock();
        let versions = self.versions.lock();
        versions
            .iter()
            .chain(outdated.iter().flat_map(|(_, dictionaries)| dictionaries))
            .map(held)
            .sum()
    }

    /// Retires all but the current one, to which every leaf in the tree points by now.
    pub(super) fn retire_older(&self, memory: &NodeHeap) {
        let current = self.current.load(Ordering::Acquire);
        {
            let (mut outdated, mut versions) = (self.outdated.lock(), self.versions.lock());
            let Ok(mut older) = room_for(versions.len()).and_then(|older| outdated.try_grow(1).map(|()| older)) else {
                // They stay until the next time that older ones are retired.
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

    /// Frees retired dictionaries whose retired leaves no reader accesses any more. Returns whether these were all.
    pub(crate) fn free_outdated(&self, memory: &NodeHeap) -> bool {
        let mut outdated = self.outdated.lock();
        for (_, dictionaries) in outdated.extract_if(.., |(since, _)| memory.is_quiescent(*since)) {
            for dictionary in dictionaries {
                // SAFETY: it came from `Box::leak`, no leaf in the tree points to it, and the epoch shows that no
                // reader of a retired leaf is left.
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
            // SAFETY: it came from `Box::leak`, and the tree's leaves are freed.
            drop(unsafe { Box::from_raw(dictionary.as_ptr()) });
        }
    }
}

impl Tree {
    /// Trains a dictionary from the tree's records and chooses the frame length; recompresses every leaf if that saves
    /// more than it costs, and returns whether it did. The upkeep does this in the background as the tree grows and its
    /// records are replaced; this method does it at once. Returns false, too, where the dictionary is given or off
    /// and the lengths are given.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// tree.extend((0..1000_u32).map(|n| (n.to_be_bytes(), format!("the value of {n}"))))?;
    /// // Whether it was of use.
    /// let is_better = tree.train()?;
    /// # let _ = is_better;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// [`TreeError::OutOfMemory`] or [`TreeError::Codec`]; no record is lost, and the previous dictionary is kept.
    pub fn train(&self) -> Result<bool, TreeError> {
        self.core.train_dictionary()
    }
}

impl TreeInner {
    /// Runs `work` on a separate thread, or on this one with upkeep by the caller.
    fn aside<T: Send>(&self, work: &(dyn Fn() -> T + Sync)) -> T {
        match self.background.upkeep {
            Upkeep::Threads => on_a_thread_of_its_own(work),
            Upkeep::Caller => work(),
        }
    }

    /// Returns the trainer of the warm leaves' dictionary.
    pub(super) fn trainer(&self) -> Trainer<'_> {
        Trainer {
            engine: &*self.engines.warm,
            codec: self.engines.warm.codec(),
            max_bytes: self.dictionaries.max_bytes,
            largest_bytes: largest_bytes(self.engines.warm.codec()),
        }
    }

    /// Trains a dictionary from the tree's leaves and, if it saves more than it costs, makes it current and
    /// recompresses every leaf with it. Returns whether it did.
    pub(crate) fn train_dictionary(&self) -> Result<bool, TreeError> {
        if !self.dictionaries.auto && !self.sizing.auto {
            return Ok(false);
        }
        enter_span!("leafpress_train", codec = %self.engines.warm.codec());
        let _training = self.dictionaries.training.lock();
        let _is_training = self.background.mark_training();
        let is_trained = self.train_and_sweep()?;
        debug_event!(is_trained, "training ended");
        Ok(is_trained)
    }

    fn train_and_sweep(&self) -> Result<bool, TreeError> {
        let found = self.aside(&|| {
            let found = self.found_by_training();
            trim::return_working_memory();
            found
        })?;
        let before = self.dictionaries.current_serial();
        // With a new dictionary every leaf is recompressed, and then has frames of the new length too.
        if let Some(kind) = self.put_in_force(found)? {
            self.sweep(kind)?;
        }
        let is_trained = self.dictionaries.current_serial() != before;
        if is_trained {
            self.dictionaries.retire_older(&self.memory);
        }
        Ok(is_trained)
    }

    /// Trains with samples of all leaves. The caller holds the lock `training`.
    fn found_by_training(&self) -> Result<Option<Improvement>, TreeError> {
        let mut collecting = Collecting::begin();
        while collecting.step(self)? {}
        collecting.collected(self, false)?.map(Training::run).transpose()
    }

    /// Returns the number of leaves at which the next dictionary is trained after a training at `leaves`: twice as many
    /// while the dictionary grows with the tree, then four times.
    pub(crate) fn next_training_leaves(&self, leaves: usize) -> usize {
        let bytes = self
            .trainer()
            .bytes_for(leaves as u64 * self.settings.now().leaf_bytes as u64);
        let grown = bytes == self.trainer().bytes_for(u64::MAX);
        leaves.next_power_of_two().saturating_mul(if grown { 4 } else { 2 })
    }

    /// Returns whether the tree has grown enough since the last training for a larger dictionary.
    pub(crate) fn outgrew_dictionary(&self) -> bool {
        let last = self.dictionaries.trained_for_bytes.load(Ordering::Relaxed);
        self.dictionaries.auto
            && last > 0
            && last < self.trainer().bytes_for(u64::MAX)
            && self
                .user_bytes()
                .is_ok_and(|user_bytes| last < self.trainer().bytes_for(user_bytes))
    }

    /// Returns whether a dictionary should be trained and never was.
    pub(crate) fn lacks_dictionary(&self) -> bool {
        self.dictionaries.auto && self.dictionaries.trained_for_bytes.load(Ordering::Relaxed) == 0
    }

    /// Trains the tree's first dictionary from records that will be loaded, a tree of `user_bytes`, of which `collect`
    /// returns samples for a dictionary of a given number of bytes, and `runs` runs of neighbours. If it saves more
    /// than it costs, it becomes current, and existing leaves are recompressed with it.
    ///
    /// # Errors
    /// [`TreeError::OutOfMemory`] or [`TreeError::Codec`]; nothing has changed, or some leaves have the new dictionary.
    pub(crate) fn train_first<'r>(
        &self,
        user_bytes: u64,
        collect: impl Fn(usize) -> Result<Ahead, TreeError> + Sync,
        runs: impl Fn() -> Result<Vec<Vec<Record<'r>>>, TreeError> + Sync,
    ) -> Result<(), TreeError> {
        let _training = self.dictionaries.training.lock();
        if !self.lacks_dictionary() {
            return Ok(());
        }
        self.background.training_begins(self);
        let found = self.aside(&|| {
            let codec = self.engines.warm.codec();
            let bytes = self.dictionaries.begin(self.trainer().bytes_for(user_bytes));
            let found = collect(bytes).and_then(|Ahead { sampled, raw_bytes }| {
                let choosing = Choosing {
                    engines: &self.engines,
                    max_bytes: self.dictionaries.max_bytes,
                    standing: &self.dictionaries.standing(codec, false)?,
                    sampled: Some(sampled),
                    known: Known { user_bytes, raw_bytes },
                    rule: self.sizing.rule(),
                    now: self.settings.now(),
                    marks: self.marks,
                    is_stopped: &|| false,
                };
                choosing.run((self.sizing.auto && !codec.candidates().is_empty()).then_some(&runs))
            });
            trim::return_working_memory();
            found
        })?;
        let before = self.dictionaries.current_serial();
        if let Some(kind) = self.put_in_force(Some(found))? {
            self.sweep(kind)?;
        }
        if self.dictionaries.current_serial() != before {
            self.dictionaries.retire_older(&self.memory);
        }
        Ok(())
    }
}

/// Runs `work` on a thread that ends with it, and thus returns its freed memory to the allocator, which keeps freed
/// memory per thread; upkeep threads live as long as the trees. If no thread can be started, `work` runs on this one.
#[cfg(not(any(shuttle, miri)))]
pub(super) fn on_a_thread_of_its_own<T: Send>(work: &(dyn Fn() -> T + Sync)) -> T {
    // Allocations for a new thread abort if there is no memory: a thread is only started if there is clearly more than
    // it needs.
    if room_for::<u8>(ROOM_FOR_A_THREAD).is_err() {
        return work();
    }
    let done = plain::Mutex::new(None);
    threads::scope(|scope| {
        let work = || *done.lock() = Some(work());
        // If no thread can be started, nothing is done by then.
        let _ = scope.spawn("leafpress-train", work);
    });
    let done = done.lock().take();
    done.unwrap_or_else(work)
}

/// Runs `work` on this thread: model checkers have their own threads, and no memory to return.
#[cfg(any(shuttle, miri))]
pub(super) fn on_a_thread_of_its_own<T: Send>(work: &(dyn Fn() -> T + Sync)) -> T {
    work()
}
