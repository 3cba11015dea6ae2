use std::io::Write;

use super::*;

fn file(directory: &tempfile::TempDir, name: &str, bytes: &[u8]) -> Source {
    let path = directory.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    Source::Path(path)
}

fn values(corpus: &Corpus) -> Vec<&[u8]> {
    (0..corpus.count()).map(|index| corpus.get(index)).collect()
}

fn load(source: &Source, cut: Cut) -> Result<Corpus, LabError> {
    Corpus::load(source, cut, false, 1)
}

fn message(result: Result<Corpus, LabError>) -> String {
    let message = result.unwrap_err().to_string();
    assert!(!message.contains('\n'), "one line: {message}");
    message
}

fn zipped(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

#[test]
fn fixed_cuts_drop_the_rest_of_each_part() {
    let corpus = Corpus::from_parts(
        "x",
        vec![b"abcdefg".to_vec(), b"hi".to_vec(), b"jklm".to_vec()],
        Cut::Fixed(3),
    );
    let corpus = corpus.unwrap();
    assert_eq!(values(&corpus), [b"abc", b"def", b"jkl"]);
    assert_eq!((corpus.longest(), corpus.total_bytes()), (3, 9));
}

#[test]
fn lines_skip_empty_ones_and_do_not_join_files() {
    let corpus = Corpus::from_parts("x", vec![b"one\n\ntwo".to_vec(), b"three\n".to_vec()], Cut::Lines).unwrap();
    assert_eq!(values(&corpus), [b"one".as_slice(), b"two", b"three"]);
    assert_eq!((corpus.longest(), corpus.total_bytes()), (5, 11));
}

#[test]
fn length_prefixed_records_keep_empty_ones() {
    let corpus = Corpus::from_parts(
        "x",
        vec![b"\x02\0\0\0hi\0\0\0\0\x01\0\0\0!".to_vec()],
        Cut::LengthPrefixed,
    )
    .unwrap();
    assert_eq!(values(&corpus), [b"hi".as_slice(), b"", b"!"]);
}

#[test]
fn reports_broken_length_prefixes() {
    let cut = |bytes: &[u8]| message(Corpus::from_parts("x", vec![bytes.to_vec()], Cut::LengthPrefixed));
    assert!(cut(b"\x02\0\0\0hi\x01\0").contains("byte 6"));
    assert!(cut(b"\x09\0\0\0hi").contains("9 bytes, but only 2 are left"));
    assert!(cut(b"\xff\xff\xff\xffhi").contains("only 2 are left"));
}

#[test]
fn reports_a_record_past_the_limit() {
    let long = vec![b'x'; leafpress::tree::MAX_VALUE_BYTES + 1];
    let reported = message(Corpus::from_parts("x", vec![long], Cut::Lines));
    assert!(
        reported.contains("67108865 bytes, more than the limit of 67108864"),
        "{reported}"
    );
}

#[test]
fn archives_are_opened_unless_raw() {
    let directory = tempfile::tempdir().unwrap();
    let plain = b"alpha\nbeta\n".as_slice();
    let zip = zipped(&[("a", b"alpha\n"), ("dir/b", b"beta\n")]);
    for (name, bytes) in [
        ("plain.txt", plain.to_vec()),
        ("packed.zip", zip),
        ("packed.gz", gzipped(plain)),
        ("two-members.gz", [gzipped(b"alpha\n"), gzipped(b"beta\n")].concat()),
        ("packed.zst", zstd::encode_all(plain, 1).unwrap()),
    ] {
        let source = file(&directory, name, &bytes);
        assert_eq!(
            values(&load(&source, Cut::Lines).unwrap()),
            [b"alpha".as_slice(), b"beta"],
            "{name}"
        );
        let raw = Corpus::load(&source, Cut::Fixed(bytes.len()), true, 1).unwrap();
        assert_eq!(values(&raw), [bytes.as_slice()], "{name} raw");
    }
}

#[test]
fn a_directory_is_read_in_path_order() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("b")).unwrap();
    for (name, text) in [("c", "3"), ("b/z", "2"), ("a.gz", "")] {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    std::fs::write(directory.path().join("a.gz"), gzipped(b"1\n")).unwrap();
    let corpus = load(&Source::Path(directory.path().into()), Cut::Lines).unwrap();
    assert_eq!(values(&corpus), [b"1", b"2", b"3"]);
}

