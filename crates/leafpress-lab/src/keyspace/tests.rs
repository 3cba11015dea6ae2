//! Surveys of a model of a server.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use super::connection::{Address, Paced, Server};
use super::reply::{Command, Refusal, Reply};
use super::survey::{Options, survey};
use super::*;
use crate::core::LabError;

/// Commands that a survey may send: none of them writes, and none takes time in proportion to a large value.
const ALLOWED: [&str; 20] = [
    "PING",
    "INFO",
    "SELECT",
    "CLIENT",
    "SCAN",
    "RANDOMKEY",
    "TYPE",
    "PTTL",
    "OBJECT",
    "MEMORY",
    "STRLEN",
    "HLEN",
    "LLEN",
    "SCARD",
    "ZCARD",
    "XLEN",
    "GETRANGE",
    "HSCAN",
    "CLUSTER",
    "READONLY",
];

#[derive(Clone)]
enum Value {
    Text(Vec<u8>),
    Hash(Vec<(Vec<u8>, Vec<u8>)>),
    List(i64),
}

impl Value {
    fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "string",
            Self::Hash(_) => "hash",
            Self::List(_) => "list",
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64 + 60,
            Self::Hash(fields) => {
                fields
                    .iter()
                    .map(|(field, value)| (field.len() + value.len() + 4) as u64)
                    .sum::<u64>()
                    + 60
            }
            Self::List(members) => members.unsigned_abs() * 10 + 60,
        }
    }
}

/// A server in memory, and what goes wrong with it.
#[derive(Default)]
struct Model {
    keys: BTreeMap<Vec<u8>, Value>,
    /// Commands that the user may not run.
    denied_commands: Vec<&'static str>,
    /// The user may read keys with this prefix only.
    readable: Option<&'static [u8]>,
    /// Commands after which the connection is lost.
    lost_after: Option<usize>,
    sent: usize,
    turn: usize,
}

impl Model {
    fn reply(&mut self, words: &Command) -> Reply {
        let name = String::from_utf8(words[0].clone()).unwrap();
        assert!(ALLOWED.contains(&name.as_str()), "{name} is not a command of surveys");
        if self.denied_commands.contains(&name.as_str()) {
            return Reply::Error(Refusal::of(
                "NOPERM",
                &format!("this user has no permissions to run the '{name}' command"),
            ));
        }
        let key = match name.as_str() {
            "OBJECT" | "MEMORY" => words.get(2),
            _ => words.get(1),
        };
        let of_key = !matches!(
            name.as_str(),
            "PING" | "INFO" | "SELECT" | "CLIENT" | "SCAN" | "RANDOMKEY"
        );
        if of_key && self.readable.is_some_and(|prefix| !key.unwrap().starts_with(prefix)) {
            return Reply::Error(Refusal::of("NOPERM", "No permissions to access a key"));
        }
        let value = key.and_then(|key| self.keys.get(key));
        match name.as_str() {
            "INFO" => {
                let keys = self.keys.len();
                let text = format!(
                    "# Server\r\nredis_version:7.0.1\r\nused_memory:1000000\r\n# \
                     Keyspace\r\ndb0:keys={keys},expires=0\r\n"
                );
                Reply::Bytes(text.into_bytes())
            }
            "SCAN" => self.scan(words),
            "RANDOMKEY" => {
                self.turn = (self.turn + 7919) % self.keys.len();
                Reply::Bytes(self.keys.keys().nth(self.turn).unwrap().clone())
            }
            "TYPE" => Reply::Bytes(value.map_or("none", Value::kind).into()),
            "MEMORY" => value.map_or(Reply::Nil, |value| Reply::Number(value.bytes() as i64)),
            "OBJECT" if words[1] == b"IDLETIME" => Reply::Number(90_000),
            "OBJECT" => Reply::Bytes(b"listpack".to_vec()),
            "PTTL" => Reply::Number(-1),
            "STRLEN" | "HLEN" | "LLEN" => Reply::Number(match value {
                Some(Value::Text(text)) => text.len() as i64,
                Some(Value::Hash(fields)) => fields.len() as i64,
                Some(Value::List(members)) => *members,
                None => 0,
            }),
            "GETRANGE" => match value {
                Some(Value::Text(text)) => Reply::Bytes(text[..text.len().min(64 << 10)].to_vec()),
                Some(_) => Reply::Error(Refusal::of("WRONGTYPE", "Operation against a key")),
                None => Reply::Bytes(Vec::new()),
            },
            "HSCAN" => match value {
                Some(Value::Hash(fields)) => {
                    let pairs = fields
                        .iter()
                        .flat_map(|(field, value)| [Reply::Bytes(field.clone()), Reply::Bytes(value.clone())]);
                    Reply::List(vec![Reply::Bytes(b"0".to_vec()), Reply::List(pairs.collect())])
                }
                _ => Reply::Error(Refusal::of("WRONGTYPE", "Operation against a key")),
            },
            _ => Reply::Bytes(b"OK".to_vec()),
        }
    }

