//! Programs that run our scripts: they need not be there.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A machine that is busy with other things takes its time.
const PATIENCE: Duration = Duration::from_secs(600);

fn program(variable: &str, names: &[&str]) -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(variable) {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).flat_map(|directory| names.iter().map(move |name| directory.join(name)));
    found.into_iter().find(|file| file.is_file())
}

/// Node, or what `LEAFPRESS_NODE` names.
pub(super) fn node() -> Option<PathBuf> {
    program("LEAFPRESS_NODE", &["node", "nodejs"])
}

/// Chromium, or what `LEAFPRESS_CHROMIUM` names.
pub(super) fn chromium() -> Option<PathBuf> {
    program(
        "LEAFPRESS_CHROMIUM",
        &["chromium", "chromium-browser", "google-chrome", "chrome"],
    )
}

/// Output of a command, given an input.
fn output(mut command: Command, input: &str) -> String {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let input = input.to_owned();
    let writer = thread::spawn(move || stdin.write_all(input.as_bytes()));
    let reader = thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).map(|_| text)
    });
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("{command:?} does not end");
        }
        thread::sleep(Duration::from_millis(20));
    }
    // It may have ended without reading everything.
    let _ = writer.join().unwrap();
    reader.join().unwrap().unwrap()
}

/// Console output of a JavaScript program.
pub(super) fn run_node(node: &Path, program: &str) -> String {
    let mut command = Command::new(node);
    command.arg("-");
    output(command, program)
}

/// The document that a page has become after its scripts ran.
pub(super) fn render(chromium: &Path, html: &str, hash: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("page.html");
    std::fs::write(&file, html).unwrap();
    let mut command = Command::new(chromium);
    command
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ])
        .args([
            "--disable-dev-shm-usage",
            "--window-size=1280,2000",
            // Idle time is skipped: this is not a wait, but a budget for the page's own timers on a slow machine.
            "--virtual-time-budget=600000",
        ])
        .arg(format!(
            "--user-data-dir={}",
            directory.path().join("profile").display()
        ))
        .arg("--dump-dom")
        .arg(format!("file://{}{hash}", file.display()));
    output(command, "")
}

/// The text of an element without children, its escapes taken back.
pub(super) fn text_of(dom: &str, id: &str) -> String {
    let rest = dom
        .split_once(&format!("id=\"{id}\""))
        .unwrap_or_else(|| panic!("no {id} in {dom}"))
        .1;
    let text = rest.split_once('>').unwrap().1.split_once("</").unwrap().0;
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&amp;", "&")
}
