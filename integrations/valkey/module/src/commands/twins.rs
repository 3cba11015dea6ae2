//! Native commands with a twin in the module, and the commands that replace them in transparent mode.

use std::ffi::{CStr, CString};

use super::{COMMANDS, hash, strings, walk};
use crate::api::Context;
use crate::api::command::{Command, Twin, handler, register as register_one};
use crate::api::raw::CommandFn;
use crate::filter::{Family, Keys};

struct Entry {
    twin: Twin,
    family: Family,
    keys: Keys,
    run: CommandFn,
}

macro_rules! twins {
    ($($name:ident $native:literal $public:literal $rewritten:literal $run:path, $family:ident, $keys:ident;)*) => {
        $(
            /// The native command of this name.
            pub static $name: &Twin = &ENTRIES[Number::$name as usize].twin;
        )*

        #[allow(clippy::upper_case_acronyms, reason = "the commands' names")]
        enum Number {
            $($name,)*
        }

        const COUNT: usize = [$(Number::$name),*].len();

        static ENTRIES: [Entry; COUNT] = [$(Entry {
            twin: Twin::new($native, $public, $rewritten),
            family: Family::$family,
            keys: Keys::$keys,
            run: handler!($run, $name),
        },)*];
    };
}

twins! {
    HSET c"HSET" c"LP.HSET" c"LP._HSET" hash::hset, Hash, First;
    HSETNX c"HSETNX" c"LP.HSETNX" c"LP._HSETNX" hash::hsetnx, Hash, First;
    HGET c"HGET" c"LP.HGET" c"LP._HGET" hash::hget, Hash, First;
    HMGET c"HMGET" c"LP.HMGET" c"LP._HMGET" hash::hmget, Hash, First;
    HGETALL c"HGETALL" c"LP.HGETALL" c"LP._HGETALL" hash::hgetall, Hash, First;
    HDEL c"HDEL" c"LP.HDEL" c"LP._HDEL" hash::hdel, Hash, First;
    HEXISTS c"HEXISTS" c"LP.HEXISTS" c"LP._HEXISTS" hash::hexists, Hash, First;
    HLEN c"HLEN" c"LP.HLEN" c"LP._HLEN" hash::hlen, Hash, First;
    HSTRLEN c"HSTRLEN" c"LP.HSTRLEN" c"LP._HSTRLEN" hash::hstrlen, Hash, First;
    HKEYS c"HKEYS" c"LP.HKEYS" c"LP._HKEYS" hash::hkeys, Hash, First;
    HVALS c"HVALS" c"LP.HVALS" c"LP._HVALS" hash::hvals, Hash, First;
    HSCAN c"HSCAN" c"LP.HSCAN" c"LP._HSCAN" walk::hscan, Hash, First;
    HINCRBY c"HINCRBY" c"LP.HINCRBY" c"LP._HINCRBY" hash::hincrby, Hash, First;
    HINCRBYFLOAT c"HINCRBYFLOAT" c"LP.HINCRBYFLOAT" c"LP._HINCRBYFLOAT" hash::hincrbyfloat, Hash, First;
    HRANDFIELD c"HRANDFIELD" c"LP.HRANDFIELD" c"LP._HRANDFIELD" walk::hrandfield, Hash, First;
    SET c"SET" c"LP.SET" c"LP._SET" strings::set, Text, First;
    GET c"GET" c"LP.GET" c"LP._GET" strings::get, Text, First;
    STRLEN c"STRLEN" c"LP.STRLEN" c"LP._STRLEN" strings::strlen, Text, First;
    GETRANGE c"GETRANGE" c"LP.GETRANGE" c"LP._GETRANGE" strings::getrange, Text, First;
    SUBSTR c"SUBSTR" c"LP.GETRANGE" c"LP._SUBSTR" strings::getrange, Text, First;
    APPEND c"APPEND" c"LP.APPEND" c"LP._APPEND" strings::append, Text, First;
    MGET c"MGET" c"LP.MGET" c"LP._MGET" strings::mget, Text, Any;
    MSET c"MSET" c"LP.MSET" c"LP._MSET" strings::mset, Text, Pairs;
}

/// Returns the native command of this name, which commands are for, and which arguments are its keys.
pub fn find(native: &[u8]) -> Option<(&'static Twin, Family, Keys)> {
    ENTRIES
        .iter()
        .find(|entry| native.eq_ignore_ascii_case(entry.twin.native.to_bytes()))
        .map(|entry| (&entry.twin, entry.family, entry.keys))
}

fn public_of(twin: &Twin) -> Option<&'static Command<'static>> {
    COMMANDS.iter().find(|command| command.name == twin.public)
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
    for entry in &ENTRIES {
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
            (b"substr", Some(c"LP.GETRANGE")),
            (b"MSET", Some(c"LP.MSET")),
            (b"", None),
            (b"HSETS", None),
            (b"a name that is longer than any", None),
            (b"LP.HSET", None),
            (b"LP._HSET", None),
        ] {
            assert_eq!(find(native).map(|(twin, ..)| twin.public), public);
        }
    }

    #[test]
    fn each_twin_is_the_public_command_and_known_as_a_write_where_it_is_one() {
        let writes_by_name = [HSET, HSETNX, HDEL, HINCRBY, HINCRBYFLOAT, SET, APPEND, MSET];
        for entry in &ENTRIES {
            assert!(public_of(&entry.twin).is_some());
            let is_write = writes_by_name.iter().any(|twin| std::ptr::eq(*twin, &entry.twin));
            assert_eq!(writes(&entry.twin), is_write, "{:?}", entry.twin.native);
        }
    }
}
