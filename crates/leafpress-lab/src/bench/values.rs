//! Where values come from.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::{KeyFormat, Operation, Options};
use crate::core::LabError;
use crate::core::corpus::{Corpus, Cut, Source};
use crate::core::keys::{below, mix};
use crate::core::paths::{behind, serde_as_name};

/// Where a run's values come from.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum ValueSource {
    /// Pieces of a pool of random letters and digits, at random places, as PiBench takes them.
    #[default]
    Pool,
    /// Values of which this share, 0 to 1, is compressible.
    Compressible(f64),
    /// Cuts of a file, directory, archive or bundled sample.
    Corpus(Source),
}

impl ValueSource {
    /// What [`FromStr`] makes of a word, whatever bytes the path in it has.
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
                    format!("`{s}`: ETA is a number from 0 to 1, the share that is compressible"),
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

/// Reads the values' sources once, so that one that cannot be used is known before anything runs; says of which only a sample is taken.
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
        let one = (&options.value_source, options.value_size);
        if matches!(options.value_source, ValueSource::Corpus(_)) && !checked.contains(&one) {
            let values = Values::load(&options.value_source, options.value_size, options.seed, &never)?;
            notes.extend(
                values
                    .sampled()
                    .map(|sampled| format!("{}: {sampled}", options.value_source)),
            );
            checked.push(one);
        }
    }
    Ok(notes)
}

/// Bytes of the pool besides one value: PiBench's has 2000, which a compressor's window or dictionary would hold whole.
const POOL_BYTES: usize = 4 << 20;

/// The values of a run, all of one length unless they are of records.
#[derive(Debug)]
pub(super) struct Values {
    value_bytes: usize,
    seed: u64,
    bytes: Bytes,
}

#[derive(Debug)]
enum Bytes {
    Pool(Vec<u8>),
    Corpus(Corpus),
    /// Each id has the value of its record.
    Records(Arc<Corpus>, KeyFormat),
}

impl Values {
    /// The keys and values of a run.
    ///
    /// # Errors
    /// As [`Corpus::load`] and [`Records::load`](crate::core::corpus::Records::load); [`LabError::Option`] of `records` when the dump has too few.
    pub(super) fn of(options: &Options, cancel: &AtomicBool) -> Result<(KeyFormat, Self), LabError> {
        let Some(dump) = &options.dump else {
            let values = Self::load(&options.value_source, options.value_size, options.seed, cancel)?;
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

    /// Values of `value_bytes`, at least 1.
    pub(super) fn load(
        source: &ValueSource,
        value_bytes: usize,
        seed: u64,
        cancel: &AtomicBool,
    ) -> Result<Self, LabError> {
        let cut = Cut::Fixed(value_bytes);
        let corpus = |source: &Source| Corpus::load_until(source, cut, false, seed, cancel).map(Bytes::Corpus);
        let bytes = match source {
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

    /// How much of their source they are, in words, if they are not all of it.
    pub(super) fn sampled(&self) -> Option<String> {
        match &self.bytes {
            Bytes::Corpus(corpus) => corpus.sampled().map(|sampled| sampled.to_string()),
            _ => None,
        }
    }

    /// A value chosen by a random number.
    #[inline]
    pub(super) fn chosen(&self, random: u64) -> &[u8] {
        #[cfg(test)]
        super::slow::make();
        match &self.bytes {
            Bytes::Pool(pool) => {
                let at = below(random, (pool.len() - self.value_bytes + 1) as u64) as usize;
                &pool[at..at + self.value_bytes]
            }
            Bytes::Corpus(corpus) => corpus.get(below(random, corpus.count())),
            Bytes::Records(corpus, _) => corpus.get(below(random, corpus.count())),
        }
    }

    /// The value that an operation writes: an insert of a record its own, anything else one chosen by a random number.
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
        if let Bytes::Records(corpus, format) = &self.bytes {
            return corpus.get(format.number(id));
        }
        self.chosen(mix(self.seed ^ mix(id)))
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

    /// As a child of a comparison is told of it.
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

    #[test]
    fn loaded_values_depend_on_seed_and_id_alone() {
        let one = Values::load(&ValueSource::Pool, 16, 1, &AtomicBool::new(false)).unwrap();
        let same = Values::load(&ValueSource::Pool, 16, 1, &AtomicBool::new(false)).unwrap();
        let other = Values::load(&ValueSource::Pool, 16, 2, &AtomicBool::new(false)).unwrap();
        assert!((1..100).all(|id| one.loaded(id) == same.loaded(id) && one.loaded(id).len() == 16));
        assert!((1..100).all(|id| one.loaded(id) != other.loaded(id)));
        let distinct: std::collections::HashSet<_> = (1..=1000).map(|id| one.loaded(id)).collect();
        assert_eq!(distinct.len(), 1000);
    }

    #[test]
    fn the_last_byte_of_the_pool_is_reached() {
        let values = Values::load(&ValueSource::Pool, 3, 1, &AtomicBool::new(false)).unwrap();
        let Bytes::Pool(pool) = &values.bytes else {
            panic!("a pool")
        };
        assert_eq!(values.chosen(u64::MAX), &pool[pool.len() - 3..]);
        assert_eq!(values.chosen(0), &pool[..3]);
    }
}
