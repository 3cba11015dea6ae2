//! Traces: the requested keys, the lengths of their values, and whether they were written.
//!
//! - `oracle`: libCacheSim's oracleGeneral, packed records of 24 bytes: time `u32`, object `u64`, bytes `u32`, next
//!   request `i64`.
//! - `arc`: the ARC traces' `.lis`, lines of a first block, a number of blocks, and two more numbers. A block has 512
//!   bytes.
//! - `csv`: fields with commas or spaces between. A line of names first, of which `key`, `op`, `size` and `op_count`
//!   (how often the request is
//!   repeated) count (CacheLib), or, without one, Twitter's seven fields or `time,key,size`.
//! - `keys`: a key a line, whose values have 100 bytes.
//!
//! A key has the length of its first request with one; deviating later requests are counted.

use std::collections::HashMap;
use std::io::{BufRead, Read};
use std::path::Path;

use leafpress::cache::{MAX_KEY_BYTES, MAX_VALUE_BYTES};
use rapidhash::RapidHashMap;
use serde::{Deserialize, Serialize};

use super::{Action, Request, trace_file};
use crate::core::LabError;
use crate::core::corpus::{check_regular, plain, without_mark};
use crate::core::words::words;
use crate::report::numbers::thousands;

/// How a trace is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceFormat {
    /// libCacheSim's oracleGeneral.
    Oracle,
    /// The ARC traces' `.lis`.
    Arc,
    /// Fields with commas or spaces between.
    Csv,
    /// A key a line.
    Keys,
}

words!(
    TraceFormat, "trace-format", "unknown format `{}`; known: oracle arc csv keys":
    Oracle "oracle", Arc "arc", Csv "csv", Keys "keys"
);

impl TraceFormat {
    /// By a file's name: `x.oracleGeneral.bin.zst`, `x.lis`, `x.csv.gz`, `x.keys`, `x.txt`.
    pub(super) fn of_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
        let name = [".zst", ".gz", ".xz"]
            .iter()
            .find_map(|end| name.strip_suffix(end))
            .unwrap_or(&name);
        let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
        if name.contains("oraclegeneral") {
            Some(Self::Oracle)
        } else if ends(&[".lis"]) {
            Some(Self::Arc)
        } else if ends(&[".csv", ".tr", ".trace"]) {
            Some(Self::Csv)
        } else if ends(&[".keys", ".txt"]) {
            Some(Self::Keys)
        } else {
            None
        }
    }
}

/// Bytes of a block of the ARC traces.
const BLOCK_BYTES: u32 = 512;
/// Maximum blocks per line; a file with more is not such a trace.
const MAX_BLOCKS: u64 = 1 << 20;
/// Length of a value if the trace has none.
const DEFAULT_BYTES: u32 = 100;
const MAX_LINE_BYTES: u64 = 64 << 10;
/// Most requests and most keys: both have numbers of 31 bits.
const MAX_REQUESTS: usize = 1 << 31;
/// Set in a request that writes.
const WRITE: u32 = 1 << 31;

/// A trace in memory.
#[derive(Debug)]
pub(super) struct Trace {
    pub(super) format: TraceFormat,
    /// A key's number each, and whether it is written.
    pub(super) requests: Vec<u32>,
    /// Writing requests.
    pub(super) writes: u64,
    /// The keys back to back, and where each ends.
    pub(super) key_bytes: Vec<u8>,
    pub(super) key_ends: Vec<u64>,
    /// Bytes of each key's value.
    pub(super) lengths: Vec<u32>,
    /// Requests that are neither reads nor writes, and those for values that no cache here takes.
    other_kinds: u64,
    too_long: u64,
    /// Requests whose length is not their key's.
    other_lengths: u64,
}

impl Trace {
    /// Reads a trace, or the first `most` of its requests.
    ///
    /// # Errors
    /// [`LabError::Data`] when the file is not a trace, with the line or record at fault; [`LabError::Option`] of
    /// `trace-format` when its name does not determine the format.
    pub(super) fn read(path: &Path, format: Option<TraceFormat>, most: Option<u64>) -> Result<Self, LabError> {
        // A name that is wrong has another format's end, or none.
        let refuse = |reason: String| LabError::data(path.display().to_string(), reason);
        let about = path.metadata().map_err(|e| refuse(plain(&e)))?;
        if about.is_dir() {
            return Err(refuse("is a directory; a trace is a file of requests".into()));
        }
        check_regular(path).map_err(refuse)?;
        let Some(format) = format.or_else(|| TraceFormat::of_name(path)) else {
            return Err(LabError::option(
                "trace-format",
                format!(
                    "cannot be derived from the name {}: use oracle, arc, csv or keys",
                    path.display()
                ),
            ));
        };
        let mut file = trace_file::open(path)?;
        let mut reading = Reading::new(format, most);
        let read = match format {
            TraceFormat::Oracle => reading.oracle(&mut file),
            TraceFormat::Arc | TraceFormat::Csv | TraceFormat::Keys => reading.lines(&mut file),
        };
        let refuse = |reason: String| LabError::data(path.display().to_string(), format!("{reason} ({format})"));
        read.map_err(refuse)?;
        if reading.trace.requests.is_empty() {
            return Err(refuse("contains no requests".into()));
        }
        Ok(reading.trace)
    }

