use std::path::Path;

use clap::Parser;
use leafpress_lab::cache::{MrcOptions, PaperObjects, Sampling};
use leafpress_lab::core::keys::Distribution;
use leafpress_lab::papers::cache::{Figure, FigureOptions};

use super::*;
use crate::usage;

#[derive(Debug, Parser)]
struct Program {
    #[command(flatten)]
    args: CacheArgs,
}

fn options(words: &str) -> Result<Options, Failure> {
    let words = std::iter::once("cache").chain(words.split_whitespace());
    let program = Program::try_parse_from(words).map_err(|e| usage::failure(&e, "cache"))?;
    let options = program.args.options(Path::new("out"))?;
    options.validate().map_err(|e| failure(&e))?;
    Ok(options)
}

#[test]
fn without_arguments_the_papers_objects_are_used() {
    for words in ["", "--paper"] {
        let options = options(words).unwrap();
        assert_eq!(options, Options::new(Work::Paper(PaperObjects::default())), "{words}");
        assert_eq!(options.distribution(), Distribution::HOT_SET);
        assert_eq!(options.working_set_bytes(), 512 << 20);
    }
}

#[test]
fn work_is_what_is_named() {
    let work = |words: &str| options(words).unwrap().work;
    let packages = || Source::Sample("packages".into());
    let stanzas = || RecordFormat::Stanzas("Package".into());
    assert_eq!(
        work("--data synthetic:0.5 --cut fixed:64"),
        Work::Values {
            data: Source::Synthetic(0.5),
            cut: Cut::Fixed(64),
        }
    );
    assert_eq!(
        work("--records stanzas:Package"),
        Work::Records {
            data: packages(),
            format: stanzas(),
        }
    );
    let trace = |data, records| Work::Trace {
        path: "a.lis".into(),
        format: None,
        requests: None,
        data,
        records,
    };
    assert_eq!(work("--trace a.lis"), trace(packages(), Some(stanzas())));
    assert_eq!(
        work("--trace a.lis --data synthetic:0.5"),
        trace(Source::Synthetic(0.5), None)
    );
}

#[test]
fn figures_reach_the_options() {
    let all = options(
        "--engines leafpress:lz4,moka+zstd:3 quick_cache -m 32M --working-set 1G --distribution zipf:0.9 --writes 5 \
         --ttl 60 -t 1 --warmup 10 --operations 20 --backend-us 500 --seed 7",
    )
    .unwrap();
    let engines: Vec<_> = all.engines.iter().map(ToString::to_string).collect();
    assert_eq!(engines, ["leafpress:lz4", "moka+zstd:3", "quick_cache"]);
    assert_eq!((all.memory_bytes, all.working_set_bytes), (32 << 20, Some(1 << 30)));
    assert_eq!(all.distribution, Some(Distribution::Zipfian { theta: 0.9 }));
    assert_eq!((all.write_pct, all.ttl_seconds, all.threads), (5.0, Some(60), 1));
    assert_eq!(
        (all.warmup_operations, all.length),
        (Some(10), Some(Length::Operations(20)))
    );
    assert_eq!((all.backend_us, all.seed), (500.0, 7));
}

#[test]
fn the_papers_objects_may_have_other_lengths_and_zeros() {
    let all = options("--paper --value-bytes 64,256 2K --incompressible 30 --shift-at 100 --load").unwrap();
    let objects = PaperObjects {
        value_bytes: vec![64, 256, 2048],
        incompressible_pct: 30.0,
    };
    assert_eq!(
        (all.work, all.shift_at, all.load),
        (Work::Paper(objects), Some(100), true)
    );
}

fn figure(words: &str) -> Result<Option<FigureOptions>, Failure> {
    let words = std::iter::once("cache").chain(words.split_whitespace());
    let program = Program::try_parse_from(words).map_err(|e| usage::failure(&e, "cache"))?;
    program.args.figure(Path::new("out"))
}

#[test]
fn a_figure_of_the_paper_has_its_own_options() {
    assert_eq!(figure("--paper").unwrap(), None);
    assert_eq!(figure("--paper -m 32M").unwrap(), None);
    let default = FigureOptions {
        disk_path: "out/cache.disk".into(),
        ..FigureOptions::new(Figure::Fig8)
    };
    assert_eq!(figure("--paper fig8").unwrap(), Some(default));
    let all = figure(
        "--paper fig16 -m 32M --scale 0.5 --engines leafpress,moka --disk-path d -t 1 --warmup 10 --seconds 2 \
         --backend-us 5 --seed 7",
    );
    let expected = FigureOptions {
        figure: Figure::Fig16,
        engines: Some(["leafpress", "moka"].map(|engine| engine.parse().unwrap()).to_vec()),
        memory_bytes: 32 << 20,
        scale: 0.5,
        disk_path: "d".into(),
        threads: 1,
        warmup_operations: Some(10),
        length: Some(Length::Seconds(2.0)),
        backend_us: 5.0,
        seed: 7,
    };
    assert_eq!(all.unwrap(), Some(expected));
}

