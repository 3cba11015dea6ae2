//! How environment and flags make a configuration.

use std::collections::HashMap;
use std::ffi::OsString;

use clap::Parser;
use leafpress::codec::{JobCache, StreamCache};
use leafpress::tree::TemperatureRule;
use leafpress_console::usage;
use leafpress_lab::core::corpus::{Cut, Source};
use leafpress_lab::core::keys::{Distribution, KeyShape, LoadOrder};
use leafpress_lab::eval::LandingBytes;
use leafpress_lab::{EvalConfig, LabError, Workload};

use super::args::EvalArgs;
use super::environment::VARIABLES;
use super::settings::Settings;
use crate::failure::Failure;

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    args: EvalArgs,
}

fn resolve(variables: &[(&str, &str)], flags: &[&str]) -> Result<Settings, Failure> {
    let variables: HashMap<String, OsString> = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).into()))
        .collect();
    for name in variables.keys() {
        assert!(VARIABLES.contains(&name.as_str()), "{name} is not looked at");
    }
    let words = || std::iter::once("eval").chain(flags.iter().copied());
    let command = Command::try_parse_from(words()).map_err(|e| usage::failure(&e, "eval"))?;
    Settings::resolve(
        &command.args,
        &|name| variables.get(name).cloned(),
        words().map(OsString::from),
    )
}

#[track_caller]
fn config(variables: &[(&str, &str)], flags: &[&str]) -> EvalConfig {
    resolve(variables, flags).unwrap_or_else(|e| panic!("{e:?}")).config
}

#[track_caller]
fn message(variables: &[(&str, &str)], flags: &[&str]) -> String {
    match resolve(variables, flags) {
        Err(Failure::BadInput(message)) => message,
        other => panic!("not bad input: {other:?}"),
    }
}

#[test]
fn without_arguments_the_defaults_apply() {
    let defaults = EvalConfig {
        command_line: Some("leafpress".into()),
        ..EvalConfig::default()
    };
    assert_eq!(config(&[], &[]), defaults);
    // An empty variable is an unset one.
    let empty: Vec<(&str, &str)> = VARIABLES.iter().map(|name| (*name, "")).collect();
    assert_eq!(
        EvalConfig {
            command_line: None,
            ..config(&empty, &[])
        },
        EvalConfig::default()
    );
}

/// A default that the help names is what the flag's absence means.
#[test]
fn the_help_states_the_defaults() {
    use clap::CommandFactory;

    let mut stated = 0;
    for argument in Command::command().get_arguments() {
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let default = help.split_once("[default: ").and_then(|(_, rest)| rest.split_once(']'));
        // A default described in words cannot be passed as a value.
        let Some((word, _)) = default.filter(|(word, _)| !word.contains([' ', '_'])) else {
            continue;
        };
        let flag = format!("--{}", argument.get_long().expect("a flag"));
        let set = config(&[], &[&flag, word]);
        let unset = config(&[], &[]);
        assert_eq!(
            EvalConfig {
                command_line: None,
                ..set
            },
            EvalConfig {
                command_line: None,
                ..unset
            },
            "{flag} {word}"
        );
        stated += 1;
    }
    assert!(stated > 15, "{stated}");
}

