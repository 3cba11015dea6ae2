//! Native commands that are replaced in transparent mode, and their replacements.

use std::ffi::{CStr, CString, c_int};
use std::sync::OnceLock;

use super::{
    COMMANDS, FOR_FILTER, bits, counters, hash, hyperloglog, keyed, lcs, many, native, random, scan, set, strings,
    types,
};
use crate::api::Context;
use crate::api::command::{Command, handler, register as register_one};
use crate::api::raw::CommandFn;
use crate::api::twin::Twin;
use crate::prefixes::Family;

/// A native command, and its replacement.
pub struct Entry {
    /// The commands.
    pub twin: Twin,
    /// The family of its keys.
    pub family: Family,
    /// Which of its arguments are keys.
    pub keys: Keys,
    arity: c_int,
    run: CommandFn,
}

/// The arguments that are keys. A command is changed if any of its keys has a prefix.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// The first.
    First,
    /// The first two.
    Two,
    /// All.
    All,
    /// All from the second on.
    FromSecond,
    /// All except for the values between them.
    Pairs,
    /// As many as the first argument says, with values between them.
    CountedPairs,
    /// None: the keys are those that the patterns of `SORT` make.
    Patterns,
    /// The first, with a prefix of either family.
    EitherFamily,
    /// The first two, if the first has a prefix of a family that the second lacks.
    Leaving,
    /// None: the keys are those of the database, and the command is changed if it requests only hashes or strings.
    OfType,
}

impl Entry {
    /// Returns whether the native command takes this number of arguments, its name included.
    pub fn takes(&self, count: usize) -> bool {
        let count = c_int::try_from(count).unwrap_or(c_int::MAX);
        if self.arity < 0 {
            count >= -self.arity
        } else {
            count == self.arity
        }
    }
}

macro_rules! name {
    ($($part:expr),*) => {
        match CStr::from_bytes_with_nul(concat!($($part,)* "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => c"",
        }
    };
}

macro_rules! twins {
    (
        public($public:literal) { $($name:ident $run:path, $family:ident, $keys:ident;)* }
        for_filter($protected:literal) { $($native:ident $native_run:path, $native_family:ident, $native_keys:ident;)* }
    ) => {
        $(
            /// The native command of this name.
            pub static $name: &Twin = &ENTRIES[Number::$name as usize].twin;
        )*
        $(
            /// The native command of this name.
            pub static $native: &Twin = &ENTRIES[Number::$native as usize].twin;
        )*

        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "the commands' names")]
        enum Number {
            $($name,)*
            $($native,)*
        }

        const COUNT: usize = [$(Number::$name,)* $(Number::$native,)*].len();

        static ENTRIES: [Entry; COUNT] = [
            $(twins!(entry $name, $public, true, $run, $family, $keys),)*
            $(twins!(entry $native, $protected, false, $native_run, $native_family, $native_keys),)*
        ];
    };
    (entry $name:ident, $begin:literal, $has_public:literal, $run:path, $family:ident, $keys:ident) => {
        Entry {
            twin: Twin::new(
                name!(stringify!($name)),
                name!($begin, stringify!($name)),
                $has_public,
                name!("LP._", stringify!($name)),
                Family::$family.key_type(),
            ),
            family: Family::$family,
            keys: Keys::$keys,
            arity: arity_of(name!($begin, stringify!($name))),
            run: handler!($run, $name),
        }
    };
}

/// Returns the arity of a command of the tables; 0, which no command has, if there is none.
const fn arity_of(name: &CStr) -> c_int {
    let tables = [COMMANDS, FOR_FILTER];
    let mut table = 0;
    while table < tables.len() {
        let mut index = 0;
        while index < tables[table].len() {
            if is_same(tables[table][index].name.to_bytes(), name.to_bytes()) {
                return tables[table][index].arity;
            }
            index += 1;
        }
        table += 1;
    }
    0
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut index = 0;
    while index < one.len() && index < other.len() && one[index] == other[index] {
        index += 1;
    }
    one.len() == other.len() && index == one.len()
}

