//! The tree's options, from the environment variable `LEAFPRESS_TREE`: `codec=lz4,shards=4`.
//!
//! Names are those of [`leafpress::TreeBuilder`]'s methods, values are written as the `leafpress` command takes them.
//! What is not named stays at its default. Sharding by key range is left out: its boundaries follow from the keys,
//! which nobody knows yet.

use std::env::VarError;
use std::fmt::Display;
use std::str::FromStr;

use leafpress::codec::{JobCache, StreamCache};
use leafpress::{DictionaryChoice, Layout, Tree, TreeBuilder};
use thiserror::Error;

use crate::program::Interface;

/// The environment variable.
pub(crate) const VARIABLE: &str = "LEAFPRESS_TREE";

/// What can be set.
const OPTIONS: &str = "background_codec=FAMILY, background_threads=0..64, codec=NAME, dictionary=auto|off, \
     dictionary_bytes=1024..1048576, frame_bytes=1..leaf_bytes, landing_compaction_pct=1..100, \
     interface=auto|original|bulk_load, job_cache=thread|none, landing_bytes=0..16384, layout=ordered|hashed:1..64, \
     leaf_bytes=1024..32768, shards=1..1024, stream_cache=thread|none";

/// What is wrong with the variable.
#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum SettingsError {
    #[error("{VARIABLE} is not UTF-8")]
    NotUnicode,
    #[error("{VARIABLE}: {0:?} is not of the form option=value; the options are {OPTIONS}")]
    NoValue(String),
    #[error("{VARIABLE}: unknown option {0:?}; the options are {OPTIONS}")]
    Unknown(String),
    #[error("{VARIABLE}: {0} is set twice")]
    Twice(String),
    #[error("{VARIABLE}: {option}={value}: {reason}")]
    Value {
        option: String,
        value: String,
        reason: String,
    },
    #[error("{VARIABLE}: {0}")]
    Tree(String),
}

/// The settings of the variable.
pub(crate) struct Settings {
    /// The tree, whose bounds are checked when it is built.
    pub(crate) tree: TreeBuilder,
    /// The interface that the program calls; `None` to find it out.
    pub(crate) interface: Option<Interface>,
}

impl Settings {
    /// Returns the settings of this process.
    pub(crate) fn from_environment() -> Result<Self, SettingsError> {
        match std::env::var(VARIABLE) {
            Ok(text) => text.parse(),
            Err(VarError::NotPresent) => "".parse(),
            Err(VarError::NotUnicode(_)) => Err(SettingsError::NotUnicode),
        }
    }
}

impl FromStr for Settings {
    type Err = SettingsError;

    /// Reads `option=value` pairs, separated by commas.
    fn from_str(text: &str) -> Result<Self, SettingsError> {
        let mut tree = Tree::builder();
        let mut interface = None;
        let mut seen = Vec::new();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let Some((option, value)) = pair.split_once('=') else {
                return Err(SettingsError::NoValue(pair.to_owned()));
            };
            let (option, value) = (option.trim(), value.trim());
            if seen.contains(&option) {
                return Err(SettingsError::Twice(option.to_owned()));
            }
            seen.push(option);
            let bad_value = |reason| SettingsError::Value {
                option: option.to_owned(),
                value: value.to_owned(),
                reason,
            };
            if option == "interface" {
                interface = one_of(value, &INTERFACES).map_err(bad_value)?;
                continue;
            }
            tree = match set(tree, option, value) {
                Some(set) => set.map_err(bad_value)?,
                None => return Err(SettingsError::Unknown(option.to_owned())),
            };
        }
        Ok(Self { tree, interface })
    }
}

/// The values of `interface`.
const INTERFACES: [(&str, Option<Interface>); 3] = [
    ("auto", None),
    ("original", Some(Interface::Original)),
    ("bulk_load", Some(Interface::BulkLoad)),
];

