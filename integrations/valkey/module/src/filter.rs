//! Transparent mode: native commands on keys with configured prefixes become the module's.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::api::acl::{
    DEFAULT_USER, DefaultUser, Runner, default_user, detached, forget_default_user, may_run, runner_of, set_checked,
};
use crate::api::command::Twin;
use crate::api::filter::{Filtered, register};
use crate::api::raw::{KEYTYPE_HASH, KEYTYPE_STRING};
use crate::api::{Context, Str, acl};
use crate::commands::{twins, types};
use crate::store::number::integer;
use crate::store::removal;
use crate::store::value::Borrowed;

/// The family of commands that a prefix applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// `HSET` and others.
    Hash,
    /// `SET` and others.
    Text,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Hash, Self::Text];

    /// Returns the family of the commands that read a compressed value.
    pub const fn of(value: &Borrowed<'_>) -> Self {
        match value {
            Borrowed::Map(_) => Self::Hash,
            Borrowed::Text(_) => Self::Text,
        }
    }

    /// Returns the family whose type has this name, in upper or lower case.
    pub fn named(name: &[u8]) -> Option<Self> {
        let is_named = |family: &Self| name.eq_ignore_ascii_case(family.type_name().to_bytes());
        Self::ALL.into_iter().find(is_named)
    }

    /// Returns the type of its native values.
    pub const fn key_type(self) -> c_int {
        match self {
            Self::Hash => KEYTYPE_HASH,
            Self::Text => KEYTYPE_STRING,
        }
    }

    /// Returns the name of this type, as the server has it.
    pub const fn type_name(self) -> &'static CStr {
        match self {
            Self::Hash => c"hash",
            Self::Text => c"string",
        }
    }
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
    /// None: the keys are those of the database, and the command is changed if it asks for hashes or strings only.
    OfType,
}

struct State {
    hash: Vec<Vec<u8>>,
    text: Vec<Vec<u8>>,
}

static STATE: Mutex<State> = Mutex::new(State {
    hash: Vec::new(),
    text: Vec::new(),
});

/// Whether there is any prefix: without prefixes commands are not inspected.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// Connections over which slots come from other nodes.
static IMPORTS: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

impl State {
    fn of(&self, family: Family) -> &Vec<Vec<u8>> {
        match family {
            Family::Hash => &self.hash,
            Family::Text => &self.text,
        }
    }

    fn has(&self, family: Family, key: &[u8]) -> bool {
        self.of(family).iter().any(|prefix| key.starts_with(prefix))
    }
}

/// Returns the prefixes, as the operator writes them.
pub fn prefixes(family: Family) -> String {
    let state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    let prefixes: Vec<_> = state
        .of(family)
        .iter()
        .map(|prefix| String::from_utf8_lossy(prefix))
        .collect();
    prefixes.join(" ")
}

/// Sets the prefixes: words separated by spaces; an empty text turns the mode off.
pub fn set_prefixes(family: Family, text: &str) -> Result<(), String> {
    let prefixes: Vec<Vec<u8>> = text
        .split_ascii_whitespace()
        .map(|word| word.as_bytes().to_vec())
        .collect();
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    match family {
        Family::Hash => state.hash = prefixes,
        Family::Text => state.text = prefixes,
    }
    forget_default_user();
    IS_ON.store(!state.hash.is_empty() || !state.text.is_empty(), Ordering::Relaxed);
    Ok(())
}

/// Registers the filter with the server.
pub fn may_register(context: Context) {
    acl::register(context);
    register(context, change);
}

fn change(command: &mut Filtered) {
    // Before the server checks whether it has to evict: evicted values may only wait to be removed.
    removal::relieve();
    set_checked(0);
    let Some(name) = command.argument(0) else { return };
    note_import(command, name);
    if !IS_ON.load(Ordering::Relaxed) {
        return;
    }
    let Some(found) = twins::find(name) else {
        // These may change the default user; a transaction may hold such a command.
        if [&b"ACL"[..], b"CONFIG", b"EXEC"]
            .iter()
            .any(|changes| name.eq_ignore_ascii_case(changes))
        {
            forget_default_user();
        }
        return;
    };
    // A wrong number of arguments is left to the server's own error.
    if !found.takes(command.count()) || !is_ours(command, found.family, found.keys) || detached().is_loading() {
        return;
    }
    if let Some(name) = name_for(command, &found.twin) {
        command.rename(name);
    }
}

/// Returns whether a key has a prefix.
pub fn has_prefix(family: Family, key: &[u8]) -> bool {
    let state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    state.has(family, key)
}

/// Returns whether a key has a prefix of either family.
pub fn has_any_prefix(key: &[u8]) -> bool {
    has_prefix(Family::Hash, key) || has_prefix(Family::Text, key)
}

/// Notes the connection of a node that sends slots: it is a client like others, and identifies itself by this command.
fn note_import(command: &Filtered, name: &[u8]) {
    if name.eq_ignore_ascii_case(b"CLUSTER")
        && command
            .argument(1)
            .is_some_and(|sub| sub.eq_ignore_ascii_case(b"SYNCSLOTS"))
        && let Some(client) = command.client()
    {
        imports().insert(client);
    }
}

/// Forgets a client that has disconnected.
pub fn forget(client: u64) {
    imports().remove(&client);
}

fn imports() -> MutexGuard<'static, BTreeSet<u64>> {
    IMPORTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether any of the command's keys has a prefix.
