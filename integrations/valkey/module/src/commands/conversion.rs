//! Conversion of many keys in the background: native values become compressed ones, or the other way round.
//!
//! One conversion runs at a time, in steps on the server's timer, in its thread. It finds keys by `SCAN`, with its
//! guarantee: a key that is there from the beginning to the end is found. Each key is converted as a whole between two
//! commands, so that no write can come between, and is replicated as `LP.IMPORT` or `LP.EXPORT` of that key. So a
//! conversion that ends early leaves only whole values behind, and another one continues its work.

use std::ffi::CStr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::convert::{Limits, NO_KEY, TOO_LARGE, export_key, import_key};
use crate::api::context::{is_memory_short, log_notice, log_warning};
use crate::api::{Context, Failure, Key, OwnedStr, Str};
use crate::prefixes::Family;

/// Keys that one step of the scan looks at.
const SCANNED_AT_ONCE: &[u8] = b"100";
/// Keys that are named in the server's log because they were not converted.
const MAX_LOGGED: u64 = 100;

/// The direction of a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Compressed values of native ones.
    Import,
    /// Native values of compressed ones.
    Export,
}

/// What is converted.
#[derive(Debug, Clone)]
pub struct Scope {
    /// The direction.
    pub direction: Direction,
    /// The pattern of the keys, as of `SCAN`.
    pub pattern: Option<Vec<u8>>,
    /// The only type that is converted, as clients see it.
    pub family: Option<Family>,
    /// The database, or the one that is scanned now.
    pub database: i32,
    /// Whether all databases are scanned, one after the other.
    pub has_all_databases: bool,
    /// Larger values stay unchanged.
    pub limits: Limits,
}

/// Counts of keys.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Those that the scan has returned.
    pub scanned: u64,
    /// Those that were converted.
    pub converted: u64,
    /// Those that are larger than the limits.
    pub too_large: u64,
    /// Those that cannot be converted.
    pub failed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    /// It continues when the reason is gone.
    Waiting(&'static str),
    Done,
    Stopped(&'static str),
}

/// The report of a conversion.
pub struct Status {
    /// `running`, `waiting`, `done` or `stopped`.
    pub state: &'static str,
    /// Why it waits or was stopped.
    pub reason: &'static str,
    /// `import` or `export`.
    pub direction: &'static str,
    /// The pattern.
    pub pattern: Vec<u8>,
    /// The type, or `any`.
    pub value_type: &'static CStr,
    /// The database that is or was scanned last.
    pub database: i32,
    /// Counts of keys.
    pub counts: Counts,
    /// The last key that was not converted, and why.
    pub last_error: String,
    /// The time since it began, or that it took.
    pub seconds: u64,
}

/// A conversion, and its end if it has ended.
struct Conversion {
    scope: Scope,
    state: State,
    /// The place of the scan, as `SCAN` returned it.
    cursor: Vec<u8>,
    /// Whether the database was scanned to its end.
    is_scanned: bool,
    /// Keys that were found, and not looked at.
    found: Vec<OwnedStr>,
    counts: Counts,
    last_error: String,
    began: Instant,
    took: Option<Duration>,
}

static CONVERSION: Mutex<Option<Conversion>> = Mutex::new(None);

/// Returns the last conversion. Only the server's main thread uses it, so that nothing waits.
fn conversion() -> MutexGuard<'static, Option<Conversion>> {
    CONVERSION.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins a conversion, unless one is running.
pub fn begin(scope: Scope) -> Result<(), Failure> {
    let mut current = conversion();
    if current.as_ref().is_some_and(Conversion::is_running) {
        return Err(Failure::text(
            "ERR a conversion is running: see LP.CONVERT STATUS, and LP.CONVERT STOP to end it",
        ));
    }
    *current = Some(Conversion {
        scope,
        state: State::Running,
        cursor: b"0".to_vec(),
        is_scanned: false,
        found: Vec::new(),
        counts: Counts::default(),
        last_error: String::new(),
        began: Instant::now(),
        took: None,
    });
    Ok(())
}

/// Stops the conversion; returns whether one was running.
pub fn stop() -> bool {
    match &mut *conversion() {
        Some(running) if running.is_running() => {
            running.end(State::Stopped("LP.CONVERT STOP"));
            true
        }
        _ => false,
    }
}

/// Reports the running conversion, or the last one.
pub fn status() -> Option<Status> {
    conversion().as_ref().map(Conversion::status)
}

/// Returns how many conversions are running, and how many keys the last one has converted and refused.
pub fn counts() -> (u64, u64, u64) {
    conversion().as_ref().map_or((0, 0, 0), |conversion| {
        let Counts {
            converted,
            too_large,
            failed,
            ..
        } = conversion.counts;
        (u64::from(conversion.is_running()), converted, too_large + failed)
    })
}

/// Two databases have changed their places: the scan follows its database, and begins again where all are scanned.
pub fn swap(first: i32, second: i32) {
    let mut current = conversion();
    let Some(running) = current.as_mut().filter(|running| running.is_running()) else {
        return;
    };
    let scope = &mut running.scope;
    if scope.has_all_databases {
        scope.database = 0;
        running.scan_again();
    } else if scope.database == first {
        scope.database = second;
    } else if scope.database == second {
        scope.database = first;
    }
}

/// Lets the conversion wait, if there is one.
pub fn wait(reason: &'static str) {
    if let Some(running) = conversion().as_mut().filter(|running| running.is_running()) {
        running.state = State::Waiting(reason);
    }
}

/// Runs the conversion, if there is one, for about `budget`, and at least for one key; returns whether there is more to
/// do.
pub fn step(context: Context, budget: Duration) -> bool {
    // It is taken out meanwhile, since the calls here may call back into the module.
    let taken = conversion().take();
    let Some(mut taken) = taken.map(|conversion| Taken(Some(conversion))) else {
        return false;
    };
    match &mut taken.0 {
        Some(running) if running.is_running() => {
            running.run(context, budget);
            running.is_running()
        }
        _ => false,
    }
}

/// A conversion that is put back when this is dropped; a panic ends it.
struct Taken(Option<Conversion>);

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(mut taken) = self.0.take() {
            if std::thread::panicking() {
                taken.end(State::Stopped("a defect in the module: see the server's log"));
            }
            *conversion() = Some(taken);
        }
    }
}

