//! The survey: which servers there are, the sample of their keys, and the estimates.

use std::sync::atomic::AtomicBool;

use serde::Serialize;

use super::connection::{Address, Paced, Server, Spent, connect};
use super::estimate::estimate;
use super::footprint::{Layout, Memory};
use super::groups::{self, Group, shown};
use super::reply::Reply;
use super::sample::{Drawn, Key, SampleSize, draw, unreadable};
use super::values;
use crate::core::LabError;

/// Keys that the report names as the largest.
const LARGEST: usize = 10;
/// Bytes of values that are read of a group at least, if there are few groups, so that its dictionary can be trained.
const MIN_GROUP_BYTES: u64 = 256 << 10;
/// No server has more keys, whatever it says.
const MAX_KEYS: u64 = 1 << 48;
/// The shares of the progress that the keys and the values take.
const OF_KEYS: f64 = 0.6;
const OF_VALUES: f64 = 0.3;

/// What to survey, and how much of it.
#[derive(Clone)]
pub struct Options {
    /// A server, or a node of a cluster.
    pub address: Address,
    /// Keys to look at.
    pub keys: SampleSize,
    /// Bytes of values to read.
    pub value_bytes: u64,
    /// The share of a processor that the server may spend on it, over 0 to 1.
    pub cpu_share: f64,
    /// What a GiB of memory costs in a month; `None` for no money.
    pub memory_gib_cost: Option<f64>,
}

impl Options {
    /// Creates the defaults for a server.
    pub fn new(address: Address) -> Self {
        Self {
            address,
            keys: SampleSize::Keys(5000),
            value_bytes: 4 << 20,
            cpu_share: 0.01,
            memory_gib_cost: None,
        }
    }

    /// Checks the bounds.
    ///
    /// # Errors
    /// [`LabError::Option`] with the name of the option on the command line.
    pub fn validate(&self) -> Result<(), LabError> {
        if !(0.0001..=1.0).contains(&self.cpu_share) {
            return Err(LabError::option("server-cpu-pct", "must be between 0.01 and 100"));
        }
        if !(64 << 10..=256 << 20).contains(&self.value_bytes) {
            return Err(LabError::option("sample-bytes", "must be between 64K and 256M"));
        }
        if self.memory_gib_cost.is_some_and(|cost| !(cost > 0.0 && cost <= 1e15)) {
            return Err(LabError::option(
                "memory-gib-cost",
                "must be greater than 0 and at most 1e15",
            ));
        }
        Ok(())
    }
}

/// A step of a survey.
pub struct Event {
    /// The completed part, 0 to 1.
    pub share: f64,
    /// The current step.
    pub what: String,
}

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerFacts {
    /// Its address, without user and password.
    pub address: String,
    /// `Valkey 8.1.3`.
    pub version: String,
    /// Its databases: number and keys.
    pub databases: Vec<(u32, u64)>,
    /// Memory in use.
    pub used_memory: u64,
    /// The limit of its memory, 0 for none.
    pub maxmemory: u64,
    /// The eviction policy.
    pub policy: String,
    #[serde(skip)]
    pub(super) memory: Option<Memory>,
}

/// A key of the sample with much memory.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LargeKey {
    /// The database.
    pub database: u32,
    /// The name, with escapes for bytes that are not text.
    pub name: String,
    /// The type.
    pub kind: String,
    /// Its memory.
    pub bytes: u64,
    /// Bytes of a string, members of a collection.
    pub length: u64,
}

