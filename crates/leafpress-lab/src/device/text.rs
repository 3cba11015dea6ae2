//! The report for people: the probe, the table, and its caveats.

use std::fmt::Write;

use super::{Probed, Report, Source, Subject, tables};
use crate::core::Bytes;
use crate::report::paragraph::wrapped;

/// The whole report.
pub fn text(report: &Report) -> String {
    let mut text = super::verdict::verdict(report).map_or_else(String::new, |verdict| wrapped(&verdict, "", "") + "\n");
    text += &head(report);
    let _ = writeln!(text, "\n{}", tables::table(report));
    text += &legend(report);
    for note in &report.notes {
        let _ = writeln!(text, "! {}", note.text);
    }
    if report.interrupted {
        text += "INTERRUPTED: only finished measurements are shown.\n";
    }
    text
}

/// Describes the probe, in some lines.
pub(super) fn head(report: &Report) -> String {
    match &report.source {
        Source::Probe(probed) => of_probe(probed, &report.host),
        Source::Fio {
            path,
            version,
            engine,
            pattern,
        } => {
            let more: Vec<_> = [pattern, engine].into_iter().flatten().map(String::as_str).collect();
            let more = if more.is_empty() {
                String::new()
            } else {
                format!(": {}", more.join(", "))
            };
            format!("{}, a result of {version}{more}\n", path.display())
        }
    }
}

fn of_probe(probed: &Probed, host: &str) -> String {
    let options = &probed.options;
    let subject = match probed.subject {
        Subject::ProbeFile => format!("a temporary file of {}, random bytes", Bytes(probed.bytes)),
        Subject::File => format!("{} of the file, read only", Bytes(probed.bytes)),
        Subject::BlockDevice => format!("{} of the block device, read only", Bytes(probed.bytes)),
    };
    let direct = match &probed.direct {
        Ok(()) => "direct I/O".to_owned(),
        Err(reason) => format!("no direct I/O ({reason})"),
    };
    format!(
        "{}: {subject}\non {}\n{direct} through {} · {} · {} s each · {host}\n",
        options.path.display(),
        beneath(probed),
        probed.engine,
        pattern(probed),
        options.seconds
    )
}

/// The file system and the disk.
fn beneath(probed: &Probed) -> String {
    let medium = &probed.medium;
    let mut parts = Vec::new();
    parts.extend(medium.file_system.clone());
    parts.extend(medium.device.clone());
    parts.extend(medium.model.clone());
    if let Some(file) = &medium.backing_file {
        parts.push(format!("the file {}", file.display()));
        return parts.join(", ");
    }
    match (medium.rotational, medium.virtual_by.as_deref()) {
        // A hypervisor's report is unreliable.
        (_, Some(by)) => parts.push(format!("a virtual disk ({by})")),
        (Some(true), None) => parts.push("a rotating disk".into()),
        (Some(false), None) => parts.push("not a rotating disk".into()),
        (None, None) => {}
    }
    if parts.is_empty() {
        "an unknown medium".into()
    } else {
        parts.join(", ")
    }
}

/// The order of places, in fio's words too.
fn pattern(probed: &Probed) -> String {
    match probed.options.run_blocks() {
        None => "all sequential, as fio's rw=read".into(),
        Some(1) => "all at random offsets, as fio's rw=randread".into(),
        Some(run) => format!(
            "one in {run} at a random offset, {:.1}% sequential, as fio's rw=randread:{run}",
            (run - 1) as f64 / run as f64 * 100.0
        ),
    }
}

/// Explanation of the columns.
pub(super) fn legend(report: &Report) -> String {
    let mut text = String::from(
        "us per block: 1 / IOPS, the reciprocal of throughput; with several requests in flight it is not latency.\n\
         min to max: latency of a request, from before its submission until its completion is seen, as fio's lat.\n",
    );
    let submits: Vec<f64> = report.measurements.iter().filter_map(|m| m.submit_us).collect();
    if let (Some(least), Some(most)) = (
        submits.iter().copied().reduce(f64::min),
        submits.iter().copied().reduce(f64::max),
    ) {
        let (least, most) = (format!("{least:.1}"), format!("{most:.1}"));
        let range = if least == most {
            least
        } else {
            format!("{least} to {most}")
        };
        let _ = writeln!(text, "Submission (fio's slat) takes {range} us of that on average.");
        if matches!(report.source, Source::Fio { .. }) {
            text += "Percentiles of fio exclude it; its mean was added to them.\n";
        }
    }
    text
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
