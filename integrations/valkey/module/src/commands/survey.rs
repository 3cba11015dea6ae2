//! Surveys of memory in the background: what keys take, and what compressed ones would take natively.

use super::native_memory::{INTEGER_LEN, KeyMemory, NativeMemory, Sample, is_integer};
use super::pass::{Pass, PassStatus, Selection, Slot, Task};
use crate::api::key::FieldCursor;
use crate::api::{Context, Failure, Key, Str};
use crate::persist::memory::memory;
use crate::prefixes::Family;
use crate::store::map::Map;
use crate::store::text::Text;
use crate::store::value::Borrowed;

/// Why nothing is counted.
const IS_CLUSTER_REPLICA: &str = "this is a replica in a cluster: keys are counted on its primary";

/// Fields of a map that are looked at.
const MAX_SAMPLED: usize = 64;

/// Sums over keys of a kind.
#[derive(Debug, Default, Clone, Copy)]
pub struct Sums {
    /// The number of keys.
    pub keys: u64,
    /// Bytes of strings, and of fields and values.
    pub user_bytes: u64,
    /// Bytes that the keys take by the server's count.
    pub bytes_held: u64,
    /// Bytes that they would take with native values. With native ones these are those held.
    pub native_bytes: u64,
}

impl Sums {
    fn add(&mut self, user_bytes: u64, bytes_held: u64, native_bytes: u64) {
        self.keys += 1;
        self.user_bytes += user_bytes;
        self.bytes_held += bytes_held;
        self.native_bytes += native_bytes;
    }
}

/// Sums of each kind.
#[derive(Debug, Default, Clone, Copy)]
pub struct Figures {
    /// Compressed maps.
    pub maps: Sums,
    /// Compressed strings.
    pub strings: Sums,
    /// Native hashes.
    pub native_hashes: Sums,
    /// Native strings.
    pub native_strings: Sums,
    /// The number of keys that could not be read.
    pub failed: u64,
}

/// A survey, and its end if it has ended.
pub struct Survey {
    pass: Pass,
    native: NativeMemory,
    figures: Figures,
}

/// The running survey, or the last one.
pub static SURVEY: Slot<Survey> = Slot::new();

/// Begins a survey, unless one is running.
pub fn begin(context: Context, selection: Selection) -> Result<(), Failure> {
    SURVEY.begin(Survey {
        pass: Pass::new(selection),
        native: NativeMemory::of(context),
        figures: Figures::default(),
    })
}

/// Reports the running survey, or the last one.
pub fn status() -> Option<(PassStatus, Figures)> {
    SURVEY.read(|survey| (survey.pass.status(), survey.figures))
}

impl Task for Survey {
    const IS_RUNNING: Failure =
        Failure::text("ERR keys are being counted: see LP.USAGE STATUS, and LP.USAGE STOP to end it");
    const STOP: &'static str = "LP.USAGE STOP";

    fn pass(&self) -> &Pass {
        &self.pass
    }

    fn pass_mut(&mut self) -> &mut Pass {
        &mut self.pass
    }

    fn reason_to_stop(context: Context) -> Option<&'static str> {
        // Such a server runs no command with a key for a module, `MEMORY USAGE` included.
        (context.is_cluster() && context.is_replica()).then_some(IS_CLUSTER_REPLICA)
    }

    fn reason_to_wait(context: Context) -> Option<&'static str> {
        context.is_loading().then_some("the server loads its data")
    }

    fn visit(&mut self, context: Context, name: Str<'_>) {
        if let Err(failure) = self.count(context, name) {
            self.figures.failed += 1;
            self.pass.note_error(name, &failure);
        }
    }

    fn begins_again(&mut self) {
        self.figures = Figures::default();
    }
}

impl Survey {
    /// Counts the key, if it is there and of a type that is selected.
    fn count(&mut self, context: Context, name: Str<'_>) -> Result<(), Failure> {
        if family_of(&Key::look(context, name)).is_none_or(|family| !self.pass.selection().has_family(family)) {
            return Ok(());
        }
        // No key is open while a native command runs, which may remove it.
        let Some(held) = context.memory_usage(name, MAX_SAMPLED)? else {
            return Ok(());
        };
        let key = Key::look(context, name);
        if key.has_type(Family::Hash.key_type()) {
            let user_bytes = user_bytes_of_hash(&key);
            self.figures.native_hashes.add(user_bytes, held, held);
        } else if key.has_type(Family::Text.key_type()) {
            self.figures.native_strings.add(key.native_len(), held, held);
        } else if let Some(value) = key.value()? {
            let memory_of_key = KeyMemory {
                bytes: held.saturating_sub(memory(&value) as u64),
                name_len: name.bytes().len() as u64,
                has_expiry: key.expiry().is_some(),
            };
            match value {
                Borrowed::Map(map) => {
                    let sample = self.sample(map)?;
                    let native = self.native.hash(memory_of_key, map.len(), map.user_bytes(), &sample);
                    self.figures.maps.add(map.user_bytes(), held, native);
                }
                Borrowed::Text(text) => {
                    let len = text.length()?;
                    let is_integer = is_integer_text(&text, len)?;
                    let native = self.native.string(memory_of_key, len as u64, is_integer);
                    self.figures.strings.add(len as u64, held, native);
                }
            }
        }
        Ok(())
    }

    /// Returns the fields of a map, or a sample of them.
    fn sample(&self, map: &Map) -> Result<Sample, Failure> {
        let mut sample = Sample::default();
        if map.len() <= MAX_SAMPLED as u64 {
            map.each(|field, value| self.native.add(&mut sample, field, value))?;
        } else {
            // The seed is of no importance; with a constant one, the same map has the same estimate.
            for (field, value) in map.sample(MAX_SAMPLED, map.len())? {
                self.native.add(&mut sample, &field, &value);
            }
        }
        Ok(sample)
    }
}

/// Returns the type of the key's value, as clients see it; `None` for other types, and without a key.
fn family_of(key: &Key<'_>) -> Option<Family> {
    let mut natives = Family::ALL.into_iter();
    natives
        .find(|family| key.has_type(family.key_type()))
        .or_else(|| key.value().ok().flatten().map(|value| Family::of(&value)))
}

fn is_integer_text(text: &Text, len: usize) -> Result<bool, Failure> {
    Ok(len <= INTEGER_LEN && text.get_with(is_integer)?.unwrap_or_default())
}

/// Returns the bytes of the fields and values of a native hash, by a sample of them if it has many.
fn user_bytes_of_hash(key: &Key<'_>) -> u64 {
    let (cursor, mut fields, mut has_more) = (FieldCursor::new(), Vec::new(), true);
    while has_more && fields.len() < MAX_SAMPLED {
        has_more = key.next_fields(&cursor, &mut fields);
    }
    let bytes: usize = fields.iter().map(|(field, value)| field.len() + value.len()).sum();
    if !has_more || fields.is_empty() {
        return bytes as u64;
    }
    let mean = bytes as f64 / fields.len() as f64;
    (mean * key.native_len() as f64) as u64
}
