//! The generations that new values of a database belong to.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use leafpress::TreeError;

use super::generation::{Hold, KindCounts};
use super::record_key::ID_BYTES;
use super::settings::trees;

/// The generations of one database: the last is for new values if it is `open`.
#[derive(Default)]
struct Database {
    generations: Vec<Hold>,
    is_open: bool,
}

/// All databases, and those that a replica loads next to them.
pub struct Databases {
    current: Vec<Database>,
    aside: Option<Vec<Database>>,
}

/// The totals of all generations that are not closed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    /// Generations.
    pub generations: u64,
    /// Of maps.
    pub maps: KindTotals,
    /// Of strings.
    pub texts: KindTotals,
}

/// The totals of the values of one kind.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct KindTotals {
    /// Values.
    pub keys: u64,
    /// Records.
    pub records: u64,
    /// Bytes of fields and values.
    pub user_bytes: u64,
}

impl KindTotals {
    /// Adds the values of a generation.
    pub fn add(&mut self, counts: &KindCounts) {
        self.keys += counts.keys.load(Ordering::Relaxed);
        self.records += counts.records.load(Ordering::Relaxed);
        self.user_bytes += counts.user_bytes.load(Ordering::Relaxed);
    }

    /// Returns the bytes of the records' keys and values in a tree.
    pub fn key_and_value_bytes(&self) -> u64 {
        self.user_bytes + self.records * ID_BYTES as u64
    }
}

impl Totals {
    /// Returns the bytes of fields and values.
    pub fn user_bytes(&self) -> u64 {
        self.maps.user_bytes + self.texts.user_bytes
    }
}

static DATABASES: Mutex<Databases> = Mutex::new(Databases::new());

/// Returns the databases. Only the server's main thread uses them, so that nothing waits and no other thread holds the
/// lock at a fork.
pub fn databases() -> MutexGuard<'static, Databases> {
    DATABASES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a hold on the generation for a new value of a database, and the value's number.
pub fn place_in(database: i32) -> Result<(Hold, u64), TreeError> {
    databases().place(database, false)
}

/// Returns the place for a value that is loaded.
pub fn place_loaded(database: i32) -> Result<(Hold, u64), TreeError> {
    databases().place(database, true)
}

impl Databases {
    /// No databases yet.
    pub const fn new() -> Self {
        Self {
            current: Vec::new(),
            aside: None,
        }
    }

    /// Returns a hold on the generation for a new value of a database, and the value's number.
    pub fn place(&mut self, database: i32, is_loaded: bool) -> Result<(Hold, u64), TreeError> {
        let databases = match &mut self.aside {
            Some(aside) if is_loaded => aside,
            _ => &mut self.current,
        };
        let index = usize::try_from(database).unwrap_or(0);
        if databases.len() <= index {
            databases.resize_with(index + 1, Database::default);
        }
        let database = &mut databases[index];
        if database.is_open
            && let Some(generation) = database.generations.last()
            && let Some(id) = generation.new_id()
        {
            return Ok((generation.clone(), id));
        }
        let generation = Hold::create(&trees())?;
        let id = generation.new_id().unwrap_or_default();
        database.generations.push(generation.clone());
        database.is_open = true;
        Ok((generation, id))
    }

    /// Closes a database's generations, or all if it is negative: their values are about to be freed. A generation
    /// stays that has values in another database, for new values too; those that are freed are removed in steps.
    pub fn flush(&mut self, database: i32) {
        match usize::try_from(database) {
            Ok(index) => {
                if let Some(database) = self.current.get_mut(index) {
                    database.is_open &= database.generations.last().is_some_and(|last| last.is_shared());
                    let (shared, own) = database.generations.drain(..).partition(|hold| hold.is_shared());
                    database.generations = shared;
                    close(own);
                }
                let shared = self.generations().filter(|generation| generation.is_shared());
                shared.for_each(|generation| generation.set_emptied(true));
            }
            Err(_) => self.current.drain(..).for_each(|database| close(database.generations)),
        }
    }

    /// Ends the removal in steps that a flush has begun: it has freed its values, or leaves that to another thread.
    pub fn flushed(&mut self) {
        self.generations().for_each(|generation| generation.set_emptied(false));
    }

    /// Swaps two databases.
    pub fn swap(&mut self, first: i32, second: i32) {
        if let (Ok(first), Ok(second)) = (usize::try_from(first), usize::try_from(second)) {
            let len = first.max(second) + 1;
            if self.current.len() < len {
                self.current.resize_with(len, Database::default);
            }
            self.current.swap(first, second);
        }
    }

    /// Directs all loads from now on to generations of their own.
    pub fn begin_aside(&mut self) {
        self.end_aside(false);
        self.aside = Some(Vec::new());
    }

    /// Ends the separate load: the loaded data replaces the current data, or is dropped.
    pub fn end_aside(&mut self, is_taken: bool) {
        let Some(aside) = self.aside.take() else { return };
        let gone = match is_taken {
            true => std::mem::replace(&mut self.current, aside),
            false => aside,
        };
        gone.into_iter().for_each(|database| close(database.generations));
    }

    /// Directs new values to new generations, which are built with the current settings.
    pub fn renew(&mut self) {
        for database in self.all_mut() {
            database.is_open = false;
        }
    }

    /// Releases generations that are not for new values and have none left.
    pub fn drop_unused(&mut self) {
        for database in self.all_mut() {
            let last = database.generations.len().wrapping_sub(1);
            let is_open = database.is_open;
            let mut index = 0;
            database.generations.retain(|generation| {
                let is_current = is_open && index == last;
                index += 1;
                is_current || generation.holds() > 1
            });
        }
    }

    /// Returns all generations that are not closed.
    pub fn generations(&self) -> impl Iterator<Item = &Hold> {
        let aside = self.aside.iter().flatten();
        self.current
            .iter()
            .chain(aside)
            .flat_map(|database| &database.generations)
    }

    /// Returns the generations of one database, the oldest first.
    pub fn of(&self, database: i32) -> impl DoubleEndedIterator<Item = &Hold> {
        let database = usize::try_from(database).ok().and_then(|index| self.current.get(index));
        database.into_iter().flat_map(|database| &database.generations)
    }

    /// Returns their totals.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for generation in self.generations() {
            let counts = generation.counts();
            totals.generations += 1;
            totals.maps.add(&counts.maps);
            totals.texts.add(&counts.texts);
        }
        totals
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Database> {
        self.current.iter_mut().chain(self.aside.iter_mut().flatten())
    }
}

/// Has the trees dropped when their last value is freed.
fn close(generations: Vec<Hold>) {
    for generation in &generations {
        generation.close();
    }
}
