//! The module's commands.

mod access;
mod admin;
mod bits;
pub mod conversion;
mod convert;
mod convert_many;
mod counters;
mod dict;
mod expiry;
#[cfg(feature = "testing")]
mod faults;
mod glob;
mod hash;
mod hyperloglog;
mod keyed;
mod lcs;
mod many;
pub mod native;
mod native_memory;
mod ordered;
pub mod pass;
mod random;
mod scan;
mod set;
mod strings;
pub mod survey;
pub mod twins;
pub mod types;
mod usage;

use std::ffi::{CStr, c_int};

use crate::api::Context;
use crate::api::command::{Command, Keys, add_category, handler, register as register_one};
use crate::api::raw::{KEY_ACCESS, KEY_DELETE, KEY_INSERT, KEY_OW, KEY_RM, KEY_RO, KEY_RW, KEY_UPDATE, KEY_VARIABLE};

const READ: &CStr = c"readonly";
const READ_FAST: &CStr = c"readonly fast";
const WRITE: &CStr = c"write deny-oom";
const WRITE_FAST: &CStr = c"write deny-oom fast";
const REMOVE: &CStr = c"write";
const REMOVE_FAST: &CStr = c"write fast";
/// For commands with optional keys: the server queries their handlers.
const READ_GETKEYS: &CStr = c"readonly getkeys-api";
const WRITE_GETKEYS: &CStr = c"write deny-oom getkeys-api";
const ADMIN: &CStr = c"admin";

const RO: u64 = KEY_RO | KEY_ACCESS;
const RO_NO_DATA: u64 = KEY_RO;
const RW_UPDATE: u64 = KEY_RW | KEY_UPDATE;
const RW_INSERT: u64 = KEY_RW | KEY_INSERT;
const RW_CHANGE: u64 = KEY_RW | KEY_ACCESS | KEY_UPDATE;
const RW_DELETE: u64 = KEY_RW | KEY_DELETE;
const RW_TAKE: u64 = KEY_RW | KEY_ACCESS | KEY_DELETE;
const RW_READ: u64 = KEY_RW | KEY_ACCESS;
/// The keys' uses differ, and are checked for the native command.
const RW_ANY: u64 = KEY_RW;
const RM: u64 = KEY_RM | KEY_DELETE;
const OW: u64 = KEY_OW | KEY_UPDATE;
const OW_INSERT: u64 = KEY_OW | KEY_INSERT;
/// The server queries its handler: `GET` among the arguments makes it a read as well.
const RW_SET: u64 = RW_CHANGE | KEY_VARIABLE;

const fn one(flags: u64) -> Keys {
    Keys {
        first: 1,
        last: 1,
        step: 1,
        flags,
    }
}

const fn many(step: c_int, flags: u64) -> Keys {
    Keys {
        first: 1,
        last: -1,
        step,
        flags,
    }
}

const TWO: Keys = Keys {
    first: 1,
    last: 2,
    step: 1,
    flags: RO,
};
const FROM_AND_TO: Keys = Keys {
    first: 1,
    last: 2,
    step: 1,
    flags: RW_ANY,
};
const FROM_SECOND: Keys = Keys {
    first: 2,
    last: -1,
    step: 1,
    flags: RW_ANY,
};

const NO_KEYS: Keys = Keys {
    first: 0,
    last: 0,
    step: 0,
    flags: 0,
};

macro_rules! run_of {
    ($run:path; $kind:literal) => {
        handler!($run; $kind)
    };
    ($run:path; $kind:literal, $twin:expr) => {
        handler!($run, $twin)
    };
}

macro_rules! commands {
    ($table:ident: $($name:literal $run:path $(=> $twin:ident)?, $flags:ident, $arity:literal, $keys:expr, $kind:literal, $complexity:literal, $summary:literal;)*) => {
        const $table: &[Command<'static>] = &[$(Command {
            name: $name,
            run: run_of!($run; $kind $(, twins::$twin)?),
            flags: $flags,
            arity: $arity,
            keys: $keys,
            summary: $summary,
            complexity: $complexity,
            categories: $kind,
        },)*];
    };
}

