//! Eviction policies.

use std::fmt;
use std::str::FromStr;

use super::error::CacheError;

/// The eviction policy: how the records of a leaf that the hand visits are rated. Written and parsed by its name.
///
/// The one besides the default exists for measurements: with the feature `testing`. It may change without notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Policy {
    /// `s3-fifo`, the default: new records are on probation, records that are read are in the main queue, and keys that
    /// return soon after their eviction (found in the ghost queue) are admitted to it at once (after S3-FIFO: Yang et
    /// al., SOSP 2023).
    #[default]
    S3Fifo,
    /// `page`: evicts a whole leaf if none of its records was read since the hand last passed, as in the ZipCache
    /// paper. A leaf with one record in use keeps all its others.
    Page,
}

impl Policy {
    /// All policies.
    pub const ALL: [Self; 2] = [Self::S3Fifo, Self::Page];

    fn name(self) -> &'static str {
        match self {
            Self::S3Fifo => "s3-fifo",
            Self::Page => "page",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Policy {
    type Err = CacheError;

    fn from_str(name: &str) -> Result<Self, CacheError> {
        let found = Self::ALL.into_iter().find(|policy| policy.name() == name);
        found.ok_or_else(|| CacheError::Option {
            option: "policy",
            reason: format!("unknown policy `{name}`; expected s3-fifo or page"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_policy() {
        for policy in Policy::ALL {
            assert_eq!(policy.to_string().parse::<Policy>().unwrap(), policy);
        }
        let unknown = "arc".parse::<Policy>().unwrap_err().to_string();
        assert!(unknown.contains("`arc`") && unknown.contains("s3-fifo"), "{unknown}");
    }
}
