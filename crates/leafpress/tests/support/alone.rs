//! Tests that need a separate process.

use std::ffi::OsStr;
use std::io;

/// Runs one test of this program again in a separate process prepared by `prepare`, with `variable` set as an indicator
/// for the test. Returns the output of the process; panics when the test fails.
///
/// # Errors
/// The error of `prepare`: then the test was not run.
pub fn run_alone(
    test: &str,
    variable: &str,
    value: impl AsRef<OsStr>,
    prepare: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) -> io::Result<String> {
    use std::os::unix::process::CommandExt;

    let mut command = std::process::Command::new(std::env::current_exe().expect("this program"));
    command
        .args(["--exact", test, "--nocapture", "--test-threads", "1"])
        .env(variable, value.as_ref());
    // SAFETY: callers only make system calls between fork and exec.
    unsafe { command.pre_exec(prepare) };
    let output = command.output()?;
    let printed = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{}\n{printed}", output.status);
    assert!(printed.contains("1 passed"), "{printed}");
    Ok(printed)
}
