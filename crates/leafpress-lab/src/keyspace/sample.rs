//! The sample of a server's keys: all of a small database, random ones of a large one.

use std::collections::HashSet;
use std::str::FromStr;

use super::connection::Paced;
use super::kind::Kind;
use super::reply::{Command, Refusal, Reply, command};
use crate::core::LabError;

/// Keys in a batch of commands.
const BATCH: usize = 50;
/// A database of which random keys give so few new ones, one in this many, is sampled as far as it went.
const FEW_NEW: u64 = 4;

/// How many keys a survey looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleSize {
    /// This many random ones, or all if there are no more.
    Keys(u64),
    /// All of them.
    All,
}

impl FromStr for SampleSize {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        match text {
            "all" => Ok(Self::All),
            text => match text.replace(['_', ','], "").parse() {
                Ok(keys) if keys >= 100 => Ok(Self::Keys(keys)),
                _ => Err(LabError::option(
                    "sample-keys",
                    format!("`{text}` is not a number of keys: at least 100, or all"),
                )),
            },
        }
    }
}

/// A key of the sample.
#[derive(Debug, Clone)]
pub(super) struct Key {
    pub(super) server: usize,
    pub(super) database: u32,
    pub(super) name: Vec<u8>,
    pub(super) kind: Kind,
    /// Bytes of memory by `MEMORY USAGE`, with the name and the entry in the server's table.
    pub(super) bytes: u64,
    /// Bytes of a string, members of a collection; 0 if it is unknown.
    pub(super) length: u64,
    pub(super) is_listpack: bool,
    pub(super) ttl_ms: Option<u64>,
    pub(super) idle_s: Option<u64>,
    /// Keys that this one stands for.
    pub(super) weight: f64,
}

/// What was drawn of a database.
#[derive(Debug, Default)]
pub(super) struct Drawn {
    pub(super) keys: Vec<Key>,
    /// Keys that the user may not read, among those drawn.
    pub(super) denied: u64,
    /// Keys that were gone again.
    pub(super) vanished: u64,
    /// All keys of the database were seen.
    pub(super) is_complete: bool,
    /// The user may not run `RANDOMKEY`: the keys are the first of a scan.
    pub(super) is_in_scan_order: bool,
}

impl Drawn {
    /// Keys that were looked at, or could not be.
    fn seen(&self) -> u64 {
        self.keys.len() as u64 + self.denied + self.vanished
    }
}

/// Draws up to `wanted` of a database's `population` keys, and looks at them. `progress` is called with their number.
/// The keys that were drawn are in `drawn` even if it fails.
///
/// # Errors
/// [`LabError::Server`] when the connection is lost, or the user may not run what is needed.
pub(super) fn draw(
    server: &mut Paced<'_>,
    (index, database): (usize, u32),
    (population, wanted): (u64, u64),
    drawn: &mut Drawn,
    progress: &mut dyn FnMut(u64),
) -> Result<(), LabError> {
    let selected = server.run_one([b"SELECT", database.to_string().as_bytes()])?;
    if database > 0 {
        selected.needed(server.name(), "SELECT")?;
    }
    let place = (index, database);
    let is_scanned = population <= wanted;
    let result = match is_scanned {
        true => scan(server, place, u64::MAX, drawn, progress),
        false => match random(server, place, wanted, drawn, progress) {
            Ok(true) => Ok(()),
            Ok(false) => {
                drawn.is_in_scan_order = true;
                scan(server, place, wanted, drawn, progress)
            }
            Err(error) => Err(error),
        },
    };
    let seen = drawn.keys.len() as u64 + drawn.denied;
    let weight = match drawn.is_complete {
        true => 1.0,
        false => (population as f64 / seen.max(1) as f64).max(1.0),
    };
    for key in &mut drawn.keys {
        key.weight = weight;
    }
    result
}

/// Looks at the keys of a scan, until there are `wanted` of them.
fn scan(
    server: &mut Paced<'_>,
    place: (usize, u32),
    wanted: u64,
    drawn: &mut Drawn,
    progress: &mut dyn FnMut(u64),
) -> Result<(), LabError> {
    let mut cursor = b"0".to_vec();
    let mut seen = HashSet::new();
    while !server.is_cancelled() && drawn.seen() < wanted {
        let page = server.run_one([b"SCAN", &cursor, b"COUNT", b"50"])?;
        let Some([next, names]) = page.needed(server.name(), "SCAN")?.list() else {
            return Err(unreadable(server, "SCAN"));
        };
        // A scan may return a key twice.
        let names = names.list().unwrap_or_default().iter().filter_map(Reply::bytes);
        let names: Vec<Vec<u8>> = names
            .map(<[u8]>::to_vec)
            .filter(|name| seen.insert(name.clone()))
            .collect();
        // A name may come with others of its bucket, in numbers that no batch should have.
        for names in names.chunks(BATCH) {
            look_at(server, place, names, drawn)?;
        }
        progress(drawn.keys.len() as u64);
        cursor = next.bytes().unwrap_or_default().to_vec();
        if next.number() == Some(0) {
            drawn.is_complete = true;
            break;
        }
    }
    Ok(())
}

