use clap::Parser;
use leafpress_console::usage;

use super::*;

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    suite: SuiteArgs,
}

fn request(words: &str) -> Result<Request, Failure> {
    let words = ["suite"].into_iter().chain(words.split_whitespace());
    let command = Command::try_parse_from(words).map_err(|e| usage::failure(&e, "suite"))?;
    command.suite.request()
}

#[track_caller]
fn options(words: &str) -> Options {
    match request(words) {
        Ok(Request::Files(options)) => options,
        other => panic!("{words}: {other:?}"),
    }
}

#[track_caller]
fn of_records(words: &str) -> records::Options {
    match request(words) {
        Ok(Request::Records(options)) => options,
        other => panic!("{words}: {other:?}"),
    }
}

#[track_caller]
fn refused(words: &str, expected: &[&str]) {
    let Err(Failure::BadInput(message)) = request(words) else {
        panic!("{words}: not bad input");
    };
    for word in expected {
        assert!(message.contains(word), "{words}: no `{word}` in {message}");
    }
}

#[test]
fn the_defaults_are_the_thesis() {
    let options = options("a b");
    assert_eq!(options.paths, [PathBuf::from("a"), PathBuf::from("b")]);
    assert!(options.codecs.is_none() && options.block_bytes.is_none());
    assert_eq!((options.passes, options.max_bytes, options.raw), (3, None, false));
    assert_eq!(options.threads[0], 1);
}

#[test]
fn lists_are_read() {
    let options = options("a -c lz4,zstd:3 -b 4K,12288,1KB -t 1,3 -n 7 --max-bytes 1MB --max-file-bytes 64K");
    let codecs: Vec<_> = options.codecs.iter().flatten().map(Codec::to_string).collect();
    assert_eq!(codecs, ["lz4", "zstd:3"]);
    assert_eq!(options.block_bytes, Some(vec![4096, 12288, 1000]));
    assert_eq!((options.threads, options.passes), (vec![1, 3], 7));
    assert_eq!(
        (options.max_bytes, options.max_file_bytes),
        (Some(1_000_000), Some(65536))
    );
}

#[test]
fn quick_is_one_pass_of_a_sample_by_default() {
    let quick = options("a --quick");
    assert_eq!((quick.passes, quick.max_bytes), (1, Some(QUICK_BYTES)));
    let explicit = options("a --quick -n 2 --max-bytes 1G");
    assert_eq!((explicit.passes, explicit.max_bytes), (2, Some(1 << 30)));
}

#[test]
fn reports_arguments_out_of_bounds() {
    refused("a -c lz5", &["--codecs", "lz5", "zstd"]);
    refused("a -c ,", &["--codecs", "empty"]);
    refused("a -c lz4,lz4", &["--codecs", "lz4", "twice"]);
    refused("a -b 4X", &["--block-bytes", "invalid size `4X`"]);
    refused("a -b 0", &["--block-bytes", "0", "64"]);
    refused("a -b 17M", &["--block-bytes", "17M", "16M"]);
    refused("a -b 4K,4096", &["--block-bytes", "4K", "twice"]);
    refused("a -t 0", &["--threads", "0", "1024"]);
    refused("a -t 1,x", &["--threads", "`x`", "1,4,8"]);
    refused("a -t 2000", &["--threads", "2000"]);
    refused("a -n 0", &["--passes", "0"]);
}

#[test]
fn records_have_options_of_their_own() {
    let defaults = of_records("a --records jsonl:/id");
    assert_eq!(
        (defaults.path, defaults.records.to_string()),
        ("a".into(), "jsonl:/id".to_owned())
    );
    assert_eq!(
        (defaults.frame_bytes, defaults.dictionary_bytes),
        (vec![4096, 16384], 32768)
    );
    assert_eq!(
        (defaults.threads, defaults.passes, defaults.max_bytes),
        (vec![1], 3, None)
    );
    let explicit = of_records("a --records tsv -b 8K --dictionary-bytes 0 -t 2 --quick -c lz4");
    assert_eq!(
        (explicit.frame_bytes, explicit.dictionary_bytes, explicit.threads),
        (vec![8192], 0, vec![2])
    );
    assert_eq!((explicit.passes, explicit.max_bytes), (1, Some(QUICK_BYTES)));
    refused("a b --records tsv", &["--records", "2 PATHs", "directory"]);
    refused("a --records json", &["--records", "json", "jsonl:/POINTER"]);
    refused("a --records tsv --raw", &["--raw", "omit it with --records"]);
    refused(
        "a --records tsv --max-file-bytes 1M",
        &["--max-file-bytes", "--max-bytes"],
    );
    refused(
        "a --records tsv --dictionary-bytes 2M",
        &["--dictionary-bytes", "1M", "0 for none"],
    );
    refused("a --dictionary-bytes 4K", &["--dictionary-bytes", "--records"]);
}
