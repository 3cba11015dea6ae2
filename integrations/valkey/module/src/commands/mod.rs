//! The module's commands.

mod access;
mod admin;
mod glob;
mod hash;
mod ordered;
mod strings;
pub mod twins;
mod walk;

use std::ffi::{CStr, c_int};

use crate::api::Context;
use crate::api::command::{Command, Keys, add_category, handler, register as register_one};
use crate::api::raw::{KEY_ACCESS, KEY_DELETE, KEY_INSERT, KEY_OW, KEY_RO, KEY_RW, KEY_UPDATE, KEY_VARIABLE};

const READ: &CStr = c"readonly";
const READ_FAST: &CStr = c"readonly fast";
const WRITE: &CStr = c"write deny-oom";
const WRITE_FAST: &CStr = c"write deny-oom fast";
const REMOVE: &CStr = c"write";
const REMOVE_FAST: &CStr = c"write fast";
/// For commands with optional keys: the server queries their handlers.
const READ_ASKED: &CStr = c"readonly getkeys-api";
const WRITE_ASKED: &CStr = c"write deny-oom getkeys-api";
const ADMIN: &CStr = c"admin";

const RO: u64 = KEY_RO | KEY_ACCESS;
const RO_NO_DATA: u64 = KEY_RO;
const RW_UPDATE: u64 = KEY_RW | KEY_UPDATE;
const RW_INSERT: u64 = KEY_RW | KEY_INSERT;
const RW_CHANGE: u64 = KEY_RW | KEY_ACCESS | KEY_UPDATE;
const RW_DELETE: u64 = KEY_RW | KEY_DELETE;
const OW: u64 = KEY_OW | KEY_UPDATE;
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
    ($run:path; $kind:literal, $($twin:expr),+) => {
        handler!($run, $($twin),+)
    };
}

