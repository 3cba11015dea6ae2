//! How a command ends when it does not end well: one line on standard error and an exit code.

use std::process::ExitCode;

/// Why a command stopped.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// Arguments, environment or data that cannot work: exit 2.
    BadInput(String),
    /// The work itself failed: exit 1.
    Failed(String),
    /// The user pressed Ctrl-C: exit 130, as shells do.
    Interrupted(String),
    /// Whoever read standard output has gone (`| head`): nothing to say, exit 0.
    ReaderGone,
}

impl Failure {
    /// [`Failure::BadInput`].
    pub fn bad_input(message: impl Into<String>) -> Self {
        Self::BadInput(message.into())
    }

    /// [`Failure::Failed`].
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    /// Prints the message and gives the exit code.
    pub fn report(&self) -> ExitCode {
        let (message, code) = match self {
            Self::BadInput(message) => (Some(format!("error: {message}")), 2),
            Self::Failed(message) => (Some(format!("error: {message}")), 1),
            Self::Interrupted(message) => (Some(message.clone()), 130),
            Self::ReaderGone => (None, 0),
        };
        if let Some(message) = message {
            eprintln!("{}", one_line(&message));
        }
        ExitCode::from(code)
    }
}

/// Messages come from libraries and the system too; a user gets one line.
fn one_line(message: &str) -> String {
    message
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("; ")
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn a_message_is_one_line() {
        assert_eq!(one_line("a\n  b\n\nc\n"), "a; b; c");
    }
}
