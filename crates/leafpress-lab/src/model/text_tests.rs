use super::super::fixtures::published;
use super::super::{evaluate, tco, thesis};
use super::*;
use crate::report::testing::assert_golden;

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
fn the_reproduction_is_as_it_was() {
    assert_golden(
        "model/golden/reproduction.txt",
        &reproduction(&thesis::reproduce().unwrap()),
    );
}

#[test]
fn the_white_paper_is_as_it_was() {
    assert_golden("model/golden/white_paper.txt", &white_paper(&tco::white_paper()));
}

#[test]
fn savings_are_as_they_were() {
    let prices = Prices {
        total_cost: Some(1e6),
        memory_gib_cost: Some(40.0),
        ..Prices::default()
    };
    let found = tco::savings(&published(), &prices).unwrap();
    assert_golden("model/golden/savings.txt", &savings(&found, &prices));
}

#[test]
fn where_nothing_pays_it_says_so() {
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
    assert!(
        report(&outcome).contains("0.00 us per page, NA pages per second"),
        "{}",
        report(&outcome)
    );
    let found = tco::savings(&outcome, &Prices::default()).unwrap();
    assert!(found.iter().all(|saved| saved.worth.cores_saved == 0.0), "{found:?}");
}
