use super::*;

fn good() -> Options {
    Options::new(Source::Sample("packages".into()))
}

/// That an option is refused under its name, in a line that says what is allowed.
#[track_caller]
fn refused(option: &str, words: &[&str], change: impl FnOnce(&mut Options)) {
    let mut options = good();
    change(&mut options);
    let message = options.validate().unwrap_err().to_string();
    assert!(message.starts_with(&format!("{option}: ")), "{option}: {message}");
    for word in words {
        assert!(message.contains(word), "no `{word}` in {message}");
    }
    assert!(!message.contains('\n'), "{message}");
}

#[test]
fn reports_every_bound_by_its_options_name() {
    good().validate().unwrap();
    refused("page-bytes", &["100", "512", "1M"], |o| o.page_bytes = 100);
    refused("page-bytes", &["2097152"], |o| o.page_bytes = 2 << 20);
    refused("bytes", &["at least one"], |o| o.max_bytes = Some(0));
    refused("pages", &["at least 1"], |o| o.max_pages = Some(0));
    refused("memory", &["1K", "64K"], |o| o.budget_bytes = 1024);
    refused("memory", &["1024P", "machine"], |o| o.budget_bytes = 1 << 60);
    refused("fixed", &["between 0 and 100"], |o| {
        o.share = RawShare::Fixed { raw_percent: 101 }
    });
    refused("promote-after-hits", &["1 to 63"], |o| o.promote_after_hits = Some(0));
    refused("promote-after-hits", &["1 to 63"], |o| o.promote_after_hits = Some(64));
    refused("background-threads", &["64"], |o| o.background_threads = Some(65));
    refused("workers", &["0", "1024"], |o| o.workers = 0);
    refused("seconds", &["0"], |o| o.seconds = 0.0);
    refused("seconds", &["NaN"], |o| o.seconds = f64::NAN);
    refused("switch-at", &["5"], |o| {
        o.distribution = Distribution::SelfSimilar { h: 0.2 };
        o.switch_at_seconds = Some(5.0);
    });
    refused("switch-at", &["uniform"], |o| o.switch_at_seconds = Some(1.0));
    refused("device-us", &["10000001"], |o| o.device_latency_us = 10_000_001);
    refused("distribution", &["latest"], |o| {
        o.distribution = Distribution::Latest { theta: 0.9 }
    });
    refused("round", &["5,4"], |o| o.round_pages = (5, 4));
    refused("round", &["0,4"], |o| o.round_pages = (0, 4));
    refused("round", &["1024"], |o| o.round_pages = (1, 1025));
    refused("updates", &["101", "percent"], |o| o.update_pct = 101.0);
    refused("deletes", &["-1"], |o| o.delete_pct = -1.0);
}

#[test]
fn a_bias_is_tyches() {
    assert_eq!(
        bias("20,80").unwrap(),
        Distribution::HotSet {
            keys_pct: 20.0,
            operations_pct: 80.0
        }
    );
    assert_eq!(bias("100,100").unwrap(), Distribution::Uniform);
    for text in [
        "", "20", "120,5", "20,101", "0,50", "100,50", "-1,5", "a,b", "20,80,1", "NaN,5", "20,NaN",
    ] {
        let message = bias(text).unwrap_err().to_string();
        assert!(
            message.starts_with("bias: ") && message.contains("20,80"),
            "{text}: {message}"
        );
    }
}

#[test]
fn rounds_have_a_least_and_a_most() {
    assert_eq!(round_pages("5,20").unwrap(), (5, 20));
    assert_eq!(round_pages("7").unwrap(), (7, 7));
    for text in ["", "a", "5,", "-1,5", "1,2,3"] {
        let message = round_pages(text).unwrap_err().to_string();
        assert!(message.starts_with("round: "), "{text}: {message}");
    }
}

#[test]
fn words_read_back() {
    for word in ["file", "dir", "memory"] {
        assert_eq!(word.parse::<StoreKind>().unwrap().to_string(), word);
    }
    for word in ["full", "0", "2.5"] {
        assert_eq!(word.parse::<Warmup>().unwrap().to_string(), word);
    }
    for word in ["all", "off", "64"] {
        assert_eq!(word.parse::<Verify>().unwrap().to_string(), word);
    }
    assert!("disk".parse::<StoreKind>().is_err());
    assert!("-1".parse::<Warmup>().is_err() && "soon".parse::<Warmup>().is_err() && "NaN".parse::<Warmup>().is_err());
    assert!("0".parse::<Verify>().is_err() && "some".parse::<Verify>().is_err());
}

#[test]
fn options_survive_the_way_to_another_process() {
    let mut options = good();
    options.codec = Codec::Zstd { level: -5 };
    options.share = RawShare::Fixed { raw_percent: 30 };
    options.policy = PolicyKind::S3Fifo;
    options.warmup = Warmup::Seconds(1.5);
    options.verify = Verify::Off;
    options.store = Some(StoreKind::Memory);
    options.distribution = Distribution::Zipfian { theta: 0.9 };
    let json = serde_json::to_string(&options).unwrap();
    assert_eq!(serde_json::from_str::<Options>(&json).unwrap(), options);
}