twins! {
    public("LP.") {
        HSET hash::hset, Hash, First;
        HMSET hash::hmset, Hash, First;
        HSETNX hash::hsetnx, Hash, First;
        HGET hash::hget, Hash, First;
        HMGET hash::hmget, Hash, First;
        HGETALL hash::hgetall, Hash, First;
        HDEL hash::hdel, Hash, First;
        HGETDEL hash::hgetdel, Hash, First;
        HEXISTS hash::hexists, Hash, First;
        HLEN hash::hlen, Hash, First;
        HSTRLEN hash::hstrlen, Hash, First;
        HKEYS hash::hkeys, Hash, First;
        HVALS hash::hvals, Hash, First;
        HSCAN scan::hscan, Hash, First;
        HINCRBY hash::hincrby, Hash, First;
        HINCRBYFLOAT hash::hincrbyfloat, Hash, First;
        HRANDFIELD random::hrandfield, Hash, First;
        SET set::set, Text, First;
        SETEX set::setex, Text, First;
        PSETEX set::psetex, Text, First;
        SETNX set::setnx, Text, First;
        GETSET set::getset, Text, First;
        GET strings::get, Text, First;
        GETEX keyed::getex, Text, First;
        GETDEL keyed::getdel, Text, First;
        DELIFEQ keyed::delifeq, Text, First;
        STRLEN strings::strlen, Text, First;
        GETRANGE strings::getrange, Text, First;
        SUBSTR strings::getrange, Text, First;
        SETRANGE strings::setrange, Text, First;
        APPEND strings::append, Text, First;
        INCR counters::incr, Text, First;
        INCRBY counters::incrby, Text, First;
        DECR counters::decr, Text, First;
        DECRBY counters::decrby, Text, First;
        INCRBYFLOAT counters::incrbyfloat, Text, First;
        LCS lcs::lcs, Text, Two;
        MGET many::mget, Text, All;
        MSET many::mset, Text, Pairs;
        MSETNX many::msetnx, Text, Pairs;
        MSETEX many::msetex, Text, CountedPairs;
    }
    for_filter("LP._AUTH_") {
        SETBIT native::first_converted, Text, First;
        BITFIELD native::first_converted, Text, First;
        BITOP native::bitop, Text, FromSecond;
        PFADD native::first_converted, Text, First;
        PFMERGE native::all_converted, Text, All;
        GETBIT bits::getbit, Text, First;
        BITCOUNT bits::bitcount, Text, First;
        BITPOS bits::bitpos, Text, First;
        BITFIELD_RO bits::bitfield_ro, Text, First;
        PFCOUNT hyperloglog::pfcount, Text, All;
        HEXPIRE native::field_expiry, Hash, First;
        HPEXPIRE native::field_expiry, Hash, First;
        HEXPIREAT native::field_expiry, Hash, First;
        HPEXPIREAT native::field_expiry, Hash, First;
        HPERSIST native::fields_without_expiry, Hash, First;
        HTTL native::fields_without_expiry, Hash, First;
        HPTTL native::fields_without_expiry, Hash, First;
        HEXPIRETIME native::fields_without_expiry, Hash, First;
        HPEXPIRETIME native::fields_without_expiry, Hash, First;
        HGETEX native::hgetex, Hash, First;
        HSETEX native::hsetex, Hash, First;
        SORT native::sort, Text, Patterns;
        SORT_RO native::sort, Text, Patterns;
        RENAME native::rename, Text, Leaving;
        RENAMENX native::renamenx, Text, Leaving;
        COPY native::copy, Text, Leaving;
        TYPE types::key_type, Text, EitherFamily;
        SCAN types::scan, Text, OfType;
    }
}

/// Native commands that not all of the servers have.
const NEWER: &[&CStr] = &[
    c"DELIFEQ",
    c"MSETEX",
    c"HGETDEL",
    c"HEXPIRE",
    c"HPEXPIRE",
    c"HEXPIREAT",
    c"HPEXPIREAT",
    c"HPERSIST",
    c"HTTL",
    c"HPTTL",
    c"HEXPIRETIME",
    c"HPEXPIRETIME",
    c"HGETEX",
    c"HSETEX",
];

/// Those of them that this server lacks.
static MISSING: OnceLock<Vec<&'static CStr>> = OnceLock::new();

