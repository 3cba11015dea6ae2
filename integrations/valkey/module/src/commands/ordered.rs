//! Commands that native hashes have no twin of: ranges of fields in order.

use std::cell::RefCell;
use std::ops::Bound;

use super::access::{Done, map_of, remove_from, replicate_part};
use crate::api::output::Output;
use crate::api::{Context, Failure, Key, OwnedStr, Str};
use crate::store::map::Map;
use crate::store::number::integer;
use crate::store::record_key::FieldRange;

const BAD_BOUND: Failure = Failure::text("ERR min or max not valid string range item");

/// Where a range begins or ends, as a client writes it: `-`, `+`, `[field`, `(field`.
enum End<'c> {
    Least,
    Greatest,
    At(Bound<&'c [u8]>),
}

fn end_of<'c>(text: Str<'c>) -> Result<End<'c>, Failure> {
    match text.bytes() {
        b"-" => Ok(End::Least),
        b"+" => Ok(End::Greatest),
        [b'[', field @ ..] => Ok(End::At(Bound::Included(field))),
        [b'(', field @ ..] => Ok(End::At(Bound::Excluded(field))),
        _ => Err(BAD_BOUND),
    }
}

/// Returns the range from `min` to `max`; `None` if nothing can be in it.
fn range_of<'c>(min: Str<'c>, max: Str<'c>) -> Result<Option<FieldRange<'c>>, Failure> {
    let (min, max) = (end_of(min)?, end_of(max)?);
    let from = match min {
        End::Least => Bound::Unbounded,
        End::At(bound) => bound,
        End::Greatest => return Ok(None),
    };
    let to = match max {
        End::Greatest => Bound::Unbounded,
        End::At(bound) => bound,
        End::Least => return Ok(None),
    };
    Ok(Some((from, to)))
}

/// What `LP.RANGE` is to do.
#[derive(Default)]
struct Options {
    is_reversed: bool,
    has_values: bool,
    limit: Option<(usize, usize)>,
}

