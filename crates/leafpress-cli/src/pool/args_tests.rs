use clap::Parser;
use leafpress_console::usage;
use leafpress_lab::pool::{StoreKind, Warmup};
use leafpress_pages::pool::PolicyKind;

use super::*;

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    pool: PoolArgs,
}

#[track_caller]
fn parsed(words: &str) -> PoolArgs {
    try_parsed(words).unwrap_or_else(|e| panic!("{e:?}"))
}

fn try_parsed(words: &str) -> Result<PoolArgs, Failure> {
    let words = ["pool"].into_iter().chain(words.split_whitespace());
    let command = Command::try_parse_from(words).map_err(|e| usage::failure(&e, "pool"))?;
    Ok(command.pool)
}

/// The runs, without a look at the data.
#[track_caller]
fn runs(words: &str) -> Vec<Options> {
    parsed(words).runs().unwrap_or_else(|e| panic!("{words}: {e}"))
}

#[track_caller]
fn one(words: &str) -> Options {
    let mut runs = runs(words);
    assert_eq!(runs.len(), 1, "{words}");
    runs.remove(0)
}

/// What is refused by a run's own checks, in a line that begins with the option.
#[track_caller]
fn refused(words: &str, option: &str, more: &[&str]) {
    let runs = try_parsed(words).and_then(|args| args.runs().map_err(|e| failure(&e)));
    let result = runs.and_then(|runs| runs.iter().try_for_each(Options::validate).map_err(|e| failure(&e)));
    let Err(Failure::BadInput(message)) = result else {
        panic!("{words}: not bad input");
    };
    assert!(message.starts_with(option), "{words}: {message}");
    for word in more {
        assert!(message.contains(word), "{words}: no `{word}` in {message}");
    }
}

#[test]
fn the_defaults_are_tyches() {
    let options = one("");
    assert_eq!(options, Options::new(Source::Sample("packages".into())));
    assert_eq!(
        (options.budget_bytes, options.seconds, options.round_pages),
        (10 << 20, 5.0, (5, 5))
    );
    assert_eq!(options.share, RawShare::Adaptive);
    assert_eq!(options.distribution, Distribution::Uniform);
}

#[test]
fn tyches_letters_mean_what_they_mean_there() {
    let options = one("-p /data/pages -b 100M -n 5000 -m 500M -c zstd:3 -d 30 -w 8 -f 60 -B 20,80 -M 1,20 -U 5 -D 0.5");
    assert_eq!(options.data, Source::Path("/data/pages".into()));
    assert_eq!((options.max_bytes, options.max_pages), (Some(100 << 20), Some(5000)));
    assert_eq!(options.budget_bytes, 500 << 20);
    assert_eq!(options.codec, Codec::Zstd { level: 3 });
    assert_eq!((options.seconds, options.workers), (30.0, 8));
    assert_eq!(options.share, RawShare::Fixed { raw_percent: 60 });
    assert_eq!(options.distribution.to_string(), "hotset:20:80");
    assert_eq!(options.round_pages, (1, 20));
    assert_eq!((options.update_pct, options.delete_pct), (5.0, 0.5));
    assert_eq!(one("-C").codec, Codec::None);
    assert_eq!(
        one("-m 10000000").budget_bytes,
        10_000_000,
        "bytes without a unit, as Tyche has them"
    );
    for codec in ["lz4", "zlib", "zstd"] {
        one(&format!("-c {codec}"));
    }
    assert_eq!(parsed("-q").talk(), Talk::Quiet);
    assert_eq!(
        (parsed("").talk(), parsed("-v").talk(), parsed("-vv").talk()),
        (Talk::Bar, Talk::Seconds, Talk::Samples)
    );
}

#[test]
fn long_names_are_the_same() {
    let short = one("-p a.db -b 1M -n 9 -m 2M -c lz4 -d 3 -w 4 -f 10 -B 10,90 -M 2,3 -U 1 -D 2");
    let long = "--data a.db --bytes 1M --pages 9 --memory 2M --codec lz4 --duration 3 --workers 4 --fixed 10 --bias \
                10,90 --round 2,3 --updates 1 --deletes 2";
    assert_eq!(one(long), short);
}

