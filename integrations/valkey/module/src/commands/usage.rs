//! `LP.USAGE`: what keys take, and what compressed ones would take natively.

use super::access::Done;
use super::admin::{number, text};
use super::pass::{PassStatus, Selection, Task};
use super::survey::{Figures, SURVEY, Sums, Survey, begin, status};
use crate::api::{Context, Failure, Str};

/// `LP.USAGE START [MATCH pattern] [TYPE hash | string] [ALLDBS]`, `LP.USAGE STATUS`, `LP.USAGE STOP`
pub fn usage(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, what, rest @ ..] = arguments else {
        return Err(Failure::Arity);
    };
    let is = |word: &[u8]| what.bytes().eq_ignore_ascii_case(word);
    match rest {
        _ if is(b"START") => start(context, rest),
        [] if is(b"STATUS") => {
            match status() {
                Some((pass, figures)) => reply_status(context, &pass, &figures),
                None => context.null(),
            }
            Ok(())
        }
        [] if is(b"STOP") => {
            context.integer(i64::from(SURVEY.stop()));
            Ok(())
        }
        _ => Err(Failure::text(
            "ERR LP.USAGE takes START with MATCH, TYPE and ALLDBS, or STATUS, or STOP",
        )),
    }
}

fn start(context: Context, mut options: &[Str<'_>]) -> Done {
    let mut selection = Selection::new(context.database());
    while !options.is_empty() {
        options = selection.take_option(options)?.ok_or(Failure::SYNTAX)?;
    }
    if let Some(reason) = Survey::reason_to_stop(context) {
        return Err(Failure::formatted(format!("ERR {reason}")));
    }
    begin(context, selection)?;
    context.status(c"OK");
    Ok(())
}

fn reply_status(context: Context, pass: &PassStatus, figures: &Figures) {
    let texts: [(&str, &[u8]); 5] = [
        ("state", pass.state.as_bytes()),
        ("reason", pass.reason.as_bytes()),
        ("match", &pass.pattern),
        ("type", pass.value_type.to_bytes()),
        ("last-error", pass.last_error.as_bytes()),
    ];
    let kinds = [
        ("compressed-maps", &figures.maps),
        ("compressed-strings", &figures.strings),
        ("native-hashes", &figures.native_hashes),
        ("native-strings", &figures.native_strings),
    ];
    let numbers = [
        ("database", u64::try_from(pass.database).unwrap_or_default()),
        ("scanned", pass.scanned),
        ("matched", kinds.iter().map(|(_, sums)| sums.keys).sum()),
        ("failed", figures.failed),
        ("seconds", pass.seconds),
    ];
    context.map(texts.len() + numbers.len() + kinds.len());
    for (name, value) in texts {
        text(context, name, value);
    }
    for (name, value) in numbers {
        number(context, name, value);
    }
    for (name, sums) in kinds {
        context.bytes(name.as_bytes());
        reply_sums(context, sums);
    }
}

fn reply_sums(context: Context, sums: &Sums) {
    context.map(4);
    number(context, "keys", sums.keys);
    number(context, "user-bytes", sums.user_bytes);
    number(context, "bytes-held", sums.bytes_held);
    number(context, "native-bytes", sums.native_bytes);
}
