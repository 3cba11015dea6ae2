//! `LP.DICT`: the dictionaries of trees, and one for trees to begin with.

use leafpress::codec::sealed::{Sealer, unseal};
use leafpress::{Codec, Dictionary};

use super::access::Done;
use super::admin::{all_generations, number};
use crate::api::{Context, Failure, Str};
use crate::config::change;
use crate::store::databases::databases;
use crate::store::settings::trees;

/// The codec of payloads.
const PAYLOAD_CODEC: Codec = Codec::Zstd { level: 3 };
/// Maximum raw bytes of a payload: the longest dictionary, and its codec's name.
const MAX_PAYLOAD_BYTES: usize = (1 << 20) + 256;

/// `LP.DICT SHOW | TRAIN | EXPORT | IMPORT payload | FORGET`
pub fn dict(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, what, rest @ ..] = arguments else {
        return Err(Failure::Arity);
    };
    let is = |word: &[u8]| what.bytes().eq_ignore_ascii_case(word);
    match rest {
        [] if is(b"SHOW") => show(context),
        [] if is(b"TRAIN") => {
            let generations = all_generations();
            let trained = generations
                .iter()
                .filter(|generation| generation.tree().request_training());
            context.integer(trained.count() as i64);
        }
        [] if is(b"EXPORT") => export(context)?,
        [] if is(b"FORGET") => begin_with(context, None)?,
        [payload] if is(b"IMPORT") => {
            let dictionary = opened(payload.bytes()).ok_or(NOT_A_DICTIONARY)?;
            begin_with(context, Some(dictionary))?;
        }
        _ => {
            return Err(Failure::text(
                "ERR LP.DICT takes SHOW, TRAIN, EXPORT, FORGET, or IMPORT and what EXPORT returned",
            ));
        }
    }
    Ok(())
}

const NOT_A_DICTIONARY: Failure = Failure::text("ERR this is not, or no longer, what LP.DICT EXPORT returned");

fn show(context: Context) {
    let generations = all_generations();
    context.array(generations.len());
    for generation in &generations {
        let stats = generation.tree().stats();
        context.map(4);
        number(context, "generation", generation.serial());
        number(context, "dictionary", u64::from(stats.dictionary_id));
        number(context, "dictionary-bytes", stats.dictionary_bytes);
        number(context, "training", u64::from(generation.tree().is_training()));
    }
}

/// Replies with the dictionary of the database's newest tree that has one, or with null.
fn export(context: Context) -> Done {
    let generations: Vec<_> = databases().of(context.database()).cloned().collect();
    for generation in generations.iter().rev() {
        if let Some(dictionary) = generation.tree().dictionary()? {
            context.bytes(&sealed(&dictionary, generation.codec())?);
            return Ok(());
        }
    }
    context.null();
    Ok(())
}

/// Makes a payload: the name of the codec, its length before it, and the dictionary's bytes, sealed, so that damage is
/// detected.
fn sealed(dictionary: &Dictionary, codec: Codec) -> Result<Vec<u8>, Failure> {
    let codec = dictionary.codec().unwrap_or(codec).to_string();
    let mut raw = vec![u8::try_from(codec.len()).unwrap_or_default()];
    raw.extend_from_slice(codec.as_bytes());
    raw.extend_from_slice(dictionary.bytes());
    let sealed = Sealer::open(PAYLOAD_CODEC).and_then(|sealer| sealer.seal(&raw, None));
    sealed.map_err(|error| leafpress::TreeError::from(error).into())
}

fn opened(payload: &[u8]) -> Option<Dictionary> {
    let raw = unseal(payload, &[], MAX_PAYLOAD_BYTES).ok()?;
    let (len, rest) = raw.split_first()?;
    let (codec, bytes) = rest.split_at_checked(usize::from(*len))?;
    let codec: Codec = std::str::from_utf8(codec).ok()?.parse().ok()?;
    let has_dictionaries = ["lz4", "zstd", "onpair"].contains(&codec.family());
    has_dictionaries.then(|| Dictionary::from_trained(Some(codec), bytes))
}

/// Has the trees of new values begin with this dictionary.
fn begin_with(context: Context, dictionary: Option<Dictionary>) -> Done {
    let (codec, is_taken) = {
        let settings = trees();
        let is_taken = dictionary.as_ref().is_none_or(|dictionary| settings.takes(dictionary));
        (settings.codec, is_taken)
    };
    if !is_taken {
        let of_dictionary = dictionary.and_then(|dictionary| dictionary.codec());
        let of_dictionary = of_dictionary.map_or_else(String::new, |codec| codec.to_string());
        return Err(Failure::formatted(format!(
            "ERR the dictionary is for {of_dictionary}, and leafpress.codec is {codec}"
        )));
    }
    change(|settings| settings.dictionary = dictionary)
        .map_err(|reason| Failure::formatted(format!("ERR {reason}")))?;
    context.status(c"OK");
    Ok(())
}
