use clap::Parser;
use leafpress_console::usage;
use leafpress_lab::bench::{Input, Operation, Pin, ValueSource};

use super::*;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: BenchArgs,
}

fn parse(line: &str) -> Result<Plan, Failure> {
    let words = std::iter::once("bench").chain(line.split_whitespace());
    let command = Command::try_parse_from(words).map_err(|e| usage::failure(&e, "bench"))?;
    command.args.plan()
}

fn one(line: &str) -> Options {
    match parse(line) {
        Ok(Plan::One(options)) => *options,
        other => panic!("{line}: {other:?}"),
    }
}

fn several(line: &str) -> Vec<Options> {
    match parse(line) {
        Ok(Plan::Several(runs)) => runs,
        other => panic!("{line}: {other:?}"),
    }
}

#[track_caller]
fn refused(line: &str, words: &[&str]) {
    let Err(Failure::BadInput(message)) = parse(line) else {
        panic!("{line} is taken")
    };
    for word in words {
        assert!(message.contains(word), "{line}: no `{word}` in: {message}");
    }
}

#[test]
fn defaults_are_pibenchs() {
    assert_eq!(one("btreemap"), Options::new("btreemap".parse().unwrap()));
    assert_eq!(one("--input btreemap"), one("btreemap"));
}

/// PiBench's short options and both spellings of its long ones mean the same.
#[test]
fn every_option_of_pibench_is_read() {
    let short =
        one("./x.so -n 7 -p 9 -t 3 -f user -k 12 -v 16 -r 0.4 -i 0.3 -u 0.1 -d 0.1 -s 0.1 -m time -c 2 -x 3 -g 1");
    let long = one(
        "./x.so --records 7 --operations 9 --threads 3 --key_prefix user --key_size 12 --value_size 16 --read_ratio \
                    0.4 --insert_ratio 0.3 --update_ratio 0.1 --remove_ratio 0.1 --scan_ratio 0.1 --mode time \
                    --protocol 2 --clock 3 --garbage_collector 1",
    );
    let hyphens = one(
        "./x.so --records=7 --operations=9 --threads=3 --key-prefix=user --key-size=12 --value-size=16 \
                       --read-ratio=0.4 --insert-ratio=0.3 --update-ratio=0.1 --remove-ratio=0.1 --scan-ratio=0.1 \
                       --mode=TIME --protocol=2 --clock=3 --garbage-collector=1",
    );
    assert_eq!(short, long);
    assert_eq!(short, hyphens);
    assert_eq!((short.records, short.operations, short.threads), (7, 9, 3));
    assert_eq!(
        (short.key_prefix.as_str(), short.key_size, short.value_size),
        ("user", 12, 16)
    );
    assert_eq!(short.ratios.of(Operation::Remove), 0.1);
    assert_eq!((short.mode, short.seconds), (Mode::Time, 20.0));
    assert_eq!(
        (short.protocol, short.clock, short.garbage_collector),
        (Some(2), Some(3), Some(1))
    );
    assert_eq!(short.input, Input::Library("./x.so".into()));
    let rest = "--scan_size 5 --sampling_ms 10 --distribution ZIPFIAN --skew 0.9 --seed 4 --seconds 3 --pool_path \
                /pool --pool_size 99K --latency_sampling 0.5";
    let underscores = one(&format!("dummy {rest}"));
    let hyphens = one(&format!(
        "dummy {}",
        rest.replace("_s", "-s").replace("_m", "-m").replace("_p", "-p")
    ));
    assert_eq!(underscores, hyphens);
    assert_eq!(
        (underscores.scan_size, underscores.sampling_ms, underscores.seed),
        (5, 10, 4)
    );
    assert_eq!(
        (underscores.law, underscores.skew, underscores.latency_sampling),
        (Law::Zipfian, 0.9, 0.5)
    );
    assert_eq!(
        (underscores.pool_path.to_str(), underscores.pool_size),
        (Some("/pool"), 99 << 10)
    );
}

#[test]
fn switches_take_a_value_or_none() {
    for (line, pcm, skip_load) in [
        ("dummy", true, false),
        ("dummy --pcm --skip_load", true, true),
        ("--pcm --skip_load dummy", true, true),
        ("dummy --pcm=false --skip_load=true", false, true),
        ("dummy --pcm=true --skip-load=false", true, false),
    ] {
        let options = one(line);
        assert_eq!((options.hardware, options.skip_load), (pcm, skip_load), "{line}");
    }
}

#[test]
fn reports_ratios_that_do_not_sum_to_one() {
    refused(
        "dummy -i 0.5",
        &["--read_ratio", "sum to 1.5", "read_ratio is 1 unless given"],
    );
    refused("dummy -r 0.5", &["sum to 0.5"]);
    assert_eq!(one("dummy -r 0.99 -i 0.01").ratios.sum(), 1.0);
    one("dummy -r 0.3333333 -u 0.3333333 -d 0.3333333");
}