/// The result of a survey.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Survey {
    /// The servers.
    pub servers: Vec<ServerFacts>,
    /// The groups, the largest first.
    pub groups: Vec<Group>,
    /// Keys in the sample.
    pub sampled: u64,
    /// Keys of the servers.
    pub keys: f64,
    /// Their memory.
    pub bytes: f64,
    /// The error of that by sampling: this share, with a probability of 95%.
    pub bytes_error: f64,
    /// Memory of the module that does not grow with the records.
    pub module_fixed_bytes: f64,
    /// The largest keys of the sample.
    pub largest: Vec<LargeKey>,
    /// All keys were looked at.
    pub is_complete: bool,
    /// Keys of the sample that the user may not read.
    pub denied: u64,
    /// Keys that were gone before they could be looked at.
    pub vanished: u64,
    /// The keys are the first of a scan, because the user may not run `RANDOMKEY`.
    pub is_in_scan_order: bool,
    /// Looking at a key was a use of it: the server has no `CLIENT NO-TOUCH`.
    pub has_touched: bool,
    /// Bytes of values that were read.
    pub read_bytes: u64,
    /// What it has cost the servers.
    pub spent: Spent,
    /// The share of a processor that it was allowed.
    pub cpu_share: f64,
    /// What a GiB of memory costs in a month.
    pub memory_gib_cost: Option<f64>,
    /// The user has ended it early.
    pub is_interrupted: bool,
    /// Why it ended early, if not by the user.
    pub failure: Option<String>,
}

/// Surveys a server, or the primaries of its cluster.
///
/// If it is cancelled or a connection is lost once it has keys, the result is of those.
///
/// # Errors
/// [`LabError::Server`] when there is no such server, the user may not read, or there is no key that it may read;
/// [`LabError::Cancelled`].
pub fn run(options: &Options, cancel: &AtomicBool, progress: &mut dyn FnMut(Event)) -> Result<Survey, LabError> {
    options.validate()?;
    let mut first = Paced::new(Box::new(connect(&options.address)?), options.cpu_share, cancel)?;
    let info = information(&mut first)?;
    let mut servers = Vec::new();
    let mut of_first = Spent::default();
    if info.get("cluster_enabled") == Some("1") {
        for (host, port) in primaries(&mut first)? {
            let address = options.address.of_node(&host, port);
            let server: Box<dyn Server> = Box::new(connect(&address)?);
            servers.push(Paced::new(server, options.cpu_share, cancel)?);
        }
        of_first = first.spent;
    } else {
        servers.push(first);
    }
    let mut survey = survey(options, servers, progress)?;
    survey.spent.commands += of_first.commands;
    survey.spent.busy_s += of_first.busy_s;
    Ok(survey)
}

/// Surveys servers that are connected.
pub(super) fn survey(
    options: &Options,
    mut servers: Vec<Paced<'_>>,
    progress: &mut dyn FnMut(Event),
) -> Result<Survey, LabError> {
    let mut facts = Vec::new();
    let mut has_touched = false;
    for server in &mut servers {
        let silent = server.run_one([b"CLIENT", b"NO-TOUCH", b"ON"])?;
        has_touched |= silent.text() != Some("OK");
        facts.push(server_facts(server, options.address.database())?);
    }
    let all: u64 = facts
        .iter()
        .flat_map(|server| &server.databases)
        .map(|(_, keys)| keys)
        .sum();
    let wanted = match options.keys {
        SampleSize::All => u64::MAX,
        SampleSize::Keys(keys) => keys,
    };
    let mut drawn = Vec::new();
    let mut failure = None;
    let mut seen = 0;
    'servers: for (index, server) in servers.iter_mut().enumerate() {
        for (database, population) in &facts[index].databases {
            let part = match wanted >= all {
                true => u64::MAX,
                false => ((wanted as f64 * *population as f64 / all as f64).ceil() as u64).max(1),
            };
            let mut of_database = Drawn::default();
            let before = seen;
            let result = draw(
                server,
                (index, *database),
                (*population, part),
                &mut of_database,
                &mut |keys| {
                    seen = before + keys;
                    let share = OF_KEYS * (seen as f64 / wanted.min(all).max(1) as f64).min(1.0);
                    let what = format!("{seen} keys");
                    progress(Event { share, what });
                },
            );
            drawn.push(of_database);
            if let Err(error) = result {
                failure = Some(error);
                break 'servers;
            }
        }
    }
    let is_interrupted = servers.iter().any(Paced::is_cancelled);
    let denied: u64 = drawn.iter().map(|drawn| drawn.denied).sum();
    let mut survey = Survey {
        keys: 0.0,
        groups: Vec::new(),
        sampled: 0,
        bytes: 0.0,
        bytes_error: 0.0,
        module_fixed_bytes: 0.0,
        largest: Vec::new(),
        is_complete: drawn.iter().all(|drawn| drawn.is_complete) && !is_interrupted && failure.is_none(),
        denied,
        vanished: drawn.iter().map(|drawn| drawn.vanished).sum(),
        is_in_scan_order: drawn.iter().any(|drawn| drawn.is_in_scan_order),
        has_touched: false,
        read_bytes: 0,
        spent: Spent::default(),
        cpu_share: options.cpu_share,
        memory_gib_cost: options.memory_gib_cost,
        is_interrupted,
        failure: None,
        servers: facts,
    };
    let keys: Vec<Key> = drawn.into_iter().flat_map(|drawn| drawn.keys).collect();
    if keys.is_empty() {
        return Err(nothing(failure, is_interrupted, denied, &servers));
    }
    let memory = survey.servers[0].memory.unwrap_or_default();
    survey.sampled = keys.len() as u64;
    survey.keys = keys.iter().map(|key| key.weight).sum();
    survey.bytes = keys.iter().map(|key| key.weight * key.bytes as f64).sum();
    survey.bytes_error = match survey.is_complete {
        true => 0.0,
        false => sampling_error(&keys),
    };
    survey.largest = largest(&keys);
    survey.groups = groups::of(&keys);
    let mut read = vec![Vec::new(); survey.groups.len()];
    if failure.is_none() {
        failure = read_values(options, &mut servers, &keys, &mut survey, &mut read, progress).err();
    }
    survey.has_touched = has_touched;
    survey.is_interrupted = servers.iter().any(Paced::is_cancelled);
    progress(Event {
        share: OF_KEYS + OF_VALUES,
        what: "estimating".into(),
    });
    survey.module_fixed_bytes = estimate(&keys, &mut survey.groups, &read, memory)?;
    survey.failure = failure.map(|error| error.to_string());
    for server in &servers {
        survey.spent.commands += server.spent.commands;
        survey.spent.busy_s += server.spent.busy_s;
    }
    Ok(survey)
}