    pub(super) fn keys(&self) -> u64 {
        self.key_ends.len() as u64
    }

    /// Bytes of all keys and values.
    pub(super) fn total_bytes(&self) -> u64 {
        self.key_bytes.len() as u64 + self.lengths.iter().map(|len| u64::from(*len)).sum::<u64>()
    }

    pub(super) fn request(word: u32) -> Request {
        Request {
            id: (word & !WRITE).into(),
            action: if word & WRITE == 0 { Action::Read } else { Action::Write },
            is_lone: false,
        }
    }

    /// Skipped requests, in words.
    pub(super) fn left_out(&self) -> Option<String> {
        let parts = [
            (self.other_kinds, "neither reads nor writes, skipped"),
            (self.too_long, "for values over 64M, skipped"),
            (
                self.other_lengths,
                "have a different length than their key's first request, which counts",
            ),
        ];
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        let parts: Vec<_> = parts
            .map(|(count, what)| format!("{} {what}", thousands(*count)))
            .collect();
        (!parts.is_empty()).then(|| format!("requests: {}", parts.join("; ")))
    }
}

struct Reading {
    trace: Trace,
    numbers: RapidHashMap<Box<[u8]>, u32>,
    columns: Option<Columns>,
    most: usize,
}

/// Where the fields of a line are.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Columns {
    key: usize,
    size: Option<usize>,
    operation: Option<usize>,
    repeats: Option<usize>,
}

/// The kind of a request.
#[derive(Clone, Copy)]
enum Kind {
    Read,
    Write,
    Other,
}

impl Reading {
    fn new(format: TraceFormat, most: Option<u64>) -> Self {
        Self {
            trace: Trace {
                format,
                requests: Vec::new(),
                writes: 0,
                key_bytes: Vec::new(),
                key_ends: Vec::new(),
                lengths: Vec::new(),
                other_kinds: 0,
                too_long: 0,
                other_lengths: 0,
            },
            numbers: HashMap::default(),
            columns: None,
            most: most.map_or(MAX_REQUESTS, |most| {
                usize::try_from(most).unwrap_or(MAX_REQUESTS).min(MAX_REQUESTS)
            }),
        }
    }

    fn is_full(&self) -> bool {
        self.trace.requests.len() >= self.most
    }

    fn push(&mut self, key: &[u8], len: u64, kind: Kind) -> Result<(), String> {
        if self.is_full() {
            return Ok(());
        }
        let trace = &mut self.trace;
        if key.is_empty() || key.len() > MAX_KEY_BYTES {
            return Err(format!("a key of {} bytes: keys have 1 to {MAX_KEY_BYTES}", key.len()));
        }
        let write = match kind {
            Kind::Read => 0,
            Kind::Write => WRITE,
            Kind::Other => {
                trace.other_kinds += 1;
                return Ok(());
            }
        };
        let len = match u32::try_from(len) {
            Ok(len) if len as usize <= MAX_VALUE_BYTES => len,
            _ => {
                trace.too_long += 1;
                return Ok(());
            }
        };
        let number = match self.numbers.get(key) {
            Some(number) => {
                trace.other_lengths += u64::from(trace.lengths[*number as usize] != len);
                *number
            }
            None => {
                let number = trace.lengths.len() as u32;
                self.numbers.insert(key.into(), number);
                trace.key_bytes.extend_from_slice(key);
                trace.key_ends.push(trace.key_bytes.len() as u64);
                trace.lengths.push(len);
                number
            }
        };
        trace.writes += u64::from(write != 0);
        trace.requests.push(number | write);
        Ok(())
    }

    fn oracle(&mut self, file: &mut impl Read) -> Result<(), String> {
        let mut record = [0; 24];
        let mut number = 0_u64;
        while !self.is_full() && trace_file::read_record(file, &mut record).map_err(|e| e.to_string())? {
            number += 1;
            let field = |at: std::ops::Range<usize>| {
                let bytes = record[at].iter().rev();
                bytes.fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
            };
            // The next request is a later one, or none (-1, in some traces -2): other files fail here soon.
            let next = field(16..24) as i64;
            if next < -2 {
                return Err(format!(
                    "record {number} has {next} as its next request, so this is not an oracle trace"
                ));
            }
            self.push(field(4..12).to_string().as_bytes(), field(12..16), Kind::Read)
                .map_err(|reason| format!("record {number}: {reason}"))?;
        }
        Ok(())
    }

