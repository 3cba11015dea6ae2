//! Why a command failed.

/// Why a command stopped.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// Invalid arguments, environment or data: exit 2.
    BadInput(String),
    /// The work itself failed: exit 1.
    Failed(String),
    /// The user pressed Ctrl-C, or SIGTERM came: exit 130 or 143, as shells do.
    Interrupted(String),
    /// The reader of standard output has gone (`| head`): nothing to print, exit 0.
    ReaderGone,
}

impl Failure {
    /// Creates a [`Failure::BadInput`].
    pub fn bad_input(message: impl Into<String>) -> Self {
        Self::BadInput(message.into())
    }

    /// Creates a [`Failure::Failed`].
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }
}

/// Strips error numbers from the system's messages: ` (os error 20)`, and what libraries append to it.
pub fn without_numbers(message: &str) -> String {
    let mut parts = message.split(" (os error ");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.split_once(')').map_or("", |(_, rest)| rest);
        let path = rest.strip_prefix(" at path \"").and_then(|path| path.split_once('"'));
        plain += path.map_or(rest, |(_, rest)| rest);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::without_numbers;

    #[test]
    fn the_systems_numbers_are_left_out() {
        let message = "a: Not a directory (os error 20) at path \"a/.tmp1\"; name a directory (os error 2)";
        assert_eq!(without_numbers(message), "a: Not a directory; name a directory");
        assert_eq!(without_numbers("plain"), "plain");
    }
}
