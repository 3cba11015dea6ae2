//! The operator's settings.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use leafpress::codec::TrialGoal;
use leafpress::tree::Upkeep;
use leafpress::{Codec, Dictionary, DictionaryChoice, Tree, TreeError};

/// The settings of trees of new generations.
#[derive(Debug, Clone)]
pub struct TreeSettings {
    /// Their codec.
    pub codec: Codec,
    /// Longest dictionary in bytes; 0 leaves it to the tree.
    pub dictionary_bytes: usize,
    /// The dictionary that they begin with, if their codec takes it: [`TreeSettings::takes`].
    pub dictionary: Option<Dictionary>,
}

static TREES: Mutex<TreeSettings> = Mutex::new(TreeSettings {
    codec: Codec::Trial {
        goal: TrialGoal::Balance,
    },
    dictionary_bytes: 0,
    dictionary: None,
});

/// Microseconds of upkeep at a time.
static UPKEEP_BUDGET_US: AtomicU64 = AtomicU64::new(500);

/// Returns the settings of trees of new generations. Commands run one at a time, so that nothing waits.
pub fn trees() -> MutexGuard<'static, TreeSettings> {
    TREES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the microseconds of upkeep at a time.
pub fn upkeep_budget_us() -> u64 {
    UPKEEP_BUDGET_US.load(Ordering::Relaxed)
}

/// Sets the microseconds of upkeep at a time.
pub fn set_upkeep_budget_us(budget: u64) {
    UPKEEP_BUDGET_US.store(budget, Ordering::Relaxed);
}

impl TreeSettings {
    /// Returns whether these are the same settings.
    pub fn is_same(&self, other: &Self) -> bool {
        let serial = |settings: &Self| settings.dictionary.as_ref().map(Dictionary::serial);
        (self.codec, self.dictionary_bytes, serial(self)) == (other.codec, other.dictionary_bytes, serial(other))
    }

    /// Returns whether a tree with this codec can begin with the dictionary.
    pub fn takes(&self, dictionary: &Dictionary) -> bool {
        dictionary.codec().is_some_and(|codec| match self.codec.candidates() {
            // Those of OnPair have codes of one length.
            [] => codec == self.codec || codec.family() == self.codec.family() && codec.family() != "onpair",
            candidates => candidates.contains(&codec),
        })
    }

    /// Builds a tree with these settings.
    pub fn build(&self) -> Result<Tree, TreeError> {
        let dictionary = self.dictionary.as_ref().filter(|dictionary| self.takes(dictionary));
        let choice = match dictionary {
            Some(dictionary) => DictionaryChoice::Initial(dictionary.clone()),
            None => DictionaryChoice::Auto,
        };
        let builder = Tree::builder()
            .codec(self.codec)
            .upkeep(Upkeep::Caller)
            .dictionary(choice);
        match self.dictionary_bytes {
            0 => builder.build(),
            bytes => builder.dictionary_bytes(bytes).build(),
        }
    }
}
