//! The values of a dump in memory, in the order of their keys.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::Options;
use crate::core::LabError;
use crate::core::corpus::{Census, Records, Source};
use crate::suite::piece_selection;

/// Bytes of a run of a sample: several frames of neighbours, as in the whole.
const RUN_BYTES: u64 = 256 << 10;

/// Values end to end.
#[derive(Debug)]
pub(super) struct Values {
    bytes: Vec<u8>,
    /// Where each value ends.
    ends: Vec<usize>,
    /// Bytes of their keys.
    pub key_bytes: u64,
    /// Records of the dump, read and skipped.
    pub census: Census,
    /// Bytes of all the values that the dump has.
    pub found_bytes: u64,
}

impl Values {
    /// Reads the dump, and samples it.
    ///
    /// # Errors
    /// As [`Records::load`]; [`LabError::Data`] when no value has a byte.
    pub(super) fn load(options: &Options, cancel: &AtomicBool) -> Result<Self, LabError> {
        let records = Records::load_until(&source(&options.path), &options.records, cancel)?;
        let values = Self::take(&records, options);
        if values.bytes.is_empty() {
            return Err(LabError::data(
                options.path.display().to_string(),
                format!(
                    "the values of its records have no bytes (--records {})",
                    options.records
                ),
            ));
        }
        Ok(values)
    }

    fn take(records: &Records, options: &Options) -> Self {
        let found_bytes = records.values.total_bytes();
        let mut values = Self {
            bytes: Vec::new(),
            ends: Vec::new(),
            key_bytes: 0,
            census: records.census,
            found_bytes,
        };
        let frame = options.frame_bytes.iter().copied().max().unwrap_or(1) as u64;
        let most = options.max_bytes.filter(|most| *most < found_bytes);
        let run_bytes = RUN_BYTES.min(most.unwrap_or(u64::MAX)).max(frame);
        let mut runs = piece_selection::choose(&[found_bytes], run_bytes, None, most)
            .into_iter()
            .flatten()
            .peekable();
        let mut start = 0;
        for id in 0..records.values.count() {
            let value = records.values.get(id);
            // A value belongs to the run that it begins in.
            while runs.next_if(|run| run.end <= start && run.end < found_bytes).is_some() {}
            if runs.peek().is_some_and(|run| run.start <= start) {
                values.bytes.extend_from_slice(value);
                values.ends.push(values.bytes.len());
                values.key_bytes += records.keys.get(id).len() as u64;
            }
            start += value.len() as u64;
        }
        values
    }

    /// Values that are these, with keys that have no bytes.
    #[cfg(test)]
    pub(super) fn of(parts: &[&[u8]]) -> Self {
        let mut values = Self {
            bytes: Vec::new(),
            ends: Vec::new(),
            key_bytes: 0,
            census: Census::default(),
            found_bytes: 0,
        };
        for part in parts {
            values.bytes.extend_from_slice(part);
            values.ends.push(values.bytes.len());
        }
        values
    }

    /// Number of values.
    pub(super) fn count(&self) -> usize {
        self.ends.len()
    }

    /// All of them in one piece.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Values compressed separately.
    pub(super) fn each(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.bytes[start..end])
    }

    /// Values of at most this many bytes in total, evenly spread over all of them.
    pub(super) fn spread(&self, most: usize) -> Vec<&[u8]> {
        let every = self.bytes.len().div_ceil(most.max(1)).max(1);
        self.each().step_by(every).collect()
    }
}

/// An existing path is one; anything else with a plain name is a bundled sample.
fn source(path: &Path) -> Source {
    let named = path.to_str().map(str::parse);
    match named {
        Some(Ok(sample @ Source::Sample(_))) if !path.exists() => sample,
        _ => Source::Path(PathBuf::from(path)),
    }
}
