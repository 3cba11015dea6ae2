//! Sources of values.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::{KeyFormat, Operation, Options};
use crate::core::LabError;
use crate::core::corpus::{Assignment, Corpus, Cut, Pairing, Source};
use crate::core::keys::{below, mix};
use crate::core::paths::{behind, serde_as_name};

/// The source of a run's values.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum ValueSource {
    /// Pieces of a pool of random letters and digits, at random offsets, as in PiBench.
    #[default]
    Pool,
    /// Values of which this share, 0 to 1, is compressible.
    Compressible(f64),
    /// Cuts of a file, directory, archive or bundled sample.
    Corpus(Source),
}

impl ValueSource {
    /// Parses a word whose path may have any bytes, like [`FromStr`].
    ///
    /// # Errors
    /// As [`FromStr`].
    pub fn named(word: &OsStr) -> Result<Self, LabError> {
        match (word.to_str(), behind(word, "corpus:")) {
            (None, Some(path)) => Source::named(path).map(Self::Corpus),
            (text, _) => text.map_or_else(|| word.to_string_lossy(), Into::into).parse(),
        }
    }

    fn word(&self) -> OsString {
        match self {
            Self::Corpus(Source::Path(path)) => {
                let mut word = OsString::from("corpus:");
                word.push(path);
                word
            }
            source => source.to_string().into(),
        }
    }
}

impl fmt::Display for ValueSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pool => f.write_str("pool"),
            Self::Compressible(eta) => write!(f, "compressible:{eta}"),
            Self::Corpus(source) => write!(f, "corpus:{source}"),
        }
    }
}

impl FromStr for ValueSource {
    type Err = LabError;

    fn from_str(s: &str) -> Result<Self, LabError> {
        match s.split_once(':') {
            None if s == "pool" => Ok(Self::Pool),
            Some(("compressible", eta)) => match eta.parse() {
                Ok(eta) if (0.0..=1.0).contains(&eta) => Ok(Self::Compressible(eta)),
                _ => Err(LabError::option(
                    "value_source",
                    format!("`{s}`: ETA must be between 0 and 1, the compressible share"),
                )),
            },
            Some(("corpus", path)) if !path.is_empty() => Ok(Self::Corpus(path.parse()?)),
            _ => Err(LabError::option(
                "value_source",
                format!("unknown source `{s}`; known: pool, compressible:ETA, corpus:PATH"),
            )),
        }
    }
}

serde_as_name!(ValueSource);

/// Reads the values' sources once, so that one that cannot be used is known before anything runs; says of which only a
/// sample is taken.
///
/// # Errors
/// As [`Corpus::load`].
pub fn check<'o>(runs: impl IntoIterator<Item = &'o Options>) -> Result<Vec<String>, LabError> {
    let never = AtomicBool::new(false);
    let (mut checked, mut notes) = (Vec::new(), Vec::new());
    for options in runs {
        if options.dump.is_some() {
            Values::of(options, &never)?;
            continue;
        }
        let one = (&options.value_source, options.value_size, options.records);
        if matches!(options.value_source, ValueSource::Corpus(_)) && !checked.contains(&one) {
            let (_, values) = Values::of(options, &never)?;
            let sampled = values.sampled();
            notes.extend(sampled.map(|sampled| format!("{}: {sampled}", options.value_source)));
            checked.push(one);
        }
    }
    Ok(notes)
}

/// Bytes of the pool besides one value: PiBench's has 2000, which a compressor's window or dictionary would hold whole.
const POOL_BYTES: usize = 4 << 20;

/// The values of a run, all of one length unless they come from records.
#[derive(Debug)]
pub(super) struct Values {
    value_bytes: usize,
    seed: u64,
    bytes: Bytes,
}

#[derive(Debug)]
enum Bytes {
    Pool(Vec<u8>),
    /// Each id is loaded with the value that is assigned to it.
    Corpus(Corpus, Assignment),
    /// Each id has the value of its record.
    Records(Arc<Corpus>, KeyFormat),
}

impl Values {
    /// The keys and values of a run.
    ///
    /// # Errors
    /// As [`Corpus::load`] and [`Records::load`](crate::core::corpus::Records::load); [`LabError::Option`] of `records`
    /// when the dump has too few.
    pub(super) fn of(options: &Options, cancel: &AtomicBool) -> Result<(KeyFormat, Self), LabError> {
        let Some(dump) = &options.dump else {
            let values = Self::load(options, cancel)?;
            return Ok((KeyFormat::of(options, None), values));
        };
        let records = dump.load(options, cancel)?;
        let format = KeyFormat::of(options, Some(&records));
        let values = Self {
            value_bytes: records.values.longest(),
            seed: options.seed,
            bytes: Bytes::Records(records.values, format.clone()),
        };
        Ok((format, values))
    }

    /// Length of the longest value, in bytes.
    pub(super) fn longest(&self) -> usize {
        self.value_bytes
    }

    /// Values of one length, at least 1 byte.
    pub(super) fn load(options: &Options, cancel: &AtomicBool) -> Result<Self, LabError> {
        let (value_bytes, seed) = (options.value_size, options.seed);
        let corpus = |source: &Source| {
            let corpus = Corpus::load_until(source, Cut::Fixed(value_bytes), false, seed, cancel)?;
            let assignment = corpus.assignment(options.records, Pairing::Apart);
            Ok::<_, LabError>(Bytes::Corpus(corpus, assignment))
        };
        let bytes = match &options.value_source {
            ValueSource::Pool => Bytes::Pool(pool(value_bytes, seed)),
            ValueSource::Compressible(eta) => corpus(&Source::Synthetic(*eta))?,
            ValueSource::Corpus(source) => corpus(source)?,
        };
        Ok(Self {
            value_bytes,
            seed,
            bytes,
        })
    }