#[test]
fn what_does_not_go_with_a_figure_is_refused_by_its_name() {
    for (words, part) in [
        ("--paper fig1", "fig16"),
        ("--paper fig8 --data packages", "--data"),
        ("--paper fig8 --trace a.lis", "--trace"),
        ("--paper fig8 --cachebench a.json", "--cachebench"),
        ("--paper fig8 --working-set 1G", "--working-set: fig8 defines it"),
        ("--paper fig8 --distribution uniform", "--distribution: fig8 defines it"),
        ("--paper fig16 --value-bytes 64", "--value-bytes: fig16 defines it"),
        (
            "--paper fig14 --incompressible 50",
            "--incompressible: fig14 defines it",
        ),
        ("--paper fig13 --shift-at 5", "--shift-at: fig13 defines it"),
        ("--paper fig8 --load", "--load: fig8 defines it"),
        ("--paper fig8 --writes 5", "--writes: fig8 defines it"),
        ("--paper fig8 --disk 1G", "--disk: fig8 defines it"),
        ("--paper fig8 --ttl 5", "--ttl: the paper's figures have none"),
        ("--paper fig8 --rate 5", "--rate: the paper's figures have none"),
        ("--paper fig8 --mrc", "--mrc: the paper's figures have none"),
        ("--paper fig8 --engines redis", "--engines"),
        ("--paper fig8 --engines moka --disk-path d", "--disk-path"),
    ] {
        let Err(Failure::BadInput(message)) = figure(words) else {
            panic!("{words} is taken");
        };
        assert!(message.contains(part), "{words}: no `{part}` in {message}");
    }
}

/// A CacheBench file in a directory of its own: `config.json` in it.
fn cachebench(cache: &str) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config.json");
    let text = format!(
        r#"{{ "cache_config": {{ {cache} }}, "test_config": {{
            "numKeys": 1000, "numOps": 500, "numThreads": 3, "getRatio": 1, "enableLookaside": true,
            "keySizeRange": [8, 16], "keySizeRangeProbability": [1],
            "valSizeRange": [10, 20], "valSizeRangeProbability": [1] }} }}"#
    );
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (directory, path)
}