/// Reads values of the groups that the module can have, each in proportion to its memory.
fn read_values(
    options: &Options,
    servers: &mut [Paced<'_>],
    keys: &[Key],
    survey: &mut Survey,
    read: &mut [Vec<values::Sampled>],
    progress: &mut dyn FnMut(Event),
) -> Result<(), LabError> {
    let readable = |group: &&Group| group.kind.is_of_module();
    let all: f64 = survey.groups.iter().filter(readable).map(|group| group.bytes).sum();
    let least = options.value_bytes / survey.groups.len().max(1) as u64;
    let mut done = 0.0;
    for (group, read) in survey.groups.iter().zip(read).filter(|(group, _)| readable(group)) {
        let share = group.bytes / all.max(1.0);
        let budget = ((options.value_bytes as f64 * share) as u64).max(MIN_GROUP_BYTES.min(least));
        *read = values::read(servers, keys, group, budget, &mut survey.denied)?;
        survey.read_bytes += read.iter().map(values::Sampled::bytes).sum::<u64>();
        done += share;
        progress(Event {
            share: OF_KEYS + OF_VALUES * done,
            what: format!("values of {}", group.prefix),
        });
    }
    Ok(())
}

/// The error when no key could be looked at.
fn nothing(failure: Option<LabError>, is_interrupted: bool, denied: u64, servers: &[Paced<'_>]) -> LabError {
    let names: Vec<&str> = servers.iter().map(Paced::name).collect();
    let reason = match denied {
        0 => "it has no keys",
        _ => "the user may read none of the keys that were looked at: name a user with read access to them",
    };
    match failure {
        Some(failure) => failure,
        None if is_interrupted => LabError::Cancelled,
        None => LabError::Server {
            server: names.join(", "),
            reason: reason.to_owned(),
        },
    }
}

/// Returns the relative error of the memory of all keys, with a probability of 95%.
fn sampling_error(keys: &[Key]) -> f64 {
    let count = keys.len() as f64;
    let total: f64 = keys.iter().map(|key| key.weight * key.bytes as f64).sum();
    let mean = total / count;
    let variance = keys
        .iter()
        .map(|key| (key.weight * key.bytes as f64 - mean).powi(2))
        .sum::<f64>()
        / (count - 1.0).max(1.0);
    1.96 * (variance * count).sqrt() / total.max(1.0)
}

fn largest(keys: &[Key]) -> Vec<LargeKey> {
    let mut order: Vec<&Key> = keys.iter().collect();
    order.sort_by_key(|key| std::cmp::Reverse(key.bytes));
    let large = order.into_iter().take(LARGEST).map(|key| LargeKey {
        database: key.database,
        name: shown(&key.name),
        kind: key.kind.name().to_owned(),
        bytes: key.bytes,
        length: key.length,
    });
    large.collect()
}

/// The reply to `INFO`.
struct Information(String);

impl Information {
    fn get(&self, name: &str) -> Option<&str> {
        let mut lines = self.0.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
    }

    fn number(&self, name: &str) -> u64 {
        self.get(name).and_then(|text| text.parse().ok()).unwrap_or_default()
    }

    /// Databases with keys.
    fn databases(&self) -> Vec<(u32, u64)> {
        let database = |line: &str| {
            let (number, rest) = line.strip_prefix("db")?.split_once(":keys=")?;
            let keys = rest.split(',').next()?;
            Some((number.parse().ok()?, keys.parse::<u64>().ok()?.min(MAX_KEYS)))
        };
        self.0.lines().filter_map(database).collect()
    }
}

fn information(server: &mut Paced<'_>) -> Result<Information, LabError> {
    let reply = server.run_one([b"INFO"])?;
    let text = reply.needed(server.name(), "INFO")?.bytes();
    let text = text.ok_or_else(|| unreadable(server, "INFO"))?;
    Ok(Information(String::from_utf8_lossy(text).into_owned()))
}

fn server_facts(server: &mut Paced<'_>, database: Option<i64>) -> Result<ServerFacts, LabError> {
    let info = information(server)?;
    let version = match (info.get("valkey_version"), info.get("redis_version")) {
        (Some(version), _) => format!("Valkey {version}"),
        (None, Some(version)) => format!("Redis {version}"),
        (None, None) => return Err(unreadable(server, "INFO")),
    };
    let mut databases = info.databases();
    if let Some(only) = database {
        databases.retain(|(number, _)| i64::from(*number) == only);
    }
    let embeds = info.get("valkey_version").is_some_and(|version| {
        let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or_default());
        (parts.next(), parts.next()) >= (Some(8), Some(1))
    });
    Ok(ServerFacts {
        address: server.name().to_owned(),
        version,
        databases,
        used_memory: info.number("used_memory"),
        maxmemory: info.number("maxmemory"),
        policy: info.get("maxmemory_policy").unwrap_or_default().to_owned(),
        memory: Some(Memory {
            layout: if embeds { Layout::Embedded } else { Layout::Apart },
            has_size_classes: info
                .get("mem_allocator")
                .is_none_or(|name| name.starts_with("jemalloc")),
        }),
    })
}

/// Returns the hosts and ports of a cluster's primaries. An empty host is that of the server that was asked.
fn primaries(server: &mut Paced<'_>) -> Result<Vec<(String, u16)>, LabError> {
    let reply = server.run_one([b"CLUSTER", b"SLOTS"])?;
    let ranges = reply.needed(server.name(), "CLUSTER SLOTS")?.list();
    let mut found = Vec::new();
    for range in ranges.unwrap_or_default() {
        let primary = range.list().and_then(|range| range.get(2)).and_then(Reply::list);
        let Some([host, port, ..]) = primary else {
            return Err(unreadable(server, "CLUSTER SLOTS"));
        };
        let host = host.text().filter(|host| *host != "?").unwrap_or_default().to_owned();
        let port = port.number().and_then(|port| u16::try_from(port).ok());
        let primary = (host, port.ok_or_else(|| unreadable(server, "CLUSTER SLOTS"))?);
        if !found.contains(&primary) {
            found.push(primary);
        }
    }
    match found.is_empty() {
        true => Err(LabError::Server {
            server: server.name().to_owned(),
            reason: "its cluster has no primaries with slots yet".into(),
        }),
        false => Ok(found),
    }
}
