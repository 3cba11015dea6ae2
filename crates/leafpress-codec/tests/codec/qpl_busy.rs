//! A device with busy queues: submissions are retried a bounded number of times, then the CPU executes the operation,
//! and everything is counted. The device is simulated by `fake_qpl.c`.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use leafpress_codec::{CodecError, Engine, EngineCounters, EngineOptions, JobCache};
use libloading::os::unix::Library;

const CHILD: &str = "LEAFPRESS_FAKE_QPL_TEST_CHILD";
/// More attempts than any job makes, and fewer than an unbounded loop.
const MAX_TRIES: i64 = 100;

fn fake_library() -> &'static Path {
    static FAKE: OnceLock<PathBuf> = OnceLock::new();
    FAKE.get_or_init(|| {
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libqpl_fake.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/codec/fake_qpl.c");
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o"])
            .args([&library, &source])
            .status()
            .unwrap();
        assert!(compiled.success());
        library
    })
}

/// The fake library that the process has loaded as its libqpl.
struct Fake(Library);

impl Fake {
    fn get() -> Self {
        // SAFETY: it is loaded already, or has no initialisers.
        Self(unsafe { Library::new(std::env::var_os("LEAFPRESS_QPL").unwrap()) }.unwrap())
    }

    /// Sets how often each job's submission and check are refused, and how many jobs the device has; negative for no
    /// limit.
    fn set(&self, busy_submissions: i64, busy_checks: i64, hardware_jobs: i64) {
        // SAFETY: the function has this type.
        unsafe {
            let set = self.0.get::<unsafe extern "C" fn(i64, i64, i64)>(b"fake_qpl_set\0");
            set.unwrap()(busy_submissions, busy_checks, hardware_jobs);
        }
    }

    fn count(&self, what: &str) -> i64 {
        // SAFETY: the functions have this type.
        unsafe {
            let count = self
                .0
                .get::<unsafe extern "C" fn() -> i64>(format!("fake_qpl_{what}\0").as_bytes());
            count.unwrap()()
        }
    }
}

fn open(name: &str) -> Arc<dyn Engine> {
    let codec: leafpress_codec::Codec = name.parse().unwrap();
    let mut options = EngineOptions::default();
    options.job_cache = JobCache::None;
    codec.open(&options).unwrap()
}

fn raws() -> Vec<Vec<u8>> {
    (0..10_u8)
        .map(|i| b"leaves under the press ".repeat(20 + usize::from(i)))
        .collect()
}

/// Compresses and decompresses one by one; returns the number of operations.
fn one_by_one(engine: &dyn Engine) -> Result<u64, CodecError> {
    for raw in raws() {
        let mut block = Vec::new();
        engine.compress(&raw, None, &mut block)?;
        let mut back = vec![0; raw.len()];
        engine.decompress(&block, None, &mut back)?;
        assert!(back == raw);
    }
    Ok(2 * raws().len() as u64)
}

/// Compresses and decompresses in batches; returns the number of operations.
fn in_batches(engine: &dyn Engine) -> Result<u64, CodecError> {
    let raws = raws();
    let slices: Vec<&[u8]> = raws.iter().map(Vec::as_slice).collect();
    let mut blocks = Vec::new();
    engine.compress_batch(&slices, None, &mut blocks)?;
    let blocks: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
    let mut backs: Vec<Vec<u8>> = raws.iter().map(|raw| vec![0; raw.len()]).collect();
    let mut out: Vec<&mut [u8]> = backs.iter_mut().map(Vec::as_mut_slice).collect();
    for result in engine.decompress_batch(&blocks, None, &mut out) {
        result?;
    }
    assert!(backs == raws);
    Ok(2 * raws.len() as u64)
}

type Way = fn(&dyn Engine) -> Result<u64, CodecError>;

const WAYS: [Way; 2] = [one_by_one, in_batches];

fn ran(counters: &EngineCounters) -> (u64, u64, u64) {
    (counters.hardware_calls, counters.software_calls, counters.fallbacks)
}