    fn lines(&mut self, file: &mut impl BufRead) -> Result<(), String> {
        let (mut line, mut number) = (Vec::new(), 0_u64);
        while !self.is_full() {
            line.clear();
            let read = file.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line);
            let read = read.map_err(|e| e.to_string())?;
            if read == 0 {
                break;
            }
            number += 1;
            if read as u64 == MAX_LINE_BYTES && line.last() != Some(&b'\n') {
                return Err(format!("line {number} is longer than {MAX_LINE_BYTES} bytes"));
            }
            let text = if number == 1 { without_mark(&line) } else { &line };
            let text = text.trim_ascii();
            if text.is_empty() || text.starts_with(b"#") {
                continue;
            }
            let taken = match self.trace.format {
                TraceFormat::Arc => self.blocks(text),
                TraceFormat::Keys if is_of_monitor(text) => {
                    Err("a line of the MONITOR command's output, not a key: extract the keys first".into())
                }
                TraceFormat::Keys => self.push(text, DEFAULT_BYTES.into(), Kind::Read),
                TraceFormat::Csv | TraceFormat::Oracle => self.fields(text),
            };
            taken.map_err(|reason| {
                let shown: String = String::from_utf8_lossy(text).chars().take(40).collect();
                format!("line {number}: {reason}: `{}`", shown.escape_default())
            })?;
        }
        Ok(())
    }

    fn blocks(&mut self, line: &[u8]) -> Result<(), String> {
        let mut numbers = line
            .split(|byte| byte.is_ascii_whitespace())
            .filter(|word| !word.is_empty());
        let (Some(first), Some(count)) = (numbers.next().and_then(decimal), numbers.next().and_then(decimal)) else {
            return Err("it must begin with two numbers, a block and a count".into());
        };
        if count > MAX_BLOCKS {
            return Err(format!("{count} blocks are more than {MAX_BLOCKS}"));
        }
        for block in first..first.saturating_add(count) {
            self.push(block.to_string().as_bytes(), BLOCK_BYTES.into(), Kind::Read)?;
        }
        Ok(())
    }

    fn fields(&mut self, line: &[u8]) -> Result<(), String> {
        let fields: Vec<&[u8]> = if line.contains(&b',') {
            line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).collect()
        } else {
            line.split(|byte| byte.is_ascii_whitespace())
                .filter(|word| !word.is_empty())
                .collect()
        };
        let columns = match self.columns {
            Some(columns) => columns,
            None => {
                let names = Columns::named(&fields);
                let columns = names.or_else(|| Columns::counted(fields.len()));
                let columns = columns.ok_or("no header with `key`, and not 2, 3 or 7 fields")?;
                self.columns = Some(columns);
                if names.is_some() {
                    return Ok(());
                }
                columns
            }
        };
        let key = *fields.get(columns.key).ok_or("its key is missing")?;
        let len = match columns.size {
            Some(at) => fields
                .get(at)
                .and_then(|field| decimal(field))
                .ok_or("its size is not a number")?,
            None => DEFAULT_BYTES.into(),
        };
        let kind = match columns.operation.and_then(|at| fields.get(at)) {
            None => Kind::Read,
            Some(word) => kind(word),
        };
        let repeats = match columns.repeats.and_then(|at| fields.get(at)).copied() {
            None | Some(b"") => 1,
            Some(word) => decimal(word).ok_or("its op_count is not a number")?,
        };
        for _ in 0..repeats {
            if self.is_full() {
                break;
            }
            self.push(key, len, kind)?;
        }
        Ok(())
    }
}

impl Columns {
    /// Of a line of names.
    fn named(names: &[&[u8]]) -> Option<Self> {
        let at = |known: &[&str]| {
            let mut columns = names.iter();
            columns.position(|name| known.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes())))
        };
        Some(Self {
            key: at(&["key", "obj_id", "object_id", "id"])?,
            size: at(&["size", "value_size", "obj_size", "val_size"]),
            operation: at(&["op", "operation"]),
            repeats: at(&["op_count"]),
        })
    }

    /// Of a line without names, by how many fields it has.
    fn counted(fields: usize) -> Option<Self> {
        let (key, size, operation) = match fields {
            2 => (0, 1, None),
            3 => (1, 2, None),
            // time, key, key size, value size, client, operation, time to live
            7 => (1, 3, Some(5)),
            _ => return None,
        };
        Some(Self {
            key,
            size: Some(size),
            operation,
            repeats: None,
        })
    }
}

/// Whether a line is one of what Redis's and Valkey's MONITOR prints:
/// `1339518083.107412 [0 127.0.0.1:60866] "get" "key"`.
fn is_of_monitor(line: &[u8]) -> bool {
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let time = words.next().unwrap_or_default();
    let is_time = time.contains(&b'.') && time.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    let database = words.next().and_then(|word| word.strip_prefix(b"["));
    let client = words.next().unwrap_or_default();
    is_time && database.and_then(decimal).is_some() && client.windows(3).any(|three| three == b"] \"")
}

fn kind(word: &[u8]) -> Kind {
    let word = word.to_ascii_lowercase();
    match word.as_slice() {
        b"get" | b"gets" | b"get_lease" | b"read" => Kind::Read,
        b"set" | b"set_lease" | b"add" | b"replace" | b"cas" | b"append" | b"prepend" | b"incr" | b"decr"
        | b"write" => Kind::Write,
        _ => Kind::Other,
    }
}

fn decimal(word: &[u8]) -> Option<u64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}