    fn scan(&self, words: &Command) -> Reply {
        let from: usize = String::from_utf8(words[1].clone()).unwrap().parse().unwrap();
        // As a server may, it returns the last name of a page again in the next.
        let names = self.keys.keys().skip(from.saturating_sub(1)).take(51);
        let next = if from + 50 >= self.keys.len() { 0 } else { from + 50 };
        Reply::List(vec![
            Reply::Bytes(next.to_string().into_bytes()),
            Reply::List(names.map(|name| Reply::Bytes(name.clone())).collect()),
        ])
    }
}

impl Server for Model {
    fn name(&self) -> &str {
        "model:6379"
    }

    fn run(&mut self, commands: &[Command]) -> Result<Vec<Reply>, LabError> {
        self.sent += commands.len();
        if self.lost_after.is_some_and(|commands| self.sent > commands) {
            return Err(LabError::Server {
                server: "model:6379".into(),
                reason: "connection reset".into(),
            });
        }
        Ok(commands.iter().map(|words| self.reply(words)).collect())
    }
}

/// 3,000 sessions of repetitive JSON, 1,000 users with some fields, 100 lists.
fn keys() -> BTreeMap<Vec<u8>, Value> {
    let mut keys = BTreeMap::new();
    for number in 0..3000 {
        let text = format!(
            "{{\"user\":{number},\"roles\":[\"reader\",\"writer\"],\"theme\":\"dark\",\
             \"locale\":\"en_GB\",\"visits\":{}}}",
            number * 7
        );
        keys.insert(
            format!("session:{number:05}").into_bytes(),
            Value::Text(text.repeat(3).into_bytes()),
        );
    }
    for number in 0..1000 {
        let field = |field: &str| {
            (
                field.as_bytes().to_vec(),
                format!("{field} of the user with the number {number}").into_bytes(),
            )
        };
        keys.insert(
            format!("user:{number:05}").into_bytes(),
            Value::Hash(["name", "mail", "address"].map(field).to_vec()),
        );
    }
    for number in 0..100 {
        keys.insert(format!("queue-{number}").into_bytes(), Value::List(number));
    }
    keys
}

fn options() -> Options {
    let mut options = Options::new(Address::parse("redis://model", None, None).unwrap());
    options.cpu_share = 1.0;
    options
}

fn of(model: Model, options: &Options) -> Result<Survey, LabError> {
    static NEVER: AtomicBool = AtomicBool::new(false);
    let server = Paced::new(Box::new(model), options.cpu_share, &NEVER)?;
    survey(options, vec![server], &mut |_| {})
}

fn model() -> Model {
    Model {
        keys: keys(),
        ..Model::default()
    }
}

fn bytes_of(prefix: &str) -> f64 {
    let keys = keys();
    let of_prefix = keys.iter().filter(|(name, _)| name.starts_with(prefix.as_bytes()));
    of_prefix.map(|(_, value)| value.bytes() as f64).sum()
}

fn group<'s>(survey: &'s Survey, prefix: &str) -> &'s Group {
    survey.groups.iter().find(|group| group.prefix == prefix).expect(prefix)
}

#[test]
fn all_keys_of_a_small_server_are_counted_exactly() {
    let survey = of(model(), &options()).unwrap();
    assert!(survey.is_complete);
    assert_eq!((survey.sampled, survey.keys, survey.bytes_error), (4100, 4100.0, 0.0));
    for (prefix, kind, keys) in [
        ("session:", "string", 3000.0),
        ("user:", "hash", 1000.0),
        ("queue-", "list", 100.0),
    ] {
        let group = group(&survey, prefix);
        assert_eq!((group.kind.name(), group.keys), (kind, keys));
        assert_eq!(group.bytes, bytes_of(prefix));
        assert_eq!(group.idle_a_day_share, Some(1.0));
        assert_eq!(group.estimate.is_some(), kind != "list");
    }
    let sessions = group(&survey, "session:");
    let estimate = sessions.estimate.unwrap();
    assert!(
        estimate.module_bytes < 0.6 * sessions.bytes,
        "{estimate:?} of {}",
        sessions.bytes
    );
    assert!(
        estimate.client_lz4_bytes < 0.7 * sessions.bytes,
        "{estimate:?} of {}",
        sessions.bytes
    );
    let text = document(&survey).text();
    // Without the line breaks of paragraphs.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("leafpress.string-prefixes \"session:\""), "{text}");
    assert!(text.contains("queue-* (list): the module has no type list"), "{text}");
    let page = document(&survey).page("leafpress advise").unwrap();
    assert!(page.contains("<svg") && page.contains("LZ4 by clients"));
}

#[test]
fn a_sample_is_projected_to_all_keys() {
    let mut options = options();
    options.keys = SampleSize::Keys(1000);
    let survey = of(model(), &options).unwrap();
    assert_eq!((survey.is_complete, survey.sampled), (false, 1000));
    assert!((survey.keys - 4100.0).abs() < 1.0, "{}", survey.keys);
    let all: f64 = keys().values().map(|value| value.bytes() as f64).sum();
    assert!((survey.bytes / all - 1.0).abs() < 0.1, "{} for {all}", survey.bytes);
    assert!((0.0..0.1).contains(&survey.bytes_error), "{}", survey.bytes_error);
}

