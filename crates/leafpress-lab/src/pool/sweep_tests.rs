use super::*;

#[test]
fn shares_go_on_in_steps() {
    for (text, expected) in [
        ("0", vec![0]),
        ("0,10,..,90", vec![0, 10, 20, 30, 40, 50, 60, 70, 80, 90]),
        ("0, 50, .., 100", vec![0, 50, 100]),
        ("5,0,20,..,60,80,95", vec![0, 5, 20, 40, 60, 80, 95]),
        ("90,10", vec![10, 90]),
    ] {
        assert_eq!(shares(text).unwrap(), expected, "{text}");
    }
}

#[test]
fn reports_invalid_shares() {
    for text in [
        "",
        "x",
        "101",
        "-1",
        "..",
        "..,90",
        "0,..,90",
        "0,10,..",
        "0,10,..,95",
        "10,0,..,90",
        "0,40,..,20",
        "5,5",
        "0,10,..,10,10",
    ] {
        let message = shares(text).unwrap_err().to_string();
        assert!(
            message.starts_with("sweep-share: ") && message.contains("0,10,..,90"),
            "{text}: {message}"
        );
        assert!(!message.contains('\n'), "{message}");
    }
}
