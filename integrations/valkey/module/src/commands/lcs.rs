//! The twin of `LCS`: the longest common subsequence of two strings.

use super::access::{Done, read_string};
use crate::api::{Context, Failure, Key, Str};
use crate::store::number::integer;

/// The server's limit of a string, if it does not report it.
const DEFAULT_LIMIT: usize = 512 << 20;

#[derive(Default)]
struct Options {
    is_len: bool,
    is_index: bool,
    has_len: bool,
    least: u32,
}

/// `LP.LCS key key [LEN | IDX [MINMATCHLEN length] [WITHMATCHLEN]]`
pub fn lcs(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, one, other, rest @ ..] = arguments else {
        return Err(Failure::Arity);
    };
    let (one, other) = (string_of(context, *one), string_of(context, *other));
    let (one, other) = (one?, other?);
    let options = options_of(rest)?;
    if options.is_len && options.is_index {
        return Err(Failure::text(
            "ERR If you want both the length and indexes, please just use IDX.",
        ));
    }
    let table = Table::new(&one, &other, limit(context))?;
    if options.is_len {
        context.integer(i64::from(table.len()));
        return Ok(());
    }
    let (common, matches) = table.walk();
    if !options.is_index {
        context.bytes(&common);
        return Ok(());
    }
    let matches: Vec<_> = matches.into_iter().filter(|found| found.len >= options.least).collect();
    context.map(2);
    context.bytes(b"matches");
    context.array(matches.len());
    for found in matches {
        context.array(if options.has_len { 3 } else { 2 });
        for start in [found.one, found.other] {
            context.array(2);
            context.integer(i64::from(start));
            context.integer(i64::from(start + found.len - 1));
        }
        if options.has_len {
            context.integer(i64::from(found.len));
        }
    }
    context.bytes(b"len");
    context.integer(i64::from(table.len()));
    Ok(())
}

/// Returns a key's string; that of an absent one is empty. In transparent mode one of the keys may be native.
fn string_of(context: Context, name: Str<'_>) -> Result<Vec<u8>, Failure> {
    match read_string(&Key::read(context, name), <[u8]>::to_vec) {
        Ok(found) => Ok(found.unwrap_or_default()),
        Err(failure) if failure == Failure::WRONG_TYPE => {
            Err(Failure::text("ERR The specified keys must contain string values"))
        }
        Err(failure) => Err(failure),
    }
}

fn options_of(mut rest: &[Str<'_>]) -> Result<Options, Failure> {
    let mut options = Options::default();
    while let [option, following @ ..] = rest {
        rest = following;
        match option.bytes().to_ascii_uppercase().as_slice() {
            b"IDX" => options.is_index = true,
            b"LEN" => options.is_len = true,
            b"WITHMATCHLEN" => options.has_len = true,
            b"MINMATCHLEN" if !rest.is_empty() => {
                let least = integer(rest[0].bytes()).ok_or(Failure::NOT_INTEGER)?;
                options.least = u32::try_from(least.max(0)).unwrap_or(u32::MAX);
                rest = &rest[1..];
            }
            _ => return Err(Failure::SYNTAX),
        }
    }
    Ok(options)
}

/// Returns the server's limit of a string, which bounds the table.
fn limit(context: Context) -> usize {
    let reply = context.call(c"CONFIG", &[c"GET", c"proto-max-bulk-len"]);
    let lines = String::from_utf8_lossy(&reply);
    let limit = lines.trim_end().rsplit("\r\n").next();
    limit.and_then(|limit| limit.parse().ok()).unwrap_or(DEFAULT_LIMIT)
}

/// Bytes that both strings have, from these indices on.
#[derive(Debug, PartialEq, Eq)]
struct Match {
    one: u32,
    other: u32,
    len: u32,
}

/// The lengths of the longest common subsequences of all pairs of beginnings of two strings.
struct Table<'s> {
    one: &'s [u8],
    other: &'s [u8],
    lens: Vec<u32>,
}

impl<'s> Table<'s> {
    fn new(one: &'s [u8], other: &'s [u8], limit: usize) -> Result<Self, Failure> {
        // Strings are at most 64 MiB long, so that neither a product nor a length overflows.
        let cells = (one.len() + 1) * (other.len() + 1);
        if cells.saturating_mul(size_of::<u32>()) > limit {
            return Err(Failure::text(
                "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
            ));
        }
        let mut lens = Vec::new();
        lens.try_reserve_exact(cells)
            .map_err(|_| Failure::text("ERR Insufficient memory, failed allocating transient memory for LCS"))?;
        lens.resize(cells, 0);
        let mut table = Self { one, other, lens };
        for (i, a) in one.iter().enumerate() {
            for (j, b) in other.iter().enumerate() {
                let len = match a == b {
                    true => table.at(i, j) + 1,
                    false => table.at(i, j + 1).max(table.at(i + 1, j)),
                };
                let cell = table.cell(i + 1, j + 1);
                table.lens[cell] = len;
            }
        }
        Ok(table)
    }

    fn cell(&self, i: usize, j: usize) -> usize {
        i * (self.other.len() + 1) + j
    }

    fn at(&self, i: usize, j: usize) -> u32 {
        self.lens[self.cell(i, j)]
    }

    fn len(&self) -> u32 {
        self.at(self.one.len(), self.other.len())
    }

    /// Returns the common subsequence that the native command finds, and its contiguous parts, the last one first.
    fn walk(&self) -> (Vec<u8>, Vec<Match>) {
        let (mut i, mut j) = (self.one.len(), self.other.len());
        let mut common = Vec::new();
        let mut matches: Vec<Match> = Vec::new();
        // Whether the last match continues.
        let mut is_open = false;
        while i > 0 && j > 0 {
            if self.one[i - 1] == self.other[j - 1] {
                i -= 1;
                j -= 1;
                common.push(self.one[i]);
                match matches.last_mut() {
                    Some(last) if is_open => {
                        *last = Match {
                            one: i as u32,
                            other: j as u32,
                            len: last.len + 1,
                        }
                    }
                    _ => matches.push(Match {
                        one: i as u32,
                        other: j as u32,
                        len: 1,
                    }),
                }
                is_open = true;
            } else {
                match self.at(i - 1, j) > self.at(i, j - 1) {
                    true => i -= 1,
                    false => j -= 1,
                }
                is_open = false;
            }
        }
        common.reverse();
        (common, matches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_native_command() {
        let table = Table::new(b"ohmytext", b"mynewtext", 1 << 20).ok().unwrap();
        let (common, matches) = table.walk();
        assert_eq!((common.as_slice(), table.len()), (&b"mytext"[..], 6));
        let expected = [(4, 5, 4), (2, 0, 2)].map(|(one, other, len)| Match { one, other, len });
        assert_eq!(matches, expected);
    }

    #[test]
    fn the_table_is_bounded() {
        assert!(Table::new(&[0; 100], &[0; 100], 101 * 101 * 4).is_ok());
        assert!(Table::new(&[0; 100], &[0; 100], 101 * 101 * 4 - 1).is_err());
    }
}
