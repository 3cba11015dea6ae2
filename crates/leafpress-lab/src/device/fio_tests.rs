use std::io::Write;

use super::super::document;
use super::*;
use crate::report::testing::assert_golden;

fn read(content: &str) -> Result<Report, DeviceError> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(content.as_bytes()).unwrap();
    fio_report(file.path())
}

/// Output of fio 3.33, without irrelevant fields; the third job is the first one turned into writes.
const FIO_3: &str = include_str!("golden/fio3.json");
/// As fio wrote it when the thesis was: KiB and microseconds, no options.
const FIO_2: &str = include_str!("golden/fio2.json");

#[test]
fn a_result_of_fio_3_is_the_same_table() {
    let mut report = read(FIO_3).unwrap();
    let m = report.find(Operation::Read, 8192, 4).unwrap();
    assert_eq!((m.job.as_deref(), m.operations), (Some("r8"), 52_726));
    // fio's clat, and 9.268 for its mean slat.
    let is = |us: Option<f64>, clat: f64| us.is_some_and(|us| (us - clat - 9.268).abs() < 0.001);
    assert!(is(m.latency.p50_us, 122.368) && is(m.latency.p9999_us, 5210.112));
    assert!((m.us_per_block * m.iops - 1e6).abs() < 1e-6);
    assert_eq!(report.measurements.len(), 3, "the third job only wrote");
    let write = report.find(Operation::Write, 4096, 8).unwrap();
    assert_eq!(write.latency.p999_us, None, "it has only p50 and p99");
    let topics: Vec<_> = report.notes.iter().map(|note| note.topic).collect();
    assert_eq!(topics, [Topic::PageCache], "the third job was not direct");
    if let Source::Fio { path, .. } = &mut report.source {
        *path = "/results/fio.json".into();
    }
    assert_golden("device/golden/fio.txt", &document(&report).text());
}

#[test]
fn a_result_of_fio_2_has_microseconds_and_kibibytes() {
    let report = read(FIO_2).unwrap();
    let m = report.find(Operation::Read, 8192, 1).unwrap();
    assert_eq!(
        (m.latency.mean_us, m.latency.p99_us, m.submit_us),
        (462.75, Some(1104.25), Some(4.25)),
        "what a reader waits is clat and slat"
    );
    assert!((m.mb_per_s - 70.795).abs() < 0.001, "{}", m.mb_per_s);
    assert_eq!(m.us_per_block.round(), 116.0);
}

#[test]
fn text_around_the_result_does_not_matter() {
    let report = read(&format!(
        "fio: note {{this}}\nfio: and that\n{FIO_3}\nfio: terminating on signal 2\n"
    ))
    .unwrap();
    assert_eq!(report.measurements.len(), 3);
}

#[test]
fn reports_invalid_fio_results() {
    for (content, words) in [
        ("", "no JSON"),
        ("fio-3.33: 7 jobs\n", "--output-format=json"),
        ("{\"jobs\": [", "incomplete"),
        ("{}", "no `jobs`"),
        ("{\"jobs\": []}", "none of its jobs"),
        (
            "{\"jobs\": [{\"read\": {\"total_ios\": 0, \"iops\": 0}}]}",
            "none of its jobs",
        ),
        (
            "{\"jobs\": [{\"jobname\": \"a\", \"read\": {\"iops\": 5}}]}",
            "job a: has no `bw`",
        ),
        (
            "{\"jobs\": [{\"jobname\": \"a\", \"read\": {\"iops\": 5, \"bw_bytes\": 20480}}]}",
            "no clat",
        ),
        (
            "{\"jobs\": [{\"read\": {\"iops\": 5, \"bw_bytes\": 20480, \"clat_ns\": {}}}]}",
            "no min",
        ),
        ("{\"jobs\": 7}", "no `jobs`"),
        ("{\"jobs\": [7, null, {\"read\": []}]}", "none of its jobs"),
    ] {
        let message = read(content).unwrap_err().to_string();
        assert!(
            message.contains(words) && !message.contains('\n'),
            "{content}: {message}"
        );
    }
    assert!(
        fio_report(Path::new("/no/such/file"))
            .unwrap_err()
            .to_string()
            .contains("cannot be read")
    );
    assert!(fio_report(Path::new("/dev/zero")).is_err(), "not read for ever");
}

#[test]
fn block_sizes_are_read_as_fio_does() {
    for (text, read, write) in [
        ("4k", 4096, 4096),
        ("4K", 4096, 4096),
        ("4096", 4096, 4096),
        ("8kib,64k", 8192, 65536),
        ("1m,,", 1 << 20, 1 << 20),
    ] {
        let size = |operation| block_size(text, operation);
        assert_eq!(
            (size(Operation::Read), size(Operation::Write)),
            (Some(read), Some(write)),
            "{text}"
        );
    }
    assert_eq!(block_size("4z", Operation::Read), None);
    assert_eq!(block_size("", Operation::Read), None);
    assert_eq!(block_size("99999999999999999999m", Operation::Read), None);
}