#[test]
fn every_flag_sets_its_option() {
    let set = config(
        &[],
        &[
            "--data",
            "synthetic:0.25",
            "--raw",
            "--cut",
            "lines",
            "--codecs",
            "none,lz4",
            "--workloads",
            "scan crud",
            "--threads",
            "1",
            "2,4",
            "--seconds",
            "0.5",
            "--warmup-seconds",
            "0.25",
            "--keys",
            "1000",
            "--value-bytes",
            "64",
            "--key-bytes",
            "16",
            "--key-shape",
            "scattered",
            "--key-order",
            "random",
            "--shards",
            "2",
            "--shard-by",
            "range",
            "--landing-bytes",
            "0,512",
            "--leaf-bytes",
            "8192",
            "--frame-bytes",
            "1",
            "--layout",
            "hashed:8",
            "--dictionary",
            "off",
            "--dictionary-bytes",
            "4096",
            "--background",
            "off,on",
            "--background-threads",
            "2",
            "--landing-compaction-pct",
            "50",
            "--background-codec",
            "lz4",
            "--job-cache",
            "none",
            "--stream-cache",
            "none",
            "--latency-samples-per-thread",
            "4096",
            "--iaa",
            "--iaa-codecs",
            "qpl",
            "--qpl-dynamic",
            "off",
            "--zlib-accel",
            "--zlib-accel-so",
            "/x/libzlib_accel.so",
            "--zlib-accel-codecs",
            "zlib:6",
            "--distribution",
            "zipfian:0.5",
            "--seed",
            "7",
            "--shift-at",
            "5000",
            "--temperature",
            "deviation:2",
            "--scan-records",
            "10",
            "--reads-per-call",
            "4",
            "--measure-latency",
            "off",
            "--collect-cpu",
            "off",
        ],
    );
    let expected = EvalConfig {
        data: Source::Synthetic(0.25),
        cut: Some(Cut::Lines),
        raw: true,
        records: None,
        codecs: vec!["none".into(), "lz4".into()],
        workloads: vec![Workload::Scan, Workload::Crud],
        threads: vec![1, 2, 4],
        seconds: 0.5,
        warmup_seconds: 0.25,
        keys: 1000,
        value_bytes: 64,
        key_shape: KeyShape::Scattered,
        key_bytes: 16,
        load_order: LoadOrder::Random,
        distribution: Distribution::Zipfian { theta: 0.5 },
        shift_at: 5000,
        scan_records: 10,
        reads_per_call: 4,
        shards: 2,
        shard_by_range: true,
        landing_bytes: [0, 512].map(LandingBytes::Fixed).to_vec(),
        background: vec![false, true],
        background_threads: 2,
        landing_compaction_pct: 50,
        background_codec: Some("lz4".into()),
        job_cache: JobCache::None,
        stream_cache: StreamCache::None,
        measure_latency: false,
        latency_samples_per_thread: 4096,
        collect_cpu: false,
        iaa: true,
        iaa_codecs: vec!["qpl".into()],
        qpl_dynamic: false,
        zlib_accel: true,
        zlib_accel_so: Some("/x/libzlib_accel.so".into()),
        zlib_accel_codecs: vec!["zlib:6".into()],
        leaf_bytes: Some(8192),
        frame_bytes: Some(1),
        hashed_sub_pages: Some(8),
        dictionary: false,
        dictionary_bytes: Some(4096),
        temperature: TemperatureRule::Deviation { factor: 2.0 },
        seed: 7,
        command_line: None,
    };
    assert_eq!(
        EvalConfig {
            command_line: None,
            ..set
        },
        expected
    );
}

#[test]
fn the_documents_sprint_sweep_sets_its_options() {
    let set = config(
        &[
            ("RUN_IAA", "1"),
            ("RUN_ZLIB_ACCEL", "1"),
            ("RUN_BG_SWEEP", "1"),
            ("ZLIB_ACCEL_SO", "/x/libzlib_accel.so"),
            ("THREADS_LIST", "8 32"),
            ("LANDING_LIST", "512 1024 2048"),
            ("BTREE_DURATION_SEC", "5"),
            ("BTREE_KEY_SPACE", "50000"),
            ("BTREE_USE_SILESIA", "1"),
            ("BTREE_VALUE_BYTES", "128"),
            ("BTREE_SHARDS", "8"),
            ("BTREE_BG_CODEC", "qpl"),
            ("BTREE_BG_THREADS", "1"),
            ("BTREE_BG_LANDING_HIGH_WATERMARK_PCT", "75"),
            ("COLLECT_CPU", "1"),
            ("BTREE_QPL_JOB_CACHE", "thread"),
            ("BTREE_ZLIB_STREAM_CACHE", "thread"),
            ("BTREE_MEASURE_LATENCY", "1"),
            ("BTREE_LATENCY_SAMPLES_PER_THREAD", "4096"),
        ],
        &[],
    );
    let expected = EvalConfig {
        threads: vec![8, 32],
        landing_bytes: [512, 1024, 2048].map(LandingBytes::Fixed).to_vec(),
        background: vec![false, true],
        background_codec: Some("qpl".into()),
        latency_samples_per_thread: 4096,
        shards: 8,
        iaa: true,
        zlib_accel: true,
        zlib_accel_so: Some("/x/libzlib_accel.so".into()),
        ..EvalConfig::default()
    };
    assert_eq!(
        EvalConfig {
            command_line: None,
            ..set
        },
        expected
    );
}

