//! Runs in processes of their own. The child is this test binary again: libtest runs only `child_entry` there, which
//! does what an environment variable asks for it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leafpress_lab::core::corpus::{Cut, Source};
use leafpress_lab::{EvalConfig, EvalOutcome, LabError, Launcher, Progress, Workload, run_eval_with};

const ROLE: &str = "LEAFPRESS_LAB_TEST_ROLE";

#[test]
fn child_entry() {
    let Ok(role) = std::env::var(ROLE) else { return };
    match role.as_str() {
        "crash" => std::process::abort(),
        "crash_for_lz4" => {
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).unwrap();
            if line.contains("\"codec\":\"lz4\"") {
                eprintln!("the disk is on fire");
                std::process::exit(7);
            }
            // The request was read here, so the run itself is done in a child of this child.
            let mut child = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["child_entry", "--exact", "--nocapture"])
                .env(ROLE, "run")
                .stdin(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            std::io::Write::write_all(child.stdin.as_mut().unwrap(), line.as_bytes()).unwrap();
            // `wait` would close the child's stdin, which it takes for the end of its parent.
            while child.try_wait().unwrap().is_none() {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        "interrupted" => {
            // A shell's background process, and its children, ignore Ctrl-C.
            // SAFETY: no handler is set that another thread could be in.
            unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
            let own = std::process::id().to_string();
            std::process::Command::new("kill")
                .args(["-INT", &own])
                .status()
                .unwrap();
            std::thread::sleep(Duration::from_secs(3600));
        }
        "mute" => {}
        "babble" => println!("@result {{\"no\": \"result\"}}"),
        "sleep" => std::thread::sleep(Duration::from_secs(3600)),
        "run" => {
            println!("a line that a preloaded library might print");
            let good = format!("{:?}", leafpress_lab::child_main()) == format!("{:?}", std::process::ExitCode::SUCCESS);
            std::process::exit(i32::from(!good));
        }
        other => panic!("unknown role {other}"),
    }
}

fn launcher(role: &str) -> Launcher {
    Launcher {
        program: std::env::current_exe().unwrap(),
        args: ["child_entry", "--exact", "--nocapture"].map(Into::into).to_vec(),
        envs: vec![(ROLE.into(), role.into())],
    }
}

fn config() -> EvalConfig {
    EvalConfig {
        data: Source::Synthetic(0.5),
        codecs: vec!["none".into(), "lz4".into()],
        workloads: vec![Workload::ReadOnly, Workload::Crud],
        threads: vec![2],
        seconds: 0.1,
        keys: 1000,
        ..EvalConfig::default()
    }
}

fn eval(role: &str, config: &EvalConfig, out: &Path) -> Result<EvalOutcome, LabError> {
    run_eval_with(
        &launcher(role),
        config,
        out,
        &Arc::new(AtomicBool::new(false)),
        &mut |_| {},
    )
}

fn summary_lines(out: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(out.join("summary.tsv")).unwrap();
    text.lines()
        .map(|line| line.split('\t').map(String::from).collect())
        .collect()
}

#[test]
fn an_evaluation_leaves_rows_logs_and_reports() {
    let out = tempfile::tempdir().unwrap();
    let outcome = eval("run", &config(), out.path()).unwrap();
    assert!(outcome.is_good(), "{outcome:?}");
    assert_eq!(outcome.rows.len(), 4);
    let lines = summary_lines(out.path());
    assert_eq!(lines.len(), 5);
    let column = |name: &str| lines[0].iter().position(|column| column == name).unwrap();
    for line in &lines[1..] {
        assert_eq!(line.len(), lines[0].len());
        assert_eq!(line[column("mismatches")], "0");
        assert!(line[column("qps")].parse::<f64>().unwrap() > 0.0);
        assert!(line[column("user_sec")].parse::<f64>().unwrap() >= 0.0);
        for file in ["log", "cpu_log"] {
            assert!(Path::new(&line[column(file)]).metadata().unwrap().len() > 0);
        }
        let log = std::fs::read_to_string(&line[column("log")]).unwrap();
        assert!(
            log.contains("preloaded library"),
            "what is not for us is in the log: {log}"
        );
    }
    let workloads: Vec<_> = lines[1..]
        .iter()
        .map(|line| line[column("workload")].as_str())
        .collect();
    assert_eq!(workloads, ["read_only", "read_only", "crud", "crud"]);
    assert!(outcome.table.contains("lz4"));
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&outcome.json_path).unwrap()).unwrap();
    assert_eq!(json["rows"].as_array().unwrap().len(), 4);
    let html = std::fs::read_to_string(&outcome.html_path).unwrap();
    assert!(html.contains("<svg") && html.contains("read_only"));
    assert!(
        !html.contains("src=\"http") && !html.contains("href=\"http"),
        "it must be readable without a network"
    );
}

