//! Dictionaries of a snapshot: written before its values, which are compressed with them.
//!
//! `DUMP` has none: its payloads are read individually. A snapshot is being written between its begin and end
//! callbacks, and being read until the server has loaded it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use leafpress::Dictionary;

use super::block::{Family, Means};
use crate::api::io::{Loader, Saver};
use crate::store::databases::databases;
use crate::store::generation::Generation;

/// Version of the data before the values.
const VERSION: u64 = 1;
/// Maximum number of dictionaries that are read: also the maximum that are written.
const MOST: usize = 64;
/// Maximum length of a dictionary that is read: also the maximum of trees.
const MAX_BYTES: usize = 1 << 20;

/// A dictionary of the snapshot that is being written, and its generation.
struct Saving {
    serial: u64,
    dictionary: Dictionary,
}

static SAVING: Mutex<Vec<Saving>> = Mutex::new(Vec::new());
static LOADING: Mutex<Vec<Dictionary>> = Mutex::new(Vec::new());

// Only the server's main thread, or its child's, uses them.

fn saving() -> MutexGuard<'static, Vec<Saving>> {
    SAVING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn loading() -> MutexGuard<'static, Vec<Dictionary>> {
    LOADING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A snapshot begins: its dictionaries are written, if there are any.
pub fn begin_saving(saver: &mut Saver) {
    let mut found: Vec<Saving> = Vec::new();
    for generation in databases().generations() {
        if let Ok(Some(dictionary)) = generation.tree().dictionary()
            && found.len() < MOST
        {
            found.push(Saving {
                serial: generation.serial(),
                dictionary,
            });
        }
    }
    if !found.is_empty() {
        saver.unsigned(VERSION);
        saver.unsigned(found.len() as u64);
        for Saving { dictionary, .. } in &found {
            saver.unsigned(u64::from(dictionary.id()));
            saver.bytes(dictionary.bytes());
        }
    }
    *saving() = found;
}

/// A snapshot's write has ended or failed.
pub fn end_saving() {
    saving().clear();
}

/// Returns the codec and dictionary for the values of a generation.
pub fn for_saving(generation: &Generation) -> Means {
    let serial = generation.serial();
    let saving = saving();
    let saved = saving.iter().find(|saving| saving.serial == serial);
    let dictionary = saved.map(|saving| saving.dictionary.clone());
    let of_dictionary = dictionary.as_ref().and_then(Dictionary::codec);
    Means {
        family: Family::of(of_dictionary.unwrap_or(generation.codec())),
        dictionary,
    }
}

/// Reads the data that [`begin_saving`] wrote; returns whether it is valid.
pub fn load(loader: &mut Loader) -> bool {
    let read = read(loader);
    if read.is_none() {
        loader.log("leafpress: the snapshot's dictionaries are not what this module knows");
    }
    read.is_some()
}

fn read(loader: &mut Loader) -> Option<()> {
    if loader.unsigned()? != VERSION {
        return None;
    }
    let count = usize::try_from(loader.unsigned()?)
        .ok()
        .filter(|count| *count <= MOST)?;
    let mut found = Vec::new();
    for _ in 0..count {
        let id = u32::try_from(loader.unsigned()?).ok()?;
        let bytes = loader.bytes()?;
        if bytes.len() > MAX_BYTES {
            return None;
        }
        found.push(Dictionary::from_bytes(id, bytes.to_vec()));
    }
    *loading() = found;
    Some(())
}

/// A snapshot's load has ended or failed.
pub fn end_loading() {
    loading().clear();
}

/// Returns the dictionary with this number in the snapshot that is being read.
pub fn for_loading(id: u32) -> Option<Dictionary> {
    loading().iter().find(|dictionary| dictionary.id() == id).cloned()
}
