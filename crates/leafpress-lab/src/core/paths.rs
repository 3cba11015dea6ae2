//! Paths in files and requests: as text where they are, else byte by byte, so that any name that a file can have comes back.

use std::ffi::OsString;
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
