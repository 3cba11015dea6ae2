//! The rules that a cache may choose by which records make room.

use std::fmt;
use std::str::FromStr;

use super::error::CacheError;

/// By what rule records make room for others. All go round the leaves and take out what is worth least at each; they differ in what a record
/// is worth. Written and parsed by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Policy {
    /// `s3-fifo`, the default: new records are on probation, those that are read stay, and those that come back soon are in use at once
    /// (after S3-FIFO: Yang et al., SOSP 2023).
    #[default]
    S3Fifo,
    /// `clock`: what was not read since the hand last came by goes.
    Clock,
    /// `lru`: of each leaf, those go that were not read for the most rounds of the hand.
    Lru,
    /// `page`: a leaf goes as a whole if none of its records was read since the hand last came by, as the ZipCache paper has it. For
    /// comparison: a leaf with one record in use keeps all the others.
    Page,
}

impl Policy {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::S3Fifo, Self::Clock, Self::Lru, Self::Page];

    fn name(self) -> &'static str {
        match self {
            Self::S3Fifo => "s3-fifo",
            Self::Clock => "clock",
            Self::Lru => "lru",
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
            reason: format!("there is no `{name}`: s3-fifo, clock, lru and page are known"),
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
