//! A command for tests, which a build with the feature `testing` has: steps fail on request.

use super::NO_KEYS;
use super::access::Done;
use crate::api::command::{Command, handler};
use crate::api::{Context, Failure, Str};
use crate::store::faults::{Step, fail};
use crate::store::number::integer;

/// The command.
pub const COMMAND: Command<'static> = Command {
    name: c"LP._FAIL",
    run: handler!(run; "admin slow dangerous"),
    flags: super::ADMIN,
    arity: 3,
    keys: NO_KEYS,
    summary: c"Has a step fail, for tests",
    complexity: c"O(1)",
    categories: "admin slow dangerous",
};

/// `LP._FAIL READ | WRITE count`: the step that comes after `count - 1` others fails once; none if `count` is 0.
fn run(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, step, count] = *arguments else {
        return Err(Failure::Arity);
    };
    let step = match step.bytes() {
        b"READ" => Step::Read,
        b"WRITE" => Step::Write,
        _ => return Err(Failure::SYNTAX),
    };
    let count = integer(count.bytes()).and_then(|count| u64::try_from(count).ok());
    fail(step, count.ok_or(Failure::NOT_INTEGER)?);
    context.status(c"OK");
    Ok(())
}
