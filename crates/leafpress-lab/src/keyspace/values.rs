//! Reads some of the values of a group: strings, and fields of hashes, of large ones a part.

use super::connection::Paced;
use super::groups::Group;
use super::kind::Kind;
use super::reply::{Command, Reply, command};
use super::sample::{Key, unreadable};
use crate::core::LabError;

/// Keys in a batch of commands.
const BATCH: usize = 20;
/// Bytes that are read of a string at most, and bytes of a hash after which no more fields are.
const MAX_VALUE_BYTES: u64 = 64 << 10;
/// A hash in one block of memory is returned whole by `HSCAN`; a longer one is not read.
const MAX_LISTPACK_BYTES: u64 = 256 << 10;
/// Fields that are requested at a time.
const MAX_FIELDS: u64 = 100;

/// A value, or the part of it that was read.
#[derive(Debug, Clone)]
pub(super) struct Sampled {
    /// The key, by its place in the sample.
    pub(super) key: usize,
    /// The fields and values of a hash; a string has one, with an empty name.
    pub(super) fields: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Sampled {
    /// Bytes of fields and values.
    pub(super) fn bytes(&self) -> u64 {
        self.fields
            .iter()
            .map(|(field, value)| (field.len() + value.len()) as u64)
            .sum()
    }

    /// What was read, in the unit of [`Key::length`]: bytes of a string, fields of a hash.
    pub(super) fn length(&self, kind: &Kind) -> u64 {
        match kind {
            Kind::String => self.bytes(),
            _ => self.fields.len() as u64,
        }
    }
}

/// Reads values of a group's keys, in the order of the sample, until `budget` bytes are read, or all.
///
/// # Errors
/// [`LabError::Server`] when the connection is lost, or the user may not run what is needed.
pub(super) fn read(
    servers: &mut [Paced<'_>],
    keys: &[Key],
    group: &Group,
    budget: u64,
    denied: &mut u64,
) -> Result<Vec<Sampled>, LabError> {
    let mut sampled = Vec::new();
    let mut bytes = 0;
    for server in 0..servers.len() {
        let here: Vec<usize> = group
            .members
            .iter()
            .copied()
            .filter(|at| keys[*at].server == server)
            .collect();
        let Some(paced) = servers.get_mut(server).filter(|_| !here.is_empty() && bytes < budget) else {
            continue;
        };
        let share = budget as f64 * here.len() as f64 / group.members.len() as f64;
        let end = bytes + share as u64;
        paced.run_one([b"SELECT", group.database.to_string().as_bytes()])?;
        for batch in here.chunks(BATCH) {
            if bytes >= end || paced.is_cancelled() {
                break;
            }
            let read = match group.kind {
                Kind::String => strings(paced, keys, batch, denied)?,
                _ => hashes(paced, keys, batch, denied)?,
            };
            bytes += read.iter().map(Sampled::bytes).sum::<u64>();
            sampled.extend(read);
        }
    }
    Ok(sampled)
}

fn strings(server: &mut Paced<'_>, keys: &[Key], batch: &[usize], denied: &mut u64) -> Result<Vec<Sampled>, LabError> {
    let end = (MAX_VALUE_BYTES - 1).to_string();
    let commands = batch
        .iter()
        .map(|at| command([b"GETRANGE", &keys[*at].name, b"0", end.as_bytes()]));
    let replies = server.run(&commands.collect::<Vec<Command>>())?;
    let mut sampled = Vec::with_capacity(batch.len());
    for (at, reply) in batch.iter().zip(replies) {
        match reply {
            Reply::Bytes(value) if !value.is_empty() => sampled.push(Sampled {
                key: *at,
                fields: vec![(Vec::new(), value)],
            }),
            reply if reply.is_of_denied_key() => *denied += 1,
            reply if reply.is_of_vanished_key() => {}
            reply => drop(reply.needed(server.name(), "GETRANGE")?),
        }
    }
    Ok(sampled)
}

fn hashes(server: &mut Paced<'_>, keys: &[Key], batch: &[usize], denied: &mut u64) -> Result<Vec<Sampled>, LabError> {
    // A field's mean length bounds what a reply has, and hashes of long fields are not read.
    let field_bytes = |at: usize| keys[at].bytes / keys[at].length.max(1);
    let is_readable = |at: &usize| match keys[*at].is_listpack {
        true => keys[*at].bytes <= MAX_LISTPACK_BYTES,
        false => field_bytes(*at) <= MAX_VALUE_BYTES,
    };
    let mut open: Vec<(Sampled, Vec<u8>)> = batch
        .iter()
        .copied()
        .filter(is_readable)
        .map(|key| {
            (
                Sampled {
                    key,
                    fields: Vec::new(),
                },
                b"0".to_vec(),
            )
        })
        .collect();
    let mut sampled = Vec::with_capacity(open.len());
    while !open.is_empty() && !server.is_cancelled() {
        let commands = open.iter().map(|(hash, cursor)| {
            let count = MAX_VALUE_BYTES / field_bytes(hash.key).max(1);
            let count = count.clamp(1, MAX_FIELDS).to_string();
            command([b"HSCAN", &keys[hash.key].name, cursor, b"COUNT", count.as_bytes()])
        });
        let replies = server.run(&commands.collect::<Vec<Command>>())?;
        let mut unfinished = Vec::new();
        for ((mut hash, _), reply) in open.into_iter().zip(replies) {
            if reply.is_of_denied_key() {
                *denied += 1;
                continue;
            }
            if reply.is_of_vanished_key() {
                continue;
            }
            let Some([cursor, pairs]) = reply.needed(server.name(), "HSCAN")?.list() else {
                return Err(unreadable(server, "HSCAN"));
            };
            for pair in pairs.list().unwrap_or_default().chunks_exact(2) {
                if let (Some(field), Some(value)) = (pair[0].bytes(), pair[1].bytes()) {
                    hash.fields.push((field.to_vec(), value.to_vec()));
                }
            }
            let is_done = cursor.number() == Some(0) || hash.bytes() >= MAX_VALUE_BYTES;
            match (is_done, hash.fields.is_empty()) {
                (true, true) => {}
                (true, false) => sampled.push(hash),
                (false, _) => unfinished.push((hash, cursor.bytes().unwrap_or_default().to_vec())),
            }
        }
        open = unfinished;
    }
    Ok(sampled)
}