#[test]
fn names_the_command_that_a_user_may_not_run() {
    for (command, name) in [
        ("MEMORY", "MEMORY USAGE"),
        ("SCAN", "SCAN"),
        ("TYPE", "TYPE"),
        ("INFO", "INFO"),
    ] {
        let model = Model {
            denied_commands: vec![command],
            ..model()
        };
        let error = of(model, &options()).unwrap_err().to_string();
        assert!(error.contains(&format!("the user may not run {name} ")), "{error}");
        assert!(error.contains("docs/commands/advise.md"), "{error}");
    }
}

#[test]
fn a_user_without_random_keys_gets_the_beginning_of_a_scan() {
    let mut options = options();
    options.keys = SampleSize::Keys(500);
    let model = Model {
        denied_commands: vec!["RANDOMKEY", "CLIENT", "OBJECT", "PTTL"],
        ..model()
    };
    let survey = of(model, &options).unwrap();
    assert!(survey.is_in_scan_order && survey.has_touched);
    assert!(document(&survey).text().contains("may not run RANDOMKEY"));
    assert_eq!(survey.groups[0].median_idle_s, None);
}

#[test]
fn keys_of_others_are_left_out_and_counted() {
    let mut model = model();
    model.readable = Some(b"user:");
    let survey = of(model, &options()).unwrap();
    assert_eq!((survey.sampled, survey.denied), (1000, 3100));
    assert_eq!(survey.groups.len(), 1);
    let mut model = self::model();
    model.readable = Some(b"nobody's:");
    let error = of(model, &options()).unwrap_err().to_string();
    assert!(error.contains("may read none of the keys"), "{error}");
}

#[test]
fn a_lost_connection_leaves_what_was_found() {
    let error = of(
        Model {
            lost_after: Some(3),
            ..model()
        },
        &options(),
    )
    .unwrap_err();
    assert!(error.to_string().contains("connection reset"), "{error}");
    for commands in [2000, 20_000, 24_700] {
        let survey = of(
            Model {
                lost_after: Some(commands),
                ..model()
            },
            &options(),
        )
        .unwrap();
        assert!(
            survey
                .failure
                .as_ref()
                .is_some_and(|failure| failure.contains("connection reset")),
            "{commands}"
        );
        assert!(!survey.is_complete || survey.sampled == 4100);
        assert!(
            document(&survey).text().contains("The survey ended early"),
            "{commands}"
        );
    }
}

#[test]
fn a_cancelled_survey_has_what_was_found() {
    let (options, cancel) = (options(), AtomicBool::new(false));
    let server = Paced::new(Box::new(model()), 1.0, &cancel).unwrap();
    let survey = survey(&options, vec![server], &mut |event| {
        if event.share > 0.3 {
            cancel.store(true, Ordering::Relaxed);
        }
    });
    let survey = survey.unwrap();
    assert!(
        survey.is_interrupted && (1000..4100).contains(&survey.sampled),
        "{}",
        survey.sampled
    );
    assert!(document(&survey).text().contains("It was interrupted"));
}

#[test]
fn reports_an_empty_server() {
    let error = of(Model::default(), &options()).unwrap_err().to_string();
    assert!(error.contains("has no keys"), "{error}");
}

#[test]
fn names_of_any_bytes_are_shown_as_text() {
    let mut keys = BTreeMap::new();
    for number in 0..200_u32 {
        let name = [&b"\xff\x00\n:"[..], number.to_string().as_bytes()].concat();
        keys.insert(name, Value::Text(vec![b'a'; 2000 + number as usize]));
    }
    let survey = of(
        Model {
            keys,
            ..Model::default()
        },
        &options(),
    )
    .unwrap();
    assert_eq!(survey.groups[0].prefix, "\\xff\\x00\\n:");
    assert!(
        survey.largest[0].name.starts_with("\\xff\\x00\\n:199"),
        "{:?}",
        survey.largest[0]
    );
}

#[test]
fn urls_are_read_without_repeating_passwords() {
    for url in [
        "redis://a:secret@host:port",
        "http://a:secret@host",
        "redis://a:secret@host/db",
    ] {
        let error = Address::parse(url, None, None).err().expect(url).to_string();
        assert!(!error.contains("secret"), "{error}");
    }
    let address = Address::parse("redis://a:secret@host:7000/3", None, None).unwrap();
    assert_eq!((address.name().as_str(), address.database()), ("host:7000", Some(3)));
    assert_eq!(Address::parse("redis://host", None, None).unwrap().database(), None);
    assert_eq!(
        Address::parse("unix:///a/b.sock?db=2", None, None).unwrap().database(),
        Some(2)
    );
    assert_eq!(address.of_node("", 7001).name(), "host:7001");
    assert!(Address::parse("redis://host", None, Some(Vec::new())).is_err());
}
