//! What tests of reports share.

use std::path::Path;

/// Compares with a golden file below `src`. With `UPDATE_GOLDEN` in the environment it is written anew, and `git diff` shows what changed.
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

/// A page, which is left in the file that `LEAFPRESS_LAB_KEEP_REPORT` names, to be looked at.
pub(crate) fn kept(html: String) -> String {
    if let Some(keep) = std::env::var_os("LEAFPRESS_LAB_KEEP_REPORT") {
        std::fs::write(keep, &html).unwrap();
    }
    html
}