#[test]
fn ours_beyond_tyche() {
    let options = one(
        "--page-bytes 4K --raw --store memory --device-latency-us 110 --policy s3-fifo --promote-after-hits 3 \
         --background-threads 2 --distribution self-similar:0.1 --switch-at 2 --warmup 7 --verify 8 --seed 5 --scratch \
         /var/tmp",
    );
    assert_eq!(
        (options.page_bytes, options.raw, options.store),
        (4096, true, Some(StoreKind::Memory))
    );
    assert_eq!(options.device_latency_us, 110);
    assert_eq!(options.policy, PolicyKind::S3Fifo);
    assert_eq!(
        (options.promote_after_hits, options.background_threads),
        (Some(3), Some(2))
    );
    assert_eq!(options.distribution, Distribution::SelfSimilar { h: 0.1 });
    assert_eq!(
        (options.switch_at_seconds, options.warmup),
        (Some(2.0), Warmup::Seconds(7.0))
    );
    assert_eq!((options.verify, options.seed), (Verify::OneIn(8), 5));
    assert_eq!(options.scratch, Some("/var/tmp".into()));
}

#[test]
fn everything_is_compared_when_something_is_written() {
    assert_eq!(one("").verify, Verify::OneIn(64));
    assert_eq!(one("-U 1").verify, Verify::OneIn(1));
    assert_eq!(one("-D 1").verify, Verify::OneIn(1));
    assert_eq!(one("-U 1 --verify off").verify, Verify::Off);
}

#[test]
fn a_sweep_is_a_run_for_each_share_and_codec_and_the_adaptive_ones() {
    let runs = runs("--sweep-share 0,50,90 -c lz4,none,zstd:1");
    let names: Vec<_> = runs.iter().map(leafpress_lab::pool::text::name).collect();
    assert_eq!(
        names,
        [
            "lz4 0%",
            "lz4 50%",
            "lz4 90%",
            "lz4 adaptive",
            "none",
            "zstd:1 0%",
            "zstd:1 50%",
            "zstd:1 90%",
            "zstd:1 adaptive",
        ]
    );
    assert_eq!(self::runs("-c lz4,zstd").len(), 2, "codecs in turn, without a sweep");
}

#[test]
fn reports_values_that_cannot_work_by_their_option() {
    refused("-B 120,5", "--bias: `120,5`", &["20,80"]);
    refused("-f 101", "--fixed: ", &["between 0 and 100"]);
    refused("-m 1K", "--memory: 1K", &["64K"]);
    refused("-c brotli", "--codecs: ", &["brotli", "lz4", "zstd"]);
    refused("-c ,", "--codecs: ", &["empty"]);
    refused("-c lz4,lz4", "--codecs: ", &["twice"]);
    refused("-M 9,2", "--round: ", &["9,2"]);
    refused("-U 200", "--updates: ", &["100"]);
    refused("-D -3", "--deletes: ", &["-3"]);
    refused("-d 0", "--seconds: ", &[]);
    refused("-w 0", "--workers: ", &["1024"]);
    refused("-b 0", "--bytes: ", &[]);
    refused("--page-bytes 100", "--page-bytes: ", &["512"]);
    refused("--store disk", "--store: ", &["file dir memory"]);
    refused("--policy random", "--policy: ", &["clock, lru or s3-fifo"]);
    refused("--distribution normal", "--distribution: ", &["zipfian"]);
    refused("--warmup soon", "--warmup: ", &["full"]);
    refused("--check some", "--check: ", &["all"]);
    refused("--sweep-share 0,200", "--sweep-share: ", &["0,10,..,90"]);
    refused("--device-us 99999999", "--device-us: ", &[]);
    refused("--switch-at 1", "--switch-at: ", &["uniform"]);
    refused("--promote-after-hits 64", "--promote-after-hits: ", &["63"]);
}

#[test]
fn what_contradicts_itself_is_refused() {
    for words in [
        "-C -c lz4",
        "-f 50 --sweep-share 0,10",
        "-C --sweep-share 0,10",
        "-B 20,80 --distribution zipfian",
        "-q -v",
        "-m many",
        "-f -1",
        "-f x",
    ] {
        let words = ["pool"].into_iter().chain(words.split_whitespace());
        assert!(
            Command::try_parse_from(words.clone()).is_err(),
            "{:?}",
            words.collect::<Vec<_>>()
        );
    }
}
