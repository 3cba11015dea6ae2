//! Passes over the keys of databases in the background, which conversions and counts of memory use.
//!
//! A task of each kind runs at a time, in steps on the server's timer, in its thread. It finds keys by `SCAN`, with its
//! guarantee: a key that is there from the beginning to the end is found.

use std::ffi::CStr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::api::{Context, Failure, OwnedStr, Str};
use crate::prefixes::Family;

/// Keys that one step of the scan looks at.
const SCANNED_AT_ONCE: &[u8] = b"100";

const UNKNOWN_TYPE: Failure = Failure::text("ERR the type is hash or string: no other is compressed");

/// The keys that a pass is about.
#[derive(Debug, Clone)]
pub struct Selection {
    /// The pattern of the keys, as of `SCAN`.
    pub pattern: Option<Vec<u8>>,
    /// The only type, as clients see it.
    pub family: Option<Family>,
    /// The database, or the one that is scanned now.
    pub database: i32,
    /// Whether all databases are scanned, one after the other.
    pub has_all_databases: bool,
}

impl Selection {
    /// Selects all keys of a database.
    pub fn new(database: i32) -> Self {
        Self {
            pattern: None,
            family: None,
            database,
            has_all_databases: false,
        }
    }

    /// Takes `MATCH`, `TYPE` or `ALLDBS` from the beginning of the options; returns the rest, or `None` if they begin
    /// with something else.
    pub fn take_option<'a, 's>(&mut self, options: &'a [Str<'s>]) -> Result<Option<&'a [Str<'s>]>, Failure> {
        let [option, rest @ ..] = options else {
            return Ok(None);
        };
        let is = |word: &[u8]| option.bytes().eq_ignore_ascii_case(word);
        Ok(match rest {
            _ if is(b"ALLDBS") => {
                self.has_all_databases = true;
                self.database = 0;
                Some(rest)
            }
            [pattern, rest @ ..] if is(b"MATCH") => {
                self.pattern = Some(pattern.bytes().to_vec());
                Some(rest)
            }
            [name, rest @ ..] if is(b"TYPE") => {
                self.family = Some(Family::named(name.bytes()).ok_or(UNKNOWN_TYPE)?);
                Some(rest)
            }
            _ => None,
        })
    }

    /// Returns whether keys of a type are among them.
    pub fn has_family(&self, family: Family) -> bool {
        self.family.is_none_or(|wanted| wanted == family)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    /// It continues when the reason is gone.
    Waiting(&'static str),
    Done,
    Stopped(&'static str),
}

/// A pass, and its end if it has ended.
pub struct Pass {
    selection: Selection,
    state: State,
    /// The place of the scan, as `SCAN` returned it.
    cursor: Vec<u8>,
    /// Whether the database was scanned to its end.
    is_scanned: bool,
    /// Keys that were found, and not looked at.
    found: Vec<OwnedStr>,
    /// The number of keys that were found.
    scanned: u64,
    last_error: String,
    began: Instant,
    took: Option<Duration>,
}

/// The report of a pass.
pub struct PassStatus {
    /// `running`, `waiting`, `done` or `stopped`.
    pub state: &'static str,
    /// Why it waits or was stopped.
    pub reason: &'static str,
    /// The pattern.
    pub pattern: Vec<u8>,
    /// The type, or `any`.
    pub value_type: &'static CStr,
    /// The database that is or was scanned last.
    pub database: i32,
    /// The number of keys that the scan has returned.
    pub scanned: u64,
    /// The last key that failed, and why.
    pub last_error: String,
    /// The time since it began, or that it took.
    pub seconds: u64,
}

impl Pass {
    /// Begins a pass.
    pub fn new(selection: Selection) -> Self {
        Self {
            selection,
            state: State::Running,
            cursor: b"0".to_vec(),
            is_scanned: false,
            found: Vec::new(),
            scanned: 0,
            last_error: String::new(),
            began: Instant::now(),
            took: None,
        }
    }

    /// Returns the keys that it is about.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Returns whether it has not ended.
    pub fn is_running(&self) -> bool {
        matches!(self.state, State::Running | State::Waiting(_))
    }

    /// Notes that a key failed, and why; returns that text.
    pub fn note_error(&mut self, name: Str<'_>, failure: &Failure) -> &str {
        self.last_error = format!("{}: {}", String::from_utf8_lossy(name.bytes()), text_of(failure));
        &self.last_error
    }

    /// Reports it.
    pub fn status(&self) -> PassStatus {
        let (state, reason) = match self.state {
            State::Running => ("running", ""),
            State::Waiting(reason) => ("waiting", reason),
            State::Done => ("done", ""),
            State::Stopped(reason) => ("stopped", reason),
        };
        PassStatus {
            state,
            reason,
            pattern: self.selection.pattern.clone().unwrap_or_else(|| b"*".to_vec()),
            value_type: self.selection.family.map_or(c"any", Family::type_name),
            database: self.selection.database,
            scanned: self.scanned,
            last_error: self.last_error.clone(),
            seconds: self.took.unwrap_or_else(|| self.began.elapsed()).as_secs(),
        }
    }

    fn scan_again(&mut self) {
        self.cursor = b"0".to_vec();
        self.is_scanned = false;
        self.found.clear();
    }

    /// Finds some more keys.
    fn scan(&mut self, context: Context) -> Result<(), Failure> {
        let mut arguments: Vec<&[u8]> = vec![&self.cursor, b"COUNT", SCANNED_AT_ONCE];
        if let Some(pattern) = &self.selection.pattern {
            arguments.extend([b"MATCH".as_slice(), pattern]);
        }
        let (cursor, found) = context.scan(&arguments)?;
        self.is_scanned = cursor == b"0";
        self.cursor = cursor;
        self.scanned += found.len() as u64;
        self.found = found;
        Ok(())
    }

    /// Returns the next key, with its database selected; `None` if none is known yet. A state other than a running one
    /// ends the pass.
    fn next(&mut self, context: Context) -> Result<Option<OwnedStr>, State> {
        if !context.select_database(self.selection.database) {
            return Err(State::Stopped("the server has no such database"));
        }
        if let Some(name) = self.found.pop() {
            return Ok(Some(name));
        }
        if !self.is_scanned {
            self.scan(context).map_err(|failure| {
                self.last_error = text_of(&failure);
                State::Stopped("the server did not run SCAN")
            })?;
        } else if self.selection.has_all_databases && context.select_database(self.selection.database + 1) {
            self.selection.database += 1;
            self.scan_again();
        } else {
            return Err(State::Done);
        }
        Ok(None)
    }
}

/// Returns the text of an error without its code.
fn text_of(failure: &Failure) -> String {
    match failure {
        Failure::Text(text) => text.strip_prefix("ERR ").unwrap_or(text).to_owned(),
        other => format!("{other:?}"),
    }
}

/// Something that is done with each key of a pass.
pub trait Task {
    /// The error of a request to begin another one.
    const IS_RUNNING: Failure;
    /// The command that stops it.
    const STOP: &'static str;

    /// Returns its pass.
    fn pass(&self) -> &Pass;

    /// Returns its pass, to be changed.
    fn pass_mut(&mut self) -> &mut Pass;

    /// Returns why it cannot continue.
    fn reason_to_stop(context: Context) -> Option<&'static str>;

    /// Returns why it cannot continue now.
    fn reason_to_wait(context: Context) -> Option<&'static str>;

    /// Does it with a key, which may be gone.
    fn visit(&mut self, context: Context, name: Str<'_>);

    /// The pass begins again from its first key.
    fn begins_again(&mut self) {}

    /// It has ended.
    fn ended(&self) {}
}

/// The last task of a kind. Only the server's main thread uses it, so that nothing waits.
pub struct Slot<T>(Mutex<Option<T>>);

impl<T: Task> Slot<T> {
    /// Makes an empty one.
    pub const fn new() -> Self {
        Self(Mutex::new(None))
    }

    fn locked(&self) -> MutexGuard<'_, Option<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a task, unless one is running.
    pub fn begin(&self, task: T) -> Result<(), Failure> {
        let mut current = self.locked();
        if current.as_ref().is_some_and(|task| task.pass().is_running()) {
            return Err(T::IS_RUNNING);
        }
        *current = Some(task);
        Ok(())
    }

    /// Returns what `read` makes of the running task, or of the last one.
    pub fn read<R>(&self, read: impl FnOnce(&T) -> R) -> Option<R> {
        self.locked().as_ref().map(read)
    }

    /// Calls `change` with the running task; returns whether there is one.
    fn change(&self, change: impl FnOnce(&mut T)) -> bool {
        let mut current = self.locked();
        let running = current.as_mut().filter(|task| task.pass().is_running());
        running.map(change).is_some()
    }

    /// Returns whether a task is running.
    pub fn is_running(&self) -> bool {
        self.read(|task| task.pass().is_running()).unwrap_or_default()
    }

    /// Stops the task; returns whether one was running.
    pub fn stop(&self) -> bool {
        self.change(|task| end(task, State::Stopped(T::STOP)))
    }

    /// Lets the task wait, if there is one.
    pub fn wait(&self, reason: &'static str) {
        self.change(|task| task.pass_mut().state = State::Waiting(reason));
    }

    /// Two databases have changed their places: the scan follows its database, and begins again where all are scanned.
    pub fn swap(&self, first: i32, second: i32) {
        self.change(|task| {
            let pass = task.pass_mut();
            let selection = &mut pass.selection;
            if selection.has_all_databases {
                selection.database = 0;
                pass.scan_again();
                task.begins_again();
            } else if selection.database == first {
                selection.database = second;
            } else if selection.database == second {
                selection.database = first;
            }
        });
    }

    /// Runs the task, if there is one, for about `budget`, and at least for one key; returns whether there is more to
    /// do.
    pub fn step(&self, context: Context, budget: Duration) -> bool {
        // It is taken out meanwhile, since the calls here may call back into the module.
        let task = self.locked().take();
        let Some(task) = task else {
            return false;
        };
        let mut taken = Taken {
            slot: self,
            task: Some(task),
        };
        match &mut taken.task {
            Some(task) if task.pass().is_running() => {
                run(task, context, budget);
                task.pass().is_running()
            }
            _ => false,
        }
    }
}

/// A task that is put back when this is dropped; a panic ends it.
struct Taken<'s, T: Task> {
    slot: &'s Slot<T>,
    task: Option<T>,
}

impl<T: Task> Drop for Taken<'_, T> {
    fn drop(&mut self) {
        if let Some(mut task) = self.task.take() {
            if std::thread::panicking() {
                end(
                    &mut task,
                    State::Stopped("a defect in the module: see the server's log"),
                );
            }
            *self.slot.locked() = Some(task);
        }
    }
}

fn end<T: Task>(task: &mut T, state: State) {
    let pass = task.pass_mut();
    pass.state = state;
    pass.found.clear();
    pass.took = Some(pass.began.elapsed());
    task.ended();
}

fn run<T: Task>(task: &mut T, context: Context, budget: Duration) {
    let begin = Instant::now();
    if let Some(reason) = T::reason_to_stop(context) {
        return end(task, State::Stopped(reason));
    }
    loop {
        if let Some(reason) = T::reason_to_wait(context) {
            task.pass_mut().state = State::Waiting(reason);
            return;
        }
        task.pass_mut().state = State::Running;
        match task.pass_mut().next(context) {
            Ok(Some(name)) => task.visit(context, name.as_str()),
            Ok(None) => {}
            Err(state) => return end(task, state),
        }
        if begin.elapsed() >= budget {
            return;
        }
    }
}
