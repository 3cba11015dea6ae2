use std::path::PathBuf;

use super::*;

fn file(contents: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    std::fs::write(&path, contents).unwrap();
    (directory, path)
}

fn read(contents: &[u8], options: TraceOptions) -> Result<Trace, LabError> {
    let (_directory, path) = file(contents);
    read_trace(&path, options, &AtomicBool::new(false), &mut |_| {})
}

fn binary() -> TraceOptions {
    TraceOptions {
        format: TraceFormat::U64Le,
        ..TraceOptions::default()
    }
}

#[track_caller]
fn assert_refused(result: Result<Trace, LabError>, words: &[&str]) {
    let message = result.unwrap_err().to_string();
    assert_eq!(message.lines().count(), 1, "{message}");
    for word in words {
        assert!(message.contains(word), "no `{word}` in: {message}");
    }
}

#[test]
fn text_and_binary_are_the_same_trace() {
    let pages = [7_u64, 8, 7, 7, 9, 8, u64::MAX];
    let text = "# pages\n7\n8\r\n\n 7 \n7\n9\n8\n18446744073709551615";
    let bytes: Vec<u8> = pages.iter().flat_map(|page| page.to_le_bytes()).collect();
    let (one, other) = (
        read(text.as_bytes(), TraceOptions::default()).unwrap(),
        read(&bytes, binary()).unwrap(),
    );
    assert_eq!((one.accesses, one.pages, one.rate), (7, 4, 1.0));
    assert_eq!((&one.curve, &one.tiers), (&other.curve, &other.tiers));
    assert_eq!(one.first_accesses, 4.0 / 7.0);
    assert_eq!(
        one.tiers[0],
        Tier {
            pages: 1.0,
            rate: 3.0 / 7.0
        }
    );
    let mass: f64 = one.tiers.iter().map(|tier| tier.pages * tier.rate).sum();
    assert!((mass - 1.0).abs() < 1e-12);
}

#[test]
fn reports_a_junk_line_with_its_number() {
    let text = b"1\n2\n\n3;4\n5\n";
    assert_refused(
        read(text, TraceOptions::default()),
        &["line 4", "`3;4`", "decimal number", "--skip-junk"],
    );
    for junk in ["-1", "1.5", "0x10", "18446744073709551616", "\u{1b}[31m", "\u{ff}"] {
        let message = read(junk.as_bytes(), TraceOptions::default()).unwrap_err().to_string();
        assert!(message.contains("line 1") && !message.contains('\u{1b}'), "{message}");
    }
}

#[test]
fn few_junk_lines_can_be_left_out() {
    let skip = TraceOptions {
        junk: Junk::Skip,
        ..TraceOptions::default()
    };
    let mut text = "page\n".to_owned();
    for page in 0..200 {
        text += &format!("{}\n", page % 20);
    }
    let trace = read(text.as_bytes(), skip).unwrap();
    assert_eq!((trace.accesses, trace.skipped_lines), (200, 1));
    assert_refused(read(b"1\nx\n2\ny\n", skip), &["2 of 4 lines", "not a trace"]);
    assert_refused(read(b"x\ny\n", skip), &["2 of 2 lines"]);
}

#[test]
fn reports_invalid_page_traces() {
    assert_refused(read(b"", TraceOptions::default()), &["no page numbers"]);
    assert_refused(read(b"# nothing\n\n", TraceOptions::default()), &["no page numbers"]);
    assert_refused(read(&[0; 8192], TraceOptions::default()), &["line 1", "u64le"]);
    assert_refused(
        read(b"1\n\xfe(\x02\n2\n", TraceOptions::default()),
        &["line 2 is not text", "advise --trace"],
    );
    assert_refused(read(&[0; 17], binary()), &["1 bytes are left at its end", "text"]);
    let directory = tempfile::tempdir().unwrap();
    let cancel = AtomicBool::new(false);
    let of = |path: &Path| read_trace(path, TraceOptions::default(), &cancel, &mut |_| {});
    assert_refused(of(directory.path()), &["directory"]);
    assert!(matches!(of(&directory.path().join("absent")), Err(LabError::Io { .. })));
}

#[test]
fn reports_a_sample_that_is_too_small() {
    let options = TraceOptions {
        sampling: Sampling::Rate(0.01),
        ..TraceOptions::default()
    };
    assert_refused(read(b"1\n2\n1\n", options), &["sample of 0.01", "--trace-sample"]);
    for bad in ["0", "1.1", "-1", "many", "nan"] {
        assert!(bad.parse::<Sampling>().is_err(), "{bad}");
    }
    assert!("csv".parse::<TraceFormat>().is_err());
}

#[test]
fn reading_can_be_cancelled() {
    let text: String = (0..200_000).map(|page| format!("{}\n", page % 100)).collect();
    let (_directory, path) = file(text.as_bytes());
    let mut reported = 0.0;
    let cancel = AtomicBool::new(false);
    let result = read_trace(&path, TraceOptions::default(), &cancel, &mut |done| {
        reported = done;
        cancel.store(true, Relaxed);
    });
    assert!(matches!(result, Err(LabError::Cancelled)));
    assert!(reported > 0.1 && reported < 1.0, "{reported}");
}