    /// The sampled part of their source, in words, if it was sampled.
    pub(super) fn sampled(&self) -> Option<String> {
        match &self.bytes {
            Bytes::Corpus(corpus, _) => corpus.sampled().map(|sampled| sampled.to_string()),
            _ => None,
        }
    }

    /// A caveat if values repeat among this many records, and so compress better than the data.
    pub(super) fn repeated(&self, records: u64) -> Option<String> {
        match &self.bytes {
            Bytes::Corpus(corpus, _) => corpus.repeats(records).map(|repeats| repeats.to_string()),
            _ => None,
        }
    }

    /// A value chosen by a random number.
    #[inline]
    pub(super) fn chosen(&self, random: u64) -> &[u8] {
        #[cfg(test)]
        super::mock_cost::make();
        match &self.bytes {
            Bytes::Pool(pool) => {
                let at = below(random, (pool.len() - self.value_bytes + 1) as u64) as usize;
                &pool[at..at + self.value_bytes]
            }
            Bytes::Corpus(corpus, _) => corpus.get(below(random, corpus.count())),
            Bytes::Records(corpus, _) => corpus.get(below(random, corpus.count())),
        }
    }

    /// The value of an operation: an inserted record's own, otherwise one chosen by a random number.
    #[inline]
    pub(super) fn written(&self, operation: Operation, id: u64, random: u64) -> &[u8] {
        match (&self.bytes, operation) {
            (Bytes::Records(..), Operation::Insert) => self.loaded(id),
            _ => self.chosen(random),
        }
    }

    /// The value an id is loaded with, whichever thread loads it.
    #[inline]
    pub(super) fn loaded(&self, id: u64) -> &[u8] {
        match &self.bytes {
            Bytes::Records(corpus, format) => corpus.get(format.number(id)),
            // Ids begin with 1.
            Bytes::Corpus(corpus, assignment) => corpus.get(assignment.value(id.wrapping_sub(1), 0)),
            Bytes::Pool(_) => self.chosen(mix(self.seed ^ mix(id))),
        }
    }
}

fn pool(value_bytes: usize, seed: u64) -> Vec<u8> {
    const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(mix(seed));
    let letter = |_| LETTERS[below(rng.next_u64(), LETTERS.len() as u64) as usize];
    (0..POOL_BYTES + value_bytes).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn sources_round_trip() {
        for name in ["pool", "compressible:0.5", "corpus:packages", "corpus:/a/b:c"] {
            assert_eq!(name.parse::<ValueSource>().unwrap().to_string(), name);
        }
        for name in [
            "",
            "pools",
            "compressible",
            "compressible:2",
            "compressible:x",
            "corpus:",
        ] {
            let message = name.parse::<ValueSource>().unwrap_err().to_string();
            assert!(message.starts_with("value_source: "), "{message}");
        }
    }

    /// As passed to a child of a comparison.
    #[test]
    fn a_path_comes_back_whatever_bytes_it_has() {
        for name in [
            b"corpus:packages".as_slice(),
            b"corpus:/a/\xff.txt",
            b"corpus:\xff",
            b"pool",
        ] {
            let source = ValueSource::named(OsStr::from_bytes(name)).unwrap();
            let json = serde_json::to_string(&source).unwrap();
            assert_eq!(serde_json::from_str::<ValueSource>(&json).unwrap(), source, "{json}");
            assert_eq!(source.word().as_bytes(), name);
        }
        let message = ValueSource::named(OsStr::from_bytes(b"corpse:\xff"))
            .unwrap_err()
            .to_string();
        assert!(message.contains("corpus:PATH"), "{message}");
    }

    fn values(source: &str, value_size: usize, seed: u64) -> Values {
        let mut options = Options::new("dummy".parse().unwrap());
        (options.value_source, options.value_size, options.seed) = (source.parse().unwrap(), value_size, seed);
        options.records = 1000;
        Values::load(&options, &AtomicBool::new(false)).unwrap()
    }

    #[test]
    fn records_have_distinct_values_of_the_whole_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("numbers");
        let source = format!("corpus:{}", path.display());
        let write =
            |count: u64| std::fs::write(&path, (0..count).flat_map(u64::to_be_bytes).collect::<Vec<_>>()).unwrap();
        write(20_000);
        let many = values(&source, 8, 1);
        let mut taken: Vec<_> = (1..=1000).map(|id| many.loaded(id).to_vec()).collect();
        taken.sort();
        taken.dedup();
        let last = u64::from_be_bytes(taken[999].as_slice().try_into().unwrap());
        assert!(taken.len() == 1000 && last > 19_900, "{last}");
        assert_eq!(many.repeated(1000), None);
        write(10);
        let note = values(&source, 8, 1).repeated(1000).unwrap();
        assert!(note.contains("10 values for 1000 keys"), "{note}");
    }

    #[test]
    fn loaded_values_depend_on_seed_and_id_alone() {
        let (one, same, other) = (values("pool", 16, 1), values("pool", 16, 1), values("pool", 16, 2));
        assert!((1..100).all(|id| one.loaded(id) == same.loaded(id) && one.loaded(id).len() == 16));
        assert!((1..100).all(|id| one.loaded(id) != other.loaded(id)));
        let distinct: std::collections::HashSet<_> = (1..=1000).map(|id| one.loaded(id)).collect();
        assert_eq!(distinct.len(), 1000);
    }

    #[test]
    fn the_last_byte_of_the_pool_is_reached() {
        let values = values("pool", 3, 1);
        let Bytes::Pool(pool) = &values.bytes else {
            panic!("a pool")
        };
        assert_eq!(values.chosen(u64::MAX), &pool[pool.len() - 3..]);
        assert_eq!(values.chosen(0), &pool[..3]);
    }
}
