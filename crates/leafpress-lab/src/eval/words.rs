//! Parses words that flags of the evaluation and its environment variables share.

use leafpress::codec::{JobCache, StreamCache};
use leafpress::tree::TemperatureRule;

use crate::core::LabError;

/// The value of a word, or an error that says which words there are.
fn known<T: Copy>(word: &str, words: &[(&str, T)], error: &str) -> Result<T, LabError> {
    let found = words.iter().find(|(known, _)| *known == word);
    found.map(|(_, value)| *value).ok_or_else(|| refused(error))
}

/// An error of a word. It has no option, as each word is of several.
fn refused(reason: impl Into<String>) -> LabError {
    LabError::option("", reason)
}

/// Parses a switch.
///
/// # Errors
/// [`LabError::Option`] for another word.
pub fn flag(word: &str) -> Result<bool, LabError> {
    let on = ["1", "on", "true", "yes"].map(|word| (word, true));
    let off = ["0", "off", "false", "no"].map(|word| (word, false));
    known(word, &[on, off].concat(), "use on or off")
}

/// Whether a dictionary is trained.
pub(super) fn dictionary(word: &str) -> Result<bool, LabError> {
    known(word, &[("auto", true), ("off", false)], "use auto or off")
}

/// Parses whether QPL jobs are kept.
///
/// # Errors
/// [`LabError::Option`] for another word.
pub fn job_cache(word: &str) -> Result<JobCache, LabError> {
    let caches = [("thread", JobCache::Thread), ("none", JobCache::None)];
    known(word, &caches, "use thread or none")
}

/// Parses whether zlib streams are kept.
///
/// # Errors
/// [`LabError::Option`] for another word.
pub fn stream_cache(word: &str) -> Result<StreamCache, LabError> {
    let caches = [("thread", StreamCache::Thread), ("none", StreamCache::None)];
    known(word, &caches, "use thread or none")
}

/// The rule for leaf temperatures. The library's name of the option is not the flag's.
pub(super) fn temperature_rule(word: &str) -> Result<TemperatureRule, LabError> {
    word.parse().map_err(|error| match error {
        leafpress::TreeError::Option { reason, .. } => refused(reason),
        other => refused(other.to_string()),
    })
}

/// Whether shards are key ranges.
pub(super) fn shard_by_range(word: &str) -> Result<bool, LabError> {
    known(word, &[("range", true), ("hash", false)], "use hash or range")
}

/// Parses a percentage from 1 to 100.
///
/// # Errors
/// [`LabError::Option`] for another word.
pub fn percentage(word: &str) -> Result<u8, LabError> {
    match word.parse() {
        Ok(pct @ 1..=100) => Ok(pct),
        _ => Err(refused("use a percentage from 1 to 100")),
    }
}

/// `ordered`, or the number of sub-pages of `hashed:N`.
pub(super) fn layout(word: &str) -> Result<Option<usize>, LabError> {
    match word.strip_prefix("hashed:").map(str::parse) {
        None if word == "ordered" => Ok(None),
        Some(Ok(sub_pages @ 1..=64)) => Ok(Some(sub_pages)),
        _ => Err(refused("use ordered, or hashed:N with 1 to 64 sub-pages")),
    }
}

/// Parses a codec family for background compaction; `all` is unrestricted, and the evaluation's `zlib_accel` is `zlib`.
///
/// # Errors
/// None: [`super::EvalConfig::validate`] checks the family.
pub fn background_family(word: &str) -> Result<Option<String>, LabError> {
    Ok(match word {
        "all" => None,
        "zlib_accel" => Some("zlib".into()),
        family => Some(family.into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_read() {
        assert_eq!(layout("ordered").unwrap(), None);
        assert_eq!(layout("hashed:8").unwrap(), Some(8));
        for word in ["hashed", "hashed:", "hashed:0", "hashed:65", "hashed:x", "sorted"] {
            assert!(layout(word).is_err(), "{word}");
        }
    }
}
