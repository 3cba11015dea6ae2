//! Keys with a common prefix and of one type.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::kind::Kind;
use super::sample::Key;

/// Characters after which names differ: a prefix ends behind one of them.
const SEPARATORS: &[u8] = b":/|.-_{";
/// Separators in the longest prefix.
const MAX_DEPTH: usize = 3;
/// A prefix ends within this many bytes of a name.
const MAX_PREFIX_BYTES: usize = 128;
/// A group with less than this share of the memory and of the keys is counted with others.
const MIN_SHARE: f64 = 0.01;

/// Estimates for a group, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// Values that were read for it.
    pub values: u64,
    /// Memory if clients compress each value with LZ4.
    pub client_lz4_bytes: f64,
    /// Memory with the module.
    pub module_bytes: f64,
    /// The part of that which grows with the records.
    pub module_record_bytes: f64,
    /// Bytes on an SSD, if a cache has the records there.
    pub ssd_bytes: f64,
}

/// Keys with a common prefix and of one type. Figures are estimates for all keys, not only those in the sample.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// The database.
    pub database: u32,
    /// The prefix, with escapes for bytes that are not text.
    pub prefix: String,
    /// It has keys of several longer prefixes, each of which has few.
    pub is_rest: bool,
    /// The type.
    pub kind: Kind,
    /// Keys in the sample.
    pub sampled: u64,
    /// Keys.
    pub keys: f64,
    /// Their memory now.
    pub bytes: f64,
    /// Bytes of strings; members of collections.
    pub length: f64,
    /// The share of the keys with a time to live.
    pub ttl_share: f64,
    /// The median of these times, in seconds.
    pub median_ttl_s: Option<u64>,
    /// The median time since the last use, in seconds; `None` if the server does not tell.
    pub median_idle_s: Option<u64>,
    /// The share of the memory that was not used for a day.
    pub idle_a_day_share: Option<f64>,
    /// What it would take; `None` for types that the module does not have, and where no value could be read.
    pub estimate: Option<Estimate>,
    /// The keys of the sample, by their places in it.
    #[serde(skip)]
    pub(super) members: Vec<usize>,
}

/// The identity of a group.
type Name = (u32, Kind, Vec<u8>);

/// Divides the sample into groups, the largest first.
pub(super) fn of(keys: &[Key]) -> Vec<Group> {
    let mut members: BTreeMap<Name, Vec<usize>> = BTreeMap::new();
    // The ends of each prefix, of which the last is its length.
    let mut ends_of: BTreeMap<Name, Vec<usize>> = BTreeMap::new();
    for (at, key) in keys.iter().enumerate() {
        let ends = ends(&key.name);
        let prefix = ends.last().map_or(0, |end| *end);
        let name = (key.database, key.kind.clone(), key.name[..prefix].to_vec());
        ends_of.entry(name.clone()).or_insert(ends);
        members.entry(name).or_default().push(at);
    }
    let weight = |at: &usize| keys[*at].weight;
    let memory = |at: &usize| keys[*at].weight * keys[*at].bytes as f64;
    let all: f64 = keys.iter().map(|key| key.weight).sum();
    let all_bytes: f64 = keys.iter().map(|key| key.weight * key.bytes as f64).sum();
    let mut rests = BTreeSet::new();
    for depth in (1..=MAX_DEPTH).rev() {
        let small: Vec<Name> = members
            .iter()
            .filter(|(name, of)| {
                ends_of[*name].len() == depth
                    && of.iter().map(weight).sum::<f64>() < MIN_SHARE * all
                    && of.iter().map(memory).sum::<f64>() < MIN_SHARE * all_bytes
            })
            .map(|(name, _)| name.clone())
            .collect();
        for name in small {
            let ends = ends_of[&name][..depth - 1].to_vec();
            let prefix = name.2[..ends.last().map_or(0, |end| *end)].to_vec();
            let parent = (name.0, name.1.clone(), prefix);
            let moved = members.remove(&name).unwrap_or_default();
            members.entry(parent.clone()).or_default().extend(moved);
            ends_of.entry(parent.clone()).or_insert(ends);
            rests.insert(parent);
        }
    }
    let mut groups: Vec<Group> = members
        .into_iter()
        .map(|(name, members)| {
            let is_rest = rests.contains(&name) || name.2.is_empty();
            group(name, is_rest, members, keys)
        })
        .collect();
    groups.sort_by(|one, other| other.bytes.total_cmp(&one.bytes));
    groups
}

fn group((database, kind, prefix): Name, is_rest: bool, mut members: Vec<usize>, keys: &[Key]) -> Group {
    // In the order of the sample, which is random, and not by the prefixes that were merged.
    members.sort_unstable();
    let sum = |of: &dyn Fn(&Key) -> f64| members.iter().map(|at| keys[*at].weight * of(&keys[*at])).sum::<f64>();
    let median = |of: &dyn Fn(&Key) -> Option<u64>| {
        let mut found: Vec<u64> = members.iter().filter_map(|at| of(&keys[*at])).collect();
        found.sort_unstable();
        found.get(found.len() / 2).copied()
    };
    let (all, bytes) = (sum(&|_| 1.0), sum(&|key| key.bytes as f64));
    let has_idle = members.iter().any(|at| keys[*at].idle_s.is_some());
    let idle = sum(&|key| match key.idle_s {
        Some(86_400..) => key.bytes as f64,
        _ => 0.0,
    });
    Group {
        database,
        prefix: shown(&prefix),
        is_rest,
        kind,
        sampled: members.len() as u64,
        keys: all,
        bytes,
        length: sum(&|key| key.length as f64),
        ttl_share: sum(&|key| f64::from(key.ttl_ms.is_some())) / all.max(1e-9),
        median_ttl_s: median(&|key| key.ttl_ms.map(|ms| ms / 1000)),
        median_idle_s: median(&|key| key.idle_s),
        idle_a_day_share: has_idle.then(|| idle / bytes.max(1e-9)),
        estimate: None,
        members,
    }
}

/// Returns the ends of a name's prefixes, the shortest first: behind its first separators, and before its first digit,
/// after which names are taken to differ.
fn ends(name: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    for (at, byte) in name.iter().take(MAX_PREFIX_BYTES).enumerate() {
        if byte.is_ascii_digit() {
            if at > 0 && ends.last() != Some(&at) && ends.len() < MAX_DEPTH {
                ends.push(at);
            }
            break;
        }
        if SEPARATORS.contains(byte) && ends.len() < MAX_DEPTH {
            ends.push(at + 1);
        }
    }
    ends
}

/// Returns a name as text, with escapes for bytes that are not.
pub(super) fn shown(name: &[u8]) -> String {
    match std::str::from_utf8(name) {
        Ok(text) if !text.contains(char::is_control) => text.to_owned(),
        _ => name.escape_ascii().to_string(),
    }
}
