//! The root of `/sys`, `/proc`, `/dev` and `/etc`: the real one, or a tree made by a test.

use std::path::{Path, PathBuf};

/// The root directory that system files are read under.
#[derive(Debug, Clone)]
pub struct Root(PathBuf);

impl Root {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Returns whether this is the running system.
    pub fn is_real(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// Returns `path` (without a leading slash) under the root.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.0.join(path)
    }

    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.path(path).exists()
    }

    /// Returns the file's text; `None` when it cannot be read. Bytes that are not UTF-8 are replaced: sysfs guarantees
    /// no encoding.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        std::fs::read(self.path(path))
            .ok()
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns a one-line attribute, trimmed; `None` when it cannot be read or is empty.
    pub fn attribute(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = self.text(path)?;
        let line = text.lines().next()?.trim();
        (!line.is_empty()).then(|| line.to_owned())
    }

    /// Returns the names in a directory, sorted; empty when it cannot be read.
    pub fn names(&self, directory: impl AsRef<Path>) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(directory)) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort_by_key(|name| natural_key(name));
        names
    }
}

/// Sorts `iax9` before `iax11`: the name's digits as one number each, after the letters before them.
fn natural_key(name: &str) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let letters = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let digits = rest[letters..]
            .find(|c: char| !c.is_ascii_digit())
            .map_or(rest.len(), |n| letters + n);
        parts.push((
            rest[..letters].to_owned(),
            rest[letters..digits].parse().unwrap_or(u64::MAX),
        ));
        rest = &rest[digits..];
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::natural_key;

    #[test]
    fn numbers_sort_by_value() {
        let mut names = ["iax11", "iax9", "dsa0", "wq1.10", "wq1.2"];
        names.sort_by_key(|name| natural_key(name));
        assert_eq!(names, ["dsa0", "iax9", "iax11", "wq1.2", "wq1.10"]);
    }
}
