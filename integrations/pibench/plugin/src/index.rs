//! PiBench's operations on our tree, in safe Rust: what each returns, and how a failure is reported once.

use std::cell::RefCell;
use std::fmt::Display;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

use leafpress::tree::{MAX_KEY_BYTES, MAX_VALUE_BYTES};
use leafpress::{Tree, TreeBuilder};
use thiserror::Error;

use crate::report;
use crate::settings::SettingsError;

thread_local! {
    /// The records of the calling thread's last scan, whichever tree it was of.
    static SCANNED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Why there is no tree.
#[derive(Debug, Error)]
pub(crate) enum CreateError {
    #[error("keys of {0} bytes are longer than the limit of {MAX_KEY_BYTES}")]
    KeySize(usize),
    #[error("values of {0} bytes are longer than the limit of {MAX_VALUE_BYTES}")]
    ValueSize(usize),
    #[error(transparent)]
    Settings(#[from] SettingsError),
}

/// What is wrong with a write.
#[derive(Debug, Error)]
enum WriteError {
    #[error("a key of {given} bytes, and the tree was made for {made_for}")]
    KeySize { given: usize, made_for: usize },
    #[error("a value of {given} bytes, and the tree was made for {made_for}")]
    ValueSize { given: usize, made_for: usize },
    #[error(transparent)]
    Tree(#[from] leafpress::TreeError),
}

/// A tree whose keys are all of one size, and its values too.
pub(crate) struct Index {
    tree: Tree,
    key_size: usize,
    value_size: usize,
    failed: AtomicBool,
}

impl Index {
    /// Returns a tree with keys and values of these sizes.
    pub(crate) fn new(tree: TreeBuilder, key_size: usize, value_size: usize) -> Result<Self, CreateError> {
        if key_size > MAX_KEY_BYTES {
            return Err(CreateError::KeySize(key_size));
        }
        if value_size > MAX_VALUE_BYTES {
            return Err(CreateError::ValueSize(value_size));
        }
        Ok(Self {
            tree: tree.build().map_err(|e| SettingsError::Tree(e.to_string()))?,
            key_size,
            value_size,
            failed: AtomicBool::new(false),
        })
    }

    pub(crate) fn value_size(&self) -> usize {
        self.value_size
    }

    /// Copies the key's value to `value`, which is `value_size` long; false if the key is not there.
    pub(crate) fn find(&self, key: &[u8], value: &mut [MaybeUninit<u8>]) -> bool {
        // Values are of one size, as writes of other sizes are refused.
        let found = self.tree.get_with(key, |found| value.write_copy_of_slice(found).len());
        self.checked("find", found).flatten().is_some()
    }

    pub(crate) fn insert(&self, key: &[u8], value: &[u8]) -> bool {
        let written = self
            .sizes(key, value)
            .and_then(|()| Ok(self.tree.insert_if_absent(key, value)?));
        self.checked("insert", written).unwrap_or(false)
    }

    /// Inserts records that lie one after the other, each key followed by its value; returns whether all of them were
    /// new.
    pub(crate) fn bulk_load(&self, data: &[u8], key_size: usize, value_size: usize) -> bool {
        let mut are_new = true;
        for record in data.chunks_exact((key_size + value_size).max(1)) {
            let (key, value) = record.split_at(key_size);
            are_new &= self.insert(key, value);
        }
        are_new
    }

    pub(crate) fn update(&self, key: &[u8], value: &[u8]) -> bool {
        let written = self.sizes(key, value).and_then(|()| Ok(self.tree.replace(key, value)?));
        self.checked("update", written).unwrap_or(false)
    }

    pub(crate) fn remove(&self, key: &[u8]) -> bool {
        self.checked("remove", self.tree.remove(key)).unwrap_or(false)
    }

    /// Up to `count` records from the first key that is not below `key`: how many, and where they are until the
    /// thread's next scan.
    pub(crate) fn scan(&self, key: &[u8], count: usize) -> (usize, *mut u8) {
        // A thread that scans from its thread-local destructors, after this buffer's, gets no records.
        SCANNED
            .try_with(|scanned| {
                let mut records = scanned.borrow_mut();
                let count = self.collect(key, count, &mut records);
                (count, records.as_mut_ptr())
            })
            .unwrap_or((0, std::ptr::null_mut()))
    }

    /// Replaces the content of `records`; returns how many there are. At a failure those before it.
    fn collect(&self, key: &[u8], count: usize, records: &mut Vec<u8>) -> usize {
        records.clear();
        let (mut collected, mut room) = (0, Ok(()));
        let scanned = self.tree.range(key..).limit(count).visit(|key, value| {
            if room.is_ok() {
                room = records.try_reserve(key.len() + value.len());
            }
            if room.is_ok() {
                records.extend_from_slice(key);
                records.extend_from_slice(value);
                collected += 1;
            }
        });
        let _ = self.checked("scan", scanned);
        let _ = self.checked("scan", room);
        collected
    }

    fn sizes(&self, key: &[u8], value: &[u8]) -> Result<(), WriteError> {
        if key.len() != self.key_size {
            return Err(WriteError::KeySize {
                given: key.len(),
                made_for: self.key_size,
            });
        }
        if value.len() != self.value_size {
            return Err(WriteError::ValueSize {
                given: value.len(),
                made_for: self.value_size,
            });
        }
        Ok(())
    }

    /// Returns the result of a success, or [`None`]. Reports only the first failure, for a benchmark makes millions of
    /// calls.
    fn checked<T, E: Display>(&self, method: &str, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.report(method, error)).ok()
    }

    /// Reports a failure if it is the tree's first.
    #[cold]
    pub(crate) fn report(&self, method: &str, error: impl Display) {
        if !self.failed.swap(true, Ordering::Relaxed) {
            report::line(format_args!(
                "{method} failed: {error}; later failures of this tree are not shown"
            ));
        }
    }
}
