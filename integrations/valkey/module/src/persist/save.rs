//! Saving a value.

use super::block::{CONTENT_BYTES, put_record, seal};
use super::dictionaries::for_saving;
use super::{Incomplete, KIND_MAP, KIND_TEXT, check_count, each_of};
use crate::api::io::Saver;
use crate::store::map::Map;
use crate::store::value::Borrowed;

/// The destination of saved parts: a snapshot, or a test's buffer.
pub trait Sink {
    /// A number.
    fn unsigned(&mut self, number: u64);
    /// Bytes.
    fn bytes(&mut self, bytes: &[u8]);
}

impl Sink for Saver {
    fn unsigned(&mut self, number: u64) {
        Saver::unsigned(self, number);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        Saver::bytes(self, bytes);
    }
}

/// Saves a value; returns whether all of it was written. What was written of another does not load.
pub fn save(saver: &mut Saver, value: &Borrowed<'_>) -> bool {
    let saved = save_to(saver, value);
    if let Err(error) = &saved {
        saver.log(&format!("the value cannot be saved, so that the save fails: {error}"));
    }
    saved.is_ok()
}

/// Saves a value.
pub fn save_to(sink: &mut impl Sink, value: &Borrowed<'_>) -> Result<(), Incomplete> {
    let mut block = Vec::new();
    match value {
        Borrowed::Text(text) => {
            sink.unsigned(KIND_TEXT);
            let means = for_saving(&text.generation());
            let found = text.get_with(|value| {
                seal(value, &means, &mut block);
                sink.bytes(&block);
            })?;
            check_count(u64::from(found.is_some()), 1)?;
        }
        Borrowed::Map(map) => save_map(sink, map, &mut block)?,
    }
    Ok(())
}

fn save_map(sink: &mut impl Sink, map: &Map, block: &mut Vec<u8>) -> Result<(), Incomplete> {
    sink.unsigned(KIND_MAP);
    sink.unsigned(map.len());
    let means = for_saving(map.generation());
    let mut content = Vec::new();
    each_of(map, |field, value| {
        // A block is compressed only if it is short enough: one more record may exceed that.
        if !content.is_empty() && content.len() + field.len() + value.len() + 10 > CONTENT_BYTES {
            seal(&content, &means, block);
            sink.bytes(block);
            content.clear();
        }
        put_record(&mut content, field, value);
    })?;
    if !content.is_empty() {
        seal(&content, &means, block);
        sink.bytes(block);
    }
    Ok(())
}
