use clap::Parser;
use leafpress_lab::core::keys::Distribution;

use super::*;

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    advise: AdviseArgs,
}

pub(in crate::advise) fn parsed(words: &str) -> Result<AdviseArgs, clap::Error> {
    let words = ["advise"].into_iter().chain(words.split_whitespace());
    Command::try_parse_from(words).map(|command| command.advise)
}

#[track_caller]
fn options(words: &str) -> Options {
    let args = parsed(words).unwrap_or_else(|e| panic!("{e}"));
    args.options(None).unwrap_or_else(|e| panic!("{words}: {e}"))
}

#[track_caller]
fn refused(words: &str, expected: &[&str]) {
    let message = match parsed(words) {
        Err(e) => e.to_string(),
        Ok(args) => match args.verify().map(drop).and_then(|()| args.options(None)) {
            Err(e) => e.to_string(),
            Ok(options) => panic!("{words}: {options:?}"),
        },
    };
    for word in expected {
        assert!(message.contains(word), "{words}: no `{word}` in {message}");
    }
}

#[test]
fn unset_options_have_defaults() {
    let options = options("sample --device /mnt");
    assert_eq!(options.device, DeviceSource::Probe("/mnt".into()));
    assert_eq!((options.data_bytes, options.memory_bytes), (None, None));
    assert_eq!(
        (options.access_bytes, options.block_bytes, options.workers),
        (8192, None, 1)
    );
    assert!(!options.access_is_given && !options.quick && options.prices.is_none());
    assert!(matches!(
        options.access,
        Access::Distribution(Distribution::HotSet { .. })
    ));
}

#[test]
fn parses_sizes_and_distributions() {
    let options =
        options("a b --device-us 110 --memory 15GB --data 200GiB --access hotset:10:90 -c lz4,zstd:3 --page-bytes 16K");
    assert_eq!(
        (options.memory_bytes, options.data_bytes),
        (Some(15_000_000_000), Some(200 << 30))
    );
    assert_eq!((options.access_bytes, options.block_bytes), (16384, Some(vec![16384])));
    assert_eq!(options.codecs.map(|codecs| codecs.len()), Some(2));
    assert!(options.access_is_given);
    assert_eq!(options.device, DeviceSource::Latency(110.0));
}

#[test]
fn verifying_takes_codecs_or_none() {
    let verify = |words: &str| parsed(words).ok().and_then(|args| args.verify().ok()).flatten();
    assert_eq!(verify("a --device-us 110"), None);
    let best = verify("a --device-us 110 --verify").unwrap();
    assert_eq!((best.codecs.len(), best.shares), (0, vec![0, 30, 60, 90]));
    let named = verify("a --device-us 110 --verify=lz4,zstd:1 --verify-shares 0,50 --verify-seconds 1").unwrap();
    assert_eq!((named.codecs.len(), named.shares, named.seconds), (2, vec![0, 50], 1.0));
}

#[test]
fn reports_arguments_out_of_bounds() {
    refused("a", &["--device"]);
    refused("--device-us 110", &["SAMPLE"]);
    refused("a --device-us -1", &["device-us", "-1"]);
    refused("a --device-us 0", &["device-us"]);
    refused("a --device-us nan", &["device-us"]);
    refused("a --device-us 1 --device /mnt", &["cannot be used with"]);
    refused("a --device-us 1 --memory -15GB", &["invalid size `-15GB`"]);
    refused("a --device-us 1 --data .", &["`.` is a path", "leafpress advise ."]);
    refused("a --device-us 1 --memory 15XB", &["invalid size `15XB`"]);
    refused("a --device-us 1 --memory 1K", &["memory", "1024"]);
    refused("a --device-us 1 --data 99999999T", &["99999999T"]);
    refused("a --device-us 1 --data 2000000T", &["data", "2^60"]);
    refused("a --device-us 1 --data 1K", &["data", "1024"]);
    refused("a --device-us 1 --access-bytes 0", &["bytes", "0"]);
    refused("a --device-us 1 --block-bytes 12K", &["block-bytes", "12K", "8K"]);
    refused(
        "a --device-us 1 --block-bytes 8K --page-bytes 8K",
        &["cannot be used with"],
    );
    refused("a --device /mnt --page-bytes 1000", &["512"]);
    refused("a --device-us 1 --access zip", &["access", "zip"]);
    refused("a --device-us 1 --access hotset:0:80", &["access"]);
    refused("a --device-us 1 --access zipfian:0", &["access"]);
    refused("a --device-us 1 --codecs lz5", &["codecs", "lz5"]);
    refused("a --device-us 1 --workers 0", &["workers"]);
    refused("a --device-us 1 --hit-us -1", &["hit-us"]);
    refused("a --device-us 1 --background-pct 101", &["background-pct"]);
    refused(
        "a --device-us 1 --verify --verify-shares 0,200",
        &["verify-shares", "200"],
    );
    refused("a --device-us 1 --verify --verify-seconds 0", &["verify-seconds"]);
    refused("a --device-us 1 --verify=lz5", &["verify", "lz5"]);
    refused("a --device-us 1 --access trace:x --verify", &["verify", "trace"]);
    refused("a --device-us 1 --tco --cores 4", &["core-cost"]);
    refused("a --device-us 1 --cores 4", &["--tco"]);
}
