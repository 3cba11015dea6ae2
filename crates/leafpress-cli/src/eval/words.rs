//! Parses words that flags and environment variables share.

use leafpress::codec::{JobCache, StreamCache};
use leafpress::tree::TemperatureRule;
pub use leafpress_console::words::list;

/// A switch.
pub fn flag(word: &str) -> Result<bool, String> {
    match word {
        "1" | "on" | "true" | "yes" => Ok(true),
        "0" | "off" | "false" | "no" => Ok(false),
        _ => Err("use on or off".into()),
    }
}

/// Whether a dictionary is trained.
pub fn dictionary(word: &str) -> Result<bool, String> {
    match word {
        "auto" => Ok(true),
        "off" => Ok(false),
        _ => Err("use auto or off".into()),
    }
}

pub fn job_cache(word: &str) -> Result<JobCache, String> {
    match word {
        "thread" => Ok(JobCache::Thread),
        "none" => Ok(JobCache::None),
        _ => Err("use thread or none".into()),
    }
}

pub fn stream_cache(word: &str) -> Result<StreamCache, String> {
    match word {
        "thread" => Ok(StreamCache::Thread),
        "none" => Ok(StreamCache::None),
        _ => Err("use thread or none".into()),
    }
}

/// The rule for leaf temperatures. The library's name of the option is not the flag's.
pub fn temperature_rule(word: &str) -> Result<TemperatureRule, String> {
    word.parse().map_err(|error| match error {
        leafpress::TreeError::Option { reason, .. } => reason,
        other => other.to_string(),
    })
}

/// Whether shards are key ranges.
pub fn shard_by_range(word: &str) -> Result<bool, String> {
    match word {
        "range" => Ok(true),
        "hash" => Ok(false),
        _ => Err("use hash or range".into()),
    }
}

/// A percentage from 1 to 100.
pub fn percentage(word: &str) -> Result<u8, String> {
    match word.parse() {
        Ok(pct @ 1..=100) => Ok(pct),
        _ => Err("use a percentage from 1 to 100".into()),
    }
}

/// `ordered`, or the number of sub-pages of `hashed:N`.
pub fn layout(word: &str) -> Result<Option<usize>, String> {
    match word.strip_prefix("hashed:").map(str::parse) {
        None if word == "ordered" => Ok(None),
        Some(Ok(sub_pages @ 1..=64)) => Ok(Some(sub_pages)),
        _ => Err("use ordered, or hashed:N with 1 to 64 sub-pages".into()),
    }
}

/// A codec family for background compaction; `all` is unrestricted, and the evaluation's `zlib_accel` is `zlib`.
pub fn background_family(word: &str) -> Option<String> {
    match word {
        "all" => None,
        "zlib_accel" => Some("zlib".into()),
        family => Some(family.into()),
    }
}

/// One line with the option and its value: `--threads 0: ...`. A reason that begins with the option's own name does not
/// repeat it.
pub fn message(name: &str, word: &str, reason: &str) -> String {
    let bare = name.trim_start_matches('-');
    let reason = reason.strip_prefix(&format!("{bare}: ")).unwrap_or(reason);
    // Every reason for an empty word does.
    if reason.contains(word) {
        format!("{name}: {reason}")
    } else {
        format!("{name} {word}: {reason}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_read() {
        assert_eq!(layout("ordered"), Ok(None));
        assert_eq!(layout("hashed:8"), Ok(Some(8)));
        for word in ["hashed", "hashed:", "hashed:0", "hashed:65", "hashed:x", "sorted"] {
            assert!(layout(word).is_err(), "{word}");
        }
    }

    #[test]
    fn messages_name_the_word_once() {
        assert_eq!(message("--threads", "x", "invalid digit"), "--threads x: invalid digit");
        assert_eq!(message("--cut", "y", "cut: unknown cut `y`"), "--cut: unknown cut `y`");
        assert_eq!(message("--data", "", "data: it is empty"), "--data: it is empty");
    }
}
