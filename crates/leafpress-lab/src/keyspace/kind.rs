//! The types of values in a server.

use serde::Serialize;

/// The type of a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A string.
    String,
    /// A hash.
    Hash,
    /// A list.
    List,
    /// A set.
    Set,
    /// A sorted set.
    SortedSet,
    /// A stream.
    Stream,
    /// A module's type, by its name.
    Other(String),
}

impl Kind {
    /// Returns the type of a reply to `TYPE`.
    pub(super) fn of(name: &str) -> Self {
        match name {
            "string" => Self::String,
            "hash" => Self::Hash,
            "list" => Self::List,
            "set" => Self::Set,
            "zset" => Self::SortedSet,
            "stream" => Self::Stream,
            other => Self::Other(other.to_owned()),
        }
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        match self {
            Self::String => "string",
            Self::Hash => "hash",
            Self::List => "list",
            Self::Set => "set",
            Self::SortedSet => "zset",
            Self::Stream => "stream",
            Self::Other(name) => name,
        }
    }

    /// Returns the command that returns a value's length in constant time.
    pub(super) fn length_command(&self) -> Option<&'static [u8]> {
        Some(match self {
            Self::String => b"STRLEN",
            Self::Hash => b"HLEN",
            Self::List => b"LLEN",
            Self::Set => b"SCARD",
            Self::SortedSet => b"ZCARD",
            Self::Stream => b"XLEN",
            Self::Other(_) => return None,
        })
    }

    /// Returns whether the module has such a type.
    pub(super) fn is_of_module(&self) -> bool {
        matches!(self, Self::String | Self::Hash)
    }
}
