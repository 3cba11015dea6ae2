//! A loaded wrapper, and the checks of what it returns.

use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};

use crate::mapped::is_mapped;
use crate::shim::Tree;
use crate::{CallError, LoadError, TreeOptions};

/// Bytes that PiBench has behind `value_out`, however short values are (its longest value). Wrappers for fixed-width
/// values may write more than `value_size` bytes and rely on it, so that [`Library::find`] gives a wrapper no less.
pub const FIND_BUFFER_BYTES: usize = 1400;

/// A tree made by a wrapper.
///
/// Methods take `&self` and may be called from any number of threads, as the interface demands of wrappers. Dropping it
/// deletes the tree. The library itself stays loaded until the process ends: wrappers have thread-local destructors,
/// threads of their own and exit handlers, all of which would run code that is no longer there. Opening it again makes
/// a new tree in the same library, with whatever global state the library keeps.
pub struct Library {
    tree: Tree,
    path: PathBuf,
    value_size: usize,
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Library")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Library {
    /// Loads the wrapper at `path` and has it make a tree. A name without a slash is a file of the working directory if
    /// there is such a file, and is otherwise looked for where the dynamic loader looks.
    ///
    /// # Errors
    /// [`LoadError`]: the loader's own words, the exception's text, or that this build has no shim.
    ///
    /// # Safety
    /// The library's code runs in this process: its initialisers and `create_tree` now, its tree's methods whenever one
    /// of ours is called or the tree is dropped, its threads and exit handlers until the process ends. None of this can
    /// be checked, so the caller vouches for it:
    /// - a `create_tree` that the library exports is PiBench's, and what it returns is PiBench's `tree_api`, by the
    ///   same C++ library as this crate's shim;
    /// - that code has no undefined behaviour, and leaves alone what is not its own or handed to it. A scan's records
    ///   in particular stay where it said they are until the same thread's next scan;
    /// - any thread may call the tree, and several at once;
    /// - it reads no more of keys and values than their lengths; or else keys of just [`TreeOptions::key_size`] bytes
    ///   and values of just [`TreeOptions::value_size`] bytes are given to the methods.
    pub unsafe fn open(path: &Path, options: &TreeOptions) -> Result<Self, LoadError> {
        // SAFETY: the caller vouches for the library.
        let tree = unsafe { Tree::create(path, options) }?;
        Ok(Self {
            tree,
            path: path.to_owned(),
            value_size: options.value_size,
        })
    }

    /// Returns the file, as [`Library::open`] was given it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Prepares the calling thread for its first operation: calls `tls_setup`, which some of PiBench's branches call in
    /// every thread, where the wrapper has it.
    ///
    /// # Errors
    /// [`CallError::Threw`].
    pub fn attach_thread(&self) -> Result<(), CallError> {
        self.tree.attach_thread()
    }

    /// Copies the key's value to the first [`TreeOptions::value_size`] bytes of `value`; returns whether the key is
    /// there. What `value` holds behind them, and where the key is not there, is unspecified.
    ///
    /// With at least [`FIND_BUFFER_BYTES`] in `value` the wrapper writes there itself; otherwise to a buffer of that
    /// size first.
    ///
    /// # Errors
    /// [`CallError::Threw`]; [`CallError::ShortBuffer`] if `value` is shorter than a value.
    #[inline]
    pub fn find(&self, key: &[u8], value: &mut [u8]) -> Result<bool, CallError> {
        let value_size = self.value_size;
        let buffer_bytes = value.len();
        let Some(exact) = value.get_mut(..value_size) else {
            return Err(CallError::ShortBuffer {
                value_size,
                buffer_bytes,
            });
        };
        if buffer_bytes >= FIND_BUFFER_BYTES {
            // SAFETY: the buffer has room for a value and for what a wrapper may write behind a shorter one.
            return unsafe { self.tree.find(key, value.as_mut_ptr()) };
        }
        // Only the value's bytes are initialised (a wrapper may not write them all): clearing the rest would cost more
        // than many a find.
        let mut room = [const { MaybeUninit::uninit() }; FIND_BUFFER_BYTES];
        room[..value_size].write_copy_of_slice(exact);
        // SAFETY: the buffer has room for a value and for what a wrapper may write behind a shorter one; a value is no
        // longer than `value`, which is shorter than `room`.
        let found = unsafe { self.tree.find(key, room.as_mut_ptr().cast()) }?;
        if found {
            // SAFETY: that many bytes were written above.
            exact.copy_from_slice(unsafe { room[..value_size].assume_init_ref() });
        }
        Ok(found)
    }

