//! One line of the report.

use serde::Serialize;

use crate::failure::without_numbers;

/// The verdict of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// There, and it works.
    Ok,
    /// Not there.
    Missing,
    /// There, but it does not work as it is.
    NotUsable,
}

impl Status {
    pub fn words(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Missing => "missing",
            Status::NotUsable => "not usable",
        }
    }
}

/// What was looked at, the verdict, what was seen, and how to mend it.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// The heading it stands under.
    pub area: &'static str,
    /// What was looked at.
    pub what: String,
    pub status: Status,
    /// What was seen.
    pub detail: String,
    /// How to mend it; `None` when there is nothing to mend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Finding {
    pub fn ok(area: &'static str, what: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            area,
            what: what.into(),
            status: Status::Ok,
            detail: without_numbers(&detail.into()),
            fix: None,
        }
    }

    pub fn missing(
        area: &'static str,
        what: impl Into<String>,
        detail: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            area,
            what: what.into(),
            status: Status::Missing,
            detail: without_numbers(&detail.into()),
            fix: Some(fix.into()),
        }
    }

    pub fn not_usable(
        area: &'static str,
        what: impl Into<String>,
        detail: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            area,
            what: what.into(),
            status: Status::NotUsable,
            detail: without_numbers(&detail.into()),
            fix: Some(fix.into()),
        }
    }
}
