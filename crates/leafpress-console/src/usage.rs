//! Prints clap's help and errors in our format: help in full, an error in one line that begins with the flag.

use std::ffi::OsString;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use leafpress_lab::LabError;

use crate::failure::Failure;
use crate::output;

/// Prints help, the version or the error, and returns the exit code. `program` is the name that the user typed.
pub fn report(error: &clap::Error, program: &str) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => match output::print(&error.render().to_string()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => failure.report(),
        },
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            output::print_message(error.render().to_string().trim_end());
            ExitCode::from(2)
        }
        _ => failure(error, program).report(),
    }
}

/// Converts the error to a failure. What the laboratory says of a value needs no reference to the help.
pub fn failure(error: &clap::Error, program: &str) -> Failure {
    let mistake = mistake(error, std::env::args_os());
    match std::error::Error::source(error) {
        Some(source) if source.is::<LabError>() => Failure::bad_input(mistake),
        _ => Failure::bad_input(format!("{mistake} (see {program} --help)")),
    }
}

/// The error, in one line.
fn mistake(error: &clap::Error, words: impl Iterator<Item = OsString>) -> String {
    let named = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidUtf8 => not_text(words),
        ErrorKind::ValueValidation => {
            let source = std::error::Error::source(error);
            let parts = named(ContextKind::InvalidArg)
                .zip(named(ContextKind::InvalidValue))
                .zip(source);
            parts.map(|((argument, value), source)| {
                // Without its value: `--threads <N>`.
                let argument = argument.split(' ').next().unwrap_or(argument);
                match source.downcast_ref() {
                    Some(LabError::Option { option: "", reason }) => message(argument, value, reason),
                    Some(LabError::Option { reason, .. }) => format!("{argument}: {reason}"),
                    _ => format!("{argument}: {}", reason(value, source)),
                }
            })
        }
        _ => None,
    }
    .unwrap_or_else(|| one_line(&error.render().to_string()))
}

/// Returns one line with the option and its value: `--threads 0: ...`. A reason that begins with the option's own name
/// does not repeat it, nor one that contains the value.
pub fn message(name: &str, value: &str, reason: &str) -> String {
    let bare = name.trim_start_matches('-');
    let reason = reason.strip_prefix(&format!("{bare}: ")).unwrap_or(reason);
    // Every reason for an empty value does.
    if reason.contains(value) {
        format!("{name}: {reason}")
    } else {
        format!("{name} {value}: {reason}")
    }
}

/// Why a value is rejected.
fn reason(value: &str, source: &(dyn std::error::Error + 'static)) -> String {
    let is_negative = value.strip_prefix('-').is_some_and(|rest| rest.parse::<f64>().is_ok());
    if let Some(error) = source.downcast_ref::<ParseIntError>() {
        return match error.kind() {
            IntErrorKind::Empty => "it is empty; give a number".into(),
            IntErrorKind::PosOverflow => format!("`{value}` is too large a number"),
            _ if is_negative => format!("`{value}` is negative"),
            _ => format!("`{value}` is not a whole number"),
        };
    }
    if source.is::<ParseFloatError>() {
        return match value {
            "" => "it is empty; give a number".into(),
            value => format!("`{value}` is not a number"),
        };
    }
    let reason_text = source.to_string();
    if reason_text.contains(&format!("`{value}`")) {
        reason_text
    } else {
        format!("`{value}`: {reason_text}")
    }
}

/// Words that are not UTF-8. Paths may be, and do not end up here alone.
fn not_text(words: impl Iterator<Item = OsString>) -> Option<String> {
    let words: Vec<String> = words
        .filter(|word| word.to_str().is_none())
        .map(|word| format!("{word:?}"))
        .collect();
    (!words.is_empty()).then(|| {
        format!(
            "{} is not UTF-8; only a path may contain such bytes",
            words.join(" or ")
        )
    })
}

/// clap's message without its usage block.
fn one_line(rendered: &str) -> String {
    let text = rendered.split("\n\nUsage:").next().unwrap_or(rendered);
    let text = text.split("\n\nFor more information").next().unwrap_or(text);
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let paragraphs = text
        .split("\n\n")
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "));
    paragraphs.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use clap::{Arg, Command, value_parser};
    use leafpress_lab::Bytes;

    use super::*;

    /// The error for these words.
    fn reason_text(words: &[OsString]) -> String {
        let command = Command::new("leafpress")
            .arg(
                Arg::new("threads")
                    .long("threads")
                    .value_name("N")
                    .value_parser(value_parser!(usize)),
            )
            .arg(
                Arg::new("seconds")
                    .long("seconds")
                    .allow_negative_numbers(true)
                    .value_parser(value_parser!(f64)),
            )
            .arg(Arg::new("bytes").long("bytes").value_parser(Bytes::parse_usize))
            .arg(Arg::new("kind").long("kind").value_parser(["one", "two"]));
        let words: Vec<OsString> = [OsString::from("leafpress")]
            .into_iter()
            .chain(words.iter().cloned())
            .collect();
        let error = command.try_get_matches_from(words.clone()).unwrap_err();
        mistake(&error, words.into_iter())
    }

    #[test]
    fn the_usage_block_is_left_out() {
        let rendered = "error: unexpected argument '--x' found\n\n  tip: a similar argument exists: '--y'\n\nUsage: \
                        leafpress\n\nFor more information, try '--help'.\n";
        assert_eq!(
            one_line(rendered),
            "unexpected argument '--x' found; tip: a similar argument exists: '--y'"
        );
    }

    #[test]
    fn explains_invalid_values_plainly() {
        for (word, expected) in [
            ("--threads=", "--threads: it is empty; give a number"),
            ("--threads=x", "--threads: `x` is not a whole number"),
            ("--threads=1.5", "--threads: `1.5` is not a whole number"),
            ("--threads=-1", "--threads: `-1` is negative"),
            (
                "--threads=99999999999999999999",
                "--threads: `99999999999999999999` is too large a number",
            ),
            ("--seconds=", "--seconds: it is empty; give a number"),
            ("--seconds=x", "--seconds: `x` is not a number"),
        ] {
            assert_eq!(reason_text(&[word.into()]), expected);
        }
        assert!(reason_text(&["--bytes=1X".into()]).starts_with("--bytes: invalid size `1X`"));
        assert!(reason_text(&["--kind=three".into()]).contains("one, two"));
    }

    #[test]
    fn messages_name_the_word_once() {
        assert_eq!(message("--threads", "x", "invalid digit"), "--threads x: invalid digit");
        assert_eq!(message("--cut", "y", "cut: unknown cut `y`"), "--cut: unknown cut `y`");
        assert_eq!(message("--data", "", "it is empty"), "--data: it is empty");
    }

    #[test]
    fn what_is_not_utf_8_is_named() {
        let word = OsString::from_vec(b"--threads=\xff".to_vec());
        assert_eq!(
            reason_text(&[word]),
            "\"--threads=\\xFF\" is not UTF-8; only a path may contain such bytes"
        );
    }
}
