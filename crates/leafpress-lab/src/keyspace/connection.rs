//! Connections to servers, and the pauses that bound the processor time that they cost.
//!
//! A server runs commands in one thread. The time that a batch of commands takes, less the time of a round trip, is an
//! upper bound of the time that the server was busy with it: it includes the network and this program. After each batch
//! the connection is idle for long enough that the bound is kept.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use redis::{Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, TlsCertificates, Value};

use super::reply::{Command, Refusal, Reply, command};
use crate::core::LabError;

/// Time to connect, and to wait for a reply.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Round trips whose shortest is the network's part of a batch.
const PINGS: usize = 5;
/// A connection that was idle for longer is made anew.
const MAX_IDLE: Duration = Duration::from_secs(30);
/// Commands that set the state of a connection.
const STATE: [&[u8]; 2] = [b"SELECT", b"CLIENT"];
/// A pause is slept in parts of this length, so that Ctrl-C ends it.
const NAP: Duration = Duration::from_millis(50);

/// Where a server is, and how to connect to it.
#[derive(Clone)]
pub struct Address {
    info: ConnectionInfo,
    root_cert: Option<Vec<u8>>,
    has_database: bool,
}

impl Address {
    /// Reads a URL: `redis://[USER][:PASSWORD@]HOST[:PORT][/DATABASE]`, `rediss://` for TLS, `unix:///PATH`;
    /// `valkey://` and `valkeys://` likewise. `password` is used if the URL has none, `root_cert` (PEM) instead of the
    /// system's certificates.
    ///
    /// # Errors
    /// [`LabError::Option`] for `redis` when it is not such a URL. The message does not repeat it: it may have a
    /// password in it.
    pub fn parse(url: &str, password: Option<&str>, root_cert: Option<Vec<u8>>) -> Result<Self, LabError> {
        let info = url.into_connection_info().map_err(|error| {
            let reason = error.detail().map_or_else(String::new, |detail| format!(" ({detail})"));
            LabError::option(
                "redis",
                format!(
                    "the URL cannot be read{reason}: it is redis://USER:PASSWORD@HOST:PORT/DATABASE, rediss:// for \
                     TLS, or unix:///PATH"
                ),
            )
        })?;
        if matches!(info.addr(), ConnectionAddr::TcpTls { insecure: true, .. }) {
            let reason = "certificates are always checked: name the authority of the server's by --redis-ca instead of \
                          #insecure";
            return Err(LabError::option("redis", reason));
        }
        let has_database = match url.split_once("://") {
            Some(("unix" | "redis+unix" | "valkey+unix", path)) => {
                let query = path.split_once('?').map_or("", |(_, query)| query);
                query.split('&').any(|pair| pair.starts_with("db="))
            }
            Some((_, rest)) => {
                let rest = rest.split(['?', '#']).next().unwrap_or_default();
                rest.split_once('/').is_some_and(|(_, database)| !database.is_empty())
            }
            None => false,
        };
        let mut settings = info
            .redis_settings()
            .clone()
            .set_lib_name("leafpress", env!("CARGO_PKG_VERSION"));
        if let (Some(password), None) = (password, settings.password()) {
            settings = settings.set_password(password);
        }
        if root_cert.is_some() && !matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
            return Err(LabError::option("redis-ca", "requires a URL with TLS: rediss://"));
        }
        Ok(Self {
            info: info.set_redis_settings(settings),
            root_cert,
            has_database,
        })
    }

    /// Returns the database that the URL names; `None` for all.
    pub(super) fn database(&self) -> Option<i64> {
        self.has_database.then(|| self.info.redis_settings().db())
    }

    /// Returns the address of another server of the same cluster. An empty host is this one's.
    pub(super) fn of_node(&self, host: &str, port: u16) -> Self {
        let addr = match self.info.addr() {
            ConnectionAddr::TcpTls {
                host: here,
                insecure,
                tls_params,
                ..
            } => ConnectionAddr::TcpTls {
                host: if host.is_empty() { here } else { host }.to_owned(),
                port,
                insecure: *insecure,
                tls_params: tls_params.clone(),
            },
            ConnectionAddr::Tcp(here, _) => {
                ConnectionAddr::Tcp(if host.is_empty() { here } else { host }.to_owned(), port)
            }
            _ => ConnectionAddr::Tcp(host.to_owned(), port),
        };
        Self {
            info: self.info.clone().set_addr(addr),
            ..self.clone()
        }
    }

    /// Returns the address without user and password.
    pub fn name(&self) -> String {
        self.info.addr().to_string()
    }
}

