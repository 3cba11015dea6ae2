//! What a group's records would take, from the values that were read.

use std::collections::BTreeSet;

use leafpress::codec::{Engine, EngineOptions, TrialGoal};
use leafpress::tree::MAX_KEY_BYTES;
use leafpress::{Codec, Tree, TreeStats};

use super::footprint::Memory;
use super::groups::{Estimate, Group};
use super::kind::Kind;
use super::sample::Key;
use super::values::Sampled;
use crate::core::LabError;

// The form of the module's records, which is a workspace of its own: integrations/valkey/module/src/store,
// record_key.rs and chunks.rs. tests/test_advise.py there compares the estimate with what the module takes.
/// Length of the number of a value before its fields.
const ID_BYTES: usize = 8;
/// Length of the parts in which longer strings are stored.
const CHUNK_BYTES: usize = 16 << 10;
/// A compressed value has a mark, by which a client knows it.
const MARK_BYTES: u64 = 1;

/// The module's records of the values that were read.
struct Records {
    tree: Tree,
    values: u64,
}

impl Records {
    /// An empty tree with the module's default settings.
    fn new() -> Result<Self, LabError> {
        let codec = Codec::Trial {
            goal: TrialGoal::Balance,
        };
        Ok(Self {
            tree: Tree::builder().codec(codec).build()?,
            values: 0,
        })
    }

    /// Adds a value as the module stores it. Fields that are too long for the module are left out.
    fn insert(&mut self, value: &Sampled, kind: &Kind) -> Result<(), LabError> {
        let id = self.values.to_be_bytes();
        self.values += 1;
        for (field, value) in &value.fields {
            if ID_BYTES + field.len() > MAX_KEY_BYTES {
                continue;
            }
            if *kind == Kind::Hash || value.len() <= CHUNK_BYTES {
                self.tree.insert(&[&id, field.as_slice()].concat(), value)?;
                continue;
            }
            self.tree.insert(&id, &(value.len() as u64).to_le_bytes())?;
            for (number, chunk) in (0_u32..).zip(value.chunks(CHUNK_BYTES)) {
                self.tree
                    .insert(&[id.as_slice(), &number.to_be_bytes()].concat(), chunk)?;
            }
        }
        Ok(())
    }

    /// Returns the memory when all records are compressed.
    fn stats(&self) -> Result<TreeStats, LabError> {
        self.tree.settle()?;
        Ok(self.tree.stats())
    }
}

/// The memory of a tree that grows with its records.
fn of_records(stats: &TreeStats) -> u64 {
    stats.leaf_bytes
        + stats.inner_bytes
        + stats.interpolation_bytes
        + stats.landing_bytes
        + stats.large_value_bytes
        + stats.hot_bytes
}

/// Estimates the groups whose values were read, and returns the module's memory that does not grow with the records.
pub(super) fn estimate(
    keys: &[Key],
    groups: &mut [Group],
    values: &[Vec<Sampled>],
    memory: Memory,
) -> Result<f64, LabError> {
    let lz4 = Codec::Lz4 { acceleration: 1 }
        .open(&EngineOptions::default())
        .map_err(|error| LabError::System(error.to_string()))?;
    let mut all = Records::new()?;
    let mut separate = 0.0;
    for (group, values) in groups.iter_mut().zip(values) {
        let length: u64 = values.iter().map(|value| value.length(&group.kind)).sum();
        if length == 0 || group.length == 0.0 {
            continue;
        }
        let mut records = Records::new()?;
        let mut saved_by_client = 0.0;
        for value in values {
            records.insert(value, &group.kind)?;
            all.insert(value, &group.kind)?;
            saved_by_client += saved_by_lz4(
                &*lz4,
                value,
                group.kind == Kind::Hash && keys[value.key].is_listpack,
                memory,
            );
        }
        let record_bytes = of_records(&records.stats()?) as f64 * memory.slack();
        separate += record_bytes;
        let scale = group.length / length as f64;
        let members = || group.members.iter().map(|at| &keys[*at]);
        let of_keys = |of: &dyn Fn(&Key) -> u64| members().map(|key| key.weight * of(key) as f64).sum::<f64>();
        let is_map = group.kind == Kind::Hash;
        let key_bytes = of_keys(&|key| memory.module_key(key.name.len() as u64, key.ttl_ms.is_some(), is_map));
        group.estimate = Some(Estimate {
            values: values.len() as u64,
            client_lz4_bytes: (group.bytes - saved_by_client * scale).max(0.0),
            module_bytes: key_bytes + record_bytes * scale,
            module_record_bytes: record_bytes * scale,
            ssd_bytes: record_bytes * scale + of_keys(&|key| key.name.len() as u64),
        });
    }
    if separate == 0.0 {
        return Ok(0.0);
    }
    // A server has one tree for all values of a database, which share its dictionary.
    let together = all.stats()?;
    let change = of_records(&together) as f64 * memory.slack() / separate;
    for estimate in groups.iter_mut().filter_map(|group| group.estimate.as_mut()) {
        let changed = estimate.module_record_bytes * (change - 1.0);
        estimate.module_bytes += changed;
        estimate.module_record_bytes += changed;
        estimate.ssd_bytes += changed;
    }
    let estimated = groups.iter().filter(|group| group.estimate.is_some());
    let trees: BTreeSet<(usize, u32)> = estimated
        .flat_map(|group| &group.members)
        .map(|at| (keys[*at].server, keys[*at].database))
        .collect();
    let of_tree = together.dictionary_bytes + together.fixed_bytes + together.thread_bytes;
    Ok((of_tree * trees.len() as u64) as f64)
}

/// Returns the memory that a client saves by compressing a string, or each value of a hash, where that makes it
/// shorter.
fn saved_by_lz4(lz4: &dyn Engine, value: &Sampled, is_listpack: bool, memory: Memory) -> f64 {
    let saved = value.fields.iter().map(|(_, value)| {
        let mut block = Vec::new();
        let (before, after) = match lz4.compress(value, None, &mut block) {
            Ok(len) if (len as u64 + MARK_BYTES) < value.len() as u64 => (value.len() as u64, len as u64 + MARK_BYTES),
            _ => return 0,
        };
        match is_listpack {
            true => before - after,
            false => memory.string(before) - memory.string(after),
        }
    });
    saved.sum::<u64>() as f64
}
