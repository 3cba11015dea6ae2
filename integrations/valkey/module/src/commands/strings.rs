//! The twins of the commands of strings that read or change a part of one.

use std::ops::Range;

use super::access::{Done, replicate_part, text_of};
use super::expiry::Expiry;
use super::set::put;
use crate::api::context::Class;
use crate::api::{Context, Failure, Key, OwnedStr, Str};
use crate::store::MAX_BYTES;
use crate::store::number::integer;

/// `LP.GET key`
pub fn get(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name] = *arguments else {
        return Err(Failure::Arity);
    };
    let key = Key::read(context, name);
    let found = match text_of(&key)? {
        Some(text) => text.get_with(|value| context.bytes(value))?,
        None => None,
    };
    if found.is_none() {
        context.null();
    }
    Ok(())
}

/// `LP.STRLEN key`
pub fn strlen(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name] = *arguments else {
        return Err(Failure::Arity);
    };
    let key = Key::read(context, name);
    let len = match text_of(&key)? {
        Some(text) => text.length()?,
        None => 0,
    };
    context.integer(len as i64);
    Ok(())
}

/// `LP.GETRANGE key start end`
pub fn getrange(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, start, end] = *arguments else {
        return Err(Failure::Arity);
    };
    let start = integer(start.bytes()).ok_or(Failure::NOT_INTEGER)?;
    let end = integer(end.bytes()).ok_or(Failure::NOT_INTEGER)?;
    let key = Key::read(context, name);
    let found = match text_of(&key)? {
        Some(text) => {
            let part = part(text.length()?, start, end);
            text.part_with(part, |bytes| context.bytes(bytes))?
        }
        None => None,
    };
    if found.is_none() {
        context.bytes(b"");
    }
    Ok(())
}

/// Returns the range of the bytes from `start` to `end`, both included, and counted from the end where negative.
fn part(len: usize, start: i64, end: i64) -> Range<usize> {
    let len = len as i64;
    if start < 0 && end < 0 && start > end {
        return 0..0;
    }
    let from_begin = |index: i64| {
        if index < 0 {
            (len + index.max(-len)).max(0)
        } else {
            index
        }
    };
    let (start, end) = (from_begin(start), from_begin(end).min(len - 1));
    match usize::try_from(start).ok().zip(usize::try_from(end).ok()) {
        Some((start, end)) if start <= end => start..end + 1,
        _ => 0..0,
    }
}

/// Returns the length of the key's string; `None` if there is no key.
fn length_of(key: &Key<'_>) -> Result<Option<usize>, Failure> {
    Ok(text_of(key)?.map(|text| text.length()).transpose()?)
}

/// Writes bytes into the key's string from `at` on, and keeps its expiry; zeros fill a part between its end and `at`.
/// After an error, the string's part in the first `done` of the bytes is written.
fn write_at(context: Context, key: &mut Key<'_>, at: usize, bytes: &[u8], done: &mut usize) -> Done {
    let end = at.saturating_add(bytes.len());
    if end > MAX_BYTES {
        return Err(leafpress::TreeError::ValueTooLong { len: end }.into());
    }
    let mut whole = match text_of(key)? {
        Some(text) if text.write_long(at, bytes, done)? => return Ok(()),
        Some(text) => text.to_vec()?,
        None => Vec::new(),
    };
    whole.resize(whole.len().max(end), 0);
    whole[at..end].copy_from_slice(bytes);
    put(context, key, &whole, Expiry::Kept)
}

/// `LP.SETRANGE key offset value`
pub fn setrange(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, offset, value] = *arguments else {
        return Err(Failure::Arity);
    };
    let offset = integer(offset.bytes()).ok_or(Failure::NOT_INTEGER)?;
    let offset = usize::try_from(offset).map_err(|_| Failure::text("ERR offset is out of range"))?;
    let mut key = Key::write(context, name);
    let len = length_of(&key)?.unwrap_or_default();
    let value = value.bytes();
    if value.is_empty() {
        context.integer(len as i64);
        return Ok(());
    }
    let mut done = 0;
    let outcome = write_at(context, &mut key, offset, value, &mut done);
    drop(key);
    let changed = match outcome {
        Ok(()) => value.len(),
        Err(_) => done.min(len.saturating_sub(offset)),
    };
    if changed > 0 {
        context.touched(name);
        context.notify(Class::Text, c"setrange", name);
        match outcome {
            Ok(()) => context.replicate_verbatim(),
            // What was written before a failure stays, and replicas receive it.
            Err(_) => {
                let [offset, part] = [offset.to_string().as_bytes(), &value[..changed]].map(OwnedStr::new);
                replicate_part(context, c"LP.SETRANGE", name, &[offset.as_str(), part.as_str()]);
            }
        }
    }
    outcome?;
    context.integer(len.max(offset + value.len()) as i64);
    Ok(())
}

/// `LP.APPEND key value`
pub fn append(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, value] = *arguments else {
        return Err(Failure::Arity);
    };
    let mut key = Key::write(context, name);
    let old = length_of(&key)?;
    let value = value.bytes();
    if old.is_none() || !value.is_empty() {
        // A failure leaves the string unchanged: its length is written last.
        write_at(context, &mut key, old.unwrap_or_default(), value, &mut 0)?;
    }
    let len = old.unwrap_or_default() + value.len();
    drop(key);
    context.touched(name);
    context.notify(Class::Text, c"append", name);
    context.replicate_verbatim();
    context.integer(len as i64);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn parts_of_a_string() {
        for (start, end, expected) in [
            (0, 3, "This"),
            (-3, -1, "ing"),
            (0, -1, "This is a string"),
            (10, 100, "string"),
            (5, 3, ""),
            (-100, 3, "This"),
            (100, 200, ""),
            (-1, -5, ""),
            (i64::MIN, i64::MAX, "This is a string"),
        ] {
            assert_eq!(
                &b"This is a string"[part(16, start, end)],
                expected.as_bytes(),
                "{start} {end}"
            );
        }
        assert_eq!(part(0, 0, -1), 0..0);
    }
}
