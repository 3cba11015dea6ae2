//! How wide a report is for people: as the terminal, within bounds. Without one it is 80 columns, what files, mails and
//! pagers are read in; tables that stand in their parts there are narrower still.

use std::sync::OnceLock;

/// Columns where nothing is known.
const USUAL: usize = 80;
/// Least and most columns that a report is made for.
const BOUNDS: (usize, usize) = (48, 120);

static WIDTH: OnceLock<usize> = OnceLock::new();

/// Sets the width of reports in columns. Only the first call counts.
pub fn set_page_width(columns: usize) {
    let _ = WIDTH.set(columns.clamp(BOUNDS.0, BOUNDS.1));
}

/// Columns of a report.
pub(crate) fn page_width() -> usize {
    WIDTH.get().copied().unwrap_or(USUAL)
}