commands! {
    COMMANDS:
    c"LP.HSET" hash::hset => HSET, WRITE_FAST, -4, one(RW_UPDATE), "write hash fast", c"O(N log R), N the pairs, R the tree's records", c"Sets fields of a map";
    c"LP.HMSET" hash::hmset => HMSET, WRITE_FAST, -4, one(RW_UPDATE), "write hash fast", c"O(N log R), N the pairs, R the tree's records", c"Sets fields of a map";
    c"LP.HSETNX" hash::hsetnx => HSETNX, WRITE_FAST, 4, one(RW_INSERT), "write hash fast", c"O(log R)", c"Sets a field of a map that is not there";
    c"LP.HGET" hash::hget => HGET, READ_FAST, 3, one(RO), "read hash fast", c"O(log R)", c"Gets a field of a map";
    c"LP.HMGET" hash::hmget => HMGET, READ_FAST, -3, one(RO), "read hash fast", c"O(N log R), N the fields", c"Gets fields of a map";
    c"LP.HGETALL" hash::hgetall => HGETALL, READ, 2, one(RO), "read hash slow", c"O(log R + N), N the map's fields", c"Gets all fields and values of a map, in order";
    c"LP.HDEL" hash::hdel => HDEL, REMOVE_FAST, -3, one(RW_DELETE), "write hash fast", c"O(N log R), N the fields", c"Removes fields of a map";
    c"LP.HGETDEL" hash::hgetdel => HGETDEL, REMOVE_FAST, -5, one(RW_TAKE), "write hash fast", c"O(N log R), N the fields", c"Gets fields of a map, and removes them";
    c"LP.HEXISTS" hash::hexists => HEXISTS, READ_FAST, 3, one(RO_NO_DATA), "read hash fast", c"O(log R)", c"Whether a map has a field";
    c"LP.HLEN" hash::hlen => HLEN, READ_FAST, 2, one(RO_NO_DATA), "read hash fast", c"O(1)", c"How many fields a map has";
    c"LP.HSTRLEN" hash::hstrlen => HSTRLEN, READ_FAST, 3, one(RO_NO_DATA), "read hash fast", c"O(log R)", c"The length of a field's value";
    c"LP.HKEYS" hash::hkeys => HKEYS, READ, 2, one(RO), "read hash slow", c"O(log R + N), N the map's fields", c"All fields of a map, in order";
    c"LP.HVALS" hash::hvals => HVALS, READ, 2, one(RO), "read hash slow", c"O(log R + N), N the map's fields", c"All values of a map, in order of the fields";
    c"LP.HSCAN" scan::hscan => HSCAN, READ, -3, one(RO), "read hash slow", c"O(log R + N), N the fields that the step visits", c"Walks over a map in steps";
    c"LP.HINCRBY" hash::hincrby => HINCRBY, WRITE_FAST, 4, one(RW_CHANGE), "write hash fast", c"O(log R)", c"Adds to an integer in a map";
    c"LP.HINCRBYFLOAT" hash::hincrbyfloat => HINCRBYFLOAT, WRITE_FAST, 4, one(RW_CHANGE), "write hash fast", c"O(log R)", c"Adds to a float in a map";
    c"LP.HRANDFIELD" random::hrandfield => HRANDFIELD, READ, -2, one(RO), "read hash slow", c"O(N log R), N the fields drawn; O(N + F), F the map's fields, for more than a 32nd of them", c"Random fields of a map";
    c"LP.RANGE" ordered::range, READ, -4, one(RO), "read hash slow", c"O(log R + N) for what is skipped and returned", c"Fields of a map from one to another";
    c"LP.COUNT" ordered::count, READ, 4, one(RO), "read hash slow", c"O(log R + N) for what is counted; O(1) for all fields", c"How many fields a map has from one to another";
    c"LP.REMRANGE" ordered::remrange, REMOVE, 4, one(RW_DELETE), "write hash slow", c"O(log R + N) for what is removed; pages that lie in the range are not read", c"Removes the fields of a map from one to another";
    c"LP.FIRST" ordered::first, READ_FAST, 2, one(RO), "read hash fast", c"O(log R)", c"The first field of a map, and its value";
    c"LP.LAST" ordered::last, READ_FAST, 2, one(RO), "read hash fast", c"O(log R)", c"The last field of a map, and its value";
    c"LP.SET" set::set => SET, WRITE_GETKEYS, -3, one(RW_SET), "write string slow", c"O(log R), for each 16 KiB of a longer string", c"Sets a string";
    c"LP.SETEX" set::setex => SETEX, WRITE, 4, one(OW), "write string slow", c"O(log R), for each 16 KiB of a longer string", c"Sets a string and its time to live";
    c"LP.PSETEX" set::psetex => PSETEX, WRITE, 4, one(OW), "write string slow", c"O(log R), for each 16 KiB of a longer string", c"Sets a string and its time to live";
    c"LP.SETNX" set::setnx => SETNX, WRITE_FAST, 3, one(OW_INSERT), "write string fast", c"O(log R), for each 16 KiB of a longer string", c"Sets a string that is not there";
    c"LP.GETSET" set::getset => GETSET, WRITE_FAST, 3, one(RW_CHANGE), "write string fast", c"O(log R), for each 16 KiB of a longer string", c"Gets a string, and sets it";
    c"LP.GET" strings::get => GET, READ_FAST, 2, one(RO), "read string fast", c"O(log R), for each 16 KiB of a longer string", c"Gets a string";
    c"LP.GETEX" keyed::getex => GETEX, REMOVE_FAST, -2, one(RW_CHANGE), "write string fast", c"O(log R), for each 16 KiB of a longer string", c"Gets a string, and sets its time to live";
    c"LP.GETDEL" keyed::getdel => GETDEL, REMOVE_FAST, 2, one(RW_TAKE), "write string fast", c"O(log R), for each 16 KiB of a longer string", c"Gets a string, and deletes it";
    c"LP.DELIFEQ" keyed::delifeq => DELIFEQ, REMOVE_FAST, 3, one(RM), "write string fast", c"O(log R), for each 16 KiB of a longer string", c"Deletes a string that has this value";
    c"LP.MGET" many::mget => MGET, READ_FAST, -2, many(1, RO), "read string fast", c"O(N log R), N the keys and the further 16 KiB of longer strings", c"Gets strings";
    c"LP.MSET" many::mset => MSET, WRITE, -3, many(2, OW), "write string slow", c"O(N log R), N the keys and the further 16 KiB of longer strings", c"Sets strings";
    c"LP.MSETNX" many::msetnx => MSETNX, WRITE, -3, many(2, OW_INSERT), "write string slow", c"O(N log R), N the keys and the further 16 KiB of longer strings", c"Sets strings none of which is there";
    c"LP.MSETEX" many::msetex => MSETEX, WRITE_GETKEYS, -4, NO_KEYS, "write string slow", c"O(N log R), N the keys and the further 16 KiB of longer strings", c"Sets strings and their time to live";
    c"LP.STRLEN" strings::strlen => STRLEN, READ_FAST, 2, one(RO_NO_DATA), "read string fast", c"O(1); O(log R) for a string of more than 16 KiB", c"The length of a string";
    c"LP.GETRANGE" strings::getrange => GETRANGE, READ, 4, one(RO), "read string slow", c"O(log R), for each 16 KiB of a longer string in which the part lies", c"A part of a string";
    c"LP.SUBSTR" strings::getrange => SUBSTR, READ, 4, one(RO), "read string slow", c"O(log R), for each 16 KiB of a longer string in which the part lies", c"A part of a string";
    c"LP.SETRANGE" strings::setrange => SETRANGE, WRITE, 4, one(RW_UPDATE), "write string slow", c"O(log R), for each 16 KiB of a longer string that is written, zeros included", c"Overwrites a part of a string";
    c"LP.APPEND" strings::append => APPEND, WRITE_FAST, 3, one(RW_INSERT), "write string fast", c"O(log R), for each 16 KiB of a longer string that is written", c"Appends to a string";
    c"LP.INCR" counters::incr => INCR, WRITE_FAST, 2, one(RW_CHANGE), "write string fast", c"O(log R)", c"Adds one to an integer";
    c"LP.INCRBY" counters::incrby => INCRBY, WRITE_FAST, 3, one(RW_CHANGE), "write string fast", c"O(log R)", c"Adds to an integer";
    c"LP.DECR" counters::decr => DECR, WRITE_FAST, 2, one(RW_CHANGE), "write string fast", c"O(log R)", c"Subtracts one from an integer";
    c"LP.DECRBY" counters::decrby => DECRBY, WRITE_FAST, 3, one(RW_CHANGE), "write string fast", c"O(log R)", c"Subtracts from an integer";
    c"LP.INCRBYFLOAT" counters::incrbyfloat => INCRBYFLOAT, WRITE_FAST, 3, one(RW_CHANGE), "write string fast", c"O(log R)", c"Adds to a float";
    c"LP.LCS" lcs::lcs => LCS, READ, -3, TWO, "read string slow", c"O(N*M), N and M the strings' lengths", c"The longest common subsequence of two strings";
    c"LP.EXPORT" convert::export, WRITE_GETKEYS, -2, NO_KEYS, "write hash string slow", c"O(N log R), N the fields, or the 16 KiB of a string", c"Makes a native hash or string of a key";
    c"LP.IMPORT" convert::import, REMOVE, 2, one(RW_CHANGE), "write hash string slow", c"O(N log R), N the fields, or the 16 KiB of a string", c"Makes a map or string of a native hash or string";
    c"LP.INFO" admin::info, READ_GETKEYS, -1, NO_KEYS, "read slow", c"O(log R) for a key, else O(leaves)", c"What trees hold, or a key";
    c"LP.COMPACT" admin::compact, ADMIN, -1, NO_KEYS, "admin slow dangerous", c"O(1), then O(R) in the background; O(R) with SYNC", c"Compresses all anew";
    c"LP.CONVERT" convert_many::convert, ADMIN, -2, NO_KEYS, "admin slow dangerous", c"O(1), then O(N) in the background", c"Imports or exports the keys of a pattern in the background";
    c"LP.USAGE" usage::usage, READ, -2, NO_KEYS, "keyspace read slow dangerous", c"O(1), then O(N) in the background", c"What the keys of a pattern take, and would take natively";
    c"LP.DICT" dict::dict, ADMIN, -2, NO_KEYS, "admin slow dangerous", c"O(leaves) for SHOW, else O(1)", c"Shows dictionaries, has them trained, exports or imports one";
}