#[test]
fn the_documents_single_runs_set_their_options() {
    for (path, mode) in [("software", "fixed"), ("hardware", "dynamic")] {
        let set = config(
            &[
                ("BTREE_CODEC_FILTER", "qpl"),
                ("BTREE_QPL_PATH", path),
                ("BTREE_QPL_MODE", mode),
                ("BTREE_THREADS", "32"),
                ("BTREE_DURATION_SEC", "10"),
                ("BTREE_LANDING_BUFFER_BYTES", "1024"),
                ("BTREE_BG_COMPACTION", "1"),
                ("BTREE_USE_SILESIA", "0"),
            ],
            &[],
        );
        assert_eq!(set.codecs, [format!("qpl:{path}:{mode}")]);
        assert_eq!((set.threads.as_slice(), set.seconds), ([32].as_slice(), 10.0));
        assert_eq!(
            (set.landing_bytes.as_slice(), set.background.as_slice()),
            ([LandingBytes::Fixed(1024)].as_slice(), [true].as_slice())
        );
        assert!(matches!(set.data, Source::Synthetic(_)));
    }
    assert_eq!(
        config(&[("BTREE_CODEC_FILTER", "zlib_accel")], &[]).codecs,
        ["zlib_accel"]
    );
    assert_eq!(config(&[("SOFTWARE_CODECS", "lz4 qpl")], &[]).codecs, ["lz4", "qpl"]);
    assert!(!config(&[("RUN_IAA", "1"), ("RUN_QPL_DYNAMIC", "0")], &[]).qpl_dynamic);
    assert_eq!(
        config(&[("BTREE_BG_CODEC", "zlib_accel")], &[])
            .background_codec
            .as_deref(),
        Some("zlib")
    );
    assert_eq!(config(&[("BTREE_BG_CODEC", "all")], &[]).background_codec, None);
    assert_eq!(
        config(&[("RUN_BG_SWEEP", "1"), ("BG_SWEEP_VALUES", "1")], &[]).background,
        [true]
    );
    assert_eq!(
        config(&[("RUN_BG_SWEEP", "0"), ("BG_SWEEP_VALUES", "0 1")], &[]).background,
        [false]
    );
}

#[test]
fn lists_win_over_single_values_and_flags_over_both() {
    let variables = [
        ("THREADS_LIST", "4 8"),
        ("BTREE_THREADS", "2"),
        ("LANDING_LIST", "0"),
        ("BTREE_LANDING_BUFFER_BYTES", "9"),
    ];
    let set = config(&variables, &[]);
    assert_eq!(
        (set.threads.as_slice(), set.landing_bytes.as_slice()),
        ([4, 8].as_slice(), [LandingBytes::Fixed(0)].as_slice())
    );
    assert_eq!(config(&variables, &["--threads", "3"]).threads, [3]);
    assert_eq!(
        config(&[("SOFTWARE_CODECS", "lz4")], &["--codecs", "none"]).codecs,
        ["none"]
    );
    assert_eq!(
        config(&[("BTREE_QPL_MODE", "dynamic")], &["--codecs", "qpl"]).codecs,
        ["qpl:software:dynamic"]
    );
}

#[test]
fn a_shim_on_the_command_line_is_a_wish_to_run_it() {
    assert!(config(&[], &["--zlib-accel-so", "/x.so"]).zlib_accel);
    assert!(!config(&[("ZLIB_ACCEL_SO", "/x.so")], &[]).zlib_accel);
}

