//! Paths in files and requests: as text where they are, else byte by byte, so that any name that a file can have comes
//! back.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Name {
    Text(String),
    Bytes { bytes: Vec<u8> },
}

impl From<&Path> for Name {
    fn from(path: &Path) -> Self {
        match path.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes {
                bytes: path.as_os_str().as_bytes().to_owned(),
            },
        }
    }
}

impl From<Name> for PathBuf {
    fn from(name: Name) -> Self {
        match name {
            Name::Text(text) => text.into(),
            Name::Bytes { bytes } => OsString::from_vec(bytes).into(),
        }
    }
}

/// Serializes and deserializes a type as the word that `word` makes of it and `named` reads, whatever bytes are in it.
#[cfg(feature = "bench")]
macro_rules! serde_as_name {
    ($name:ident) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::core::paths::serialize(self.word().as_ref(), serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = $crate::core::paths::deserialize(deserializer)?;
                Self::named(word.as_os_str()).map_err(serde::de::Error::custom)
            }
        }
    };
}

#[cfg(feature = "bench")]
pub(crate) use serde_as_name;

/// Strips `prefix` from a word of any bytes.
pub fn behind<'w>(word: &'w OsStr, prefix: &str) -> Option<&'w OsStr> {
    word.as_bytes().strip_prefix(prefix.as_bytes()).map(OsStr::from_bytes)
}

pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    Name::from(path).serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    Name::deserialize(deserializer).map(Into::into)
}

/// One that may not be there.
pub(crate) mod optional {
    use super::{Deserialize, Deserializer, Name, PathBuf, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
        path.as_deref().map(Name::from).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
        Ok(Option::<Name>::deserialize(deserializer)?.map(Into::into))
    }
}

/// Several of them, in files that are only written.
#[cfg(feature = "suite")]
pub(crate) mod all {
    use super::{Name, PathBuf, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
        let names: Vec<Name> = paths.iter().map(|path| Name::from(path.as_path())).collect();
        names.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::corpus::Source;

    #[test]
    fn what_follows_a_prefix_may_have_any_bytes() {
        let word = OsStr::from_bytes(b"trace:\xff.txt");
        assert_eq!(behind(word, "trace:"), Some(OsStr::from_bytes(b"\xff.txt")));
        assert_eq!(behind(word, "corpus:"), None);
    }

    #[test]
    fn any_name_comes_back() {
        for name in [b"plain.txt".as_slice(), b"n\xff\xfe.txt", "\u{e4}".as_bytes()] {
            let source = Source::Path(OsString::from_vec(name.to_vec()).into());
            let json = serde_json::to_string(&source).unwrap();
            assert_eq!(serde_json::from_str::<Source>(&json).unwrap(), source, "{json}");
        }
        let plain = serde_json::to_string(&Source::Path("a".into())).unwrap();
        assert_eq!(plain, "{\"path\":\"a\"}", "as before");
    }
}
