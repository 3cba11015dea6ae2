//! Versioned dictionaries of families of blocks.
//!
//! An entry references the version with which it was compressed, so that a version lives as long as any entry needs it,
//! and a reader of a pinned entry needs nothing else to decode it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

use leafpress_base::sync::plain::Mutex;

use leafpress_base::mem::room::{collected, room_for};
use leafpress_codec::{Codec, Dictionary, Engine, MIN_SAMPLES};

/// Number of families with dictionaries of their own.
pub(super) const FAMILIES: usize = 8;
/// Minimum saving of a new dictionary compared with the current one, in percent.
const MIN_GAIN_PCT: usize = 2;
/// One sample in this many is held out of the training for the evaluation.
const HELD_OUT: usize = 8;

/// A dictionary in use.
pub(super) struct Version {
    pub(super) dictionary: Dictionary,
    bytes: usize,
    /// The counter that includes `bytes`.
    all: Arc<AtomicUsize>,
}

impl Drop for Version {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, SeqCst);
    }
}

/// A family's dictionary, and the state that determines the next training.
#[derive(Default)]
pub(super) struct Family {
    current: Mutex<Option<Arc<Version>>>,
    /// Raw bytes inserted.
    inserted_bytes: AtomicU64,
    /// The number of inserted bytes at which the next dictionary is trained; 0 until the first insertion.
    train_at: AtomicU64,
}

pub(super) struct Dictionaries {
    pub(super) families: [Family; FAMILIES],
    /// Length of a dictionary, in bytes; 0 if none are trained.
    pub(super) dictionary_bytes: usize,
    /// Maximum memory of all versions together, in bytes.
    limit_bytes: AtomicUsize,
    held_bytes: Arc<AtomicUsize>,
    pub(super) versions: AtomicU64,
}

impl Dictionaries {
    pub(super) fn new(dictionary_bytes: usize) -> Self {
        Self {
            families: Default::default(),
            dictionary_bytes,
            limit_bytes: AtomicUsize::new(0),
            held_bytes: Arc::default(),
            versions: AtomicU64::new(0),
        }
    }

    /// Memory of all versions, in bytes.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes.load(SeqCst)
    }

    /// Sets the maximum memory of all versions together. A caller that then finds the limit exceeded sees all of them:
    /// a version about to be used is counted before the limit is checked.
    pub(super) fn limit(&self, limit_bytes: usize) {
        self.limit_bytes.store(limit_bytes, SeqCst);
    }

    /// Drops all dictionaries except those that entries need.
    pub(super) fn forget(&self) {
        for family in &self.families {
            *family.current.lock() = None;
        }
    }

    pub(super) fn current(&self, family: usize) -> Option<Arc<Version>> {
        self.families[family].current.lock().clone()
    }

    /// Counts an insertion; returns true if a training is due.
    pub(super) fn inserted(&self, family: usize, raw_bytes: usize) -> bool {
        if self.dictionary_bytes == 0 || self.limit_bytes.load(Relaxed) == 0 {
            return false;
        }
        let family = &self.families[family];
        let inserted = family.inserted_bytes.fetch_add(raw_bytes as u64, Relaxed) + raw_bytes as u64;
        inserted >= family.train_at.load(Relaxed).max(self.sample_bytes() as u64)
    }

    /// Bytes of samples for a training.
    pub(super) fn sample_bytes(&self) -> usize {
        self.dictionary_bytes * 64
    }

    /// Returns true if a training of the family is due. The next one is then due after four times as many inserted
    /// bytes.
    pub(super) fn begin(&self, family: usize) -> bool {
        let family = &self.families[family];
        let inserted = family.inserted_bytes.load(Relaxed);
        let due = inserted >= family.train_at.load(Relaxed).max(self.sample_bytes() as u64);
        if due {
            family.train_at.store(inserted.saturating_mul(4), Relaxed);
        }
        due
    }

    /// Trains a dictionary from blocks and uses it from now on if it saves enough.
    pub(super) fn train(&self, family: usize, codec: Codec, engine: &dyn Engine, blocks: &[Vec<u8>]) -> bool {
        let is_judge = |at: usize| at % HELD_OUT == HELD_OUT - 1;
        let judges = || {
            (0..)
                .zip(blocks)
                .filter(|&(at, _)| is_judge(at))
                .map(|(_, block)| block)
        };
        let samples = (0..).zip(blocks).filter(|&(at, _)| !is_judge(at));
        let Ok(samples) = collected(samples.map(|(_, block)| block.as_slice())) else {
            return false;
        };
        if samples.len() < 4 * MIN_SAMPLES || judges().count() < MIN_SAMPLES / 2 {
            return false;
        }
        let Ok(dictionary) = Dictionary::train(codec, &samples, self.dictionary_bytes) else {
            return false;
        };
        let current = self.current(family);
        let pressed = |dictionary: Option<&Dictionary>| -> Option<usize> {
            let (mut sum, mut block) = (0, Vec::new());
            for raw in judges() {
                block.clear();
                engine.compress(raw, dictionary, &mut block).ok()?;
                sum += block.len().min(raw.len());
            }
            Some(sum)
        };
        let before = pressed(current.as_ref().map(|version| &version.dictionary));
        let (Some(before), Some(after)) = (before, pressed(Some(&dictionary))) else {
            return false;
        };
        if after * 100 > before * (100 - MIN_GAIN_PCT)
            || !judges().next().is_some_and(|raw| decodes(engine, &dictionary, raw))
        {
            return false;
        }
        // Its tables have been built by now.
        let bytes = dictionary.held_bytes() + size_of::<Version>();
        let held = self.held_bytes.fetch_add(bytes, SeqCst) + bytes;
        let version = Version {
            dictionary,
            bytes,
            all: Arc::clone(&self.held_bytes),
        };
        let mut current = self.families[family].current.lock();
        if held > self.limit_bytes.load(SeqCst) {
            return false;
        }
        *current = Some(Arc::new(version));
        self.versions.fetch_add(1, Relaxed);
        true
    }
}

/// Returns true if a block round-trips, which also builds the decompression tables.
fn decodes(engine: &dyn Engine, dictionary: &Dictionary, raw: &[u8]) -> bool {
    let (mut block, Ok(mut back)) = (Vec::new(), room_for(raw.len())) else {
        return false;
    };
    back.resize(raw.len(), 0);
    engine.compress(raw, Some(dictionary), &mut block).is_ok()
        && engine.decompress(&block, Some(dictionary), &mut back).is_ok()
        && back == raw
}
