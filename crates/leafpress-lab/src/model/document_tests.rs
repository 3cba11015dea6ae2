use super::super::fixtures::published;
use super::super::{evaluate, tco};
use super::*;
use crate::report::testing::{assert_golden, charts, has_verdict};

fn report(outcome: &Outcome) -> String {
    document(outcome, None).text()
}

fn costs_of(savings: &[Savings], prices: &Prices) -> String {
    let mut document = Document::new("");
    costs(&mut document, savings, prices);
    document.text()
}

#[test]
fn the_page_has_its_charts_and_tables() {
    let outcome = published();
    let prices = Prices::default();
    let savings = tco::savings(&outcome, &prices).unwrap();
    let report = document(&outcome, Some((&savings, &prices)));
    let html = report.page("leafpress model --data 'a<b'").unwrap();
    assert_eq!(charts(&html), 4);
    assert_eq!(html.matches("<table").count(), 3);
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
    let html = document(&evaluate(&options).unwrap(), None).page("").unwrap();
    assert!(!html.contains("<script>") && html.contains("&lt;script&gt;"));
}

#[test]
fn the_report_is_as_it_was() {
    assert_golden("model/golden/report.txt", &report(&published()));
}

#[test]
fn the_corrected_report_is_as_it_was() {
    let options = Options {
        shares: vec![0, 30, 60, 90],
        ..Options::new(Method::Corrected)
    };
    assert_golden("model/golden/corrected.txt", &report(&evaluate(&options).unwrap()));
}

#[test]
fn savings_are_as_they_were() {
    let prices = Prices {
        total_cost: Some(1e6),
        memory_gib_cost: Some(40.0),
        ..Prices::default()
    };
    let found = tco::savings(&published(), &prices).unwrap();
    assert_golden("model/golden/savings.txt", &costs_of(&found, &prices));
}

#[test]
fn reports_that_nothing_pays() {
    let mut options = Options::new(Method::Corrected);
    options.device_us = 0.5;
    let text = report(&evaluate(&options).unwrap());
    assert!(text.contains("lz4 does not pay at any share"), "{text}");
    assert!(text.contains("Compress nothing: "), "{text}");
}

#[test]
fn a_page_that_takes_no_time_has_no_pages_a_second() {
    let mut options = Options::new(Method::AsPublished);
    options.data_bytes = 1 << 20;
    let outcome = evaluate(&options).unwrap();
    let text = report(&outcome);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("0.00 us per page, NA pages per second"), "{text}");
    let found = tco::savings(&outcome, &Prices::default()).unwrap();
    assert!(found.iter().all(|saved| saved.worth.cores_saved == 0.0), "{found:?}");
}
