//! The operator's settings.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use leafpress::codec::TrialGoal;
use leafpress::tree::Upkeep;
use leafpress::{Codec, DictionaryChoice, Tree, TreeError};

/// The settings of trees of new generations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeSettings {
    /// Their codec.
    pub codec: Codec,
    /// Longest dictionary in bytes; 0 leaves it to the tree.
    pub dictionary_bytes: usize,
}

static TREES: Mutex<TreeSettings> = Mutex::new(TreeSettings {
    codec: Codec::Trial {
        goal: TrialGoal::Balance,
    },
    dictionary_bytes: 0,
});

/// Microseconds of upkeep at a time.
static TEND_BUDGET_US: AtomicU64 = AtomicU64::new(500);

/// Returns the settings of trees of new generations. Commands run one at a time, so that nothing waits.
pub fn trees() -> MutexGuard<'static, TreeSettings> {
    TREES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Microseconds of upkeep at a time.
pub fn tend_budget_us() -> u64 {
    TEND_BUDGET_US.load(Ordering::Relaxed)
}

/// Sets it.
pub fn set_tend_budget_us(budget: u64) {
    TEND_BUDGET_US.store(budget, Ordering::Relaxed);
}

impl TreeSettings {
    /// Builds a tree with these settings.
    pub fn build(&self) -> Result<Tree, TreeError> {
        let builder = Tree::builder()
            .codec(self.codec)
            .upkeep(Upkeep::Caller)
            .dictionary(DictionaryChoice::Auto);
        match self.dictionary_bytes {
            0 => builder.build(),
            bytes => builder.dictionary_bytes(bytes).build(),
        }
    }
}
