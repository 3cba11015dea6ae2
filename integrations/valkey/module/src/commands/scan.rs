//! The twin of `HSCAN`.

use leafpress::Record;

use super::access::{Done, map_of};
use super::glob::matches;
use crate::api::{Context, Failure, Key, Str};
use crate::store::number::integer;
use crate::store::scan;

/// Default number of fields of a step.
const STEP: usize = 10;

/// The options of `LP.HSCAN`.
struct Walk<'c> {
    pattern: Option<&'c [u8]>,
    step: usize,
    has_values: bool,
}

/// `LP.HSCAN key cursor [MATCH pattern] [COUNT count] [NOVALUES]`
pub fn hscan(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, cursor, options @ ..] = arguments else {
        return Err(Failure::Arity);
    };
    let cursor = std::str::from_utf8(cursor.bytes())
        .ok()
        .and_then(|cursor| cursor.parse::<u64>().ok())
        .ok_or(Failure::text("ERR invalid cursor"))?;
    let key = Key::read(context, *name);
    let Some(map) = map_of(&key)? else {
        // As in the native command, which checks the options later.
        return reply_step(context, 0, &[], true);
    };
    let walk = walk_of(options)?;
    let step = scan::step(map, cursor, walk.step, |field| {
        walk.pattern.is_none_or(|pattern| matches(pattern, field))
    })?;
    reply_step(context, step.next, &step.records, walk.has_values)
}

fn walk_of<'c>(options: &[Str<'c>]) -> Result<Walk<'c>, Failure> {
    let mut walk = Walk {
        pattern: None,
        step: STEP,
        has_values: true,
    };
    let mut rest = options;
    while let [option, following @ ..] = rest {
        let option = option.bytes();
        rest = following;
        if option.eq_ignore_ascii_case(b"NOVALUES") {
            walk.has_values = false;
            continue;
        }
        let [argument, following @ ..] = rest else {
            return Err(Failure::SYNTAX);
        };
        rest = following;
        if option.eq_ignore_ascii_case(b"COUNT") {
            let count = integer(argument.bytes()).ok_or(Failure::NOT_INTEGER)?;
            walk.step = usize::try_from(count)
                .ok()
                .filter(|step| *step > 0)
                .ok_or(Failure::SYNTAX)?;
        } else if option.eq_ignore_ascii_case(b"MATCH") {
            walk.pattern = Some(argument.bytes());
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    Ok(walk)
}

fn reply_step(context: Context, next: u64, found: &[Record], has_values: bool) -> Done {
    context.array(2);
    context.bytes(next.to_string().as_bytes());
    context.array(found.len() * if has_values { 2 } else { 1 });
    for (field, value) in found {
        context.bytes(field);
        if has_values {
            context.bytes(value);
        }
    }
    Ok(())
}