    /// Adds a record; returns false when the key is there already. The wrapper is given a copy of the value that a zero
    /// byte follows.
    ///
    /// # Errors
    /// [`CallError::Threw`].
    #[inline]
    pub fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, CallError> {
        with_terminator(value, |value| self.tree.insert(key, value))
    }

    /// Replaces a value; returns false when the key is not there. The wrapper is given a copy of the value that a zero
    /// byte follows.
    ///
    /// # Errors
    /// [`CallError::Threw`].
    #[inline]
    pub fn update(&self, key: &[u8], value: &[u8]) -> Result<bool, CallError> {
        with_terminator(value, |value| self.tree.update(key, value))
    }

    /// Removes a record; returns whether it was there.
    ///
    /// # Errors
    /// [`CallError::Threw`].
    #[inline]
    pub fn remove(&self, key: &[u8]) -> Result<bool, CallError> {
        self.tree.remove(key)
    }

    /// Replaces the content of `out` by up to `n` records of `record_bytes` (key and value) each, from the first key
    /// that is not below `key`; returns how many. Neither their keys nor their order are looked at. On an error `out`
    /// is empty.
    ///
    /// # Errors
    /// [`CallError::Threw`]; [`CallError::NegativeCount`], [`CallError::TooMany`] or [`CallError::NoValues`] when what
    /// the wrapper returned cannot be; [`CallError::ScanTooLong`]; [`CallError::OutOfMemory`].
    pub fn scan(&self, key: &[u8], n: usize, record_bytes: usize, out: &mut Vec<u8>) -> Result<usize, CallError> {
        out.clear();
        let Ok(requested) = i32::try_from(n) else {
            return Err(CallError::ScanTooLong { requested: n });
        };
        let (count, values) = self.tree.scan(key, requested)?;
        let Ok(returned) = usize::try_from(count) else {
            return Err(CallError::NegativeCount { count });
        };
        if returned > n {
            return Err(CallError::TooMany {
                count: returned,
                requested: n,
            });
        }
        let out_of_memory = CallError::OutOfMemory {
            count: returned,
            record_bytes,
        };
        let bytes = returned.checked_mul(record_bytes).ok_or(out_of_memory.clone())?;
        if bytes == 0 {
            return Ok(returned);
        }
        if !is_mapped(values, bytes) {
            return Err(CallError::NoValues {
                count: returned,
                address: values.addr(),
            });
        }
        out.try_reserve(bytes).map_err(|_| out_of_memory)?;
        // SAFETY: the wrapper reports that many records, the memory exists, and by the interface it stays unchanged
        // until this thread's next scan.
        out.extend_from_slice(unsafe { std::slice::from_raw_parts(values, bytes) });
        Ok(returned)
    }
}

/// Calls `write` with a copy of `value` that a zero byte follows in memory. Some wrappers, PiBench's own for LevelDB
/// among them, take the value for a C string; in PiBench they find the end of its pool of values after at most 2000
/// bytes.
#[inline]
fn with_terminator<R>(value: &[u8], write: impl FnOnce(&[u8]) -> R) -> R {
    let mut short = [MaybeUninit::uninit(); FIND_BUFFER_BYTES];
    if let Some([copy @ .., terminator]) = short.get_mut(..=value.len()) {
        terminator.write(0);
        write(copy.write_copy_of_slice(value))
    } else {
        let copy = [value, &[0]].concat();
        write(&copy[..value.len()])
    }
}
