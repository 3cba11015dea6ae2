//! Paragraphs of `Field: value` lines, as Debian's control files have them (deb822(5)).

use super::lines::{Line, lines};
use super::{Found, Malformed};

/// Whether these bytes can name a field: printable ASCII except the colon, not beginning with `#` or `-`.
pub(super) fn is_name(name: &[u8]) -> bool {
    let first = name.first().is_some_and(|byte| !matches!(byte, b'#' | b'-'));
    first && name.iter().all(|byte| byte.is_ascii_graphic() && *byte != b':')
}

/// The paragraph in progress.
struct Stanza {
    start: usize,
    end: usize,
    key: Option<Vec<u8>>,
}

/// Names of fields are case-insensitive. A line that begins with a blank continues the field before; one with `#` is a
/// comment. The key is the text of the field's own line, trimmed; the first of two such fields counts.
pub(super) fn parse(part: &[u8], field: &str, found: &mut Found) -> Result<(), Malformed> {
    let mut stanza: Option<Stanza> = None;
    for line in lines(part) {
        if line.is_blank() {
            finish(stanza.take(), found);
            continue;
        }
        let stanza = match (line.bytes[0], &mut stanza) {
            (b' ' | b'\t', None) => {
                return Err(Malformed::new(
                    line.number,
                    "begins with a blank, but there is no field to continue",
                ));
            }
            (b' ' | b'\t' | b'#', Some(stanza)) => {
                stanza.end = line.place.end;
                continue;
            }
            (b'#', None) => continue,
            (_, stanza) => stanza.get_or_insert(Stanza {
                start: line.place.start,
                end: line.place.end,
                key: None,
            }),
        };
        stanza.end = line.place.end;
        let (name, value) = split(&line)?;
        if stanza.key.is_none() && name.eq_ignore_ascii_case(field.as_bytes()) {
            stanza.key = Some(value.to_vec());
        }
    }
    finish(stanza, found);
    Ok(())
}

fn split<'p>(line: &Line<'p>) -> Result<(&'p [u8], &'p [u8]), Malformed> {
    let bytes = line.bytes;
    bytes
        .iter()
        .position(|&byte| byte == b':')
        .map(|colon| (&bytes[..colon], bytes[colon + 1..].trim_ascii()))
        .filter(|(name, _)| is_name(name))
        .ok_or_else(|| {
            Malformed::new(
                line.number,
                "neither `Field: value` nor a continuation line that begins with a blank",
            )
        })
}

fn finish(stanza: Option<Stanza>, found: &mut Found) {
    match stanza {
        Some(Stanza {
            start,
            end,
            key: Some(key),
        }) => found.push(&key, start..end),
        Some(_) => found.without_key(),
        None => {}
    }
}
