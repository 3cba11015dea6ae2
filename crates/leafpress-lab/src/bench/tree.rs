//! Options of our tree: `key=value` pairs.

use std::fmt;
use std::str::FromStr;

use leafpress::{Codec, DictionaryChoice, Tree, TreeBuilder};

use crate::core::words::serde_as_text;
use crate::core::{Bytes, LabError, ParseBytesError};
use crate::harness::store::MAX_LOAD_THREADS;

/// Options of our tree besides its codec, as `shards=4,landing_bytes=2048`; the tree's own defaults where nothing is
/// said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeOptions(Vec<(Key, usize)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    LeafBytes,
    FrameBytes,
    LandingBytes,
    Shards,
    BackgroundThreads,
    LandingCompactionPct,
    Dictionary,
}

const KEYS: [(&str, Key); 7] = [
    ("leaf_bytes", Key::LeafBytes),
    ("frame_bytes", Key::FrameBytes),
    ("landing_bytes", Key::LandingBytes),
    ("shards", Key::Shards),
    ("background_threads", Key::BackgroundThreads),
    ("landing_compaction_pct", Key::LandingCompactionPct),
    ("dictionary", Key::Dictionary),
];

impl TreeOptions {
    fn builder(&self) -> TreeBuilder {
        let mut builder = Tree::builder();
        for &(key, value) in &self.0 {
            builder = match key {
                Key::LeafBytes => builder.leaf_bytes(value),
                Key::FrameBytes => builder.frame_bytes(value),
                Key::LandingBytes => builder.landing_bytes(value),
                Key::Shards => builder.shards(value),
                Key::BackgroundThreads => builder.background_threads(value),
                // A value that does not fit the type is out of the builder's bounds too.
                Key::LandingCompactionPct => builder.landing_compaction_pct(u8::try_from(value).unwrap_or(u8::MAX)),
                Key::Dictionary if value == 0 => builder.dictionary(DictionaryChoice::Off),
                Key::Dictionary => builder.dictionary(DictionaryChoice::Auto),
            };
        }
        builder
    }

    /// Builds a tree with this codec, loaded by this number of threads.
    ///
    /// # Errors
    /// [`LabError::Option`] for what is out of bounds, [`LabError::Tree`] when the codec cannot run here.
    pub fn build(&self, codec: Codec, load_threads: usize) -> Result<Tree, LabError> {
        let builder = self.builder().codec(codec);
        let built = builder.load_threads(load_threads.clamp(1, MAX_LOAD_THREADS)).build();
        built.map_err(|e| match e {
            leafpress::TreeError::Option { option, reason } => LabError::option("tree", format!("{option}: {reason}")),
            e => e.into(),
        })
    }

    /// Checks the bounds, by building an empty tree.
    pub(super) fn validate(&self) -> Result<(), LabError> {
        if self.0.is_empty() {
            return Ok(());
        }
        let without_threads = Self(
            self.0
                .iter()
                .copied()
                .filter(|(key, value)| *key != Key::BackgroundThreads || *value > 64)
                .collect(),
        );
        without_threads.build(Codec::None, 1).map(drop)
    }

    /// Returns whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for TreeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (key, value)) in self.0.iter().enumerate() {
            let name = KEYS.iter().find(|(_, known)| known == key).map_or("", |(name, _)| name);
            write!(f, "{}{name}={value}", if at > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

fn bytes(text: &str) -> Result<usize, String> {
    let Bytes(bytes) = text.parse().map_err(|e: ParseBytesError| e.to_string())?;
    usize::try_from(bytes).map_err(|_| ParseBytesError::TooMany(text.to_owned()).to_string())
}

impl FromStr for TreeOptions {
    type Err = LabError;

    fn from_str(s: &str) -> Result<Self, LabError> {
        let pairs = s.split(',').map(str::trim).filter(|pair| !pair.is_empty());
        let read = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let key = KEYS.iter().find(|(known, _)| *known == name).map(|(_, key)| *key);
            let value = match name.ends_with("_bytes") {
                true => bytes(value),
                false => value.parse().map_err(|_| format!("`{value}` is not a number")),
            };
            match (key, value) {
                (Some(key), Ok(value)) => Ok((key, value)),
                (Some(_), Err(reason)) => Err(LabError::option("tree", format!("{name}: {reason}"))),
                (None, _) => {
                    let known: Vec<_> = KEYS.iter().map(|(name, _)| *name).collect();
                    Err(LabError::option(
                        "tree",
                        format!("unknown option `{name}`; known: {}", known.join(" ")),
                    ))
                }
            }
        };
        let options = Self(pairs.map(read).collect::<Result<_, _>>()?);
        options.validate()?;
        Ok(options)
    }
}

serde_as_text!(TreeOptions);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_round_trip_and_bounds_are_reported() {
        for text in ["", "shards=4", "background_threads=2,landing_bytes=2048,dictionary=0"] {
            assert_eq!(text.parse::<TreeOptions>().unwrap().to_string(), text);
        }
        let sizes: TreeOptions = "leaf_bytes=8K,landing_bytes=1KB".parse().unwrap();
        assert_eq!(sizes.to_string(), "leaf_bytes=8192,landing_bytes=1000");
        for (text, words) in [
            ("shard=4", "leaf_bytes"),
            ("shards=x", "`x`"),
            ("leaf_bytes=8X", "500M"),
            ("shards", "shards"),
            ("shards=0", "shards"),
            ("landing_compaction_pct=300", "landing_compaction_pct"),
            ("background_threads=65", "background_threads"),
        ] {
            let message = text.parse::<TreeOptions>().unwrap_err().to_string();
            assert!(message.starts_with("tree: ") && message.contains(words), "{message}");
        }
    }

    #[test]
    fn a_tree_is_built_with_its_options() {
        let options: TreeOptions = "shards=3,dictionary=0".parse().unwrap();
        let tree = options.build(Codec::None, 1).unwrap();
        assert!(format!("{tree:?}").contains("shards: 3"), "{tree:?}");
    }
}
