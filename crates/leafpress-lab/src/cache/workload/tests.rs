use std::io::Write;
use std::path::PathBuf;

use rand_xoshiro::rand_core::SeedableRng;

use super::*;

fn file(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    (directory, path)
}

/// Reads a trace of these bytes: its requests as `key` or `!key`, and the lengths.
fn read(name: &str, bytes: &[u8]) -> Result<(Vec<String>, Vec<u32>), String> {
    let (_directory, path) = file(name, bytes);
    let trace = Trace::read(&path, None, None).map_err(|e| e.to_string())?;
    let keys = Keys::Listed {
        bytes: trace.key_bytes,
        ends: trace.key_ends,
    };
    let mut key = Vec::new();
    let requests = trace.requests.iter().map(|word| {
        let request = Trace::request(*word);
        keys.write(request.id, &mut key);
        let mark = if request.action == Action::Write { "!" } else { "" };
        format!("{mark}{}", String::from_utf8_lossy(&key))
    });
    Ok((requests.collect(), trace.lengths))
}

fn oracle(requests: &[(u64, u32, i64)]) -> Vec<u8> {
    let record = |(at, (id, len, next)): (usize, &(u64, u32, i64))| {
        let mut record = (at as u32).to_le_bytes().to_vec();
        record.extend(id.to_le_bytes());
        record.extend(len.to_le_bytes());
        record.extend(next.to_le_bytes());
        record
    };
    requests.iter().enumerate().flat_map(record).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

/// `printf 'a\nb\na\n' | xz`
const XZ: &str = include_str!("three_keys.xz.hex");

fn xz() -> Vec<u8> {
    let digits: Vec<_> = XZ
        .trim()
        .as_bytes()
        .chunks(2)
        .map(|pair| std::str::from_utf8(pair).unwrap())
        .collect();
    digits
        .iter()
        .map(|pair| u8::from_str_radix(pair, 16).unwrap())
        .collect()
}

#[test]
fn every_format_is_read() {
    let words = |words: &str| words.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let traced = oracle(&[(7, 100, 2), (8, 0, -1), (7, 100, -1)]);
    for (name, bytes, requests, lengths) in [
        ("a.oracleGeneral.bin", traced.clone(), "7 8 7", &[100, 0][..]),
        (
            "a.oracleGeneral.bin.zst",
            zstd::encode_all(traced.as_slice(), 1).unwrap(),
            "7 8 7",
            &[100, 0],
        ),
        ("a.lis", b"5 2 0 1\n6 1 0 2\n".to_vec(), "5 6 6", &[512, 512]),
        (
            "a.lis.gz",
            gzip(b"5 2 0 1\r\n\r\n# a word\r\n6 1 0 2"),
            "5 6 6",
            &[512, 512],
        ),
        ("a.csv", b"1,x,10\n2,y,20\n3,x,30\n".to_vec(), "x y x", &[10, 20]),
        ("a.tr", b"1 x 10\n2 y 20\n".to_vec(), "x y", &[10, 20]),
        (
            "a.csv",
            b"1,k,1,44,7,get,0\n2,k,1,44,7,set,90\n3,k,1,44,7,delete,0\n".to_vec(),
            "k !k",
            &[44],
        ),
        (
            "a.csv",
            b"key,op,size,op_count,key_size\na,GET,5,1,1\nb,SET,6,1,1\n".to_vec(),
            "a !b",
            &[5, 6],
        ),
        ("a.csv", b"a,5\nb,6\n".to_vec(), "a b", &[5, 6]),
        ("a.keys", b"a\nb\na\n".to_vec(), "a b a", &[100, 100]),
        ("a.keys.xz", xz(), "a b a", &[100, 100]),
        ("a.csv", b"1,a,999999999\n1,b,5\n".to_vec(), "b", &[5]),
    ] {
        let read = read(name, &bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(read, (words(requests), lengths.to_vec()), "{name}");
    }
}

/// CacheLib's traces say how often a row is repeated.
#[test]
fn rows_are_repeated_by_their_op_count() {
    let text = "key,op,size,op_count,key_size\na,GET,100,3,1\nb,SET,200,1,1\nc,GET,5,0,1\nd,GET,6,,1\n";
    let (requests, lengths) = read("kv.csv", text.as_bytes()).unwrap();
    assert_eq!(requests, ["a", "a", "a", "!b", "d"]);
    assert_eq!(lengths, [100, 200, 6]);
    let message = read("kv.csv", b"key,op,size,op_count\na,GET,100,often\n").unwrap_err();
    assert!(message.contains("line 2: its op_count is not a number"), "{message}");
    // No more than requested, however often.
    let (_directory, path) = file("kv.csv", b"key,op,size,op_count\na,GET,100,18446744073709551615\n");
    assert_eq!(Trace::read(&path, None, Some(1000)).unwrap().requests.len(), 1000);
}

#[test]
fn ignores_a_byte_order_mark_before_a_trace() {
    assert_eq!(read("a.keys", "\u{feff}a\nb\n".as_bytes()).unwrap().0, ["a", "b"]);
    assert_eq!(read("a.csv", "\u{feff}key,size\na,5\n".as_bytes()).unwrap().0, ["a"]);
}

#[test]
fn rejects_monitor_output_as_a_list_of_keys() {
    let line = "1339518083.107412 [0 127.0.0.1:60866] \"get\" \"user:1\"\n";
    for text in [line.to_owned(), format!("OK\n{line}")] {
        let message = read("monitor.txt", text.as_bytes()).unwrap_err();
        assert!(
            message.contains("MONITOR") && message.contains("extract the keys first"),
            "{message}"
        );
    }
    let (keys, _) = read("a.keys", b"1339518083.107412 [0\n[0 x] \"y\n").unwrap();
    assert_eq!(keys.len(), 2);
}

#[test]
fn reports_invalid_traces_in_one_line() {
    let packed = zstd::encode_all(&oracle(&[(7, 100, -1); 1000])[..], 1).unwrap();
    for (name, bytes, parts) in [
        ("a.bin", b"x".to_vec(), &["trace-format", "oracle"][..]),
        ("a.lis", Vec::new(), &["a.lis", "no request"]),
        ("a.lis", b"5 2 0 1\nfive\n".to_vec(), &["line 2", "five", "(arc)"]),
        ("a.lis", b"5 99999999999 0 1\n".to_vec(), &["line 1", "blocks"]),
        ("a.lis", b"18446744073709551615 -1".to_vec(), &["line 1"]),
        ("a.csv", b"1,2,3,4\n".to_vec(), &["line 1", "key"]),
        ("a.csv", b"1,x,10\n2,y\n".to_vec(), &["line 2", "size"]),
        ("a.csv", b"1,x,-1\n".to_vec(), &["line 1", "size"]),
        ("a.csv", b"1,,10\n".to_vec(), &["line 1", "key of 0 bytes"]),
        ("a.csv", b"time,key,size\n".to_vec(), &["no request"]),
        ("a.keys", vec![b'a'; 2000], &["line 1", "key of 2000 bytes"]),
        ("a.keys", vec![b'a'; 200_000], &["line 1", "longer than"]),
        (
            "a.oracleGeneral",
            oracle(&[(7, 100, -1)])[..23].to_vec(),
            &["23 bytes are left at its end"],
        ),
        ("a.oracleGeneral", vec![0xff; 47], &["left at its end"]),
        ("a.oracleGeneral", vec![0x80; 48], &["record 1", "next request"]),
        (
            "a.oracleGeneral.zst",
            packed[..packed.len() - 5].to_vec(),
            &["a.oracleGeneral.zst", "(oracle)"],
        ),
        ("a.lis.gz", gzip(b"5 2 0 1\n")[..15].to_vec(), &["a.lis.gz"]),
        ("a.keys.xz", xz()[..40].to_vec(), &["a.keys.xz"]),
        ("a.lis", b"PK\x03\x04 and so on".to_vec(), &["zip"]),
    ] {
        let error = read(name, &bytes).unwrap_err();
        for part in parts {
            assert!(error.contains(part), "{name}: no `{part}` in {error}");
        }
        assert_eq!(error.lines().count(), 1, "{name}: {error}");
    }
    assert!(
        Trace::read("/no/such.lis".as_ref(), None, None)
            .unwrap_err()
            .to_string()
            .contains("no such file")
    );
    let directory = tempfile::tempdir().unwrap();
    let refused = Trace::read(directory.path(), Some(TraceFormat::Csv), None);
    assert!(refused.unwrap_err().to_string().contains("directory"));
}

#[test]
fn any_bytes_are_a_trace_or_an_error() {
    let mut seed = 1;
    for name in ["a.oracleGeneral", "a.lis", "a.csv", "a.keys", "a.csv.zst"] {
        for len in [1, 7, 24, 100, 1000] {
            let bytes: Vec<u8> = (0..len)
                .map(|_| {
                    seed = mix(seed);
                    b"0123456789,\n \x00\xff\x28\xb5\x2f\xfdkey"[(seed % 22) as usize]
                })
                .collect();
            let _ = read(name, &bytes);
        }
    }
}

fn options(work: Work) -> Options {
    Options {
        memory_bytes: 4 << 20,
        ..Options::new(work)
    }
}

/// Every value matches its expectation, and no other version's.
fn checked(workload: &Workload) {
    let (mut key, mut value) = (Vec::new(), Vec::new());
    let mut keys = std::collections::HashSet::new();
    let mut bytes = 0;
    for id in 0..workload.keys() {
        workload.key(id, &mut key);
        assert!(keys.insert(key.clone()), "key {id} twice");
        for version in [1, 0] {
            workload.fill(id, version, &mut value);
            assert!(workload.holds(id, version, &value) && value.len() <= workload.longest_value());
        }
        bytes += key.len() + value.len();
        value.push(0);
        assert!(!workload.holds(id, 0, &value), "a byte too many");
    }
    let mean = bytes as f64 / workload.keys() as f64;
    let expected = workload.record_bytes();
    assert!(
        (mean / expected - 1.0).abs() < 0.2,
        "{expected} bytes per record, but {mean} in fact"
    );
}

#[test]
fn the_papers_objects_are_half_zeros() {
    let workload = crate::cache::fixtures::paper_workload(2000);
    assert_eq!((workload.keys(), workload.record_bytes()), (2000, 80.0));
    checked(&workload);
    let mut value = Vec::new();
    workload.fill(5, 3, &mut value);
    assert_eq!(
        (value.len(), value.iter().filter(|byte| **byte == 0).count() >= 32),
        (64, true)
    );
    assert!(!workload.holds(5, 2, &value) && !workload.holds(6, 3, &value));
}

#[test]
fn the_papers_objects_have_the_configured_lengths_and_zeros() {
    let workload = Workload::load(&Options {
        working_set_bytes: Some(40 << 20),
        ..Options::new(Work::Paper(PaperObjects {
            value_bytes: vec![64, 256, 2000],
            incompressible_pct: 30.0,
        }))
    })
    .unwrap();
    checked(&workload);
    let (mut value, mut bytes) = (Vec::new(), [0_u64; 3]);
    for id in 0..workload.keys() {
        workload.fill(id, 1, &mut value);
        let (random, kind) = match value.len() {
            64 => (19, 0),
            256 => (77, 1),
            2000 => (600, 2),
            other => panic!("{other}"),
        };
        assert_eq!(
            (workload.kind(id), workload.value_bytes(id)),
            (kind, value.len() as u64)
        );
        assert!(value[random..].iter().all(|byte| *byte == 0) && value[..random].iter().any(|byte| *byte != 0));
        bytes[kind] += 16 + value.len() as u64;
    }
    let total: u64 = bytes.iter().sum();
    assert!(
        bytes
            .iter()
            .all(|part| (*part as f64 / total as f64 - 1.0 / 3.0).abs() < 0.02),
        "{bytes:?}"
    );
    assert!((total as f64 / (40 << 20) as f64 - 1.0).abs() < 0.02, "{total}");
    // A value that differs in a zero, or in length, is another.
    workload.fill(7, 0, &mut value);
    assert!(workload.holds(7, 0, &value));
    let last = value.len() - 1;
    value[last] = 1;
    assert!(!workload.holds(7, 0, &value) && !workload.holds(7, 0, &value[..last]));
}

#[test]
fn few_random_bytes_distinguish_values() {
    let workload = Workload::load(&Options {
        working_set_bytes: Some(1 << 20),
        ..Options::new(Work::Paper(PaperObjects {
            value_bytes: vec![32],
            incompressible_pct: 0.0,
        }))
    })
    .unwrap();
    let mut value = Vec::new();
    workload.fill(5, 0, &mut value);
    assert!(value[8..].iter().all(|byte| *byte == 0) && !workload.holds(5, 1, &value) && !workload.holds(6, 0, &value));
}

#[test]
fn records_are_the_datas_own_and_then_again_under_other_keys() {
    let text: String = (0..50)
        .map(|at| format!("key{at}\tvalue {at} {}\n", "x".repeat(at)))
        .collect();
    let (_directory, path) = file("a.tsv", text.as_bytes());
    let work = Work::Records {
        data: Source::Path(path),
        format: RecordFormat::Tsv,
    };
    let record_bytes = Workload::load(&options(work.clone())).unwrap().record_bytes();
    for (times, keys) in [(0.5, 25), (1.0, 50), (3.0, 150)] {
        let workload = Workload::load(&Options {
            working_set_bytes: Some((record_bytes * 50.0 * times) as u64 + 1),
            ..options(work.clone())
        })
        .unwrap();
        assert_eq!(workload.keys(), keys);
        checked(&workload);
        assert_eq!(
            workload.description[0].contains("repeated"),
            times > 1.0,
            "{:?}",
            workload.description
        );
        let (mut key, mut value) = (Vec::new(), Vec::new());
        workload.key(3, &mut key);
        workload.fill(3, 0, &mut value);
        let (key, value) = (String::from_utf8(key).unwrap(), String::from_utf8(value).unwrap());
        assert!(text.contains(&format!("{key}\t{value}\n")), "{key} {value}");
    }
}

#[test]
fn keys_that_copies_would_take_are_refused() {
    let (_directory, path) = file("a.tsv", b"a\tx\na#1\ty\n");
    let refused = Workload::load(&options(Work::Records {
        data: Source::Path(path),
        format: RecordFormat::Tsv,
    }));
    let error = refused.err().unwrap().to_string();
    assert!(error.contains("working-set") && error.contains("a#1"), "{error}");
}

#[test]
fn values_are_cut_out_of_data() {
    let work = Work::Values {
        data: Source::Synthetic(0.5),
        cut: Cut::Fixed(100),
    };
    let workload = Workload::load(&Options {
        working_set_bytes: Some(116 * 500),
        ..options(work)
    })
    .unwrap();
    assert_eq!((workload.keys(), workload.record_bytes()), (500, 116.0));
    checked(&workload);
}

#[test]
fn a_trace_is_gone_through_in_its_order_and_again() {
    let requests: Vec<_> = (0..100)
        .map(|at: u64| (at % 7, 10 * (at % 7) as u32 + 3000, -1))
        .collect();
    let (_directory, path) = file("a.oracleGeneral", &oracle(&requests));
    let work = |requests| Work::Trace {
        path: path.clone(),
        format: None,
        requests,
        data: Source::Synthetic(0.5),
        records: None,
    };
    let workload = Workload::load(&options(work(None))).unwrap();
    assert_eq!((workload.keys(), workload.trace_requests()), (7, Some(100)));
    checked(&workload);
    let (mut rng, mut place) = (Xoshiro256PlusPlus::seed_from_u64(1), Place::new(0));
    for round in 0..2 {
        for at in 0..100 {
            // Keys have their numbers by when they came first.
            assert_eq!(workload.next(&mut rng, &mut place).id, at % 7, "{round}");
        }
    }
    let workload = Workload::load(&options(work(Some(5)))).unwrap();
    assert_eq!((workload.keys(), workload.trace_requests()), (5, Some(5)));
    assert_eq!(
        (0..5).map(|at| workload.in_filling_order(at)).collect::<Vec<_>>(),
        [0, 1, 2, 3, 4]
    );
}

#[test]
fn a_working_set_of_too_many_keys_is_refused() {
    let refused = Workload::load(&Options {
        working_set_bytes: Some(crate::cache::MAX_WORKING_SET_BYTES),
        ..options(Work::Paper(PaperObjects::default()))
    });
    assert!(refused.err().unwrap().to_string().contains("working-set"));
}

#[test]
fn values_of_a_cachebench_file_are_made_of_data() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/cache/workload/cachebench/small/config.json");
    let work = |scale| Work::CacheBench {
        path: path.clone(),
        scale,
        data: Source::Synthetic(0.5),
        records: None,
    };
    let workload = Workload::load(&options(work(0.02))).unwrap();
    assert_eq!((workload.keys(), workload.trace_requests()), (2020, None));
    checked(&workload);
    assert!(workload.unused.iter().any(|field| field == "test_config.opDelayNs"));
    let all: std::collections::HashSet<_> = (0..2020).map(|at| workload.in_filling_order(at)).collect();
    assert_eq!(all.len(), 2020);
    // A key that is requested once has a value too.
    let (mut rng, mut place) = (Xoshiro256PlusPlus::seed_from_u64(1), Place::new(3));
    let lone = std::iter::repeat_with(|| workload.next(&mut rng, &mut place)).find(|request| request.is_lone);
    let (id, mut value) = (lone.unwrap().id, Vec::new());
    workload.fill(id, 0, &mut value);
    assert!(workload.holds(id, 0, &value) && !workload.holds(id ^ 1, 0, &value));
    assert!(Workload::load(&options(work(2.0))).is_err());
}
