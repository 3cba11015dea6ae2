//! The module's options.

use std::sync::Mutex;

use leafpress::Codec;

use crate::api::Context;
use crate::api::config::{NumberOption, TextOption, load_all, register_number, register_text};
use crate::store::databases::databases;
use crate::store::settings::{TreeSettings, set_upkeep_budget_us, trees, upkeep_budget_us};
use crate::{filter, prefixes};

/// Least and greatest length of a dictionary: the tree's.
const DICTIONARY_BYTES: std::ops::RangeInclusive<i64> = 1024..=1 << 20;

static CODEC: TextOption = TextOption {
    name: c"codec",
    default: c"trial",
    get: || trees().codec.to_string(),
    set: set_codec,
    given: Mutex::new(None),
};

static HASH_PREFIXES: TextOption = TextOption {
    name: c"hash-prefixes",
    default: c"",
    get: || prefixes::text(prefixes::Family::Hash),
    set: |text| prefixes::set(prefixes::Family::Hash, text),
    given: Mutex::new(None),
};

static STRING_PREFIXES: TextOption = TextOption {
    name: c"string-prefixes",
    default: c"",
    get: || prefixes::text(prefixes::Family::Text),
    set: |text| prefixes::set(prefixes::Family::Text, text),
    given: Mutex::new(None),
};

static DICTIONARY: NumberOption = NumberOption {
    name: c"dictionary-bytes",
    default: 0,
    least: 0,
    most: *DICTIONARY_BYTES.end(),
    is_memory: true,
    get: || trees().dictionary_bytes as i64,
    set: set_dictionary_bytes,
};

static UPKEEP_BUDGET: NumberOption = NumberOption {
    name: c"upkeep-budget-us",
    default: 500,
    least: 50,
    most: 100_000,
    is_memory: false,
    get: || upkeep_budget_us() as i64,
    set: |budget| {
        set_upkeep_budget_us(budget.unsigned_abs());
        Ok(())
    },
};

/// Registers the options, and has the server set them.
pub fn register(context: Context) -> Result<(), String> {
    for option in [&CODEC, &HASH_PREFIXES, &STRING_PREFIXES] {
        if !register_text(context, option) {
            return Err(format!("the server does not take the option {:?}", option.name));
        }
    }
    for option in [&DICTIONARY, &UPKEEP_BUDGET] {
        if !register_number(context, option) {
            return Err(format!("the server does not take the option {:?}", option.name));
        }
    }
    filter::may_register(context);
    match load_all(context) {
        true => Ok(()),
        false => Err("an option of the server's file is not one that the module takes".to_owned()),
    }
}

fn set_codec(name: &str) -> Result<(), String> {
    let codec: Codec = name.parse().map_err(|error| format!("{error}"))?;
    change(|settings| settings.codec = codec)
}

fn set_dictionary_bytes(bytes: i64) -> Result<(), String> {
    if bytes != 0 && !DICTIONARY_BYTES.contains(&bytes) {
        return Err("a dictionary is 1kb to 1mb long; 0 leaves it to the tree".to_owned());
    }
    change(|settings| settings.dictionary_bytes = bytes.unsigned_abs() as usize)
}

/// Changes how trees are built, if one can be, and has new values go to new ones.
pub fn change(set: impl FnOnce(&mut TreeSettings)) -> Result<(), String> {
    let mut changed = trees().clone();
    set(&mut changed);
    if trees().is_same(&changed) {
        return Ok(());
    }
    drop(changed.build().map_err(|error| error.to_string())?);
    *trees() = changed;
    databases().renew();
    Ok(())
}
