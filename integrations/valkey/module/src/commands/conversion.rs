//! Conversion of many keys in the background: native values become compressed ones, or the other way round.
//!
//! Each key is converted as a whole between two commands, so that no write can come between, and is replicated as
//! `LP.IMPORT` or `LP.EXPORT` of that key. So a conversion that ends early leaves only whole values behind, and another
//! one continues its work.

use super::convert::{Limits, NO_KEY, TOO_LARGE, export_key, import_key};
use super::pass::{Pass, PassStatus, Selection, Slot, Task};
use crate::api::context::{is_memory_short, log_notice, log_warning};
use crate::api::{Context, Failure, Key, Str};
use crate::prefixes::Family;

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
    /// The keys.
    pub selection: Selection,
    /// Larger values stay unchanged.
    pub limits: Limits,
}

/// Counts of keys.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Those that were converted.
    pub converted: u64,
    /// Those that are larger than the limits.
    pub too_large: u64,
    /// Those that cannot be converted.
    pub failed: u64,
}

/// The report of a conversion.
pub struct Status {
    /// That of its pass over the keys.
    pub pass: PassStatus,
    /// `import` or `export`.
    pub direction: &'static str,
    /// Counts of keys.
    pub counts: Counts,
}

/// A conversion, and its end if it has ended.
pub struct Conversion {
    direction: Direction,
    limits: Limits,
    pass: Pass,
    counts: Counts,
}

/// The running conversion, or the last one.
pub static CONVERSION: Slot<Conversion> = Slot::new();

/// Begins a conversion, unless one is running.
pub fn begin(scope: Scope) -> Result<(), Failure> {
    let Scope {
        direction,
        selection,
        limits,
    } = scope;
    CONVERSION.begin(Conversion {
        direction,
        limits,
        pass: Pass::new(selection),
        counts: Counts::default(),
    })
}

/// Reports the running conversion, or the last one.
pub fn status() -> Option<Status> {
    CONVERSION.read(|conversion| Status {
        pass: conversion.pass.status(),
        direction: conversion.direction(),
        counts: conversion.counts,
    })
}

/// Returns how many conversions are running, and how many keys the last one has converted and refused.
pub fn counts() -> (u64, u64, u64) {
    let counts = CONVERSION.read(|conversion| {
        let Counts {
            converted,
            too_large,
            failed,
        } = conversion.counts;
        (u64::from(conversion.pass.is_running()), converted, too_large + failed)
    });
    counts.unwrap_or_default()
}

impl Task for Conversion {
    const IS_RUNNING: Failure =
        Failure::text("ERR a conversion is running: see LP.CONVERT STATUS, and LP.CONVERT STOP to end it");
    const STOP: &'static str = "LP.CONVERT STOP";

    fn pass(&self) -> &Pass {
        &self.pass
    }

    fn pass_mut(&mut self) -> &mut Pass {
        &mut self.pass
    }

    fn reason_to_stop(context: Context) -> Option<&'static str> {
        context.is_replica().then_some("the server has become a replica")
    }

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

    fn visit(&mut self, context: Context, name: Str<'_>) {
        if !self.takes(context, name) {
            return;
        }
        let outcome = match self.direction {
            Direction::Import => import_key(context, name, self.limits),
            Direction::Export => export_key(context, name, self.limits).map(|()| true),
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
        let error = self.pass.note_error(name, &failure);
        if self.counts.too_large + self.counts.failed <= MAX_LOGGED {
            log_warning(&format!("leafpress: not converted: {error}"));
        }
    }

    fn ended(&self) {
        let Counts {
            converted,
            too_large,
            failed,
        } = self.counts;
        let PassStatus { state, scanned, .. } = self.pass.status();
        log_notice(&format!(
            "leafpress: {} {state}: of {scanned} keys {converted} were converted, {too_large} are too large, {failed} \
             failed",
            self.direction(),
        ));
    }
}

impl Conversion {
    fn direction(&self) -> &'static str {
        match self.direction {
            Direction::Import => "import",
            Direction::Export => "export",
        }
    }

    /// Returns whether the key has a value that is to be converted. Keys of other types are none, and neither are those
    /// that have been deleted.
    fn takes(&self, context: Context, name: Str<'_>) -> bool {
        let key = Key::look(context, name);
        let found = match self.direction {
            Direction::Import => Family::ALL.into_iter().find(|family| key.has_type(family.key_type())),
            Direction::Export => key.value().ok().flatten().map(|value| Family::of(&value)),
        };
        found.is_some_and(|found| self.pass.selection().has_family(found))
    }
}
