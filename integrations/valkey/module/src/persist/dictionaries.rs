//! Dictionaries of a snapshot: written before its values, which are compressed with them.
//!
//! `DUMP` has none: its payloads are read by themselves. A snapshot that is written says so between its two ends, a snapshot that is read
//! until the server has loaded it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use leafpress::Dictionary;

use super::block::{Family, Means};
use crate::api::io::{Loader, Saver};
use crate::store::databases::databases;
use crate::store::generation::Generation;

/// Version of what is written before the values.
const VERSION: u64 = 1;
/// Dictionaries that are read at most: as many as are written.
const MOST: usize = 64;
/// Longest dictionary that is read: trees have none that is longer.
const MAX_BYTES: usize = 1 << 20;

/// A dictionary of the snapshot that is written, and the generation it is for.
struct Saving {
    serial: u64,
    dictionary: Dictionary,
}

static SAVING: Mutex<Vec<Saving>> = Mutex::new(Vec::new());
static LOADING: Mutex<Vec<Dictionary>> = Mutex::new(Vec::new());

// The server's main thread alone asks for them, or its child's.

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

/// A snapshot is written, or is not.
pub fn end_saving() {
    saving().clear();
}

/// What values of a generation are to be compressed with: the dictionary is for its codec.
pub fn for_saving(generation: &Generation) -> Means {
    let serial = generation.serial();
    let saving = saving();
    let dictionary = saving.iter().find(|saving| saving.serial == serial);
    Means {
        family: Family::of(generation.codec()),
        dictionary: dictionary.map(|saving| saving.dictionary.clone()),
    }
}

/// Reads what [`begin_saving`] wrote; says whether it is that.
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

/// The server has loaded a snapshot, or has not.
pub fn end_loading() {
    loading().clear();
}

/// The dictionary with this number in the snapshot that is read.
pub fn for_loading(id: u32) -> Option<Dictionary> {
    loading().iter().find(|dictionary| dictionary.id() == id).cloned()
}
