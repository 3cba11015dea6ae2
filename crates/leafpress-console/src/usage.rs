//! What clap says of the command line, in our commands' manner: help in full, a mistake in one line.

use std::process::ExitCode;

use clap::error::ErrorKind;

use crate::failure::Failure;
use crate::output;

/// Prints help, version or the mistake, and gives the exit code. `program` is the name that the user typed.
pub fn report(error: &clap::Error, program: &str) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => match output::print(&error.render().to_string()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => failure.report(),
        },
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            eprint!("{}", error.render());
            ExitCode::from(2)
        }
        _ => Failure::bad_input(one_line(&error.render().to_string(), program)).report(),
    }
}

/// clap's message without its usage block.
fn one_line(rendered: &str, program: &str) -> String {
    let text = rendered.split("\n\nUsage:").next().unwrap_or(rendered);
    let text = text.split("\n\nFor more information").next().unwrap_or(text);
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let words: Vec<&str> = text.split_whitespace().collect();
    format!("{} (see {program} --help)", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn the_usage_block_is_left_out() {
        let rendered = "error: unexpected argument '--x' found\n\n  tip: a similar argument exists: '--y'\n\nUsage: leafpress\n\nFor more information, try '--help'.\n";
        assert_eq!(
            one_line(rendered, "leafpress"),
            "unexpected argument '--x' found tip: a similar argument exists: '--y' (see leafpress --help)"
        );
    }
}