impl Conversion {
    fn is_running(&self) -> bool {
        matches!(self.state, State::Running | State::Waiting(_))
    }

    fn end(&mut self, state: State) {
        self.state = state;
        self.found.clear();
        self.took = Some(self.began.elapsed());
        let Counts {
            scanned,
            converted,
            too_large,
            failed,
        } = self.counts;
        log_notice(&format!(
            "leafpress: {} {}: of {scanned} keys {converted} were converted, {too_large} are too large, {failed} \
             failed",
            self.direction(),
            self.status().state,
        ));
    }

    fn direction(&self) -> &'static str {
        match self.scope.direction {
            Direction::Import => "import",
            Direction::Export => "export",
        }
    }

    fn status(&self) -> Status {
        let (state, reason) = match self.state {
            State::Running => ("running", ""),
            State::Waiting(reason) => ("waiting", reason),
            State::Done => ("done", ""),
            State::Stopped(reason) => ("stopped", reason),
        };
        Status {
            state,
            reason,
            direction: self.direction(),
            pattern: self.scope.pattern.clone().unwrap_or_else(|| b"*".to_vec()),
            value_type: self.scope.family.map_or(c"any", Family::type_name),
            database: self.scope.database,
            counts: self.counts,
            last_error: self.last_error.clone(),
            seconds: self.took.unwrap_or_else(|| self.began.elapsed()).as_secs(),
        }
    }

    fn scan_again(&mut self) {
        self.cursor = b"0".to_vec();
        self.is_scanned = false;
        self.found.clear();
    }

    fn run(&mut self, context: Context, budget: Duration) {
        let begin = Instant::now();
        if context.is_replica() {
            return self.end(State::Stopped("the server has become a replica"));
        }
        loop {
            if let Some(reason) = reason_to_wait(context) {
                self.state = State::Waiting(reason);
                return;
            }
            self.state = State::Running;
            if !context.select_database(self.scope.database) {
                return self.end(State::Stopped("the server has no such database"));
            }
            match self.found.pop() {
                Some(name) => self.convert(context, name.as_str()),
                None if !self.is_scanned => {
                    if let Err(failure) = self.scan(context) {
                        self.last_error = text_of(&failure);
                        return self.end(State::Stopped("the server did not run SCAN"));
                    }
                }
                None if self.scope.has_all_databases && context.select_database(self.scope.database + 1) => {
                    self.scope.database += 1;
                    self.scan_again();
                }
                None => return self.end(State::Done),
            }
            if begin.elapsed() >= budget {
                return;
            }
        }
    }

    /// Finds some more keys.
    fn scan(&mut self, context: Context) -> Result<(), Failure> {
        let mut arguments: Vec<&[u8]> = vec![&self.cursor, b"COUNT", SCANNED_AT_ONCE];
        if let Some(pattern) = &self.scope.pattern {
            arguments.extend([b"MATCH".as_slice(), pattern]);
        }
        let (cursor, found) = context.scan(&arguments)?;
        self.is_scanned = cursor == b"0";
        self.cursor = cursor;
        self.counts.scanned += found.len() as u64;
        self.found = found;
        Ok(())
    }

    fn convert(&mut self, context: Context, name: Str<'_>) {
        if !self.takes(context, name) {
            return;
        }
        let outcome = match self.scope.direction {
            Direction::Import => import_key(context, name, self.scope.limits),
            Direction::Export => export_key(context, name, self.scope.limits).map(|()| true),
        };
        let failure = match outcome {
            Ok(is_converted) => {
                self.counts.converted += u64::from(is_converted);
                return;
            }
            // It has expired.
            Err(failure) if failure == NO_KEY => return,
            Err(failure) => failure,
        };
        match failure == TOO_LARGE {
            true => self.counts.too_large += 1,
            false => self.counts.failed += 1,
        }
        self.last_error = format!("{}: {}", String::from_utf8_lossy(name.bytes()), text_of(&failure));
        if self.counts.too_large + self.counts.failed <= MAX_LOGGED {
            log_warning(&format!("leafpress: not converted: {}", self.last_error));
        }
    }

    /// Returns whether the key has a value that is to be converted. Keys of other types are none, and neither are those
    /// that have been deleted.
    fn takes(&self, context: Context, name: Str<'_>) -> bool {
        let key = Key::look(context, name);
        let found = match self.scope.direction {
            Direction::Import => Family::ALL.into_iter().find(|family| key.has_type(family.key_type())),
            Direction::Export => key.value().ok().flatten().map(|value| Family::of(&value)),
        };
        found.is_some_and(|found| self.scope.family.is_none_or(|wanted| wanted == found))
    }
}

/// Returns why no key may be converted now.
fn reason_to_wait(context: Context) -> Option<&'static str> {
    if context.is_loading() {
        Some("the server loads its data")
    } else if Context::has_paused_writes() {
        Some("writes are paused")
    } else if is_memory_short() {
        Some("memory is over its limit")
    } else {
        None
    }
}

/// Returns the text of an error without its code.
fn text_of(failure: &Failure) -> String {
    match failure {
        Failure::Text(text) => text.strip_prefix("ERR ").unwrap_or(text).to_owned(),
        other => format!("{other:?}"),
    }
}
