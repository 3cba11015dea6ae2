//! The maps: how each is called, made, and where it cannot take part.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::RwLock;

use super::blocks::{BlockStore, CODEC};
use crate::core::LabError;
use crate::core::words::serde_as_text;
use crate::eval::dataset::{Dataset, Lengths};
use crate::eval::{RunSpec, Workload};
use crate::harness::maps::{Key, KeyKind, MASSTREE_KEY_BYTES, Value};
use crate::harness::store::Store;

/// A map of the comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// Our tree with this codec.
    Leafpress(String),
    /// `masstree::MassTree15`.
    Masstree,
    /// `scc::TreeIndex`.
    TreeIndex,
    /// `crossbeam_skiplist::SkipMap`.
    SkipMap,
    /// The standard library's `BTreeMap` under a `RwLock`.
    BTreeMap,
    /// Sorted, compressed, read-only blocks of this many KiB.
    Blocks(usize),
}

impl Peer {
    /// The maps that are not ours.
    pub const OTHERS: [Self; 6] = [
        Self::Masstree,
        Self::TreeIndex,
        Self::SkipMap,
        Self::BTreeMap,
        Self::Blocks(4),
        Self::Blocks(16),
    ];

    /// Whether it is our tree.
    pub(super) fn is_ours(&self) -> bool {
        matches!(self, Self::Leafpress(_))
    }

    pub(super) fn make(&self, spec: &RunSpec, data: &Dataset) -> Result<Box<dyn Store>, LabError> {
        match self {
            Self::Leafpress(_) => return Ok(Box::new(spec.builder_for(data)?.build()?)),
            Self::Blocks(kib) => return Ok(Box::new(BlockStore::new(kib << 10)?)),
            _ => {}
        }
        let values = data.value_lengths().fixed();
        Ok(match KeyKind::of(data.key_lengths().fixed()) {
            KeyKind::Array8 => self.make_with_keys::<[u8; 8]>(values),
            KeyKind::Array16 => self.make_with_keys::<[u8; 16]>(values),
            KeyKind::Array32 => self.make_with_keys::<[u8; 32]>(values),
            KeyKind::Array36 => self.make_with_keys::<[u8; 36]>(values),
            KeyKind::Boxed => self.make_with_keys::<Box<[u8]>>(values),
        })
    }

    fn make_with_keys<K: Key>(&self, values: Option<usize>) -> Box<dyn Store> {
        match values {
            Some(128) => self.make_with::<K, [u8; 128]>(),
            _ => self.make_with::<K, Box<[u8]>>(),
        }
    }

    fn make_with<K: Key, V: Value>(&self) -> Box<dyn Store> {
        match self {
            Self::Masstree => Box::new(masstree::MassTree15::<V>::new()),
            Self::TreeIndex => Box::new(scc::TreeIndex::<K, V>::new()),
            Self::SkipMap => Box::new(crossbeam_skiplist::SkipMap::<K, V>::new()),
            // Our tree is made elsewhere, and so are blocks.
            Self::BTreeMap | Self::Leafpress(_) | Self::Blocks(_) => Box::new(RwLock::new(BTreeMap::<K, V>::new())),
        }
    }

    /// Why it cannot take part with such keys.
    pub(super) fn fault(&self, workload: Workload, keys: &Lengths) -> Option<String> {
        match self {
            Self::Masstree => {}
            Self::Blocks(_) if workload != Workload::ReadOnly => return Some("it is read-only once built".into()),
            _ => return None,
        }
        let longest = keys.most;
        if longest > MASSTREE_KEY_BYTES {
            return Some(format!(
                "its keys have at most {MASSTREE_KEY_BYTES} bytes, and the longest here has {longest}"
            ));
        }
        // Of version 0.9.5, found by the check of scans here.
        (workload == Workload::Scan && keys.fixed().is_none())
            .then(|| "its scans skip records if keys differ in length".into())
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leafpress(codec) => write!(f, "leafpress {codec}"),
            Self::Masstree => f.write_str("masstree"),
            Self::TreeIndex => f.write_str("scc::TreeIndex"),
            Self::SkipMap => f.write_str("crossbeam SkipMap"),
            Self::BTreeMap => f.write_str("RwLock<BTreeMap>"),
            Self::Blocks(kib) => write!(f, "{kib}K blocks, {CODEC}"),
        }
    }
}

impl FromStr for Peer {
    type Err = LabError;

    fn from_str(s: &str) -> Result<Self, LabError> {
        if let Some(codec) = s.strip_prefix("leafpress ") {
            return Ok(Self::Leafpress(codec.into()));
        }
        Self::OTHERS
            .into_iter()
            .find(|peer| peer.to_string() == s)
            .ok_or_else(|| LabError::option("peers", format!("unknown map `{s}`")))
    }
}

serde_as_text!(Peer);
