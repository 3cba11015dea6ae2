use super::*;

#[test]
fn names_of_groups_are_broken_where_they_are_too_long() {
    assert_eq!(broken("read_only", 200.0), ["read_only"]);
    assert_eq!(broken("read_write_8_2", 60.0), ["read_", "write_", "8_2"]);
    assert_eq!(broken("characters", 60.0), ["charac…"]);
    assert_eq!(broken("", 60.0), [""]);
}

#[test]
fn a_chart_is_there_for_wide_pages_and_for_narrow_ones() {
    let bars = |groups: &[&str]| {
        let spec = Bars {
            name: "a",
            size: (1080, 300),
            unit: "us",
            groups,
            colours: &[INK],
            figure: &|group, _| Some(group as f64 + 1.0),
        };
        bars(&spec).unwrap()
    };
    let both = bars(&["one", "two"]).unwrap();
    let attributes = "role=\"img\" aria-label=\"us, in the order of the legend: one 1.00; two 2.00.\"";
    for (class, width) in [("wide", 1080), ("narrow", 356)] {
        assert!(
            both.contains(&format!("<svg class=\"{class}\" {attributes} width=\"{width}\"")),
            "{both}"
        );
    }
    assert_eq!(bars(&["one"]), None, "a single bar is not a chart");
    let point = [Curve {
        colour: INK,
        points: vec![(1.0, 1.0)],
        dashed: false,
        marks: true,
    }];
    let one = Curves {
        name: "a",
        x: ("x", 0.0, 1.0),
        description: "y",
        most: None,
        curves: &point,
        levels: &[],
    };
    assert_eq!(curves(&one).unwrap(), None, "nor is a point");
}

#[test]
fn labels_of_a_time_axis_differ() {
    for (end, digits) in [
        (600.0, 0),
        (5.0, 0),
        (4.9, 1),
        (1.0, 1),
        (0.5, 1),
        (0.4, 2),
        (0.04, 3),
        (0.0013, 4),
        (1e-30, 9),
        (0.0, 0),
        (f64::NAN, 0),
    ] {
        assert_eq!(decimals(end), digits, "{end}");
    }
}
