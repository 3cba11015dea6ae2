//! `zlib` uses a library preloaded over it, and reports that.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use leafpress_codec::{CodecError, EngineOptions, StreamCache};

const CHILD: &str = "LEAFPRESS_PRELOAD_TEST_CHILD";
const CALLS: i64 = 10;

/// Helper: runs in the child process of the tests below.
#[test]
fn child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let codec: leafpress_codec::Codec = "zlib:6".parse().unwrap();
    for stream_cache in [StreamCache::Thread, StreamCache::None] {
        let mut options = EngineOptions::default();
        options.stream_cache = stream_cache;
        let engine = match codec.open(&options) {
            Ok(engine) => engine,
            Err(CodecError::Unavailable { reason, .. }) => {
                println!("\nunavailable: {reason}");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        let before = [shim_calls(0), shim_calls(1)];
        let raw = b"compressed leaves ".repeat(100);
        for _ in 0..CALLS {
            let mut block = Vec::new();
            engine.compress(&raw, None, &mut block).unwrap();
            let mut back = vec![0; raw.len()];
            engine.decompress(&block, None, &mut back).unwrap();
            assert_eq!(back, raw);
        }
        let counters = engine.counters();
        assert_eq!(counters.stream_inits + counters.stream_reuses, 2 * CALLS as u64);
        assert_eq!(
            counters.stream_inits,
            match stream_cache {
                StreamCache::Thread => 2,
                StreamCache::None => 2 * CALLS as u64,
            }
        );
        let calls = [shim_calls(0) - before[0], shim_calls(1) - before[1]];
        println!("\nengine: {} calls: {calls:?}", engine.engine_name());
    }
}

/// Returns the shim's counter; 0 if there is no shim.
fn shim_calls(of_inflate: i32) -> i64 {
    // SAFETY: the shim's function has this type.
    unsafe {
        libloading::os::unix::Library::this()
            .get::<unsafe extern "C" fn(i32) -> libc::c_long>(b"leafpress_shim_calls\0")
            .map_or(0, |calls| calls(of_inflate))
    }
}

/// Returns the output of the child with this value of `LD_PRELOAD`.
fn run(preload: &str) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "zlib_preload::child", "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .env("LD_PRELOAD", preload)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

fn shim() -> &'static Path {
    static SHIM: OnceLock<PathBuf> = OnceLock::new();
    SHIM.get_or_init(|| {
        let shim = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libzlib_accel.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/codec/zlib_shim.c");
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([&shim, &source])
            .arg("-ldl")
            .status()
            .unwrap();
        assert!(compiled.success());
        shim
    })
}

#[test]
fn the_system_library_without_a_preload() {
    let text = run("");
    assert_eq!(text.matches("engine: zlib_system calls: [0, 0]").count(), 2, "{text}");
}

#[test]
fn a_preloaded_library_is_used_and_reported() {
    let text = run(&format!("{} libz.so.1", shim().display()));
    let expected = format!("engine: zlib_accel_preload calls: [{CALLS}, {CALLS}]");
    assert_eq!(text.matches(&expected).count(), 2, "{text}");
}

/// A shim that looked for zlib when it was loaded, found none, and would call through null pointers.
#[test]
fn a_preloaded_library_without_zlib_is_refused_with_the_fix() {
    let text = run(&shim().display().to_string());
    assert!(text.contains("unavailable: "), "{text}");
    assert!(text.contains("libzlib_accel.so libz.so.1'"), "{text}");
}