/// An archive next to its extracted files: the same bytes count once, and that is reported.
#[test]
fn what_is_packed_and_unpacked_too_is_taken_once() {
    let directory = tempfile::tempdir().unwrap();
    file(
        &directory,
        "a.zip",
        &zipped(&[
            ("one", b"1\talpha\n"),
            ("deep/two", b"2\tbeta\n"),
            ("three", b"3\tgamm3\n"),
        ]),
    );
    // Named otherwise than in the archive, and of the same length as another member.
    file(&directory, "b", b"1\talpha\n");
    file(&directory, "c", b"4\tgamma\n");
    file(&directory, "c.gz", &gzipped(b"4\tgamma\n"));
    file(
        &directory,
        "d.zst",
        &zstd::encode_all(b"5\tdelta\n".as_slice(), 1).unwrap(),
    );
    file(&directory, "d", b"6\tdelto\n");
    let source = Source::Path(directory.path().into());
    let corpus = load(&source, Cut::Lines).unwrap();
    assert_eq!(
        values(&corpus),
        [
            b"2\tbeta".as_slice(),
            b"3\tgamm3",
            b"1\talpha",
            b"4\tgamma",
            b"6\tdelto",
            b"5\tdelta"
        ]
    );
    let reported = corpus.sampled().unwrap();
    assert_eq!(
        reported.to_string(),
        "without 2 packed files of 16B that are also present unpacked"
    );
    let raw = Corpus::load(&source, Cut::Fixed(1), true, 1).unwrap();
    assert!(raw.sampled().is_none(), "an archive's own bytes are there once");
    let records = Records::load(&source, &"tsv".parse().unwrap()).unwrap();
    assert_eq!((records.census.records, records.census.duplicates), (6, 0));
    let reported = records.census.left_out().unwrap();
    assert_eq!(
        reported,
        "skipped: 2 packed files of 16B that are also present unpacked"
    );
}

#[test]
fn reports_bad_sources_in_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let cut = Cut::Fixed(4);
    assert!(message(load(&Source::Path(directory.path().join("absent")), cut)).contains("no such file"));
    assert!(message(load(&Source::Path(directory.path().into()), cut)).contains("no files"));
    assert!(message(load(&file(&directory, "empty", b""), cut)).contains("empty"));
    assert!(message(load(&file(&directory, "short", b"abc"), cut)).contains("less than one value of 4 bytes"));
    assert!(message(load(&file(&directory, "newlines", b"\n\n\n"), Cut::Lines)).contains("no record"));
    for (name, mut bytes) in [
        ("bad.zip", zipped(&[("a", &[7; 999])])),
        ("bad.gz", gzipped(&[7; 9999])),
        ("bad.zst", zstd::encode_all([7; 9999].as_slice(), 1).unwrap()),
    ] {
        bytes.truncate(bytes.len() - 5);
        assert!(
            message(load(&file(&directory, name, &bytes), cut)).contains("unreadable"),
            "{name}"
        );
    }
    assert!(message(load(&Source::Sample("nonesuch".into()), cut)).contains("not a bundled sample"));
}

#[test]
fn synthetic_values_are_as_compressible_as_configured() {
    for eta in [0.0, 0.25, 0.5, 0.9, 1.0] {
        let corpus = load(&Source::Synthetic(eta), Cut::Fixed(1000)).unwrap();
        let sample: Vec<u8> = (0..50).flat_map(|index| corpus.get(index)).copied().collect();
        let packed = zstd::encode_all(sample.as_slice(), 3).unwrap().len() as f64 / sample.len() as f64;
        assert!((packed - (1.0 - eta)).abs() < 0.03, "eta {eta}: packed to {packed:.3}");
    }
    let first = |seed| {
        Corpus::load(&Source::Synthetic(0.5), Cut::Fixed(100), false, seed)
            .unwrap()
            .get(0)
            .to_vec()
    };
    assert_eq!(first(1), first(1));
    assert_ne!(first(1), first(2));
    assert!(message(load(&Source::Synthetic(0.5), Cut::Lines)).contains("fixed:N"));
}

/// To open a pipe is to wait for its writer, and a second reader would wait for ever.
#[test]
fn a_pipe_is_refused_before_it_is_opened() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for path in [pipe, directory.path().to_owned()] {
        let reported = message(load(&Source::Path(path), Cut::Fixed(4)));
        assert!(
            reported.contains("is a pipe") && reported.contains("save it to a file first")
                || reported.contains("no files"),
            "{reported}"
        );
    }
}

