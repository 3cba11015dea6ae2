//! The commands that make a value, for the append-only file and for slots that move.

use crate::api::Str;
use crate::api::io::Rewriter;
use crate::store::value::Borrowed;

/// Fields of one command, as the servers have it for hashes.
const FIELDS: usize = 64;
/// Bytes of one command, about.
const BYTES: usize = 256 << 10;

/// Writes the commands that make a value.
pub fn rewrite(rewriter: &mut Rewriter, key: Str<'_>, value: &Borrowed<'_>) {
    let written = match value {
        Borrowed::Text(text) => text
            .get_with(|value| rewriter.emit(c"LP.SET", key, &[value]))
            .map(|_| ()),
        Borrowed::Map(map) => {
            let mut waiting: Vec<Vec<u8>> = Vec::new();
            let mut bytes = 0;
            let each = map.each(|field, value| {
                bytes += field.len() + value.len();
                waiting.extend([field.to_vec(), value.to_vec()]);
                if waiting.len() == 2 * FIELDS || bytes >= BYTES {
                    emit(rewriter, key, &mut waiting);
                    bytes = 0;
                }
            });
            emit(rewriter, key, &mut waiting);
            each.map(|_| ())
        }
    };
    if let Err(error) = written {
        rewriter.log(&format!("leafpress: a value cannot be rewritten: {error}"));
    }
}

fn emit(rewriter: &mut Rewriter, key: Str<'_>, waiting: &mut Vec<Vec<u8>>) {
    if !waiting.is_empty() {
        let arguments: Vec<&[u8]> = waiting.iter().map(Vec::as_slice).collect();
        rewriter.emit(c"LP.HSET", key, &arguments);
        waiting.clear();
    }
}