#[test]
fn a_cachebench_file_sets_what_arguments_leave_unset() {
    let (_directory, path) = cachebench(r#""cacheSizeMB": 80, "nvmCacheSizeMB": 160"#);
    let figures = |words: &str| {
        let options = options(&format!("--cachebench {path} {words}")).unwrap();
        let disk = options.disk.map(|disk| disk.bytes >> 20);
        (options.memory_bytes >> 20, disk, options.threads, options.length)
    };
    let operations = |count| Some(Length::Operations(count));
    assert_eq!(figures(""), (80, Some(160), 3, operations(1500)));
    assert_eq!(figures("--scale 0.5"), (40, Some(80), 3, operations(750)));
    assert_eq!(
        figures("-m 16M --disk 32M -t 1 --operations 7"),
        (16, Some(32), 1, operations(7))
    );
    assert_eq!(
        figures("--disk 0 --seconds 2"),
        (80, None, 3, Some(Length::Seconds(2.0)))
    );
    // Caches without a disk tier ignore the file's disk.
    assert_eq!(figures("--engines moka").1, None);
    let work = options(&format!("--cachebench {path} --data synthetic:0.5 --rate 1000")).unwrap();
    assert_eq!(work.rate, Some(1000.0));
    assert_eq!(
        work.work,
        Work::CacheBench {
            path: path.clone().into(),
            scale: 1.0,
            data: Source::Synthetic(0.5),
            records: None,
        }
    );
    let (_directory, path) = cachebench("");
    assert_eq!(options(&format!("--cachebench {path}")).unwrap().memory_bytes, 64 << 20);
}

#[test]
fn a_cachebench_file_does_not_go_with_everything() {
    let (_directory, path) = cachebench(r#""cacheSizeMB": 80000000"#);
    for (words, parts) in [
        ("", &["--memory", "--scale"][..]),
        ("-m 8M --scale 0", &["--scale", "0"]),
        ("-m 8M --scale 2", &["--scale", "2"]),
        ("-m 8M --distribution uniform", &["--distribution", "--cachebench"]),
        ("-m 8M --working-set 1G", &["--working-set", "--cachebench"]),
        ("-m 8M --writes 5", &["--writes", "--cachebench"]),
        ("-m 8M --paper", &["--paper", "--cachebench"]),
        ("-m 8M --trace a.lis", &["--trace", "--cachebench"]),
        ("-m 8M --cut lines", &["--cut", "--cachebench"]),
        ("-m 8M --rate 0", &["--rate", "0"]),
        ("-m 8M --rate 1e12", &["--rate"]),
    ] {
        let Err(Failure::BadInput(message)) = options(&format!("--cachebench {path} {words}")) else {
            panic!("{words} is taken");
        };
        for part in parts {
            assert!(message.contains(part), "{words}: no `{part}` in {message}");
        }
    }
}

#[test]
fn curves_alone_run_no_caches() {
    let alone = options("--mrc").unwrap();
    assert_eq!((alone.engines.len(), alone.mrc), (0, Some(MrcOptions::default())));
    let both = options("--mrc --mrc-rate 0.1 --mrc-overhead 100 --engines moka").unwrap();
    let curves = MrcOptions {
        sampling: Sampling::Rate(0.1),
        entry_bytes: 100,
    };
    assert_eq!((both.engines.len(), both.mrc), (1, Some(curves)));
    let few = options("--mrc --mrc-keys 2000").unwrap().mrc.unwrap();
    assert_eq!(few.sampling, Sampling::Keys(2000));
}

#[test]
fn what_cannot_work_is_refused_by_its_name() {
    for (words, parts) in [
        ("--engines memcached", &["--engines", "memcached", "quick_cache"][..]),
        ("--engines moka,moka", &["--engines", "twice"]),
        ("--engines moka+brotli", &["--engines", "moka+brotli"]),
        ("--engines ,", &["--engines", "empty"]),
        ("-m 1K", &["--memory", "4M"]),
        ("--memory lots", &["--memory", "lots"]),
        ("--disk 1K", &["--disk", "4M"]),
        ("--disk 1G --disk-path Cargo.toml", &["--disk-path", "Cargo.toml"]),
        ("--disk 1G --engines moka", &["--disk", "disk tier"]),
        ("--disk-path a", &["--disk"]),
        (
            "--disk 1G --disk-path /no/such/file",
            &["--disk-path /no/such/file", "/no/such does not exist;"],
        ),
        ("--disk 1G --disk-path src", &["--disk-path", "src is a directory"]),
        ("--writes 101", &["--writes", "100"]),
        ("--ttl 0", &["--ttl"]),
        ("--threads 0", &["--threads"]),
        ("--seconds -1", &["--seconds"]),
        ("--operations 0", &["--operations"]),
        ("--seconds 1 --operations 1", &["--seconds", "--operations"]),
        ("--backend-us -1", &["--backend-us"]),
        ("--mrc-rate 0.1", &["--mrc"]),
        ("--mrc --mrc-rate 0", &["--mrc-rate", "greater than 0"]),
        ("--mrc --mrc-rate -1", &["--mrc-rate", "greater than 0"]),
        ("--mrc --mrc-rate nan", &["--mrc-rate", "greater than 0"]),
        ("--mrc --mrc-rate 1.5", &["--mrc-rate", "at most 1"]),
        ("--mrc --mrc-keys 10", &["--mrc-keys", "1000"]),
        ("--mrc --mrc-keys 2000 --mrc-rate 0.1", &["--mrc-keys", "--mrc-rate"]),
        ("--mrc --mrc-overhead 1M", &["--mrc-overhead", "64K"]),
        ("--mrc --disk 1G", &["--disk", "disk tier"]),
        ("--mrc --engines ,", &["--engines", "empty"]),
        ("--distribution latest", &["--distribution", "latest"]),
        ("--distribution zipfy", &["--distribution", "zipfy"]),
        ("--working-set 0", &["--working-set"]),
        ("--paper --trace a.lis", &["--paper", "--trace"]),
        ("--paper --data packages", &["--paper", "--data"]),
        ("--trace a.lis --distribution uniform", &["--distribution", "trace"]),
        ("--trace a.lis --working-set 1G", &["--working-set", "trace"]),
        ("--trace a.lis --trace-format zip", &["--trace-format", "oracle"]),
        ("--trace a.lis --requests 0", &["--requests"]),
        ("--trace-format csv", &["--trace"]),
        ("--cachebench /no/such.json", &["/no/such.json", "no such file"]),
        ("--scale 0.5", &["--cachebench"]),
        ("--value-bytes 0", &["--value-bytes", "0"]),
        ("--value-bytes 9G", &["--value-bytes", "1048576"]),
        ("--value-bytes 64,64", &["--value-bytes", "twice"]),
        ("--value-bytes 64 --data packages", &["--value-bytes", "--data"]),
        ("--incompressible -1", &["--incompressible", "100"]),
        ("--incompressible 30 --trace a.lis", &["--incompressible", "--trace"]),
        ("--shift-at 0", &["--shift-at"]),
        ("--shift-at 5 --distribution uniform", &["--shift-at", "uniform"]),
        ("--shift-at 5 --operations 5", &["--shift-at", "must be less than"]),
        ("--shift-at 5 --trace a.lis", &["--shift-at", "--trace"]),
        ("--load --trace a.lis", &["--load", "--trace"]),
        ("--rate -1", &["--rate", "-1"]),
        ("--rate many", &["--rate", "many"]),
        ("--cut lines", &["--cut", "--data"]),
        ("--records xml", &["--records", "xml"]),
        ("--data synthetic:2", &["--data"]),
    ] {
        let Err(Failure::BadInput(message)) = options(words) else {
            panic!("{words} is taken");
        };
        for part in parts {
            assert!(message.contains(part), "{words}: no `{part}` in {message}");
        }
    }
}
