use super::super::fixtures::published;
use super::super::{Options, tco};
use super::*;
use crate::report::testing::{charts, has_verdict};

#[test]
fn the_page_has_its_charts_and_tables() {
    let outcome = published();
    let savings = tco::savings(&outcome, &tco::Prices::default()).unwrap();
    let html = page(&outcome, Some(&savings), "leafpress model --data 'a<b'").unwrap();
    assert_eq!(charts(&html), 4);
    assert_eq!(html.matches("<table").count(), 2);
    assert!(has_verdict(&html) && html.contains("Give 100%") && html.contains("zstd is faster than lz4"));
    assert!(html.contains("of the total cost of ownership"));
    assert!(html.contains("'a&lt;b'") && !html.contains("a<b"));
    assert!(
        !html.contains("http://") || !html.contains("src=\"http"),
        "nothing is loaded"
    );
}

#[test]
fn a_codec_cannot_break_the_page() {
    let mut options: Options = published().options;
    options.codecs[0].name = "<script>".into();
    let html = page(&super::super::evaluate(&options).unwrap(), None, "").unwrap();
    assert!(!html.contains("<script>") && html.contains("&lt;script&gt;"));
}
