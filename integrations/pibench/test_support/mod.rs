//! Compiling C++ in tests, with whatever C++ compiler the machine has.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Returns the C++ compilers that run: `$CXX` and no other if it is set, else g++ and clang++, else c++.
pub fn cxx_compilers() -> Vec<String> {
    let runs = |compiler: &String| {
        Command::new(compiler)
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success())
    };
    let those_that_run =
        |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).filter(runs).collect() };
    if let Ok(named) = std::env::var("CXX") {
        return those_that_run(&[&named]);
    }
    let compilers = those_that_run(&["g++", "clang++"]);
    if compilers.is_empty() {
        return those_that_run(&["c++"]);
    }
    compilers
}

/// Where `pibench/tree_api.hpp` is.
pub fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../include")
}

/// Runs the compiler on `source`, unless this process has; panics with its messages if it fails. Returns where the
/// output is, whose name ends in `extension`.
pub fn compile(compiler: &str, arguments: &[&str], source: &Path, extension: &str) -> PathBuf {
    static COMPILED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let name = format!(
        "{}-{}.{extension}",
        source.file_stem().unwrap_or_default().display(),
        Path::new(compiler).file_name().unwrap_or_default().display(),
    );
    let output = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if compiled.contains(&output) {
        return output;
    }
    // Renamed into place: another run of the tests may be using the one that is there.
    let fresh = output.with_extension(std::process::id().to_string());
    let compiler_output = Command::new(compiler)
        .args(["-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread"])
        .arg("-I")
        .arg(include())
        .arg(source)
        .args(arguments)
        .arg("-o")
        .arg(&fresh)
        .output()
        .expect(compiler);
    assert!(
        compiler_output.status.success(),
        "{compiler} on {}: {}",
        source.display(),
        String::from_utf8_lossy(&compiler_output.stderr)
    );
    std::fs::rename(&fresh, &output).expect("the compiler's output");
    compiled.insert(output.clone());
    output
}
