//! The options that commands of strings have in common: conditions, and times to live.

use crate::api::native::{Server, Since, now_ms};
use crate::api::{Context, Failure, Str};
use crate::store::number::integer;

/// The first versions whose `SET` has `IFEQ`.
const WITH_IFEQ: Since = Since {
    valkey: 0x08_01_00,
    redis: Some(0x08_04_00),
};

/// The new expiry of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// None.
    Never,
    /// The key's own.
    Kept,
    /// This time, in milliseconds of the Unix epoch.
    At(i64),
}

impl Expiry {
    /// Returns whether the time has passed, so that the key is deleted. A replica waits for its primary to do that, and
    /// commands that are loaded are followed by what did it.
    pub fn is_past(self, context: Context) -> bool {
        matches!(self, Self::At(at) if at <= now_ms() && !context.is_replica() && !context.is_loading())
    }
}

/// Which keys are set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Condition<'c> {
    /// All.
    Always,
    /// Those that are not there.
    IfAbsent,
    /// Those that are there.
    IfPresent,
    /// Those with this string.
    IfEqual(&'c [u8]),
}

/// The commands that have options, as far as these differ.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// `SET`.
    Set,
    /// `MSETEX`.
    SetMany,
    /// `GETEX`.
    Get,
}

/// What options say.
pub struct Options<'c> {
    /// Which keys are set.
    pub condition: Condition<'c>,
    /// Whether the previous value is returned.
    pub is_get: bool,
    /// Whether the key loses its expiry: an option of `GETEX`.
    pub is_persist: bool,
    is_kept: bool,
    time: Option<(Unit, Str<'c>)>,
}

impl<'c> Options<'c> {
    /// Parses options.
    pub fn of(mut rest: &[Str<'c>], command: Of) -> Result<Self, Failure> {
        let mut options = Self {
            condition: Condition::Always,
            is_get: false,
            is_persist: false,
            is_kept: false,
            time: None,
        };
        while let [option, following @ ..] = rest {
            rest = following;
            match option.bytes().to_ascii_uppercase().as_slice() {
                b"NX" if command != Of::Get && options.allows(Condition::IfAbsent) => {
                    options.condition = Condition::IfAbsent;
                }
                b"XX" if command != Of::Get && options.allows(Condition::IfPresent) => {
                    options.condition = Condition::IfPresent;
                }
                b"IFEQ"
                    if command == Of::Set
                        && Server::running().is(WITH_IFEQ)
                        && options.condition == Condition::Always
                        && !rest.is_empty() =>
                {
                    options.condition = Condition::IfEqual(rest[0].bytes());
                    rest = &rest[1..];
                }
                b"GET" if command == Of::Set => options.is_get = true,
                b"KEEPTTL" if command != Of::Get && options.time.is_none() => options.is_kept = true,
                b"PERSIST" if command == Of::Get && options.time.is_none() => options.is_persist = true,
                unit if !options.is_kept && !options.is_persist && !rest.is_empty() => {
                    let unit = Unit::of(unit).ok_or(Failure::SYNTAX)?;
                    // The native commands take a unit more than once: the last one counts.
                    if options.time.is_some_and(|(earlier, _)| earlier != unit) {
                        return Err(Failure::SYNTAX);
                    }
                    options.time = Some((unit, rest[0]));
                    rest = &rest[1..];
                }
                _ => return Err(Failure::SYNTAX),
            }
        }
        Ok(options)
    }

    fn allows(&self, condition: Condition<'_>) -> bool {
        self.condition == Condition::Always || self.condition == condition
    }

    /// Returns the expiry. The native commands check it when all options are known to be valid.
    pub fn expiry(&self) -> Result<Expiry, Failure> {
        match self.time {
            Some((unit, time)) => Ok(Expiry::At(unit.at(time)?)),
            None if self.is_kept => Ok(Expiry::Kept),
            None => Ok(Expiry::Never),
        }
    }
}

/// A unit of time, and where it begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    milliseconds: i64,
    is_relative: bool,
}

impl Unit {
    /// Seconds from now on.
    pub const SECONDS: Self = Self {
        milliseconds: 1000,
        is_relative: true,
    };
    /// Milliseconds from now on.
    pub const MILLISECONDS: Self = Self {
        milliseconds: 1,
        is_relative: true,
    };

    fn of(name: &[u8]) -> Option<Self> {
        let absolute = |unit: Self| Self {
            is_relative: false,
            ..unit
        };
        match name {
            b"EX" => Some(Self::SECONDS),
            b"PX" => Some(Self::MILLISECONDS),
            b"EXAT" => Some(absolute(Self::SECONDS)),
            b"PXAT" => Some(absolute(Self::MILLISECONDS)),
            _ => None,
        }
    }

    /// Returns the time in milliseconds of the Unix epoch.
    pub fn at(self, time: Str<'_>) -> Result<i64, Failure> {
        let time = integer(time.bytes()).ok_or(Failure::NOT_INTEGER)?;
        let begin = if self.is_relative { now_ms() } else { 0 };
        Some(time)
            .filter(|time| *time > 0)
            .and_then(|time| time.checked_mul(self.milliseconds))
            .and_then(|time| time.checked_add(begin))
            .ok_or(Failure::InvalidExpiry)
    }
}
