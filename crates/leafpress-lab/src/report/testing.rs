//! Shared helpers for tests of reports.

use std::path::Path;

/// Compares with a golden file below `src`. With `UPDATE_GOLDEN` in the environment it is written anew, and `git diff`
/// shows what changed.
#[track_caller]
pub(crate) fn assert_golden(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, text).unwrap();
    } else {
        let golden = std::fs::read_to_string(&path).unwrap();
        assert!(text == golden, "{file} is not as before:\n{text}");
    }
}

/// Stores a page in the file named by `LEAFPRESS_LAB_KEEP_REPORT`, for inspection.
pub(crate) fn kept(html: String) -> String {
    if let Some(keep) = std::env::var_os("LEAFPRESS_LAB_KEEP_REPORT") {
        std::fs::write(keep, &html).unwrap();
    }
    html
}

/// Charts of a page: drawings, each in two sizes, and bars of text.
pub(crate) fn charts(html: &str) -> usize {
    let count = |what: &str| html.matches(what).count();
    assert_eq!(count("<svg class=\"wide\""), count("<svg class=\"narrow\""));
    count("<svg class=\"wide\"") + count("<div class=\"bars\">")
}

/// Whether a page begins with a verdict that has a figure.
pub(crate) fn has_verdict(html: &str) -> bool {
    let body = html.split_once("</h1>").map_or("", |(_, body)| body.trim_start());
    let verdict = body
        .strip_prefix("<p class=\"verdict\">")
        .and_then(|rest| rest.split_once("</p>"));
    verdict.is_some_and(|(verdict, _)| verdict.contains(|letter: char| letter.is_ascii_digit()))
}
