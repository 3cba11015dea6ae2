//! Answers that were wrong.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of mismatches described in words.
const EXAMPLES: usize = 5;

/// Answers that were wrong: their number, and the first few in words.
#[derive(Debug, Default)]
pub(super) struct Mismatches {
    count: AtomicU64,
    examples: Mutex<Vec<String>>,
}

impl Mismatches {
    /// Counts one.
    #[cold]
    pub(super) fn add(&self, describe: impl FnOnce() -> String) {
        if self.count.fetch_add(1, Ordering::Relaxed) < EXAMPLES as u64
            && let Ok(mut examples) = self.examples.lock()
        {
            examples.push(describe());
        }
    }

    /// Counts a wrong answer to a read of key `id`.
    #[cold]
    pub(super) fn add_read(&self, doing: &str, id: u64, answer: Option<&[u8]>) {
        self.add(|| match answer {
            None => format!("{doing}: key {id} is missing"),
            Some(value) => {
                let head = &value[..value.len().min(16)];
                format!(
                    "{doing}: key {id} has {} unexpected bytes: {}...",
                    value.len(),
                    head.escape_ascii()
                )
            }
        });
    }

    pub(super) fn take(&self) -> (u64, Vec<String>) {
        let examples = self
            .examples
            .lock()
            .map(|mut examples| std::mem::take(&mut *examples))
            .unwrap_or_default();
        (self.count.load(Ordering::Relaxed), examples)
    }
}