/// Compressed data looks like incompressible data, so it is opened or rejected.
#[test]
fn compressed_files_are_opened_or_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    for (name, bytes, kind) in [
        ("a.bz2", b"BZh91AY&SY....".as_slice(), "a bzip2 file"),
        ("a.lz4", b"\x04\x22\x4d\x18........", "an lz4 file"),
        ("a.7z", b"7z\xbc\xaf\x27\x1c......", "a 7z archive"),
        ("a.rar", b"Rar!\x1a\x07\x01\x00...", "a RAR archive"),
        ("a.parquet", b"PAR1............PAR1", "a Parquet file"),
    ] {
        let source = file(&directory, name, bytes);
        let reported = message(load(&source, Cut::Fixed(4)));
        assert!(
            reported.contains(kind) && reported.contains("unpack it first"),
            "{reported}"
        );
        let raw = Corpus::load(&source, Cut::Fixed(4), true, 1).unwrap();
        assert_eq!(raw.get(0), &bytes[..4], "its own bytes can be requested");
    }
    let xz = include_str!("../../cache/workload/three_keys.xz.hex").trim().as_bytes();
    let digits = xz.chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    let xz: Vec<u8> = digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect();
    let corpus = load(&file(&directory, "a.xz", &xz), Cut::Lines).unwrap();
    assert_eq!((corpus.count(), corpus.get(1)), (3, b"b".as_slice()));
}

/// Of a sparse file nothing is read: it would be hours, and gigabytes of memory.
#[test]
fn what_is_too_long_to_be_read_whole_is_refused_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let source = file(&directory, "long.jsonl", b"{\"id\":1}\n");
    let Source::Path(path) = &source else { panic!("a path") };
    let long = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    long.set_len(40 << 30).unwrap();
    let format = "jsonl:/id".parse().unwrap();
    let reported = Records::load(&source, &format).unwrap_err().to_string();
    assert!(reported.contains("its 40G exceed the limit of"), "{reported}");
}

/// They are a part of the program, whatever the working directory has.
#[test]
fn samples_are_in_the_program() {
    if std::env::var_os("LEAFPRESS_DATA").is_some() {
        println!("skipped: LEAFPRESS_DATA names others");
        return;
    }
    assert_eq!(sample_names(), ["characters", "licences", "packages", "unicode"]);
    for (name, lines) in [("licences", 4582), ("unicode", 34_924)] {
        let corpus = load(&Source::Sample(name.into()), Cut::Lines).unwrap();
        assert!(
            corpus.count() <= lines && corpus.count() > lines / 2,
            "{name}: {}",
            corpus.count()
        );
        let raw = Corpus::load(&Source::Sample(name.into()), Cut::Fixed(2), true, 1).unwrap();
        assert_eq!(raw.get(0), b"\x1f\x8b", "{name}");
    }
}

/// Of /dev/zero a sample would be taken for ever.
#[test]
fn a_device_without_an_end_is_refused() {
    let device = Source::Path("/dev/zero".into());
    let error = Corpus::load_at_most(&device, Cut::Fixed(100), false, 1, 1 << 20);
    assert!(message(error).contains("/dev/zero: is a character device"));
}

#[test]
fn names_parse() {
    assert_eq!("synthetic:0.5".parse::<Source>().unwrap(), Source::Synthetic(0.5));
    assert_eq!("nci".parse::<Source>().unwrap(), Source::Sample("nci".into()));
    assert_eq!("./nci".parse::<Source>().unwrap(), Source::Path("./nci".into()));
    assert_eq!("nci.zip".parse::<Source>().unwrap(), Source::Path("nci.zip".into()));
    for bad in ["", "synthetic:2", "synthetic:x", "synthetic:NaN"] {
        assert!(bad.parse::<Source>().is_err(), "{bad}");
    }
    for cut in ["fixed:128", "lines", "length-prefixed"] {
        assert_eq!(cut.parse::<Cut>().unwrap().to_string(), cut);
    }
    for bad in ["fixed:0", "fixed:x", "fixed", "words", "fixed:999999999"] {
        assert!(
            bad.parse::<Cut>().unwrap_err().to_string().starts_with("cut: "),
            "{bad}"
        );
    }
}
