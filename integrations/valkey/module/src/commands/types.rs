//! The replacements of `TYPE` and `SCAN ... TYPE` in transparent mode: compressed values have the types of native
//! ones.

use super::access::Done;
use crate::api::{Context, Failure, Key, Str};
use crate::prefixes::{Family, has_any_prefix};

/// Returns the family of the commands that read a key's compressed value; `None` if it has none, or no prefix: native
/// commands do not read it then.
fn family_of(context: Context, name: Str<'_>) -> Option<Family> {
    if !has_any_prefix(name.bytes()) {
        return None;
    }
    let key = Key::look(context, name);
    let value = key.value().ok().flatten()?;
    Some(Family::of(&value))
}

/// Returns the family whose type a `SCAN` with these arguments requests: the last `TYPE` counts.
pub fn family_sought<'a>(argument: impl Fn(usize) -> Option<&'a [u8]>) -> Option<Family> {
    let (mut sought, mut index) = (None, 2);
    while let Some((option, value)) = argument(index).zip(argument(index + 1)) {
        if option.eq_ignore_ascii_case(b"TYPE") {
            sought = Family::named(value);
        }
        index += 2;
    }
    sought
}

/// `TYPE key`
pub fn key_type(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name] = *arguments else {
        return Err(Failure::Arity);
    };
    let family = family_of(context, name).ok_or(Failure::LeftToServer)?;
    context.status(family.type_name());
    Ok(())
}

/// `SCAN cursor [MATCH pattern] [COUNT count] TYPE hash|string`: the server scans without regard to types.
pub fn scan(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, cursor, options @ ..] = arguments else {
        return Err(Failure::Arity);
    };
    let argument = |index: usize| arguments.get(index).map(|argument| argument.bytes());
    let sought = family_sought(argument).ok_or(Failure::LeftToServer)?;
    let is_type = |option: &[Str<'_>]| option.len() == 2 && option[0].bytes().eq_ignore_ascii_case(b"TYPE");
    let kept = options.chunks(2).filter(|option| !is_type(option)).flatten();
    let kept: Vec<_> = std::iter::once(cursor).chain(kept).copied().collect();
    context.reply_scan(c"SCAN", &kept, |name| {
        family_of(context, name) == Some(sought) || Key::look(context, name).has_type(sought.key_type())
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_of_a_scan() {
        for (arguments, expected) in [
            (&["SCAN", "0"][..], None),
            (&["SCAN", "0", "TYPE", "hash"], Some(Family::Hash)),
            (&["SCAN", "0", "MATCH", "type", "type", "STRING"], Some(Family::Text)),
            (&["SCAN", "0", "MATCH", "TYPE", "COUNT", "hash"], None),
            (&["SCAN", "0", "TYPE", "hash", "TYPE", "list"], None),
            (&["SCAN", "0", "TYPE", "list", "TYPE", "string"], Some(Family::Text)),
            (&["SCAN", "0", "TYPE"], None),
            (&["SCAN", "0", "TYPE", "leafpress"], None),
        ] {
            let sought = family_sought(|index| arguments.get(index).map(|argument| argument.as_bytes()));
            assert!(sought == expected, "{arguments:?}");
        }
    }
}
