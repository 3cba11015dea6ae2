//! The configured prefixes: keys that begin with one are compressed in transparent mode.

use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::api::acl::forget_default_user;
use crate::api::raw::{KEYTYPE_HASH, KEYTYPE_STRING};
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

/// The prefixes of each family.
pub struct Prefixes {
    /// Of hashes.
    pub hash: Vec<Vec<u8>>,
    /// Of strings.
    pub text: Vec<Vec<u8>>,
}

static PREFIXES: Mutex<Prefixes> = Mutex::new(Prefixes {
    hash: Vec::new(),
    text: Vec::new(),
});

static IS_ANY: AtomicBool = AtomicBool::new(false);

impl Prefixes {
    /// Returns those of a family.
    pub fn of(&self, family: Family) -> &[Vec<u8>] {
        match family {
            Family::Hash => &self.hash,
            Family::Text => &self.text,
        }
    }

    /// Returns whether a key has one of a family.
    pub fn has(&self, family: Family, key: &[u8]) -> bool {
        self.of(family).iter().any(|prefix| key.starts_with(prefix))
    }
}

/// Returns the prefixes, as the operator writes them.
pub fn text(family: Family) -> String {
    let state = locked();
    let prefixes: Vec<_> = state
        .of(family)
        .iter()
        .map(|prefix| String::from_utf8_lossy(prefix))
        .collect();
    prefixes.join(" ")
}

/// Sets the prefixes: words separated by spaces; an empty text turns the mode off.
pub fn set(family: Family, text: &str) -> Result<(), String> {
    let prefixes: Vec<Vec<u8>> = text
        .split_ascii_whitespace()
        .map(|word| word.as_bytes().to_vec())
        .collect();
    let mut state = locked();
    match family {
        Family::Hash => state.hash = prefixes,
        Family::Text => state.text = prefixes,
    }
    forget_default_user();
    IS_ANY.store(!state.hash.is_empty() || !state.text.is_empty(), Ordering::Relaxed);
    Ok(())
}

/// Returns whether there is any prefix: without prefixes commands are not inspected.
pub fn is_any() -> bool {
    IS_ANY.load(Ordering::Relaxed)
}

/// Returns the prefixes, locked.
pub fn locked() -> MutexGuard<'static, Prefixes> {
    PREFIXES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether a key has a prefix.
pub fn has_prefix(family: Family, key: &[u8]) -> bool {
    let state = locked();
    state.has(family, key)
}

/// Returns whether a key has a prefix of either family.
pub fn has_any_prefix(key: &[u8]) -> bool {
    has_prefix(Family::Hash, key) || has_prefix(Family::Text, key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_words() {
        set(Family::Text, "  a:  b: ").unwrap();
        assert_eq!(text(Family::Text), "a: b:");
        assert!(is_any());
        set(Family::Text, "").unwrap();
        assert!(!is_any());
    }
}
