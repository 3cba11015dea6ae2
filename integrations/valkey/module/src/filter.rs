//! Transparent mode: native commands on keys with configured prefixes become the module's.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::api::Context;
use crate::api::filter::{Filtered, register};

/// Which commands a prefix is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// `HSET` and others.
    Hash,
    /// `SET` and others.
    Text,
}

/// Which arguments are keys, and which of them say whether a command is changed.
enum Keys {
    /// The first.
    First,
    /// All, any of which may be ours.
    Any,
    /// All but for the values between them, and all of them are to be ours.
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

/// Whether there is any prefix: commands of servers that use none are not looked at.
static IS_ON: AtomicBool = AtomicBool::new(false);

impl State {
    fn of(&self, family: Family) -> &Vec<Vec<u8>> {
        match family {
            Family::Hash => &self.hash,
            Family::Text => &self.text,
        }
    }
}

/// The prefixes, as the operator writes them.
pub fn prefixes(family: Family) -> String {
    let state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    let prefixes: Vec<_> = state
        .of(family)
        .iter()
        .map(|prefix| String::from_utf8_lossy(prefix))
        .collect();
    prefixes.join(" ")
}

/// Sets the prefixes: words with spaces in between, none to turn it off.
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
    IS_ON.store(!state.hash.is_empty() || !state.text.is_empty(), Ordering::Relaxed);
    Ok(())
}

/// Has the server show the module all commands.
pub fn may_register(context: Context) {
    register(context, change);
}

fn change(command: &mut Filtered) {
    if !IS_ON.load(Ordering::Relaxed) {
        return;
    }
    let state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some((family, keys, name)) = command.argument(0).and_then(twin) else {
        return;
    };
    let prefixes = state.of(family);
    if prefixes.is_empty() {
        return;
    }
    let has_prefix = |index: usize| {
        command
            .argument(index)
            .is_some_and(|key| prefixes.iter().any(|prefix| key.starts_with(prefix)))
    };
    let is_ours = match keys {
        Keys::First => has_prefix(1),
        Keys::Any => (1..command.count()).any(has_prefix),
        Keys::Pairs => command.count() > 1 && (1..command.count()).step_by(2).all(has_prefix),
    };
    if is_ours {
        command.rename(name);
    }
}

/// The module's command that does what a native one does.
fn twin(native: &[u8]) -> Option<(Family, Keys, &'static [u8])> {
    // No native name that has a twin is longer.
    let mut upper = [0; 12];
    let upper = upper.get_mut(..native.len())?;
    upper.copy_from_slice(native);
    upper.make_ascii_uppercase();
    let hash = |name: &'static [u8]| Some((Family::Hash, Keys::First, name));
    let text = |name: &'static [u8]| Some((Family::Text, Keys::First, name));
    match &*upper {
        b"HSET" => hash(b"LP.HSET"),
        b"HSETNX" => hash(b"LP.HSETNX"),
        b"HGET" => hash(b"LP.HGET"),
        b"HMGET" => hash(b"LP.HMGET"),
        b"HGETALL" => hash(b"LP.HGETALL"),
        b"HDEL" => hash(b"LP.HDEL"),
        b"HEXISTS" => hash(b"LP.HEXISTS"),
        b"HLEN" => hash(b"LP.HLEN"),
        b"HSTRLEN" => hash(b"LP.HSTRLEN"),
        b"HKEYS" => hash(b"LP.HKEYS"),
        b"HVALS" => hash(b"LP.HVALS"),
        b"HSCAN" => hash(b"LP.HSCAN"),
        b"HINCRBY" => hash(b"LP.HINCRBY"),
        b"HINCRBYFLOAT" => hash(b"LP.HINCRBYFLOAT"),
        b"HRANDFIELD" => hash(b"LP.HRANDFIELD"),
        b"SET" => text(b"LP.SET"),
        b"GET" => text(b"LP.GET"),
        b"STRLEN" => text(b"LP.STRLEN"),
        b"GETRANGE" | b"SUBSTR" => text(b"LP.GETRANGE"),
        b"APPEND" => text(b"LP.APPEND"),
        b"MGET" => Some((Family::Text, Keys::Any, b"LP.MGET")),
        b"MSET" => Some((Family::Text, Keys::Pairs, b"LP.MSET")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twins_are_found_in_any_case_and_nothing_else_is() {
        for (native, ours) in [
            (&b"hset"[..], Some(&b"LP.HSET"[..])),
            (b"HincrByFloat", Some(b"LP.HINCRBYFLOAT")),
            (b"substr", Some(b"LP.GETRANGE")),
            (b"MSET", Some(b"LP.MSET")),
            (b"", None),
            (b"HSETS", None),
            (b"a name that is longer than any", None),
            (b"LP.HSET", None),
        ] {
            assert_eq!(twin(native).map(|(_, _, name)| name), ours);
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
