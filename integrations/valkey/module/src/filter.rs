//! Transparent mode: native commands on keys with configured prefixes become the module's.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::api::acl::{
    DEFAULT_USER, DefaultUser, Runner, default_user, detached, forget_default_user, may_run, runner_of, set_checked,
};
use crate::api::command::Twin;
use crate::api::filter::{Filtered, register};
use crate::api::{Context, Str, acl};
use crate::commands::twins;
use crate::store::removal;

/// The family of commands that a prefix applies to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// `HSET` and others.
    Hash,
    /// `SET` and others.
    Text,
}

/// The arguments that are keys, and those of them that determine whether a command is changed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// The first.
    First,
    /// All, any of which may be the module's.
    Any,
    /// All except for the values between them; all of them have to be the module's.
    Pairs,
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
    let Some((twin, family, keys)) = twins::find(name) else {
        // These may change the default user; a transaction may hold such a command.
        if [&b"ACL"[..], b"CONFIG", b"EXEC"]
            .iter()
            .any(|changes| name.eq_ignore_ascii_case(changes))
        {
            forget_default_user();
        }
        return;
    };
    if !is_ours(command, family, keys) || detached().is_loading() {
        return;
    }
    if let Some(name) = name_for(command, twin) {
        command.rename(name);
    }
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

/// Returns whether the command's keys have prefixes.
fn is_ours(command: &Filtered, family: Family, keys: Keys) -> bool {
    let state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    let prefixes = state.of(family);
    if prefixes.is_empty() {
        return false;
    }
    let has_prefix = |index: usize| {
        command
            .argument(index)
            .is_some_and(|key| prefixes.iter().any(|prefix| key.starts_with(prefix)))
    };
    match keys {
        Keys::First => has_prefix(1),
        Keys::Any => (1..command.count()).any(has_prefix),
        Keys::Pairs => command.count() > 1 && (1..command.count()).step_by(2).all(has_prefix),
    }
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
    fn prefixes_are_words() {
        set_prefixes(Family::Text, "  a:  b: ").unwrap();
        assert_eq!(prefixes(Family::Text), "a: b:");
        assert!(IS_ON.load(Ordering::Relaxed));
        set_prefixes(Family::Text, "").unwrap();
        assert!(!IS_ON.load(Ordering::Relaxed));
    }
}
