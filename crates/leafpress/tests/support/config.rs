//! Tree configurations that make splits, merges and compactions happen within a few operations.

use leafpress::codec::{Codec, CodecError, QplMode, QplPath};
use leafpress::tree::{DictionaryChoice, TreeBuilder, TreeError};
use leafpress::{Dictionary, Layout, ShardBy, Tree, Upkeep};

use super::keys::KeyShape;
use super::values::{Fill, Value};

/// The dictionary of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dict {
    Off,
    Auto,
    Given,
}

/// A tree's options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    pub layout: Layout,
    pub frame_bytes: Option<usize>,
    pub leaf_bytes: usize,
    pub landing_bytes: usize,
    pub shards: usize,
    pub by_range: bool,
    pub dictionary: Dict,
    pub background_threads: usize,
    pub load_threads: usize,
    /// Whether the caller runs the upkeep.
    pub by_caller: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            layout: Layout::Ordered,
            frame_bytes: None,
            leaf_bytes: 1024,
            landing_bytes: 512,
            shards: 1,
            by_range: false,
            dictionary: Dict::Off,
            background_threads: 0,
            load_threads: 1,
            by_caller: false,
        }
    }
}

impl Config {
    /// Builds the tree; returns `None`, with a line on standard error, when the codec cannot run on this machine.
    pub fn build(&self, codec: Codec, shape: KeyShape) -> Option<Tree> {
        self.build_by(codec, shape, TreeBuilder::build)
    }

    /// Like [`Config::build`], where `build` builds the tree.
    pub fn build_by(
        &self,
        codec: Codec,
        shape: KeyShape,
        build: impl FnOnce(TreeBuilder) -> Result<Tree, TreeError>,
    ) -> Option<Tree> {
        // Sub-pages have no temperature.
        let layout = match codec {
            Codec::Auto { .. } => Layout::Ordered,
            _ => self.layout,
        };
        let by_caller = self.by_caller && self.background_threads == 0 && !matches!(codec, Codec::Auto { .. });
        let mut builder = Tree::builder()
            .codec(codec)
            .layout(layout)
            .leaf_bytes(self.leaf_bytes)
            .landing_bytes(self.landing_bytes)
            .shards(self.shards)
            .background_threads(self.background_threads)
            .load_threads(self.load_threads)
            .upkeep(if by_caller { Upkeep::Caller } else { Upkeep::Threads })
            .dictionary(match self.dictionary {
                Dict::Off => DictionaryChoice::Off,
                Dict::Auto => DictionaryChoice::Auto,
                Dict::Given => DictionaryChoice::Given(given_dictionary(codec)),
            });
        if let Some(bytes) = self.frame_bytes {
            builder = builder.frame_bytes(bytes);
        }
        if self.by_range {
            builder = builder.shard_by(ShardBy::Range(boundaries(shape, self.shards)));
        }
        match build(builder) {
            Ok(tree) => Some(tree),
            Err(TreeError::Codec(CodecError::Unavailable { reason, .. })) if !always_available(codec) => {
                eprintln!("skipped: {codec}: {reason}");
                None
            }
            Err(error) => panic!("{self:?} with {codec}: {error}"),
        }
    }
}

/// Returns whether the codec is compiled in; the others need a library of the system.
fn always_available(codec: Codec) -> bool {
    !matches!(codec, Codec::Zlib { .. } | Codec::Qpl { .. })
}

/// One of every engine.
pub const CODECS: [Codec; 7] = [
    Codec::None,
    Codec::Lz4 { acceleration: 1 },
    Codec::Zstd { level: 1 },
    Codec::OnPair { bits: 12 },
    Codec::Deflate { level: 1 },
    Codec::Zlib { level: 1 },
    Codec::Qpl {
        path: QplPath::Software,
        mode: QplMode::Fixed,
    },
];

/// Returns a dictionary for the codec, of texts as the values have them.
pub fn given_dictionary(codec: Codec) -> Dictionary {
    let text = |len, seed| Value {
        len,
        fill: Fill::Text,
        seed,
    };
    // OnPair has dictionaries of a form of its own.
    if codec.family() == "onpair" {
        let samples: Vec<_> = (0..200).map(|seed| text(100, seed).bytes()).collect();
        let samples: Vec<_> = samples.iter().map(Vec::as_slice).collect();
        return Dictionary::train(codec, &samples, 64 << 10).expect("enough samples");
    }
    Dictionary::from_bytes(42, text(2000, 7).bytes())
}

/// Returns boundaries that give every shard some of the shape's first keys.
fn boundaries(shape: KeyShape, shards: usize) -> Vec<Vec<u8>> {
    let mut keys: Vec<_> = (0..200).map(|n| shape.key(n)).collect();
    keys.sort();
    keys.dedup();
    (1..shards).map(|i| keys[i * keys.len() / shards].clone()).collect()
}