/// Sets one option, or says why not; `None` if there is no such option. Bounds of numbers are the tree's business, at
/// [`TreeBuilder::build`].
fn set(builder: TreeBuilder, option: &str, value: &str) -> Option<Result<TreeBuilder, String>> {
    Some(match option {
        "background_codec" => Ok(builder.background_codec((value != "all").then(|| value.to_owned()))),
        "background_threads" => parsed(value).map(|threads| builder.background_threads(threads)),
        "codec" => parsed(value).map(|codec| builder.codec(codec)),
        "dictionary" => one_of(
            value,
            &[("auto", DictionaryChoice::Auto), ("off", DictionaryChoice::Off)],
        )
        .map(|dictionary| builder.dictionary(dictionary)),
        "dictionary_bytes" => parsed(value).map(|bytes| builder.dictionary_bytes(bytes)),
        "frame_bytes" => parsed(value).map(|bytes| builder.frame_bytes(bytes)),
        "landing_compaction_pct" => parsed(value).map(|pct| builder.landing_compaction_pct(pct)),
        "job_cache" => one_of(value, &[("thread", JobCache::Thread), ("none", JobCache::None)])
            .map(|cache| builder.job_cache(cache)),
        "landing_bytes" => parsed(value).map(|bytes| builder.landing_bytes(bytes)),
        "layout" => layout(value).map(|layout| builder.layout(layout)),
        "leaf_bytes" => parsed(value).map(|bytes| builder.leaf_bytes(bytes)),
        "shards" => parsed(value).map(|shards| builder.shards(shards)),
        "stream_cache" => one_of(value, &[("thread", StreamCache::Thread), ("none", StreamCache::None)])
            .map(|cache| builder.stream_cache(cache)),
        _ => return None,
    })
}

fn parsed<T: FromStr<Err: Display>>(value: &str) -> Result<T, String> {
    value.parse().map_err(|e: T::Err| e.to_string())
}

fn one_of<T: Clone>(value: &str, choices: &[(&str, T)]) -> Result<T, String> {
    match choices.iter().find(|(word, _)| *word == value) {
        Some((_, choice)) => Ok(choice.clone()),
        None => {
            let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
            Err(format!("use {}", words.join(" or ")))
        }
    }
}

