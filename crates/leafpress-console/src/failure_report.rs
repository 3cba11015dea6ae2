//! The report of a failure: one line on standard error, wrapped on a terminal, and an exit code.

use std::process::ExitCode;

use crate::failure::{Failure, without_numbers};
use crate::{interrupt, output};

impl Failure {
    /// Prints the message and returns the exit code.
    pub fn report(&self) -> ExitCode {
        let (message, code) = match self {
            Self::BadInput(message) => (Some(format!("error: {message}")), 2),
            Self::Failed(message) => (Some(format!("error: {message}")), 1),
            Self::Interrupted(message) => (Some(message.clone()), interrupt::exit_code()),
            Self::ReaderGone => (None, 0),
        };
        if let Some(message) = message {
            output::print_message(&without_numbers(&one_line(&message)));
        }
        ExitCode::from(code)
    }
}

/// Joins the lines of a message, which may come from libraries and the system.
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
