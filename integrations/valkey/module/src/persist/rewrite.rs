//! The commands that make a value, for the append-only file and for slots that move.

use super::{Incomplete, check_count, each_of};
use crate::api::Str;
use crate::api::io::Rewriter;
use crate::store::value::Borrowed;

/// Fields per command, as in the servers for hashes.
const FIELDS: usize = 64;
/// Approximate bytes per command.
const BYTES: usize = 256 << 10;

/// Writes the commands that make a value; returns whether these make all of it.
pub fn rewrite(rewriter: &mut Rewriter, key: Str<'_>, value: &Borrowed<'_>) -> bool {
    let written = emit(rewriter, key, value);
    if let Err(error) = &written {
        rewriter.log(&format!("the value cannot be read, so that the rewrite fails: {error}"));
    }
    written.is_ok()
}

fn emit(rewriter: &mut Rewriter, key: Str<'_>, value: &Borrowed<'_>) -> Result<(), Incomplete> {
    match value {
        Borrowed::Text(text) => {
            let found = text.get_with(|value| rewriter.emit(c"LP.SET", key, [value]))?;
            check_count(u64::from(found.is_some()), 1)
        }
        Borrowed::Map(map) => {
            let mut waiting = Waiting::default();
            each_of(map, |field, value| {
                waiting.push(field);
                waiting.push(value);
                if waiting.ends.len() == 2 * FIELDS || waiting.bytes.len() >= BYTES {
                    waiting.emit(rewriter, key);
                }
            })?;
            waiting.emit(rewriter, key);
            Ok(())
        }
    }
}

/// Arguments of the next command, in one buffer: a child that allocates little writes to few of the pages that it
/// shares.
#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Waiting {
    fn push(&mut self, argument: &[u8]) {
        self.bytes.extend_from_slice(argument);
        self.ends.push(self.bytes.len());
    }

    fn emit(&mut self, rewriter: &mut Rewriter, key: Str<'_>) {
        if self.ends.is_empty() {
            return;
        }
        let mut begin = 0;
        let arguments = self.ends.iter().map(|end| {
            let argument = &self.bytes[begin..*end];
            begin = *end;
            argument
        });
        rewriter.emit(c"LP.HSET", key, arguments);
        self.bytes.clear();
        self.ends.clear();
    }
}