/// Determines which of the native commands the server has.
pub fn look_for_natives(context: Context) {
    let newer = ENTRIES
        .iter()
        .map(|entry| entry.twin.native)
        .filter(|native| NEWER.contains(native));
    let _ = MISSING.set(newer.filter(|native| !context.has_command(native)).collect());
}

/// Returns whether the server has the native command that a public one is for, or may have it.
pub fn is_native_there(public: &CStr) -> bool {
    let mut entries = ENTRIES.iter().filter(|entry| entry.twin.public == public);
    entries.all(|entry| !is_missing(entry.twin.native))
}

fn is_missing(native: &CStr) -> bool {
    MISSING.get().is_some_and(|missing| missing.contains(&native))
}

/// Returns the entry of the native command of this name, if the server has it.
pub fn find(native: &[u8]) -> Option<&'static Entry> {
    ENTRIES
        .iter()
        .find(|entry| native.eq_ignore_ascii_case(entry.twin.native.to_bytes()))
        .filter(|entry| !is_missing(entry.twin.native))
}

fn public_of(twin: &Twin) -> Option<&'static Command<'static>> {
    let mut commands = COMMANDS.iter().chain(FOR_FILTER);
    commands.find(|command| command.name == twin.public)
}

fn has_flag(flags: &CStr, flag: &str) -> bool {
    flags
        .to_bytes()
        .split(|byte| *byte == b' ')
        .any(|each| each == flag.as_bytes())
}

/// Returns whether the command writes.
pub fn writes(twin: &Twin) -> bool {
    public_of(twin).is_some_and(|command| has_flag(command.flags, "write"))
}

/// Registers the commands that replace native ones in the filter. Each is like the public one, except that it is not
/// known to access control: the native command's permissions apply.
pub fn register(context: Context) -> Result<(), String> {
    for entry in ENTRIES.iter().filter(|entry| !is_missing(entry.twin.native)) {
        let Some(public) = public_of(&entry.twin) else {
            return Err(format!("there is no command {}", entry.twin.public.to_string_lossy()));
        };
        let flags = format!("{} no-auth", public.flags.to_string_lossy());
        let flags = CString::new(flags).map_err(|error| error.to_string())?;
        let command = Command {
            name: entry.twin.rewritten,
            run: entry.run,
            flags: &flags,
            arity: public.arity,
            keys: public.keys,
            summary: c"Stands for a native command in transparent mode",
            complexity: public.complexity,
            categories: "",
        };
        register_one(context, &command, None)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twins_are_found_in_any_case_and_nothing_else_is() {
        for (native, public) in [
            (&b"hset"[..], Some(c"LP.HSET")),
            (b"HincrByFloat", Some(c"LP.HINCRBYFLOAT")),
            (b"substr", Some(c"LP.SUBSTR")),
            (b"setbit", Some(c"LP._AUTH_SETBIT")),
            (b"MSET", Some(c"LP.MSET")),
            (b"", None),
            (b"HSETS", None),
            (b"a name that is longer than any", None),
            (b"LP.HSET", None),
            (b"LP._HSET", None),
        ] {
            assert_eq!(find(native).map(|entry| entry.twin.public), public);
        }
    }

    #[test]
    fn each_entry_has_a_command_of_its_name() {
        for entry in &ENTRIES {
            let public = public_of(&entry.twin).unwrap();
            assert_eq!(entry.arity, public.arity, "{:?}", public.name);
            assert!(public.name.to_bytes().ends_with(entry.twin.native.to_bytes()));
            assert!(find(entry.twin.native.to_bytes()).is_some());
        }
        assert!(NEWER.iter().all(|native| find(native.to_bytes()).is_some()));
    }

    #[test]
    fn the_number_of_arguments_is_the_native_commands() {
        for (native, count, expected) in [
            (&b"GET"[..], 2, true),
            (b"GET", 1, false),
            (b"GET", 3, false),
            (b"SET", 2, false),
            (b"SET", 9, true),
        ] {
            assert_eq!(find(native).unwrap().takes(count), expected);
        }
    }

    #[test]
    fn writes_are_known_as_such() {
        for (twin, expected) in [
            (HSET, true),
            (GETEX, true),
            (SETBIT, true),
            (HGET, false),
            (LCS, false),
            (HTTL, false),
        ] {
            assert_eq!(writes(twin), expected, "{:?}", twin.native);
        }
    }
}