#[test]
fn invalid_variables_are_named() {
    for (name, value) in [
        ("THREADS_LIST", "4 x"),
        ("BTREE_THREADS", "-1"),
        ("BTREE_DURATION_SEC", "long"),
        ("BTREE_KEY_SPACE", "5e4"),
        ("BTREE_USE_SILESIA", "maybe"),
        ("BTREE_VALUE_BYTES", "128B"),
        ("BTREE_SHARDS", "8x"),
        ("BTREE_LANDING_BUFFER_BYTES", "512k"),
        ("LANDING_LIST", ","),
        ("BTREE_BG_COMPACTION", "2"),
        ("BTREE_BG_THREADS", "one"),
        ("BTREE_BG_LANDING_HIGH_WATERMARK_PCT", "300"),
        ("BTREE_QPL_JOB_CACHE", "shared"),
        ("BTREE_QPL_PATH", "fast"),
        ("BTREE_QPL_MODE", "static"),
        ("BTREE_ZLIB_STREAM_CACHE", "global"),
        ("BTREE_MEASURE_LATENCY", "x"),
        ("BTREE_LATENCY_SAMPLES_PER_THREAD", "all"),
        ("RUN_IAA", "x"),
        ("RUN_QPL_DYNAMIC", "x"),
        ("RUN_ZLIB_ACCEL", "x"),
        ("RUN_BG_SWEEP", "x"),
        ("BG_SWEEP_VALUES", "0 2"),
        ("COLLECT_CPU", "x"),
    ] {
        let message = message(&[(name, value)], &[]);
        assert!(message.starts_with(name), "{message}");
        assert!(message.len() > name.len() + 10, "says why: {message}");
    }
}

#[test]
fn bounds_are_reported_by_the_variable_or_flag_that_set_them() {
    let zero = LabError::Option {
        option: "threads",
        reason: "0 is not between 1 and 1024".into(),
    };
    let by = |variables: &[(&str, &str)], flags: &[&str]| match resolve(variables, flags)
        .expect("resolves")
        .failure(&zero)
    {
        Failure::BadInput(message) => message,
        other => panic!("{other:?}"),
    };
    assert!(by(&[("THREADS_LIST", "0")], &[]).starts_with("THREADS_LIST: 0"));
    assert!(by(&[("THREADS_LIST", "1")], &["--threads", "0"]).starts_with("--threads: 0"));
}

#[test]
fn flags_that_cannot_be_read_are_named() {
    for flags in [
        ["--threads", "two"],
        ["--workloads", "read_some"],
        ["--cut", "words"],
        ["--layout", "hashed:0"],
        ["--dictionary", "perhaps"],
        ["--shard-by", "size"],
        ["--background", "sometimes"],
        ["--job-cache", "x"],
        ["--stream-cache", "x"],
        ["--distribution", "pareto"],
        ["--temperature", "warm"],
        ["--temperature", "costs:2000"],
        ["--load-order", "backwards"],
        ["--landing-bytes", ","],
        ["--measure-latency", "x"],
        ["--data", "synthetic:2"],
    ] {
        let message = message(&[], &flags);
        assert!(message.starts_with(flags[0]), "{message}");
        assert!(!message.contains("temperature_rule"), "the library's word: {message}");
    }
}

#[test]
fn the_reproduction_has_variables_and_flags() {
    let set = config(&[("THREADS_LIST", "1 2")], &["--data", "it's here.txt"]);
    assert_eq!(
        set.command_line.as_deref(),
        Some(r"THREADS_LIST='1 2' leafpress --data 'it'\''s here.txt'")
    );
}

#[test]
fn notes_an_absent_silesia_corpus_unless_data_is_set() {
    let variables = [("BTREE_USE_SILESIA", "1")];
    let notes = resolve(&variables, &[]).expect("resolves").notes;
    assert!(
        notes.len() == 1 && notes[0].contains("SilesiaCorpus/samba.zip"),
        "{notes:?}"
    );
    assert!(
        resolve(&variables, &["--data", "unicode"])
            .expect("resolves")
            .notes
            .is_empty()
    );
}

#[test]
fn the_document_has_every_variable_and_every_flag() {
    use clap::CommandFactory;

    let document = include_str!("../../../../docs/commands/eval.md");
    for name in VARIABLES {
        assert!(
            document.contains(&format!("`{name}`")),
            "docs/commands/eval.md does not name {name}"
        );
    }
    for argument in Command::command().get_arguments() {
        let flag = format!("`--{}", argument.get_long().unwrap_or("help"));
        assert!(
            flag == "`--help" || document.contains(&flag),
            "docs/commands/eval.md does not name {flag}"
        );
    }
}