fn layout(value: &str) -> Result<Layout, String> {
    match value.strip_prefix("hashed:").map(str::parse) {
        None if value == "ordered" => Ok(Layout::Ordered),
        Some(Ok(sub_pages)) => Ok(Layout::Hashed { sub_pages }),
        _ => Err("use ordered, or hashed:N with 1 to 64 sub-pages".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use leafpress::TreeBuilder;

    use super::{Interface, OPTIONS, Settings, SettingsError};

    fn builder(text: &str) -> Result<TreeBuilder, SettingsError> {
        text.parse().map(|settings: Settings| settings.tree)
    }

    fn refusal(text: &str) -> String {
        let error = match builder(text) {
            Ok(builder) => SettingsError::Tree(builder.build().expect_err(text).to_string()),
            Err(error) => error,
        };
        error.to_string()
    }

    #[test]
    fn nothing_is_the_defaults() {
        for text in ["", " ", ",", " , ,"] {
            assert_eq!(
                format!("{:?}", builder(text).unwrap()),
                format!("{:?}", leafpress::Tree::builder())
            );
        }
    }

    #[test]
    fn every_option_reaches_the_builder() {
        let pairs = [
            ("background_codec=zstd", "background_codec: Some(\"zstd\")"),
            ("background_codec=all", "background_codec: None"),
            ("background_threads=3", "background_threads: 3"),
            ("codec=lz4:fast=4", "codec: Lz4 { acceleration: 4 }"),
            ("codec=zstd:-1", "codec: Zstd { level: -1 }"),
            ("dictionary=off", "dictionary: Off"),
            ("dictionary=auto", "dictionary: Auto"),
            ("dictionary_bytes=4096", "dictionary_bytes: Some(4096)"),
            ("frame_bytes=777", "frame_bytes: Some(777)"),
            ("landing_compaction_pct=33", "landing_compaction_pct: 33"),
            ("job_cache=none", "job_cache: None"),
            ("landing_bytes=99", "landing_bytes: Some(99)"),
            ("layout=hashed:7", "layout: Hashed { sub_pages: 7 }"),
            ("layout=ordered", "layout: Ordered"),
            ("leaf_bytes=2048", "leaf_bytes: Some(2048)"),
            ("shards=5", "shards: 5"),
            ("stream_cache=none", "stream_cache: None"),
        ];
        for (text, field) in pairs {
            let built = format!("{:?}", builder(text).unwrap());
            assert!(built.contains(field), "{text}: {field} is not in {built}");
            let option = text.split_once('=').unwrap().0;
            assert!(OPTIONS.contains(&format!("{option}=")), "{option} is not listed");
        }
        for (text, interface) in [
            ("", None),
            ("interface=auto", None),
            ("interface=original", Some(Interface::Original)),
            ("codec=none,interface=bulk_load", Some(Interface::BulkLoad)),
        ] {
            assert_eq!(text.parse::<Settings>().unwrap().interface, interface, "{text}");
        }
        for listed in OPTIONS.split(", ").map(|option| option.split_once('=').unwrap().0) {
            let is_tried = |text: &str| text.split_once('=').unwrap().0 == listed;
            assert!(listed == "interface" || pairs.iter().any(|(text, _)| is_tried(text)));
        }
        let all = builder(" codec = none , shards=2,frame_bytes=64 ").unwrap();
        let all = format!("{all:?}");
        assert!(all.contains("codec: None,") && all.contains("shards: 2") && all.contains("frame_bytes: Some(64)"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, expected) in [
            (
                "lz4",
                "\"lz4\" is not of the form option=value; the options are background_codec=",
            ),
            (
                "codek=lz4",
                "unknown option \"codek\"; the options are background_codec=",
            ),
            ("=lz4", "unknown option \"\""),
            ("codec=lz4,codec=lz4", "codec is set twice"),
            (
                "codec=lz5",
                "codec=lz5: unknown codec \"lz5\"; the codecs are none, lz4",
            ),
            ("codec=", "codec=: unknown codec \"\""),
            ("shards=many", "shards=many: invalid digit"),
            ("shards=-1", "shards=-1: invalid digit"),
            ("shards=0", "shards: 0 is out of bounds: 1 to 1024"),
            ("shards=1025", "shards: 1025 is out of bounds: 1 to 1024"),
            ("leaf_bytes=1", "leaf_bytes: 1 is out of bounds"),
            ("frame_bytes=0", "frame_bytes: 0 is out of bounds"),
            (
                "landing_bytes=16385",
                "landing_bytes: 16385 is out of bounds: 0 to 16384",
            ),
            ("layout=hashed", "layout=hashed: use ordered, or hashed:N"),
            ("layout=hashed:65", "layout: 65 is out of bounds: 1 to 64"),
            ("dictionary=yes", "dictionary=yes: use auto or off"),
            (
                "dictionary_bytes=5",
                "dictionary_bytes: 5 is out of bounds: 1024 to 1048576",
            ),
            (
                "landing_compaction_pct=300",
                "landing_compaction_pct=300: number too large",
            ),
            (
                "landing_compaction_pct=101",
                "landing_compaction_pct: 101 is out of bounds: 1 to 100",
            ),
            (
                "background_threads=65",
                "background_threads: 65 is out of bounds: 0 to 64",
            ),
            ("background_codec=rle", "background_codec: unknown codec family rle"),
            ("interface=new", "interface=new: use auto or original or bulk_load"),
            ("job_cache=all", "job_cache=all: use thread or none"),
            ("stream_cache=all", "stream_cache=all: use thread or none"),
        ] {
            let refusal = refusal(text);
            assert!(refusal.starts_with("LEAFPRESS_TREE: "), "{text}: {refusal}");
            assert!(refusal.contains(expected), "{text}: {refusal}");
            assert!(!refusal.contains('\n'), "{text}: {refusal}");
        }
    }
}
