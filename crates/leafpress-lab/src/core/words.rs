//! Options that are words: parsing, formatting, and serialisation; and bounds of numeric options.

use std::fmt::Display;

use super::LabError;

/// `Display` and `FromStr` of an enum whose variants are a word each. The message of a word that is none has `{}` in
/// its place.
macro_rules! words {
    ($name:ident, $option:literal, $unknown:literal: $($variant:ident $word:literal),+) => {
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self {
                    $(Self::$variant => $word,)+
                })
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::core::LabError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($crate::core::LabError::option($option, format!($unknown, text))),
                }
            }
        }
    };
}

/// Serializes and deserializes a type as the text that it is written as.
macro_rules! serde_as_text {
    ($name:ident) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::core::words::as_text::serialize(self, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::core::words::as_text::deserialize(deserializer)
            }
        }
    };
}

pub(crate) use serde_as_text;
pub(crate) use words;

/// Serialises a field as text, for types without serde support.
pub(crate) mod as_text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// That a number is within its bounds, both of them included.
///
/// # Errors
/// [`LabError::Option`] of `option` where it is not.
pub(crate) fn between<T: PartialOrd + Display>(
    option: &'static str,
    value: T,
    low: T,
    high: T,
) -> Result<(), LabError> {
    if (&low..=&high).contains(&&value) {
        return Ok(());
    }
    Err(LabError::option(
        option,
        format!("{value} is not between {low} and {high}"),
    ))
}

/// A value that is in the list more than once.
#[cfg(feature = "device")]
pub(crate) fn twice<T: PartialEq>(list: &[T]) -> Option<&T> {
    let repeated = list.iter().enumerate().find(|(at, value)| list[..*at].contains(value));
    repeated.map(|(_, value)| value)
}