/// What runs commands: a server, or in tests a model of one.
pub(super) trait Server {
    /// Returns its name in messages.
    fn name(&self) -> &str;

    /// Runs commands in order, and returns a reply to each.
    ///
    /// # Errors
    /// [`LabError::Server`] when the connection is lost.
    fn run(&mut self, commands: &[Command]) -> Result<Vec<Reply>, LabError>;
}

/// A connection. One that was idle is made anew: the other end may have closed it.
struct Connected {
    address: Address,
    name: String,
    connection: redis::Connection,
    last_used: Instant,
    /// The commands that set the connection's state.
    state: Vec<Command>,
}

/// Connects to a server.
///
/// # Errors
/// [`LabError::Server`] when there is none, it does not accept the user, or is not one of Redis or Valkey.
pub(super) fn connect(address: &Address) -> Result<impl Server + use<>, LabError> {
    Ok(Connected {
        address: address.clone(),
        name: address.name(),
        connection: open(address)?,
        last_used: Instant::now(),
        state: Vec::new(),
    })
}

fn open(address: &Address) -> Result<redis::Connection, LabError> {
    let failed = |error: redis::RedisError| LabError::Server {
        server: address.name(),
        reason: reason(&error),
    };
    let client = match &address.root_cert {
        Some(_) => Client::build_with_tls(
            address.info.clone(),
            TlsCertificates {
                client_tls: None,
                root_cert: address.root_cert.clone(),
            },
        ),
        None => Client::open(address.info.clone()),
    };
    let connection = client
        .and_then(|client| client.get_connection_with_timeout(TIMEOUT))
        .map_err(failed)?;
    connection.set_read_timeout(Some(TIMEOUT)).map_err(failed)?;
    connection.set_write_timeout(Some(TIMEOUT)).map_err(failed)?;
    Ok(connection)
}

/// An error of the client in words of its own.
fn reason(error: &redis::RedisError) -> String {
    let text = error.to_string();
    if text.contains("WRONGPASS") || error.kind() == redis::ErrorKind::AuthenticationFailed {
        return format!("it does not accept the user and the password ({text})");
    }
    if error.is_timeout() {
        return format!("no reply within {} s", TIMEOUT.as_secs());
    }
    text
}

impl Server for Connected {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&mut self, commands: &[Command]) -> Result<Vec<Reply>, LabError> {
        if self.last_used.elapsed() > MAX_IDLE {
            self.connection = open(&self.address)?;
            let state = self.state.clone();
            self.exchange(&state)?;
        }
        for words in commands {
            if STATE.contains(&words[0].as_slice()) {
                self.state.retain(|known| known[0] != words[0]);
                self.state.push(words.clone());
            }
        }
        let replies = self.exchange(commands);
        self.last_used = Instant::now();
        replies
    }
}

impl Connected {
    /// Sends commands and reads a reply to each. It ends at the first failure of the connection, so that a server that
    /// is silent is waited for once.
    fn exchange(&mut self, commands: &[Command]) -> Result<Vec<Reply>, LabError> {
        let mut packed = Vec::new();
        for words in commands {
            let mut command = redis::Cmd::new();
            for word in words {
                command.arg(word.as_slice());
            }
            packed.extend(command.get_packed_command());
        }
        let failed = |error: redis::RedisError| LabError::Server {
            server: self.name.clone(),
            reason: reason(&error),
        };
        self.connection.send_packed_command(&packed).map_err(failed)?;
        let mut replies = Vec::with_capacity(commands.len());
        while replies.len() < commands.len() {
            match self.connection.recv_response().map_err(failed)? {
                Value::Push { .. } => {}
                value => replies.push(reply(value)),
            }
        }
        Ok(replies)
    }
}

