//! A line of the report.

use serde::Serialize;

use crate::failure::without_numbers;

/// The status of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Present and working.
    Ok,
    /// Not present.
    Missing,
    /// Present but not working.
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

/// What was checked, its status, details, and the fix.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// The section of the report.
    pub area: &'static str,
    /// What was checked.
    pub what: String,
    pub status: Status,
    /// Details.
    pub detail: String,
    /// The fix; `None` when nothing needs fixing.
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
