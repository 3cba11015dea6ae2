use super::*;

#[test]
fn no_figure_differs() {
    let reproduction = reproduce().unwrap();
    for figure in &reproduction.figures {
        assert_ne!(figure.verdict, Verdict::Differs, "{figure:?}");
    }
    assert_eq!(reproduction.count(Verdict::TextDisagrees), 11);
    assert_eq!(reproduction.series.len(), 4 + 4 + 2);
}

/// GB of data, access, hit ratios and microseconds of raw, lz4 and zstd at C = 100%, break-evens, and the crossing, in
/// percent.
type Row = (
    u64,
    &'static str,
    [&'static str; 3],
    [&'static str; 3],
    [&'static str; 2],
    &'static str,
);

/// Written out once more, apart from the reproduction's own tables.
#[test]
fn the_published_figures_come_out_to_the_digit() {
    let rows: [Row; 4] = [
        (
            200,
            "uniform",
            ["7.500", "15.975", "22.275"],
            ["101.750", "94.587", "94.166"],
            ["20.53", "49.39"],
            "92.94",
        ),
        (
            500,
            "uniform",
            ["3.000", "6.390", "8.910"],
            ["106.700", "105.035", "108.466"],
            ["53.81", "never"],
            "never",
        ),
        (
            200,
            "20,80",
            ["30.000", "63.900", "80.569"],
            ["77.000", "42.349", "31.791"],
            ["3.88", "9.34"],
            "17.58",
        ),
        (
            500,
            "20,80",
            ["12.000", "25.560", "35.640"],
            ["96.800", "84.140", "79.865"],
            ["12.20", "29.36"],
            "55.26",
        ),
    ];
    for (data_gb, access, hits, us, break_even, crossing) in rows {
        let outcome = setting(data_gb, access, CodecCosts::of_thesis()).unwrap();
        let full = |codec: usize| outcome.codecs[codec].points.last().unwrap();
        let points = [&outcome.raw, full(0), full(1)];
        for (point, (hits, us)) in points.iter().zip(hits.iter().zip(us)) {
            // 80.56875 and 94.16575 lie on no half, so binary rounding is decimal rounding.
            assert_eq!(format!("{:.3}", point.hit_ratio * 100.0), *hits, "{data_gb} {access}");
            assert_eq!(format!("{:.3}", point.us_per_page), us, "{data_gb} {access}");
        }
        let text = |share: Option<f64>| share.map_or("never".to_owned(), |share| format!("{share:.2}"));
        for (codec, published) in break_even.into_iter().enumerate() {
            assert_eq!(text(break_even_pct(&outcome, codec)), published, "{data_gb} {access}");
        }
        let found = outcome.crossings.first().map(|crossing| crossing.share * 100.0);
        assert_eq!(text(found), crossing, "{data_gb} {access}");
        assert!(outcome.crossings.len() <= 1);
    }
}

#[test]
fn a_wrong_figure_is_found_out() {
    let mut figures = Vec::new();
    let mut add = Adder::new(&mut figures, "nowhere");
    assert_eq!(add.pictured("x", "1.23", "", 1.2349).verdict, Verdict::Agrees);
    assert_eq!(add.pictured("x", "1.23", "", 1.2351).verdict, Verdict::Differs);
    let figure = add.pictured("x", "1.23", "", 1.2299);
    figure.contradicts("it agrees");
    assert_eq!(figure.verdict, Verdict::Agrees);
}
