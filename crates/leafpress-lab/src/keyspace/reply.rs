//! Commands and replies, independent of how they are carried.

use crate::core::LabError;

/// Variables of the environment with a password for a URL that has none, as the servers' own clients read them.
pub const PASSWORD_VARIABLES: [&str; 2] = ["REDISCLI_AUTH", "VALKEYCLI_AUTH"];

/// A command: its name and its arguments.
pub(super) type Command = Vec<Vec<u8>>;

/// Makes a command of its words.
pub(super) fn command<const N: usize>(words: [&[u8]; N]) -> Command {
    words.iter().map(|word| word.to_vec()).collect()
}

/// The reply to a command.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Reply {
    Nil,
    Number(i64),
    Bytes(Vec<u8>),
    List(Vec<Reply>),
    Error(Refusal),
}

/// Why a server did not run a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The user may not run the command.
    Command(String),
    /// The user may not read the key.
    Key,
    /// The key has moved, or is about to move, to another server of the cluster.
    Moved,
    /// The reply of the server to a command that it does not run for another reason.
    Other(String),
}

impl Refusal {
    /// Classifies an error reply by its code and message.
    pub(super) fn of(code: &str, message: &str) -> Self {
        match code {
            "NOPERM" if message.contains(" access ") => Self::Key,
            "MOVED" | "ASK" | "TRYAGAIN" => Self::Moved,
            "NOPERM" => Self::Command(message.to_owned()),
            _ => Self::Other(format!("{code} {message}").trim().to_owned()),
        }
    }
}

impl Reply {
    /// Returns a number, also one that is written as text.
    pub(super) fn number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Bytes(bytes) => std::str::from_utf8(bytes).ok()?.parse().ok(),
            _ => None,
        }
    }

    /// Returns the bytes of a string.
    pub(super) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Returns the text of a string.
    pub(super) fn text(&self) -> Option<&str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    /// Returns the members of a list.
    pub(super) fn list(&self) -> Option<&[Self]> {
        match self {
            Self::List(members) => Some(members),
            _ => None,
        }
    }

    /// Returns whether the key is not there any more: it has moved, or has another type than when it was looked at.
    pub(super) fn is_of_vanished_key(&self) -> bool {
        match self {
            Self::Error(Refusal::Moved) => true,
            Self::Error(Refusal::Other(message)) => message.starts_with("WRONGTYPE"),
            _ => false,
        }
    }

    /// Returns whether the user may not read the key.
    pub(super) fn is_of_denied_key(&self) -> bool {
        matches!(self, Self::Error(Refusal::Key))
    }

    /// Returns the reply of a command that the survey cannot do without, unless its key was refused or has moved.
    ///
    /// # Errors
    /// [`LabError::Server`] when the user may not run it, or the server failed.
    pub(super) fn needed(&self, server: &str, name: &str) -> Result<&Self, LabError> {
        match self {
            Self::Error(Refusal::Command(message)) => Err(LabError::Server {
                server: server.to_owned(),
                reason: format!(
                    "the user may not run {name} ({message}). Let it run the commands that docs/commands/advise.md \
                     lists, or use another user"
                ),
            }),
            Self::Error(Refusal::Other(message)) if message.starts_with("NOAUTH") => Err(LabError::Server {
                server: server.to_owned(),
                reason: format!(
                    "it asks for a password: give it in the URL or in {}",
                    PASSWORD_VARIABLES.join(" or ")
                ),
            }),
            Self::Error(Refusal::Other(message)) => Err(LabError::Server {
                server: server.to_owned(),
                reason: format!("{name} failed: {message}"),
            }),
            reply => Ok(reply),
        }
    }
}