// Commands by which the filter replaces native ones without a twin if access control is to check a name. Clients cannot
// send them.
commands! {
    FOR_FILTER:
    c"LP._AUTH_SETBIT" native::first_converted => SETBIT, WRITE, 4, one(RW_CHANGE), "write bitmap slow", c"As of the native command", c"Stands for a native command in transparent mode";
    c"LP._AUTH_BITFIELD" native::first_converted => BITFIELD, WRITE, -2, one(RW_ANY), "write bitmap slow", c"As of the native command", c"Stands for a native command in transparent mode";
    c"LP._AUTH_BITOP" native::bitop => BITOP, WRITE, -4, FROM_SECOND, "write bitmap slow", c"As of the native command", c"Stands for a native command in transparent mode";
    c"LP._AUTH_PFADD" native::first_converted => PFADD, WRITE_FAST, -2, one(KEY_RW | KEY_INSERT), "write hyperloglog fast", c"As of the native command", c"Stands for a native command in transparent mode";
    c"LP._AUTH_PFMERGE" native::all_converted => PFMERGE, WRITE, -2, many(1, RW_ANY), "write hyperloglog slow", c"As of the native command", c"Stands for a native command in transparent mode";
    c"LP._AUTH_GETBIT" bits::getbit => GETBIT, READ_FAST, 3, one(RO), "read bitmap fast", c"As of the native command", c"Stands for a native command in transparent mode";
    c"LP._AUTH_BITCOUNT" bits::bitcount => BITCOUNT, READ, -2, one(RO), "read bitmap slow", c"As of the native command", c"Stands for a native command in transparent mode";
    c"LP._AUTH_BITPOS" bits::bitpos => BITPOS, READ, -3, one(RO), "read bitmap slow", c"As of the native command", c"Stands for a native command in transparent mode";
    c"LP._AUTH_BITFIELD_RO" bits::bitfield_ro => BITFIELD_RO, READ_FAST, -2, one(RO), "read bitmap fast", c"As of the native command", c"Stands for a native command in transparent mode";
    c"LP._AUTH_PFCOUNT" hyperloglog::pfcount => PFCOUNT, READ, -2, many(1, RW_READ), "read hyperloglog slow", c"As of the native command", c"Stands for a native command in transparent mode";
    c"LP._AUTH_HEXPIRE" native::field_expiry => HEXPIRE, REMOVE_FAST, -6, one(RW_UPDATE), "write hash fast", c"As of the native command", c"Stands for a native command in transparent mode";
    c"LP._AUTH_HPEXPIRE" native::field_expiry => HPEXPIRE, REMOVE_FAST, -6, one(RW_UPDATE), "write hash fast", c"As of the native command", c"Stands for a native command in transparent mode";
    c"LP._AUTH_HEXPIREAT" native::field_expiry => HEXPIREAT, REMOVE_FAST, -6, one(RW_UPDATE), "write hash fast", c"As of the native command", c"Stands for a native command in transparent mode";
    c"LP._AUTH_HPEXPIREAT" native::field_expiry => HPEXPIREAT, REMOVE_FAST, -6, one(RW_UPDATE), "write hash fast", c"As of the native command", c"Stands for a native command in transparent mode";
    c"LP._AUTH_HPERSIST" native::fields_without_expiry => HPERSIST, REMOVE_FAST, -5, one(RW_UPDATE), "write hash fast", c"As of the native command", c"Stands for a native command in transparent mode";
    c"LP._AUTH_HTTL" native::fields_without_expiry => HTTL, READ_FAST, -5, one(RO), "read hash fast", c"As of the native command", c"Stands for a native command in transparent mode";
    c"LP._AUTH_HPTTL" native::fields_without_expiry => HPTTL, READ_FAST, -5, one(RO), "read hash fast", c"As of the native command", c"Stands for a native command in transparent mode";
    c"LP._AUTH_HEXPIRETIME" native::fields_without_expiry => HEXPIRETIME, READ_FAST, -5, one(RO), "read hash fast", c"As of the native command", c"Stands for a native command in transparent mode";
    c"LP._AUTH_HPEXPIRETIME" native::fields_without_expiry => HPEXPIRETIME, READ_FAST, -5, one(RO), "read hash fast", c"As of the native command", c"Stands for a native command in transparent mode";
    c"LP._AUTH_HGETEX" native::hgetex => HGETEX, REMOVE_FAST, -5, one(RW_CHANGE), "write hash fast", c"As of the native command", c"Stands for a native command in transparent mode";
    c"LP._AUTH_HSETEX" native::hsetex => HSETEX, WRITE_FAST, -6, one(KEY_RW | KEY_INSERT), "write hash fast", c"As of the native command", c"Stands for a native command in transparent mode";
    c"LP._AUTH_SORT" native::sort => SORT, WRITE, -2, one(RO), "write set sortedset list slow dangerous", c"As of the native command", c"Stands for a native command in transparent mode";
    c"LP._AUTH_RENAME" native::rename => RENAME, REMOVE, 3, FROM_AND_TO, "keyspace write slow", c"As of the native command", c"Stands for a native command in transparent mode";
    c"LP._AUTH_RENAMENX" native::renamenx => RENAMENX, REMOVE_FAST, 3, FROM_AND_TO, "keyspace write fast", c"As of the native command", c"Stands for a native command in transparent mode";
    c"LP._AUTH_COPY" native::copy => COPY, WRITE, -3, FROM_AND_TO, "keyspace write slow", c"As of the native command", c"Stands for a native command in transparent mode";
    c"LP._AUTH_TYPE" types::key_type => TYPE, READ_FAST, 2, one(RO_NO_DATA), "keyspace read fast", c"As of the native command", c"Stands for a native command in transparent mode";
    c"LP._AUTH_SCAN" types::scan => SCAN, READ, -2, NO_KEYS, "keyspace read slow", c"As of the native command", c"Stands for a native command in transparent mode";
    c"LP._AUTH_SORT_RO" native::sort => SORT_RO, READ, -2, one(RO), "read set sortedset list slow dangerous", c"As of the native command", c"Stands for a native command in transparent mode";
}

/// Registers all commands, in a category of access control of their own where the server has such.
pub fn register(context: Context) -> Result<(), String> {
    twins::look_for_natives(context);
    let category = add_category(context, c"leafpress");
    #[cfg(feature = "testing")]
    register_one(context, &faults::COMMAND, None)?;
    for (commands, category) in [(COMMANDS, category), (FOR_FILTER, None)] {
        let mut there = commands.iter().filter(|command| twins::is_native_there(command.name));
        there.try_for_each(|command| register_one(context, command, category))?;
    }
    twins::register(context)
}
