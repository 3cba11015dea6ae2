//! Our tree and the registry's maps as indexes.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::RwLock;

use crossbeam_skiplist::SkipMap;
use leafpress::Codec;
use masstree::MassTree15;
use scc::TreeIndex;

use super::{Index, IndexError, Options};
use crate::core::LabError;
use crate::harness::maps::{Key, KeyKind, Value};
use crate::harness::store::ConditionalStore;

/// An index that comes with the benchmark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Builtin {
    /// Our tree with this codec.
    Leafpress(Codec),
    /// The standard library's `BTreeMap` under a `RwLock`.
    BTreeMap,
    /// `crossbeam_skiplist::SkipMap`.
    SkipList,
    /// `scc::TreeIndex`.
    TreeIndex,
    /// `masstree::MassTree15`.
    Masstree,
    /// `scc::HashMap`: what no order costs. It cannot scan.
    HashMap,
    /// Accepts everything and stores nothing: the benchmark's own cost.
    Dummy,
}

const NAMES: &str = "leafpress[:CODEC] btreemap skiplist treeindex masstree hashmap dummy";

impl Builtin {
    pub(super) fn make(&self, options: &Options) -> Result<Box<dyn Index>, LabError> {
        Ok(match self {
            Self::Leafpress(codec) => {
                let tree = options.tree.build(*codec, options.threads)?;
                let name = if options.tree.is_empty() {
                    self.to_string()
                } else {
                    format!("{self} ({})", options.tree)
                };
                Box::new(Stored::new(name, options, tree))
            }
            Self::Dummy => Box::new(Dummy),
            // Shorter keys are padded: a box would take more.
            _ => match KeyKind::of(options.fixed_lengths().map(|(key, _)| key.max(8))) {
                KeyKind::Array8 => self.make_with_key::<[u8; 8]>(options),
                KeyKind::Array16 => self.make_with_key::<[u8; 16]>(options),
                KeyKind::Array32 => self.make_with_key::<[u8; 32]>(options),
                KeyKind::Array36 => self.make_with_key::<[u8; 36]>(options),
                KeyKind::Boxed => self.make_with_key::<Box<[u8]>>(options),
            },
        })
    }

    fn make_with_key<K: Key>(&self, options: &Options) -> Box<dyn Index> {
        match options.fixed_lengths().map_or(0, |(_, value)| value) {
            8 => self.make_with::<K, [u8; 8]>(options, "inline"),
            128 => self.make_with::<K, [u8; 128]>(options, "inline"),
            _ => self.make_with::<K, Box<[u8]>>(options, "boxed"),
        }
    }

    fn make_with<K: Key, V: Value>(&self, options: &Options, values: &str) -> Box<dyn Index> {
        let name = format!("{} ({values} values)", self.crate_name());
        match self {
            Self::SkipList => Box::new(Stored::new(name, options, SkipMap::<K, V>::new())),
            Self::TreeIndex => Box::new(Stored::new(name, options, TreeIndex::<K, V>::new())),
            Self::Masstree => Box::new(Stored::new(name, options, MassTree15::<V>::new())),
            Self::HashMap => Box::new(Unordered(name, scc::HashMap::<K, V>::new())),
            // The two that are made elsewhere never come here.
            Self::BTreeMap | Self::Leafpress(_) | Self::Dummy => {
                Box::new(Stored::new(name, options, RwLock::new(BTreeMap::<K, V>::new())))
            }
        }
    }

    fn crate_name(&self) -> &'static str {
        match self {
            Self::Leafpress(_) => "leafpress",
            Self::BTreeMap => "RwLock<BTreeMap>",
            Self::SkipList => "crossbeam SkipMap",
            Self::TreeIndex => "scc::TreeIndex",
            Self::Masstree => "masstree",
            Self::HashMap => "scc::HashMap",
            Self::Dummy => "dummy",
        }
    }
}

impl fmt::Display for Builtin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leafpress(codec) => write!(f, "leafpress:{codec}"),
            Self::BTreeMap => f.write_str("btreemap"),
            Self::SkipList => f.write_str("skiplist"),
            Self::TreeIndex => f.write_str("treeindex"),
            Self::Masstree => f.write_str("masstree"),
            Self::HashMap => f.write_str("hashmap"),
            Self::Dummy => f.write_str("dummy"),
        }
    }
}

impl FromStr for Builtin {
    type Err = LabError;

    fn from_str(s: &str) -> Result<Self, LabError> {
        let (name, codec) = s.split_once(':').map_or((s, None), |(name, codec)| (name, Some(codec)));
        match (name, codec) {
            ("leafpress", codec) => {
                // The default codec of a tree.
                let codec: Codec = codec
                    .unwrap_or("trial")
                    .parse()
                    .map_err(|e: leafpress::CodecError| LabError::option("input", format!("{s}: {e}")))?;
                Ok(Self::Leafpress(codec))
            }
            ("btreemap", None) => Ok(Self::BTreeMap),
            ("skiplist", None) => Ok(Self::SkipList),
            ("treeindex", None) => Ok(Self::TreeIndex),
            ("masstree", None) => Ok(Self::Masstree),
            ("hashmap", None) => Ok(Self::HashMap),
            ("dummy", None) => Ok(Self::Dummy),
            _ => Err(LabError::option(
                "input",
                format!("`{s}` is neither a built-in index ({NAMES}) nor the path of a shared library (./NAME.so)"),
            )),
        }
    }
}

