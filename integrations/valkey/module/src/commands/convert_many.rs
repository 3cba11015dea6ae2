//! `LP.CONVERT`: conversions of many keys in the background.

use super::access::Done;
use super::conversion::{CONVERSION, Direction, Scope, Status, begin, status};
use super::convert::{Limits, MAX_CONVERTED_BYTES, MAX_CONVERTED_FIELDS};
use super::pass::{PassStatus, Selection};
use crate::api::{Context, Failure, Str};
use crate::store::number::integer;

/// `LP.CONVERT IMPORT | EXPORT [MATCH pattern] [TYPE hash | string] [MAXFIELDS count] [MAXBYTES bytes] [ALLDBS]`,
/// `LP.CONVERT STATUS`, `LP.CONVERT STOP`
pub fn convert(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, what, rest @ ..] = arguments else {
        return Err(Failure::Arity);
    };
    let is = |word: &[u8]| what.bytes().eq_ignore_ascii_case(word);
    match rest {
        _ if is(b"IMPORT") => start(context, Direction::Import, rest),
        _ if is(b"EXPORT") => start(context, Direction::Export, rest),
        [] if is(b"STATUS") => {
            match status() {
                Some(status) => reply_status(context, &status),
                None => context.null(),
            }
            Ok(())
        }
        [] if is(b"STOP") => {
            context.integer(i64::from(CONVERSION.stop()));
            Ok(())
        }
        _ => Err(Failure::text(
            "ERR LP.CONVERT takes IMPORT or EXPORT with MATCH, TYPE, MAXFIELDS, MAXBYTES and ALLDBS, or STATUS, or \
             STOP",
        )),
    }
}

fn start(context: Context, direction: Direction, mut options: &[Str<'_>]) -> Done {
    let mut scope = Scope {
        direction,
        selection: Selection::new(context.database()),
        limits: Limits {
            fields: MAX_CONVERTED_FIELDS,
            bytes: MAX_CONVERTED_BYTES,
            leaves_counters: true,
        },
    };
    while let [option, rest @ ..] = options {
        if let Some(rest) = scope.selection.take_option(options)? {
            options = rest;
            continue;
        }
        let is = |word: &[u8]| option.bytes().eq_ignore_ascii_case(word);
        options = match rest {
            [count, rest @ ..] if is(b"MAXFIELDS") => {
                scope.limits.fields = limit(count)?;
                rest
            }
            [bytes, rest @ ..] if is(b"MAXBYTES") => {
                scope.limits.bytes = limit(bytes)?;
                rest
            }
            _ => return Err(Failure::SYNTAX),
        };
    }
    if context.is_replica() {
        return Err(Failure::text(
            "ERR this is a replica: keys are converted on its primary",
        ));
    }
    begin(scope)?;
    context.status(c"OK");
    Ok(())
}

fn limit(argument: &Str<'_>) -> Result<u64, Failure> {
    let number = integer(argument.bytes()).ok_or(Failure::NOT_INTEGER)?;
    u64::try_from(number).map_err(|_| Failure::OUT_OF_RANGE)
}

fn reply_status(context: Context, status: &Status) {
    let PassStatus {
        state,
        reason,
        ref pattern,
        value_type,
        database,
        scanned,
        ref last_error,
        seconds,
    } = status.pass;
    let texts: [(&str, &[u8]); 6] = [
        ("state", state.as_bytes()),
        ("reason", reason.as_bytes()),
        ("direction", status.direction.as_bytes()),
        ("match", pattern),
        ("type", value_type.to_bytes()),
        ("last-error", last_error.as_bytes()),
    ];
    let numbers = [
        ("database", u64::try_from(database).unwrap_or_default()),
        ("scanned", scanned),
        ("converted", status.counts.converted),
        ("too-large", status.counts.too_large),
        ("failed", status.counts.failed),
        ("seconds", seconds),
    ];
    context.map(texts.len() + numbers.len());
    for (name, text) in texts {
        super::admin::text(context, name, text);
    }
    for (name, number) in numbers {
        super::admin::number(context, name, number);
    }
}