macro_rules! commands {
    ($($name:literal $run:path $(=> $($twin:ident)+)?, $flags:ident, $arity:literal, $keys:expr, $kind:literal, $complexity:literal, $summary:literal;)*) => {
        const COMMANDS: &[Command<'static>] = &[$(Command {
            name: $name,
            run: run_of!($run; $kind $($(, twins::$twin)+)?),
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
    c"LP.HSET" hash::hset => HSET, WRITE_FAST, -4, one(RW_UPDATE), "write hash fast", c"O(N log R), N the pairs, R the tree's records", c"Sets fields of a map";
    c"LP.HSETNX" hash::hsetnx => HSETNX, WRITE_FAST, 4, one(RW_INSERT), "write hash fast", c"O(log R)", c"Sets a field of a map that is not there";
    c"LP.HGET" hash::hget => HGET, READ_FAST, 3, one(RO), "read hash fast", c"O(log R)", c"Gets a field of a map";
    c"LP.HMGET" hash::hmget => HMGET, READ_FAST, -3, one(RO), "read hash fast", c"O(N log R)", c"Gets fields of a map";
    c"LP.HGETALL" hash::hgetall => HGETALL, READ, 2, one(RO), "read hash slow", c"O(N)", c"Gets all fields and values of a map, in order";
    c"LP.HDEL" hash::hdel => HDEL, REMOVE_FAST, -3, one(RW_DELETE), "write hash fast", c"O(N log R)", c"Removes fields of a map";
    c"LP.HEXISTS" hash::hexists => HEXISTS, READ_FAST, 3, one(RO_NO_DATA), "read hash fast", c"O(log R)", c"Whether a map has a field";
    c"LP.HLEN" hash::hlen => HLEN, READ_FAST, 2, one(RO_NO_DATA), "read hash fast", c"O(1)", c"How many fields a map has";
    c"LP.HSTRLEN" hash::hstrlen => HSTRLEN, READ_FAST, 3, one(RO_NO_DATA), "read hash fast", c"O(log R)", c"The length of a field's value";
    c"LP.HKEYS" hash::hkeys => HKEYS, READ, 2, one(RO), "read hash slow", c"O(N)", c"All fields of a map, in order";
    c"LP.HVALS" hash::hvals => HVALS, READ, 2, one(RO), "read hash slow", c"O(N)", c"All values of a map, in order of the fields";
    c"LP.HSCAN" walk::hscan => HSCAN, READ, -3, one(RO), "read hash slow", c"O(N) for what is returned", c"Walks over a map in steps";
    c"LP.HINCRBY" hash::hincrby => HINCRBY, WRITE_FAST, 4, one(RW_CHANGE), "write hash fast", c"O(log R)", c"Adds to an integer in a map";
    c"LP.HINCRBYFLOAT" hash::hincrbyfloat => HINCRBYFLOAT, WRITE_FAST, 4, one(RW_CHANGE), "write hash fast", c"O(log R)", c"Adds to a float in a map";
    c"LP.HRANDFIELD" walk::hrandfield => HRANDFIELD, READ, -2, one(RO), "read hash slow", c"O(N), N the map's fields", c"Random fields of a map";
    c"LP.RANGE" ordered::range, READ, -4, one(RO), "read hash slow", c"O(log R + N) for what is skipped and returned", c"Fields of a map from one to another";
    c"LP.COUNT" ordered::count, READ, 4, one(RO), "read hash slow", c"O(log R + N) for what is counted", c"How many fields a map has from one to another";
    c"LP.REMRANGE" ordered::remrange, REMOVE, 4, one(RW_DELETE), "write hash slow", c"O(log R + N) for what is removed", c"Removes the fields of a map from one to another";
    c"LP.FIRST" ordered::first, READ_FAST, 2, one(RO), "read hash fast", c"O(log R)", c"The first field of a map, and its value";
    c"LP.LAST" ordered::last, READ_FAST, 2, one(RO), "read hash fast", c"O(log R)", c"The last field of a map, and its value";
    c"LP.SET" strings::set => SET, WRITE_ASKED, -3, one(RW_SET), "write string slow", c"O(log R)", c"Sets a string";
    c"LP.GET" strings::get => GET, READ_FAST, 2, one(RO), "read string fast", c"O(log R)", c"Gets a string";
    c"LP.MGET" strings::mget => MGET, READ_FAST, -2, many(1, RO), "read string fast", c"O(N log R)", c"Gets strings";
    c"LP.MSET" strings::mset => MSET, WRITE, -3, many(2, OW), "write string slow", c"O(N log R)", c"Sets strings";
    c"LP.STRLEN" strings::strlen => STRLEN, READ_FAST, 2, one(RO_NO_DATA), "read string fast", c"O(1), O(log R) from 64 KiB on", c"The length of a string";
    c"LP.GETRANGE" strings::getrange => GETRANGE SUBSTR, READ, 4, one(RO), "read string slow", c"O(log R)", c"A part of a string";
    c"LP.APPEND" strings::append => APPEND, WRITE_FAST, 3, one(RW_INSERT), "write string fast", c"O(log R)", c"Appends to a string";
    c"LP.EXPORT" admin::export, WRITE_ASKED, -2, NO_KEYS, "write hash string slow", c"O(N)", c"Makes a native hash or string of a key";
    c"LP.INFO" admin::info, READ_ASKED, -1, NO_KEYS, "read slow", c"O(1) for a key, else O(leaves)", c"What trees hold, or a key";
    c"LP.COMPACT" admin::compact, ADMIN, 1, NO_KEYS, "admin slow dangerous", c"O(R)", c"Compresses all anew";
    c"LP.DICT" admin::dict, ADMIN, 2, NO_KEYS, "admin slow dangerous", c"O(leaves)", c"Shows dictionaries, or has them trained";
}

/// Registers all commands, in a category of access control of their own where the server has such.
pub fn register(context: Context) -> Result<(), String> {
    let category = add_category(context, c"leafpress");
    COMMANDS
        .iter()
        .try_for_each(|command| register_one(context, command, category))?;
    twins::register(context)
}
