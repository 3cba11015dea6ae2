//! The keys and values of a run.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::core::LabError;
use crate::core::corpus::{Census, Corpus, Pairing, Records, Sampled};
use crate::core::keys::{KeyBytes, KeySet, KeyShape};
use crate::eval::EvalConfig;

/// The keys and values of a run.
#[derive(Debug, Clone)]
pub struct Dataset {
    /// The values.
    pub values: Arc<Corpus>,
    /// Number of keys.
    pub keys: u64,
    /// Which value a key is loaded with.
    pub pairing: Pairing,
    /// Records of a dump, read and skipped.
    pub census: Option<Census>,
    key_bytes: usize,
    ready: Option<Arc<KeySet>>,
}

/// Lengths in bytes: the least, the most, and the mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lengths {
    /// The least.
    pub least: usize,
    /// The most.
    pub most: usize,
    /// The mean.
    pub mean: f64,
}

impl Lengths {
    /// Returns the length, if there is only one.
    pub fn fixed(&self) -> Option<usize> {
        (self.least == self.most).then_some(self.least)
    }
}

impl std::fmt::Display for Lengths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.fixed() {
            Some(length) => write!(f, "{length}"),
            None => write!(f, "{} to {} (mean {:.0})", self.least, self.most, self.mean),
        }
    }
}

impl Dataset {
    /// Reads what `config` asks for, until `cancel` is set.
    ///
    /// # Errors
    /// Unusable data, [`LabError::Cancelled`], and [`LabError::Option`] of `keys` when there are fewer records than
    /// requested keys.
    pub fn load(config: &EvalConfig, cancel: &AtomicBool) -> Result<Self, LabError> {
        let Some(format) = &config.records else {
            let values = Corpus::load_until(&config.data, config.effective_cut(), config.raw, config.seed, cancel)?;
            return Ok(Self::shaped(Arc::new(values), config));
        };
        let records = Records::load_until(&config.data, format, cancel)?;
        let found = records.keys.len();
        if config.keys > found {
            return Err(LabError::option(
                "keys",
                format!("{} are requested, but {} has {found} records", config.keys, config.data),
            ));
        }
        let records = records.take(if config.keys == 0 { found } else { config.keys });
        Ok(Self {
            keys: records.keys.len(),
            values: records.values,
            pairing: Pairing::InOrder,
            census: Some(records.census),
            key_bytes: 0,
            ready: Some(records.keys),
        })
    }

    /// Creates keys of the shape that `config` asks for, and these values.
    pub fn shaped(values: Arc<Corpus>, config: &EvalConfig) -> Self {
        let shape = config.key_shape;
        let (pairing, ready) = if shape == KeyShape::Dense {
            (Pairing::InOrder, None)
        } else {
            let keys = shape.keys(config.keys, config.seed, config.key_bytes);
            (Pairing::Apart, Some(Arc::new(keys)))
        };
        Self {
            values,
            keys: config.keys,
            pairing,
            census: None,
            key_bytes: config.key_bytes,
            ready,
        }
    }

    /// Describes the data, with the skipped records.
    pub fn describe(&self, config: &EvalConfig) -> String {
        let (keys, values) = (self.key_lengths(), self.value_lengths());
        let (count, data) = (self.keys, &config.data);
        let Some(format) = &config.records else {
            let shape = config.key_shape;
            let sampled = self
                .sampled()
                .map_or_else(String::new, |sampled| format!(" ({sampled})"));
            return format!("{count} {shape} keys of {keys} bytes, values of {values} bytes from {data}{sampled}");
        };
        let found = self.census.map_or(count, |census| census.records);
        let some = if count < found {
            format!(" of {found}")
        } else {
            String::new()
        };
        let left_out = self.census.and_then(|census| census.left_out());
        let left_out = left_out.map_or_else(String::new, |words| format!("; {words}"));
        format!("{count}{some} records of {data} ({format}): keys of {keys} bytes, values of {values} bytes{left_out}")
    }

    /// The sampled part of the source, if it was sampled.
    fn sampled(&self) -> Option<Sampled> {
        let (sampled, all) = (self.values.sampled(), self.values.total_bytes());
        if self.keys >= self.values.count() {
            return sampled;
        }
        Some(Sampled {
            found_bytes: sampled.map_or(all, |sampled| sampled.found_bytes),
            taken_bytes: (all as f64 / self.values.count() as f64 * self.keys as f64) as u64,
            copies: sampled.map_or_else(Default::default, |sampled| sampled.copies),
        })
    }

    /// Returns the caveats of figures with this data.
    pub fn cautions(&self) -> Vec<String> {
        let repeats = self.values.repeats(self.keys);
        repeats.map(|repeats| repeats.to_string()).into_iter().collect()
    }

    /// Returns what turns the number of a key into its bytes.
    pub fn key_bytes(&self) -> KeyBytes {
        match &self.ready {
            Some(keys) => KeyBytes::of(keys.clone()),
            None => KeyBytes::new(self.key_bytes),
        }
    }

    /// Returns the lengths of the keys.
    pub fn key_lengths(&self) -> Lengths {
        let (least, most, total) = match &self.ready {
            Some(keys) => (keys.shortest(), keys.longest(), keys.total_bytes()),
            None => (self.key_bytes, self.key_bytes, self.key_bytes as u64 * self.keys),
        };
        Lengths {
            least,
            most,
            mean: total as f64 / self.keys.max(1) as f64,
        }
    }

    /// Returns the lengths of the values.
    pub fn value_lengths(&self) -> Lengths {
        Lengths {
            least: self.values.shortest(),
            most: self.values.longest(),
            mean: self.values.total_bytes() as f64 / self.values.count() as f64,
        }
    }
}
