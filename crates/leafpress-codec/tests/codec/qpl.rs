//! Specifics of QPL: its loading, its job cache, its counters, and its errors without a device.

use std::process::Command;

use leafpress_codec::{CodecError, Engine, EngineOptions, JobCache};

const CHILD: &str = "LEAFPRESS_QPL_TEST_CHILD";

/// Opens `name`, or returns the error.
fn open(name: &str, job_cache: JobCache) -> Result<std::sync::Arc<dyn Engine>, String> {
    let codec: leafpress_codec::Codec = name.parse().unwrap();
    let mut options = EngineOptions::default();
    options.job_cache = job_cache;
    codec.open(&options).map_err(|error| match error {
        CodecError::Unavailable { codec, reason } => {
            assert_eq!(codec, name);
            reason
        }
        other => panic!("{other}"),
    })
}

/// Returns true if there is a libqpl to test with.
fn found() -> bool {
    let missing = matches!(open("qpl:software:fixed", JobCache::Thread), Err(reason) if reason.starts_with("libqpl was \
                                                                                                            not \
                                                                                                            found"));
    if missing {
        println!("skipped: no libqpl");
    }
    !missing
}

#[test]
fn jobs_are_kept_by_threads_or_made_for_every_call() {
    if !found() {
        return;
    }
    for mode in ["fixed", "dynamic"] {
        for job_cache in [JobCache::Thread, JobCache::None] {
            // A new thread has no jobs yet.
            std::thread::scope(|s| {
                s.spawn(|| {
                    let engine = open(&format!("qpl:software:{mode}"), job_cache).unwrap();
                    let raw = b"leaves under the press ".repeat(40);
                    for _ in 0..10 {
                        let mut block = Vec::new();
                        engine.compress(&raw, None, &mut block).unwrap();
                        assert!(block.len() < raw.len() / 2);
                        let mut back = vec![0; raw.len()];
                        engine.decompress(&block, None, &mut back).unwrap();
                        assert_eq!(back, raw);
                    }
                    let counters = engine.counters();
                    assert_eq!(engine.engine_name(), "software");
                    assert_eq!(
                        (counters.software_calls, counters.hardware_calls, counters.fallbacks),
                        (20, 0, 0)
                    );
                    match job_cache {
                        JobCache::Thread => assert_eq!((counters.thread_jobs, counters.call_jobs), (1, 0)),
                        JobCache::None => assert_eq!((counters.thread_jobs, counters.call_jobs), (0, 20)),
                    }
                });
            });
        }
    }
}

#[test]
fn auto_counts_what_really_ran() {
    if !found() {
        return;
    }
    let engine = open("qpl:auto:fixed", JobCache::Thread).unwrap();
    let raw = b"leaves under the press ".repeat(40);
    let mut block = Vec::new();
    engine.compress(&raw, None, &mut block).unwrap();
    let mut blocks = Vec::new();
    engine.compress_batch(&[&raw, &raw, &raw], None, &mut blocks).unwrap();
    let counters = engine.counters();
    assert_eq!(counters.hardware_calls + counters.software_calls, 4);
    // Not the same bytes: in some versions of QPL the block depends on the available room.
    for block in blocks.iter().chain([&block]) {
        let mut back = vec![0; raw.len()];
        engine.decompress(block, None, &mut back).unwrap();
        assert!(back == raw);
    }
    let counters = engine.counters();
    assert_eq!(counters.fallbacks, counters.software_calls);
    assert_eq!(engine.engine_name(), "auto");
}

#[test]
fn hardware_without_a_device_fails_at_once_and_names_the_fix() {
    if !found() {
        return;
    }
    match open("qpl:hardware:fixed", JobCache::Thread) {
        Ok(engine) => assert_eq!(engine.engine_name(), "hardware"),
        Err(reason) => {
            assert!(reason.starts_with("no IAA device: "), "{reason}");
            assert!(
                reason.contains("libqpl status 5") && reason.lines().count() == 1,
                "{reason}"
            );
        }
    }
}

/// Helper: runs in the child process of the test below.
#[test]
fn child() {
    if std::env::var_os(CHILD).is_some() {
        let opened = open("qpl:software:fixed", JobCache::Thread);
        println!("\nreason: {}", opened.err().unwrap_or_default());
    }
}

#[test]
fn a_library_that_is_not_one_is_named() {
    for (path, expected) in [
        ("/no/such/libqpl.so", "cannot be loaded: "),
        (env!("CARGO_MANIFEST_PATH"), "cannot be loaded: "),
        ("libc.so.6", "libqpl lacks qpl_get_library_version"),
    ] {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "qpl::child", "--nocapture"])
            .env(CHILD, "1")
            .env("LEAFPRESS_QPL", path)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && text.contains("reason: ") && text.contains(expected),
            "{path}: {text}"
        );
    }
}
