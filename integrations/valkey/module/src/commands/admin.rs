//! Commands for the administrator of the server.

use super::access::Done;
use crate::api::raw::{KEY_ACCESS, KEY_RO};
use crate::api::{Context, Failure, Key, Str};
use crate::store::databases::databases;
use crate::store::generation::Hold;
use crate::store::value::Borrowed;

pub fn all_generations() -> Vec<Hold> {
    databases().generations().cloned().collect()
}

/// `LP.INFO [key]`: of a key, or of all trees.
pub fn info(context: Context, arguments: &[Str<'_>]) -> Done {
    if context.is_key_request() {
        if arguments.len() > 1 {
            context.key_at(1, KEY_RO | KEY_ACCESS);
        }
        return Ok(());
    }
    match arguments {
        [_] => {
            let generations = all_generations();
            context.array(generations.len());
            generations.iter().for_each(|generation| describe(context, generation));
            Ok(())
        }
        [_, name] => key_info(context, *name),
        _ => Err(Failure::Arity),
    }
}

pub fn number(context: Context, name: &str, number: u64) {
    context.bytes(name.as_bytes());
    context.integer(i64::try_from(number).unwrap_or(i64::MAX));
}

pub fn text(context: Context, name: &str, text: &[u8]) {
    context.bytes(name.as_bytes());
    context.bytes(text);
}

fn describe(context: Context, generation: &Hold) {
    let stats = generation.tree().stats();
    context.map(11);
    number(context, "generation", generation.serial());
    text(context, "engine", stats.engine_name.as_bytes());
    number(context, "records", stats.records);
    number(context, "user-bytes", stats.user_bytes);
    number(context, "bytes-held", stats.bytes_held);
    number(context, "leaves", stats.leaves);
    number(context, "frame-bytes", stats.frame_limit_bytes);
    number(context, "dictionary", u64::from(stats.dictionary_id));
    number(context, "dictionary-bytes", stats.dictionary_bytes);
    text(context, "limits", stats.limits_reason.as_bytes());
    number(context, "compacting", u64::from(generation.tree().is_compacting()));
}

fn key_info(context: Context, name: Str<'_>) -> Done {
    // As for `OBJECT`, this is not a use of the key.
    let key = Key::look(context, name);
    match key.value()? {
        None => context.null(),
        Some(Borrowed::Map(map)) => {
            context.map(4);
            text(context, "kind", b"map");
            number(context, "fields", map.len());
            number(context, "user-bytes", map.user_bytes());
            number(context, "generation", map.generation().serial());
        }
        Some(Borrowed::Text(string)) => {
            context.map(3);
            text(context, "kind", b"string");
            number(context, "user-bytes", string.length()? as u64);
            number(context, "generation", string.generation().serial());
        }
    }
    Ok(())
}

/// `LP.COMPACT [SYNC]`: compresses everything again, with dictionaries that are trained now: in the background, or
/// while the server waits for it.
pub fn compact(context: Context, arguments: &[Str<'_>]) -> Done {
    match *arguments {
        [_] => {
            for generation in all_generations() {
                generation.tree().request_compaction();
            }
        }
        [_, option] if option.bytes().eq_ignore_ascii_case(b"SYNC") => {
            for generation in all_generations() {
                generation.tree().compact()?;
            }
        }
        [_, _] => return Err(Failure::SYNTAX),
        _ => return Err(Failure::Arity),
    }
    context.status(c"OK");
    Ok(())
}