fn is_ours(command: &Filtered, family: Family, keys: Keys) -> bool {
    let state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    match keys {
        Keys::Patterns => return reads_prefixes(command, &state),
        Keys::OfType => return types::family_sought(|index| command.argument(index)).is_some(),
        Keys::Leaving => {
            let (Some(from), Some(to)) = (command.argument(1), command.argument(2)) else {
                return false;
            };
            let mut families = Family::ALL.iter();
            return families.any(|family| state.has(*family, from) && !state.has(*family, to));
        }
        Keys::EitherFamily => {
            return command
                .argument(1)
                .is_some_and(|key| Family::ALL.iter().any(|family| state.has(*family, key)));
        }
        _ => {}
    }
    let prefixes = state.of(family);
    if prefixes.is_empty() {
        return false;
    }
    let has_prefix = |index: usize| {
        command
            .argument(index)
            .is_some_and(|key| prefixes.iter().any(|prefix| key.starts_with(prefix)))
    };
    let count = command.count();
    match keys {
        Keys::First => has_prefix(1),
        Keys::Two => has_prefix(1) || has_prefix(2),
        Keys::All => (1..count).any(has_prefix),
        Keys::FromSecond => (2..count).any(has_prefix),
        Keys::Pairs => (1..count).step_by(2).any(has_prefix),
        Keys::CountedPairs => {
            let pairs = command.argument(1).and_then(integer);
            let pairs = pairs.and_then(|pairs| usize::try_from(pairs).ok()).unwrap_or(0);
            (2..count).step_by(2).take(pairs).any(has_prefix)
        }
        Keys::Patterns | Keys::OfType | Keys::EitherFamily | Keys::Leaving => false,
    }
}

/// Returns whether the patterns of a `SORT` may make keys with prefixes: strings, or fields of hashes after `->`.
fn reads_prefixes(command: &Filtered, state: &State) -> bool {
    let mut index = 2;
    while let Some(option) = command.argument(index) {
        let is = |name: &[u8]| option.eq_ignore_ascii_case(name);
        index += match () {
            () if is(b"LIMIT") => 3,
            () if is(b"BY") || is(b"GET") => {
                if let Some(pattern) = command.argument(index + 1)
                    && makes_prefix(pattern, state)
                {
                    return true;
                }
                2
            }
            () if is(b"STORE") => 2,
            () => 1,
        };
    }
    false
}

/// Returns whether a pattern may make a key with a prefix. It is a key up to `->` and a field, with an element of the
/// list in the place of the first asterisk; without an asterisk, no key is read.
fn makes_prefix(pattern: &[u8], state: &State) -> bool {
    let Some(asterisk) = pattern.iter().position(|byte| *byte == b'*') else {
        return false;
    };
    let (begin, rest) = pattern.split_at(asterisk);
    let arrow = rest.windows(2).position(|two| two == b"->");
    let family = match arrow.is_some_and(|at| at + 2 < rest.len()) {
        true => Family::Hash,
        false => Family::Text,
    };
    let mut prefixes = state.of(family).iter();
    prefixes.any(|prefix| begin.starts_with(prefix) || prefix.starts_with(begin))
}

/// Returns the name that is put in the place of the native one; `None` if the native command is to run.
///
/// Commands of a primary were decided there, and so were those that come with a slot: a replica must do what its
/// primary did. A command that the user may not run stays native, so that the server's own refusal is returned.
///
/// The rewritten name is for clients that have authenticated: the server lets any client send it, and the handler
/// checks the rest. A client of the default user may not have authenticated if that user needs a password. It gets the
/// public name, which the server protects.
fn name_for(command: &Filtered, twin: &'static Twin) -> Option<Str<'static>> {
    let rewritten = Some(twin.rewritten_name());
    let Some(client) = command.client() else {
        // The server does not report the client. The stream of a primary consists of writes, which a replica
        // accepts from no other client unless it is configured to.
        if detached().is_replica() && twins::writes(twin) {
            return None;
        }
        return match default_user() {
            _ if detached().is_script() => rewritten,
            DefaultUser::Open | DefaultUser::Off => rewritten,
            DefaultUser::Password => Some(twin.public_name()),
        };
    };
    if imports().contains(&client) {
        return None;
    }
    match runner_of(client) {
        Runner::Server => None,
        // The client that began it has authenticated.
        Runner::Nested => rewritten,
        Runner::User(user) => {
            if !may_run(&user, twin.native_name(), &command.arguments()) {
                return None;
            }
            set_checked(client);
            let is_authenticated = user.as_str().bytes() != DEFAULT_USER || default_user() == DefaultUser::Open;
            if is_authenticated {
                rewritten
            } else {
                Some(twin.public_name())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_make_keys_with_prefixes() {
        let state = State {
            hash: vec![b"user:".to_vec()],
            text: vec![b"s:".to_vec()],
        };
        for (pattern, expected) in [
            (&b"user:*->name"[..], true),
            (b"user:1*->name", true),
            (b"us*->name", true),
            (b"*->name", true),
            (b"other:*->name", false),
            (b"user:*", false),
            (b"user:*->", false),
            (b"user:->name", false),
            (b"s:*", true),
            (b"*", true),
            (b"t:*", false),
            (b"s:*->name", false),
            (b"s:", false),
            (b"#", false),
            (b"nosort", false),
        ] {
            let said = String::from_utf8_lossy(pattern);
            assert_eq!(makes_prefix(pattern, &state), expected, "{said}");
        }
    }

    #[test]
    fn prefixes_are_words() {
        set_prefixes(Family::Text, "  a:  b: ").unwrap();
        assert_eq!(prefixes(Family::Text), "a: b:");
        assert!(IS_ON.load(Ordering::Relaxed));
        set_prefixes(Family::Text, "").unwrap();
        assert!(!IS_ON.load(Ordering::Relaxed));
    }
}
