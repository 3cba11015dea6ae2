//! `leafpress doctor`: checks IAA, QPL, zlib-accel, direct I/O and hardware counters, and suggests fixes.
//!
//! Nothing is changed. Facilities are tried where possible: devices are opened, io_uring is set up, a counter counts, a
//! file is written.

mod accelerator;
mod cpu;
mod finding;
mod kernel;
mod libraries;
mod memory;
mod root;
mod storage;
mod zlib_accel;

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use leafpress_lab::report::wrapped;

use self::finding::{Finding, Status};
use self::root::Root;
use crate::failure::Failure;
use crate::output;

/// Arguments of `leafpress doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Directory in which to try direct I/O (a small file is written there and removed)
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Read /sys, /proc, /dev and /etc under this directory
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
}

pub fn run(args: &DoctorArgs) -> Result<(), Failure> {
    for (option, directory) in [("--dir", &args.dir), ("--root", &args.root)] {
        if !directory.is_dir() {
            return Err(Failure::bad_input(format!(
                "{option} {}: not a directory; name an existing one",
                directory.display()
            )));
        }
    }
    let findings = examine(&Root::new(&args.root), args);
    if args.json {
        output::print(&(serde_json::to_string_pretty(&findings).map_err(|e| Failure::failed(e.to_string()))? + "\n"))
    } else {
        output::print(&table(&findings))
    }
}

fn examine(root: &Root, args: &DoctorArgs) -> Vec<Finding> {
    let mut findings = cpu::examine(root);
    findings.extend(accelerator::examine(root));
    findings.extend(libraries::examine());
    // A library preloaded into this process says nothing about a test's tree.
    let preload = if root.is_real() {
        std::env::var_os("LD_PRELOAD")
    } else {
        None
    };
    findings.extend(zlib_accel::examine(root, preload));
    findings.extend(memory::examine(root));
    findings.extend(storage::examine(&args.dir));
    findings.extend(kernel::examine(root));
    findings
}

fn table(findings: &[Finding]) -> String {
    let mut text = String::new();
    let mut area = "";
    for finding in findings {
        if finding.area != area {
            if !area.is_empty() {
                text.push('\n');
            }
            area = finding.area;
            let _ = writeln!(text, "{area}");
        }
        let status = format!("  {:<10}  ", finding.status.words());
        let below = " ".repeat(status.len());
        text += &wrapped(&format!("{}: {}", finding.what, finding.detail), &status, &below);
        if let Some(fix) = &finding.fix {
            text += &wrapped(&format!("fix: {fix}"), &below, &below);
        }
    }
    let count = |status| findings.iter().filter(|finding| finding.status == status).count();
    let sum = format!(
        "{} ok, {} not found (optional), {} not usable. Fix only what you want to use: the CPU codecs need none of it.",
        count(Status::Ok),
        count(Status::Missing),
        count(Status::NotUsable)
    );
    text + "\n" + &wrapped(&sum, "", "")
}