/// Elsewhere `-d` is the length of a run.
#[test]
fn reports_seconds_passed_as_d() {
    for line in [
        "leafpress -m time -d 1",
        "--compare leafpress:none btreemap --ycsb C -m time -d 1",
        "leafpress -d 20",
    ] {
        refused(line, &["-d is the share of removes", "--seconds"]);
    }
    for line in ["leafpress -r 0.5", "leafpress -m time --seconds 1 -d 0.5"] {
        let error = parse(line).unwrap_err();
        assert!(!format!("{error:?}").contains("-d is"), "{line}");
    }
}

#[test]
fn ycsb_sets_mix_and_key_choice() {
    let a = one("leafpress --ycsb A");
    assert_eq!(
        (a.ratios.read, a.ratios.update, a.law, a.skew),
        (0.5, 0.5, Law::Zipfian, 0.99)
    );
    let d = one("leafpress --ycsb d");
    assert_eq!((d.ratios.insert, d.law, d.skew), (0.05, Law::Latest, 0.99));
    let e = one("leafpress --ycsb E --scan_size 10 --distribution UNIFORM");
    assert!(e.scan_size_varies && e.scan_size == 10 && e.law == Law::Uniform);
    refused("leafpress --ycsb A -u 0.5", &["--ycsb", "omit the ratios"]);
    refused("leafpress --ycsb G", &["--ycsb", "A B C D E F"]);
    assert_eq!(several("leafpress --ycsb A..C").len(), 3);
    let runs = several("--compare leafpress:none btreemap --ycsb A,C --value_size 100");
    let names: Vec<_> = runs
        .iter()
        .map(|run| format!("{} {}", run.workload(), run.input))
        .collect();
    assert_eq!(
        names,
        [
            "YCSB A leafpress:none",
            "YCSB A btreemap",
            "YCSB C leafpress:none",
            "YCSB C btreemap"
        ]
    );
}

#[test]
fn key_choice_has_its_own_defaults() {
    assert_eq!(one("dummy --distribution ZIPFIAN").skew, 0.2);
    assert_eq!(one("dummy --distribution latest").skew, 0.99);
    assert_eq!(one("dummy --distribution latest --skew 0.5").skew, 0.5);
    assert_eq!(one("dummy --ycsb A --distribution selfsimilar").skew, 0.2);
    assert_eq!(one("dummy --distribution hotset --hotset 5,95").hotset, (5.0, 95.0));
    refused("dummy --hotset 5,95", &["--hotset", "--distribution hotset"]);
    refused("dummy --distribution hotset --hotset 5", &["--hotset", "20,80"]);
    refused("dummy --distribution normal", &["--distribution", "SELFSIMILAR"]);
    refused("dummy --distribution ZIPFIAN --skew inf", &["--skew", "at least 0"]);
}

#[test]
fn what_is_ours_is_read() {
    let options = one(
        "leafpress:zstd:1 --rate 5000 --value_source compressible:0.5 --warmup 1.5 --pin spread --repeat 3 --tree \
         shards=2",
    );
    assert_eq!(
        (options.rate, options.warmup_seconds, options.repeat),
        (Some(5000.0), 1.5, 3)
    );
    assert_eq!(
        (options.value_source, options.pin),
        (ValueSource::Compressible(0.5), Pin::Spread)
    );
    assert_eq!(options.tree.to_string(), "shards=2");
    refused(
        "leafpress --value_source zeros",
        &["--value_source", "compressible:ETA"],
    );
    refused("leafpress --pin near", &["--pin", "compact spread none"]);
    refused("leafpress --tree shards=0", &["--tree", "shards"]);
    refused("leafpress --rate -1", &["--rate", "greater than 0"]);
}

#[test]
fn reports_invalid_inputs() {
    refused("", &["INPUT", "--compare"]);
    refused("bplustree", &["INPUT", "bplustree", "skiplist", ".so"]);
    refused("leafpress:brotli", &["INPUT", "brotli", "zstd"]);
    refused("--compare btreemap btreemap", &["--compare", "twice"]);
    refused("hashmap -r 0.5 -s 0.5", &["--scan_ratio", "unordered"]);
    refused("dummy -m time --seconds 0", &["--seconds", "time mode needs a length"]);
}

#[test]
fn reports_options_without_effect() {
    for (line, words) in [
        ("leafpress --seconds 3", "--seconds"),
        ("leafpress --rate 100", "--rate"),
        ("btreemap --tree shards=2", "--tree"),
        ("leafpress --tree shards=2", ""),
        ("--compare btreemap leafpress --tree shards=2", ""),
        ("leafpress --mode time --seconds 3 --rate 100 --latency_sampling 1", ""),
    ] {
        let words_of_line = std::iter::once("bench").chain(line.split_whitespace());
        let args = Command::try_parse_from(words_of_line).unwrap().args;
        let plan = args.plan().unwrap();
        let runs: Vec<&Options> = match &plan {
            Plan::One(options) => vec![options],
            Plan::Several(runs) => runs.iter().collect(),
        };
        let notes = args.notes(&runs);
        assert_eq!(notes.len(), usize::from(!words.is_empty()), "{line}: {notes:?}");
        assert!(notes.iter().all(|note| note.contains(words)), "{line}: {notes:?}");
    }
}
