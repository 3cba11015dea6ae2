//! Saving a value.

use super::block::{CONTENT_BYTES, put_record, seal};
use super::dictionaries::for_saving;
use super::{KIND_MAP, KIND_TEXT};
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

/// Saves a value. A value that cannot be read results in a snapshot that does not load, rather than one that loads
/// without some records.
pub fn save(saver: &mut Saver, value: &Borrowed<'_>) {
    if let Err(error) = save_to(saver, value) {
        saver.log(&format!("leafpress: a value cannot be saved: {error}"));
    }
}

/// Saves a value.
pub fn save_to(sink: &mut impl Sink, value: &Borrowed<'_>) -> Result<(), leafpress::TreeError> {
    let mut block = Vec::new();
    match value {
        Borrowed::Text(text) => {
            sink.unsigned(KIND_TEXT);
            let means = for_saving(&text.generation());
            text.get_with(|value| {
                seal(value, &means, &mut block);
                sink.bytes(&block);
            })?;
        }
        Borrowed::Map(map) => save_map(sink, map, &mut block)?,
    }
    Ok(())
}

fn save_map(sink: &mut impl Sink, map: &Map, block: &mut Vec<u8>) -> Result<(), leafpress::TreeError> {
    sink.unsigned(KIND_MAP);
    sink.unsigned(map.len());
    let means = for_saving(map.generation());
    let mut content = Vec::new();
    map.each(|field, value| {
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