#[test]
fn reports_a_failing_run_and_continues_with_the_others() {
    let out = tempfile::tempdir().unwrap();
    let outcome = eval("crash_for_lz4", &config(), out.path()).unwrap();
    assert!(!outcome.is_good());
    assert_eq!((outcome.rows.len(), outcome.failures.len()), (2, 2));
    for failure in &outcome.failures {
        assert_eq!(failure.spec.codec, "lz4");
        assert!(
            failure.reason.contains("exit code 7") && failure.reason.contains("on fire"),
            "{}",
            failure.reason
        );
        assert!(!failure.reason.contains('\n'));
        assert!(std::fs::read_to_string(&failure.log).unwrap().contains("on fire"));
    }
    assert_eq!(summary_lines(out.path()).len(), 3, "failed runs have no row");
    assert!(outcome.table.contains("failed"), "{}", outcome.table);
}

#[test]
fn every_way_to_fail_has_its_words() {
    let config = EvalConfig {
        codecs: vec!["none".into()],
        workloads: vec![Workload::ReadOnly],
        ..config()
    };
    for (role, words) in [
        ("crash", "SIGABRT"),
        ("mute", "without an answer"),
        ("babble", "cannot be read"),
    ] {
        let out = tempfile::tempdir().unwrap();
        let outcome = eval(role, &config, out.path()).unwrap();
        assert_eq!(outcome.failures.len(), 1);
        assert!(
            outcome.failures[0].reason.contains(words),
            "{role}: {}",
            outcome.failures[0].reason
        );
    }
    let out = tempfile::tempdir().unwrap();
    let absent = Launcher {
        program: "/no/such/program".into(),
        args: Vec::new(),
        envs: Vec::new(),
    };
    let outcome = run_eval_with(
        &absent,
        &config,
        out.path(),
        &Arc::new(AtomicBool::new(false)),
        &mut |_| {},
    )
    .unwrap();
    assert!(
        outcome.failures[0].reason.contains("/no/such/program"),
        "{}",
        outcome.failures[0].reason
    );
}

#[test]
fn a_child_reports_a_bad_request() {
    let mut config = config();
    config.codecs = vec!["none".into()];
    config.workloads = vec![Workload::ReadOnly];
    // Removed between the parent's look and the child's.
    let out = tempfile::tempdir().unwrap();
    let data = out.path().join("data");
    std::fs::write(&data, [7; 4096]).unwrap();
    config.data = Source::Path(data.clone());
    let mut remove = |progress: Progress| {
        if let Progress::Started { .. } = progress {
            std::fs::remove_file(&data).unwrap();
        }
    };
    let cancel = Arc::new(AtomicBool::new(false));
    let outcome = run_eval_with(&launcher("run"), &config, &out.path().join("out"), &cancel, &mut remove).unwrap();
    assert!(
        outcome.failures[0].reason.contains("no such file"),
        "{}",
        outcome.failures[0].reason
    );
}

#[test]
fn cancelling_kills_the_run_and_keeps_the_rows() {
    let out = tempfile::tempdir().unwrap();
    let cancel = Arc::new(AtomicBool::new(false));
    let mut config = config();
    config.workloads = vec![Workload::ReadOnly];
    let mut finished = 0;
    let outcome = run_eval_with(
        &launcher("run"),
        &config,
        out.path(),
        &cancel,
        &mut |progress| match progress {
            Progress::Finished(_) => finished += 1,
            Progress::Started { index: 1, .. } => cancel.store(true, Ordering::Relaxed),
            _ => {}
        },
    );
    let outcome = outcome.unwrap();
    assert!(outcome.cancelled && !outcome.is_good() && outcome.failures.is_empty());
    assert_eq!(
        (outcome.rows.len(), finished, summary_lines(out.path()).len()),
        (1, 1, 2)
    );

    // A Ctrl-C that the child got before this process did.
    let nothing = Arc::new(AtomicBool::new(false));
    let outcome = run_eval_with(&launcher("interrupted"), &config, out.path(), &nothing, &mut |_| {});
    assert!(matches!(outcome, Err(LabError::Cancelled)), "{outcome:?}");
    assert!(!out.path().join("summary.tsv").exists(), "a report of nothing");

    // A child that hears nothing is killed all the same.
    let from_outside = Arc::new(AtomicBool::new(false));
    let setter = Arc::clone(&from_outside);
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        setter.store(true, Ordering::Relaxed);
    });
    let outcome = run_eval_with(&launcher("sleep"), &config, out.path(), &from_outside, &mut |_| {});
    thread.join().unwrap();
    assert!(matches!(outcome, Err(LabError::Cancelled)), "{outcome:?}");
}