fn options_of(mut rest: &[Str<'_>]) -> Result<Options, Failure> {
    let mut options = Options::default();
    while let [option, following @ ..] = rest {
        let option = option.bytes();
        rest = following;
        if option.eq_ignore_ascii_case(b"REV") {
            options.is_reversed = true;
        } else if option.eq_ignore_ascii_case(b"WITHVALUES") {
            options.has_values = true;
        } else if option.eq_ignore_ascii_case(b"LIMIT") {
            let [offset, count, following @ ..] = rest else {
                return Err(Failure::SYNTAX);
            };
            rest = following;
            let offset = integer(offset.bytes()).ok_or(Failure::NOT_INTEGER)?;
            let count = integer(count.bytes()).ok_or(Failure::NOT_INTEGER)?;
            // As for sorted sets: nothing before the first, all where the count is negative.
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            options.limit = Some(match usize::try_from(offset) {
                Ok(offset) => (offset, count),
                Err(_) => (0, 0),
            });
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    Ok(options)
}

/// `LP.RANGE key min max [REV] [LIMIT offset count] [WITHVALUES]`; with `REV` max comes first, as in `ZRANGE`.
pub fn range(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, first, second, rest @ ..] = arguments else {
        return Err(Failure::Arity);
    };
    let options = options_of(rest)?;
    let range = match options.is_reversed {
        false => range_of(*first, *second)?,
        true => range_of(*second, *first)?,
    };
    let key = Key::read(context, *name);
    let (Some(map), Some(range)) = (map_of(&key)?, range) else {
        context.array(0);
        return Ok(());
    };
    let (offset, count) = options.limit.unwrap_or((0, usize::MAX));
    let nested = options.has_values && context.is_resp3();
    let of_record = if options.has_values && !nested { 2 } else { 1 };
    let mut output = Output::new(context);
    let (mut skipped, mut replies) = (0, 0);
    // Each record is part of the reply before the next one is read, so that only the reply is in memory. Its length is
    // not known before its end.
    let reply = |field: &[u8], value: &[u8]| {
        if skipped < offset {
            skipped += 1;
            return true;
        }
        if replies == 0 {
            context.begin_array();
        }
        replies += of_record;
        if nested {
            context.array(2);
        }
        context.bytes(field);
        if options.has_values {
            context.bytes(value);
        }
        output.add(field.len() + if options.has_values { value.len() } else { 0 });
        !output.is_closing()
    };
    let limit = match count {
        0 => 0,
        count => offset.saturating_add(count),
    };
    let outcome = match options.is_reversed {
        false => map.visit(range, limit, reply),
        true => map.visit_back(range, limit, reply),
    };
    match (replies, outcome) {
        (0, Ok(())) => context.array(0),
        (0, Err(error)) => return Err(error.into()),
        (_, Ok(())) => context.end_array(replies),
        (_, Err(error)) => {
            // A part of the reply is already sent: an error takes the place of the next record.
            let failure = Failure::from(error);
            for _ in 0..of_record {
                context.failure(&failure);
            }
            context.end_array(replies + of_record);
        }
    }
    Ok(())
}

/// `LP.COUNT key min max`
pub fn count(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, min, max] = *arguments else {
        return Err(Failure::Arity);
    };
    let range = range_of(min, max)?;
    let key = Key::read(context, name);
    let count = match (map_of(&key)?, range) {
        (Some(map), Some((Bound::Unbounded, Bound::Unbounded))) => map.len(),
        (Some(map), Some(range)) => map.count(range)?,
        _ => 0,
    };
    context.integer(count as i64);
    Ok(())
}

/// `LP.REMRANGE key min max`
pub fn remrange(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, min, max] = *arguments else {
        return Err(Failure::Arity);
    };
    let range = range_of(min, max)?;
    // The part of the range that was removed ends before this field, if that is in the range.
    let end = RefCell::new(None);
    let remove = |map: &mut Map| -> Result<u64, Failure> {
        let Some(range) = range else { return Ok(0) };
        Ok(map.remove_range(range, |field| {
            let is_within = |field: &&[u8]| is_below(field, range.1);
            *end.borrow_mut() = field.filter(is_within).map(|field| [b"(", field].concat());
        })?)
    };
    let removed = remove_from(context, name, remove, || match &*end.borrow() {
        Some(end) => replicate_part(context, c"LP.REMRANGE", name, &[min, OwnedStr::new(end).as_str()]),
        None => context.replicate_verbatim(),
    })?;
    context.integer(removed as i64);
    Ok(())
}

/// Returns whether a field is below the end of a range.
fn is_below(field: &[u8], end: Bound<&[u8]>) -> bool {
    match end {
        Bound::Included(end) | Bound::Excluded(end) => field < end,
        Bound::Unbounded => true,
    }
}

/// `LP.FIRST key`
pub fn first(context: Context, arguments: &[Str<'_>]) -> Done {
    end(context, arguments, false)
}

/// `LP.LAST key`
pub fn last(context: Context, arguments: &[Str<'_>]) -> Done {
    end(context, arguments, true)
}

/// The record at an end, as field and value; nothing if there is none.
fn end(context: Context, arguments: &[Str<'_>], is_last: bool) -> Done {
    let [_, name] = *arguments else {
        return Err(Failure::Arity);
    };
    let key = Key::read(context, name);
    let record = match map_of(&key)? {
        Some(map) => {
            let mut records = map.range((Bound::Unbounded, Bound::Unbounded))?;
            let record = if is_last { records.next_back() } else { records.next() };
            record.transpose()?
        }
        None => None,
    };
    match record {
        Some((field, value)) => {
            context.array(2);
            context.bytes(&field);
            context.bytes(&value);
        }
        None => context.null(),
    }
    Ok(())
}
