//! Transparent mode: native commands on keys with configured prefixes become the module's.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::api::acl::{
    DEFAULT_USER, DefaultUser, Runner, database_of, default_user, detached, forget_default_user, may_run, runner_of,
    set_checked,
};
use crate::api::filter::{Filtered, register};
use crate::api::twin::Twin;
use crate::api::{Context, Str, acl};
use crate::commands::twins::{self, Keys};
use crate::commands::types;
use crate::prefixes::{self, Family, Prefixes};
use crate::store::number::integer;
use crate::store::removal;

/// An import of slots, by the client that requested it.
#[derive(Debug, PartialEq, Eq)]
enum Import {
    /// The client has sent the request for an import of this name, which the server may refuse.
    Requested(Vec<u8>),
    /// The server has accepted it: what the client sends is decided by another node.
    Confirmed,
}

/// Clients over which slots come from other nodes, or that have requested it.
#[derive(Debug, Default)]
struct Imports(BTreeMap<u64, Import>);

static IMPORTS: Mutex<Imports> = Mutex::new(Imports(BTreeMap::new()));

/// Native commands that were replaced by the module's.
static REWRITTEN: AtomicU64 = AtomicU64::new(0);

/// Returns how many commands were replaced.
pub fn rewritten() -> u64 {
    REWRITTEN.load(Ordering::Relaxed)
}

/// Registers the filter with the server.
pub fn may_register(context: Context) {
    acl::register(context);
    register(context, change);
}

fn change(command: &mut Filtered) {
    // This runs before the server checks whether to evict, since evicted values may only wait to be removed.
    removal::relieve();
    set_checked(0);
    let Some(name) = command.argument(0) else { return };
    note_import(command, name);
    if !prefixes::is_any() {
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
        REWRITTEN.fetch_add(1, Ordering::Relaxed);
    }
}

/// Length of an import's name.
const IMPORT_NAME_LEN: usize = 40;

/// Notes the request of a node that is about to send slots: it is a client like others. Whether it may, and whether the
/// request is valid, is known when the server reports the import: [`confirm_import`].
fn note_import(command: &Filtered, name: &[u8]) {
    let is = |index: usize, word: &[u8]| {
        let argument = command.argument(index);
        argument.is_some_and(|argument| argument.eq_ignore_ascii_case(word))
    };
    if name.eq_ignore_ascii_case(b"CLUSTER")
        && is(1, b"SYNCSLOTS")
        && is(2, b"ESTABLISH")
        && let Some(client) = command.client()
        && let Some(at) = (3..command.count()).find(|index| is(*index, b"NAME"))
        && let Some(name) = command.argument(at + 1)
        && name.len() == IMPORT_NAME_LEN
    {
        imports().request(client, name);
    }
}

/// The server has accepted an import: what its client sends is not rewritten from now on.
pub fn confirm_import(name: &[u8]) {
    imports().confirm(name);
}

/// Forgets a client that has disconnected.
pub fn forget(client: u64) {
    imports().0.remove(&client);
}

impl Imports {
    fn request(&mut self, client: u64, name: &[u8]) {
        let import = self.0.entry(client).or_insert_with(|| Import::Requested(Vec::new()));
        if let Import::Requested(last) = import {
            *last = name.to_vec();
        }
    }

    fn confirm(&mut self, name: &[u8]) {
        let mut imports = self.0.values_mut();
        if let Some(import) = imports.find(|import| matches!(import, Import::Requested(last) if last == name)) {
            *import = Import::Confirmed;
        }
    }

    fn is_confirmed(&self, client: u64) -> bool {
        self.0.get(&client) == Some(&Import::Confirmed)
    }
}

fn imports() -> MutexGuard<'static, Imports> {
    IMPORTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether any of the command's keys has a prefix.
fn is_ours(command: &Filtered, family: Family, keys: Keys) -> bool {
    let state = prefixes::locked();
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
fn reads_prefixes(command: &Filtered, state: &Prefixes) -> bool {
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
/// list instead of the first asterisk; without an asterisk, no key is read.
fn makes_prefix(pattern: &[u8], state: &Prefixes) -> bool {
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

/// Returns the name that replaces the native one; `None` if the native command is to run.
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
    if imports().is_confirmed(client) {
        return None;
    }
    match runner_of(client) {
        Runner::Server => None,
        // The client that began it has authenticated.
        Runner::Nested => rewritten,
        Runner::User(user) => {
            if !may_run(&user, || database_of(client), twin.native_name(), &command.arguments()) {
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
    fn an_import_counts_from_its_confirmation_on() {
        let mut imports = Imports::default();
        imports.request(1, b"first");
        imports.request(2, b"second");
        imports.confirm(b"third");
        imports.confirm(b"");
        assert!(!imports.is_confirmed(1) && !imports.is_confirmed(2) && !imports.is_confirmed(3));
        imports.confirm(b"second");
        assert!(imports.is_confirmed(2) && !imports.is_confirmed(1));
        // Another request of the same connection ends nothing.
        imports.request(2, b"fourth");
        imports.request(1, b"fifth");
        imports.confirm(b"first");
        assert!(imports.is_confirmed(2) && !imports.is_confirmed(1));
    }

    #[test]
    fn patterns_make_keys_with_prefixes() {
        let state = Prefixes {
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
            let shown = String::from_utf8_lossy(pattern);
            assert_eq!(makes_prefix(pattern, &state), expected, "{shown}");
        }
    }
}
