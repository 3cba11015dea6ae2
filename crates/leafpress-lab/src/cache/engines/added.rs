//! Caches that a program adds to those of the laboratory, which knows nothing of their implementation.

use std::sync::OnceLock;

use leafpress::CacheError;

use super::{Engine, Settings};

/// A cache that a program brings, which keeps its records in files on a disk.
#[derive(Debug, Clone, Copy)]
pub struct AddedEngine {
    /// Its name in a list of caches.
    pub name: &'static str,
    /// Whether it is compared where no list is given.
    pub is_default: bool,
    /// Makes a new, empty cache. Its files go to [`DiskOptions::directory`](super::DiskOptions::directory), which is
    /// not there yet and is removed when the process has ended.
    pub make: fn(&Settings) -> Result<Box<dyn Engine>, CacheError>,
}

/// One is what it is called.
impl PartialEq for AddedEngine {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for AddedEngine {}

static ADDED: OnceLock<&'static [AddedEngine]> = OnceLock::new();

/// Makes caches known to this process. A program calls it first of all, also where it is started again to measure one;
/// only the first call counts.
pub fn add_engines(engines: &'static [AddedEngine]) {
    ADDED.get_or_init(|| engines);
}

/// The added caches.
pub(super) fn added() -> &'static [AddedEngine] {
    ADDED.get().copied().unwrap_or_default()
}