/// With five refusals each, all jobs succeed: the CPU executes none.
fn busy_for_a_while(fake: &Fake) {
    for name in ["qpl:auto:fixed", "qpl:hardware:dynamic"] {
        for (submissions, checks) in [(5, 0), (0, 5)] {
            fake.set(submissions, checks, -1);
            let engine = open(name);
            let done = one_by_one(&*engine).unwrap();
            assert_eq!(ran(&engine.counters()), (done, 0, 0), "{name}");
            assert_eq!(fake.count("submissions"), (submissions + 1) * done as i64);
            assert_eq!(fake.count("checks"), (checks + 1) * done as i64);
            assert_eq!(fake.count("executions"), 0);
        }
        fake.set(3, 2, -1);
        let engine = open(name);
        let done = in_batches(&*engine).unwrap();
        assert_eq!(ran(&engine.counters()), (done, 0, 0), "{name} in batches");
    }
}

/// With permanent refusals, `auto` falls back to the CPU after a bounded number of attempts.
fn busy_for_ever(fake: &Fake) {
    for way in WAYS {
        for (submissions, checks) in [(-1, 0), (0, -1)] {
            fake.set(submissions, checks, -1);
            let engine = open("qpl:auto:fixed");
            let done = way(&*engine).unwrap();
            assert_eq!(ran(&engine.counters()), (0, done, done));
            assert_eq!(engine.counters().errors, 0);
            assert_eq!(fake.count("executions"), done as i64);
            let tried = fake.count(if submissions < 0 { "submissions" } else { "checks" });
            assert!(tried > done as i64 && tried <= done as i64 * MAX_TRIES, "{tried} tries");
        }
    }
}

/// With permanent refusals, `hardware` returns that error, and does not report an intact block as corrupt.
fn busy_without_a_way_out(fake: &Fake) {
    fake.set(0, 0, -1);
    let engine = open("qpl:hardware:fixed");
    let raw = raws().remove(0);
    let mut block = Vec::new();
    engine.compress(&raw, None, &mut block).unwrap();
    fake.set(-1, 0, -1);
    let mut back = vec![0; raw.len()];
    let errors = [
        engine.compress(&raw, None, &mut Vec::new()).unwrap_err(),
        engine.decompress(&block, None, &mut back).unwrap_err(),
        engine.compress_batch(&[&raw], None, &mut Vec::new()).unwrap_err(),
        engine
            .decompress_batch(&[&block], None, &mut [&mut back])
            .remove(0)
            .unwrap_err(),
    ];
    for error in errors {
        assert!(
            matches!(&error, CodecError::Failed { reason, .. } if reason.contains("work queues stayed busy")),
            "{error}"
        );
    }
    assert_eq!(engine.counters().errors, 4);
    assert_eq!(fake.count("executions"), 0);
    assert!(fake.count("submissions") <= 4 * MAX_TRIES);
}

/// A device that was available when the engine was opened, and has no memory for further jobs: `auto` continues without
/// it.
fn no_more_jobs(fake: &Fake) {
    for way in WAYS {
        fake.set(0, 0, 1);
        let engine = open("qpl:auto:fixed");
        let done = way(&*engine).unwrap();
        assert_eq!(ran(&engine.counters()), (0, done, done));
        fake.set(0, 0, 1);
        let engine = open("qpl:hardware:fixed");
        let error = way(&*engine).unwrap_err();
        assert!(
            matches!(&error, CodecError::Failed { reason, .. } if reason.contains("out of memory")),
            "{error}"
        );
    }
}

/// Helper: runs in the child process of the tests below, whose libqpl is the fake.
#[test]
fn child() {
    let Ok(which) = std::env::var(CHILD) else { return };
    let fake = Fake::get();
    match which.as_str() {
        "a while" => busy_for_a_while(&fake),
        "ever" => busy_for_ever(&fake),
        "no way out" => busy_without_a_way_out(&fake),
        "no more jobs" => no_more_jobs(&fake),
        other => panic!("no test {other}"),
    }
    println!("\nran: {which}");
}

#[track_caller]
fn run(which: &str) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "qpl_busy::child", "--nocapture", "--test-threads=1"])
        .env(CHILD, which)
        .env("LEAFPRESS_QPL", fake_library())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains(&format!("ran: {which}")),
        "{text}\n{errors}"
    );
}

#[test]
fn a_device_that_is_busy_for_a_while_does_the_work() {
    run("a while");
}

#[test]
fn the_cpu_takes_over_from_a_device_that_stays_busy() {
    run("ever");
}

#[test]
fn hardware_alone_reports_a_busy_device() {
    run("no way out");
}

#[test]
fn the_cpu_takes_over_from_a_device_without_memory_for_jobs() {
    run("no more jobs");
}