fn reply(value: Value) -> Reply {
    match value {
        Value::Int(number) => Reply::Number(number),
        Value::Boolean(is_true) => Reply::Number(i64::from(is_true)),
        Value::BulkString(bytes) => Reply::Bytes(bytes),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Reply::Bytes(text.into_bytes()),
        Value::Okay => Reply::Bytes(b"OK".to_vec()),
        Value::Double(number) => Reply::Bytes(number.to_string().into_bytes()),
        Value::Array(members) | Value::Set(members) => Reply::List(members.into_iter().map(reply).collect()),
        Value::Map(pairs) => Reply::List(
            pairs
                .into_iter()
                .flat_map(|(key, value)| [reply(key), reply(value)])
                .collect(),
        ),
        Value::Attribute { data, .. } => reply(*data),
        Value::ServerError(error) => Reply::Error(Refusal::of(error.code(), error.details().unwrap_or_default())),
        _ => Reply::Nil,
    }
}

/// A server whose processor time is bounded.
pub(super) struct Paced<'c> {
    server: Box<dyn Server + 'c>,
    cancel: &'c AtomicBool,
    /// The share of a processor that the commands may use.
    cpu_share: f64,
    round_trip: Duration,
    pub(super) spent: Spent,
}

/// What a survey has cost a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct Spent {
    /// Commands that were sent.
    pub commands: u64,
    /// Seconds that the server was busy with them, at most.
    pub busy_s: f64,
}

impl<'c> Paced<'c> {
    /// Measures the round trip.
    pub(super) fn new(server: Box<dyn Server + 'c>, cpu_share: f64, cancel: &'c AtomicBool) -> Result<Self, LabError> {
        let mut paced = Self {
            server,
            cancel,
            cpu_share,
            round_trip: Duration::ZERO,
            spent: Spent::default(),
        };
        let mut shortest = Duration::MAX;
        for _ in 0..PINGS {
            let began = Instant::now();
            paced.server.run(&[command([b"PING"])])?;
            shortest = shortest.min(began.elapsed());
            paced.spent.commands += 1;
        }
        paced.round_trip = shortest;
        Ok(paced)
    }

    /// Returns the server's name in messages.
    pub(super) fn name(&self) -> &str {
        self.server.name()
    }

    /// Returns whether the user has cancelled the survey.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// Runs commands, and then pauses.
    ///
    /// # Errors
    /// [`LabError::Server`] when the connection is lost.
    pub(super) fn run(&mut self, commands: &[Command]) -> Result<Vec<Reply>, LabError> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let began = Instant::now();
        let replies = self.server.run(commands)?;
        let busy = began.elapsed().saturating_sub(self.round_trip);
        self.spent.commands += commands.len() as u64;
        self.spent.busy_s += busy.as_secs_f64();
        if replies.len() != commands.len() {
            return Err(LabError::Server {
                server: self.name().to_owned(),
                reason: format!("{} commands were answered by {} replies", commands.len(), replies.len()),
            });
        }
        let pause = busy.as_secs_f64() * (1.0 / self.cpu_share - 1.0).max(0.0);
        self.pause(Duration::try_from_secs_f64(pause).unwrap_or_default());
        Ok(replies)
    }

    /// Runs one command.
    pub(super) fn run_one<const N: usize>(&mut self, words: [&[u8]; N]) -> Result<Reply, LabError> {
        let mut replies = self.run(&[command(words)])?;
        Ok(replies.pop().unwrap_or(Reply::Nil))
    }

    fn pause(&self, length: Duration) {
        let end = Instant::now() + length;
        while !self.is_cancelled() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(NAP));
        }
    }
}