#[test]
fn bad_input_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    type Change = fn(&mut EvalConfig);
    let bad: [(Change, &str); 16] = [
        (|c| c.threads = vec![0], "threads: 0"),
        (|c| c.threads = vec![], "threads: the list is empty"),
        (|c| c.codecs = vec!["lz5".into()], "lz5"),
        (|c| c.landing_compaction_pct = 101, "landing-compaction-pct: 101"),
        (|c| c.seconds = 0.0, "seconds: 0"),
        (|c| c.seconds = f64::NAN, "seconds: NaN"),
        (|c| c.keys = 0, "keys: 0"),
        (|c| c.key_bytes = 3, "key-bytes: 3"),
        (|c| c.key_bytes = 1025, "key-bytes: 1025"),
        (|c| c.value_bytes = 0, "value-bytes: 0"),
        (|c| c.cut = Some(Cut::Fixed(0)), "cut: fixed:0"),
        (|c| c.data = Source::Path("/no/such/data".into()), "/no/such/data"),
        (|c| c.zlib_accel = true, "zlib-accel-so"),
        (
            |c| (c.zlib_accel, c.zlib_accel_so) = (true, Some("/no/such.so".into())),
            "/no/such.so",
        ),
        (
            |c| (c.zlib_accel, c.zlib_accel_so) = (true, Some(file!().into())),
            "children.rs",
        ),
        (|c| c.background_codec = Some("lzma".into()), "lzma"),
    ];
    for (change, words) in bad {
        let mut config = config();
        change(&mut config);
        let message = eval("run", &config, &out).unwrap_err().to_string();
        assert!(message.contains(words) && !message.contains('\n'), "{words}: {message}");
        assert!(!out.exists(), "{words}: something was written");
    }
    std::fs::write(&out, "a file").unwrap();
    let message = eval("run", &config(), &out).unwrap_err().to_string();
    assert!(message.contains("out"), "{message}");
}

#[cfg(feature = "peers")]
#[test]
fn maps_are_compared_in_children() {
    use leafpress_lab::peers::{Peer, PeersConfig, run_peers_with};
    let config = PeersConfig {
        data: Source::Synthetic(0.5),
        codecs: vec!["lz4".into()],
        keys: 20_000,
        seconds: 0.1,
        rounds: 2,
        ..PeersConfig::default()
    };
    let out = tempfile::tempdir().unwrap();
    let cancel = Arc::new(AtomicBool::new(false));
    let mut order = Vec::new();
    let outcome = run_peers_with(
        &launcher("run"),
        &config,
        out.path(),
        &cancel,
        &mut |number, total, peer, _, _| {
            assert_eq!(total, 14);
            if order.len() == number {
                order.push(peer.clone());
            }
        },
    );
    let outcome = outcome.unwrap();
    assert_eq!(
        (outcome.mismatches, outcome.failures.len(), outcome.cancelled),
        (0, 0, false)
    );
    let (first, second) = order.split_at(7);
    assert!(first.iter().eq(second.iter().rev()), "rounds alternate: {order:?}");
    assert_eq!(first[0], Peer::Leafpress("lz4".into()));
    for line in &outcome.lines {
        assert!(line.operations_per_second_per_core > 0.0, "{line:?}");
        // So few may be too small to measure.
        let resident = line.resident_bytes_per_record;
        assert!(
            resident.is_some_and(|bytes| bytes > 0.0) || line.resident_unknown.is_some(),
            "{line:?}"
        );
        let reports_its_memory = matches!(line.peer, Peer::Leafpress(_) | Peer::Blocks(_));
        assert_eq!(line.bytes_held_per_record.is_some(), reports_its_memory);
        assert!(outcome.table.contains(&line.peer.to_string()));
    }
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(out.path().join("peers.json")).unwrap()).unwrap();
    assert_eq!(json["lines"].as_array().unwrap().len(), 7);
    let page = std::fs::read_to_string(out.path().join("report.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("16K blocks"), "{page}");
}

#[test]
fn a_config_survives_json() {
    let config = EvalConfig {
        cut: Some(Cut::Lines),
        distribution: "hotset:10:90".parse().unwrap(),
        data: Source::Path("/a/b".into()),
        ..EvalConfig::default()
    };
    let json = serde_json::to_string(&config).unwrap();
    assert_eq!(serde_json::from_str::<EvalConfig>(&json).unwrap(), config);
    assert!(serde_json::from_str::<EvalConfig>("{\"threds\": [1]}").is_err());
    assert_eq!(serde_json::from_str::<EvalConfig>("{}").unwrap(), EvalConfig::default());
}