/// Looks at random keys; false if the user may not ask for them.
fn random(
    server: &mut Paced<'_>,
    place: (usize, u32),
    wanted: u64,
    drawn: &mut Drawn,
    progress: &mut dyn FnMut(u64),
) -> Result<bool, LabError> {
    let mut seen = HashSet::new();
    let mut requested = 0;
    while !server.is_cancelled() && (seen.len() as u64) < wanted && requested < wanted * FEW_NEW {
        let count = (wanted - seen.len() as u64).clamp(1, BATCH as u64) as usize;
        requested += count as u64;
        let replies = server.run(&vec![command([b"RANDOMKEY"]); count])?;
        if matches!(
            replies.first(),
            Some(Reply::Error(Refusal::Command(_) | Refusal::Other(_)))
        ) {
            return Ok(false);
        }
        let mut names = Vec::with_capacity(count);
        for reply in &replies {
            if let Some(name) = reply.needed(server.name(), "RANDOMKEY")?.bytes()
                && seen.insert(name.to_vec())
            {
                names.push(name.to_vec());
            }
        }
        look_at(server, place, &names, drawn)?;
        progress(drawn.keys.len() as u64);
    }
    Ok(true)
}

/// Asks for the type, memory, lifetime and length of keys.
fn look_at(
    server: &mut Paced<'_>,
    (index, database): (usize, u32),
    names: &[Vec<u8>],
    drawn: &mut Drawn,
) -> Result<(), LabError> {
    const QUESTIONS: usize = 4;
    let requested: Vec<Command> = names
        .iter()
        .flat_map(|name| {
            [
                command([b"OBJECT", b"IDLETIME", name]),
                command([b"TYPE", name]),
                command([b"MEMORY", b"USAGE", name]),
                command([b"PTTL", name]),
            ]
        })
        .collect();
    let replies = server.run(&requested)?;
    let begin = drawn.keys.len();
    for (name, replies) in names.iter().zip(replies.chunks(QUESTIONS)) {
        let [idle, kind, bytes, ttl] = replies else {
            return Err(unreadable(server, "TYPE"));
        };
        if kind.is_of_denied_key() || bytes.is_of_denied_key() {
            drawn.denied += 1;
            continue;
        }
        if kind.is_of_vanished_key() || bytes.is_of_vanished_key() {
            drawn.vanished += 1;
            continue;
        }
        let kind = kind.needed(server.name(), "TYPE")?.text().unwrap_or_default();
        let bytes = bytes.needed(server.name(), "MEMORY USAGE")?.number();
        let (Some(bytes), false) = (bytes, kind == "none") else {
            drawn.vanished += 1;
            continue;
        };
        drawn.keys.push(Key {
            server: index,
            database,
            name: name.clone(),
            kind: Kind::of(kind),
            bytes: bytes.unsigned_abs(),
            length: 0,
            is_listpack: false,
            ttl_ms: ttl.number().and_then(|ttl| u64::try_from(ttl).ok()),
            idle_s: idle.number().and_then(|idle| u64::try_from(idle).ok()),
            weight: 1.0,
        });
    }
    request_lengths(server, &mut drawn.keys[begin..])
}

/// Asks for lengths, and for hashes whether they are one block of memory.
fn request_lengths(server: &mut Paced<'_>, keys: &mut [Key]) -> Result<(), LabError> {
    let mut requested: Vec<Command> = Vec::new();
    for key in keys.iter() {
        requested.extend(key.kind.length_command().map(|name| command([name, &key.name])));
        if key.kind == Kind::Hash {
            requested.push(command([b"OBJECT", b"ENCODING", &key.name]));
        }
    }
    let mut replies = server.run(&requested)?.into_iter();
    for key in keys {
        if key.kind.length_command().is_some() {
            // A key that has gone or has changed its type meanwhile has no length.
            key.length = replies
                .next()
                .and_then(|reply| reply.number())
                .map_or(0, i64::unsigned_abs);
        }
        if key.kind == Kind::Hash {
            let encoding = replies.next();
            let encoding = encoding.as_ref().and_then(Reply::text);
            key.is_listpack = matches!(encoding, Some("listpack" | "ziplist"));
        }
    }
    Ok(())
}

/// The error of a reply of another form.
pub(super) fn unreadable(server: &Paced<'_>, command: &str) -> LabError {
    LabError::Server {
        server: server.name().to_owned(),
        reason: format!("the reply to {command} cannot be read: is it a Redis or Valkey server?"),
    }
}