/// A store as an index.
struct Stored<S> {
    name: String,
    /// Length of a key without its padding; `None` where records differ in length.
    key_bytes: Option<usize>,
    store: S,
}

impl<S> Stored<S> {
    fn new(name: String, options: &Options, store: S) -> Self {
        Self {
            name,
            key_bytes: options.fixed_lengths().map(|(key, _)| key),
            store,
        }
    }
}

impl<S: ConditionalStore> Index for Stored<S> {
    fn find(&self, key: &[u8], value_out: &mut [u8]) -> Result<bool, IndexError> {
        Ok(self.store.read(key, |value| hand_out(value, value_out))?)
    }

    fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, IndexError> {
        Ok(self.store.insert(key, value)?)
    }

    fn load_sorted(&self, records: &mut dyn Iterator<Item = (Vec<u8>, &[u8])>) -> Option<Result<u64, IndexError>> {
        self.store.load_sorted(records).map(|loaded| Ok(loaded?))
    }

    fn update(&self, key: &[u8], value: &[u8]) -> Result<bool, IndexError> {
        Ok(self.store.update(key, value)?)
    }

    fn remove(&self, key: &[u8]) -> Result<bool, IndexError> {
        Ok(self.store.remove(key)?)
    }

    fn scan(&self, key: &[u8], records: usize, out: &mut Vec<u8>) -> Result<usize, IndexError> {
        out.clear();
        let mut scanned = 0;
        self.store.scan(key, records, &mut |key, value| {
            let key = match self.key_bytes {
                // Without the padding.
                Some(len) => key.get(..len).unwrap_or(key),
                None => {
                    // Neither is longer than a tree takes.
                    out.extend_from_slice(&(key.len() as u32).to_le_bytes());
                    out.extend_from_slice(&(value.len() as u32).to_le_bytes());
                    key
                }
            };
            out.extend_from_slice(key);
            out.extend_from_slice(value);
            scanned += 1;
        })?;
        Ok(scanned)
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn held_bytes(&self) -> Option<u64> {
        Some(self.store.stats().bytes_held).filter(|held| *held > 0)
    }

    fn settle(&self) -> Result<(), IndexError> {
        Ok(self.store.settle()?)
    }
}

#[inline]
fn hand_out(value: &[u8], value_out: &mut [u8]) {
    let len = value.len().min(value_out.len());
    value_out[..len].copy_from_slice(&value[..len]);
}

/// `scc::HashMap`, which is unordered and so not a [`Store`](crate::harness::store::Store).
struct Unordered<K: Key, V: Value>(String, scc::HashMap<K, V>);

impl<K: Key, V: Value> Index for Unordered<K, V> {
    fn find(&self, key: &[u8], value_out: &mut [u8]) -> Result<bool, IndexError> {
        K::probe(key, |key| {
            let found = self.1.read_sync(key, |_, value| hand_out(value.bytes(), value_out));
            found.is_some()
        })
        .map_err(IndexError::from)
    }

    fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, IndexError> {
        Ok(self.1.insert_sync(K::take(key)?, V::take(value)?).is_ok())
    }

    fn update(&self, key: &[u8], value: &[u8]) -> Result<bool, IndexError> {
        let value = V::take(value)?;
        Ok(K::probe(key, |key| {
            self.1.update_sync(key, |_, old| *old = value).is_some()
        })?)
    }

    fn remove(&self, key: &[u8]) -> Result<bool, IndexError> {
        Ok(K::probe(key, |key| self.1.remove_sync(key).is_some())?)
    }

    fn scan(&self, _: &[u8], _: usize, _: &mut Vec<u8>) -> Result<usize, IndexError> {
        Err(IndexError::new("a hash map has no order to scan in"))
    }

    fn name(&self) -> String {
        self.0.clone()
    }

    fn scans(&self) -> bool {
        false
    }
}

/// Accepts everything.
struct Dummy;

impl Index for Dummy {
    fn find(&self, _: &[u8], _: &mut [u8]) -> Result<bool, IndexError> {
        Ok(true)
    }

    fn insert(&self, _: &[u8], _: &[u8]) -> Result<bool, IndexError> {
        Ok(true)
    }

    fn update(&self, _: &[u8], _: &[u8]) -> Result<bool, IndexError> {
        Ok(true)
    }

    fn remove(&self, _: &[u8]) -> Result<bool, IndexError> {
        Ok(true)
    }

    fn scan(&self, _: &[u8], records: usize, out: &mut Vec<u8>) -> Result<usize, IndexError> {
        out.clear();
        Ok(records)
    }

    fn name(&self) -> String {
        "dummy".into()
    }

    fn stores(&self) -> bool {
        false
    }
}

#[cfg(test)]
#[path = "builtin_tests.rs"]
mod tests;
