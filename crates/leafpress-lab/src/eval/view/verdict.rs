//! Verdict of an evaluation: each codec vs no compression, or alone.

use leafpress::Codec;

use super::pivot::{Line, Pivot, Setting, held_per_user_byte};
use crate::eval::Workload;
use crate::report::numbers::three_digits;
use crate::report::verdict::{Noun, change, ratio};

/// A line for each codec of the first setting.
pub(super) fn verdicts(pivot: &Pivot<'_>) -> Vec<String> {
    let Some(setting) = pivot.settings.first() else {
        return Vec::new();
    };
    let is_raw = |line: &&Line<'_>| line.codec.parse().is_ok_and(|codec: Codec| codec == Codec::None);
    let raw = setting.lines.iter().find(is_raw);
    let codecs = setting.lines.iter().filter(|line| !is_raw(line));
    match raw {
        Some(raw) if setting.lines.len() > 1 => codecs.filter_map(|line| compared(setting, line, raw)).collect(),
        _ => setting.lines.iter().filter_map(|line| alone(setting, line)).collect(),
    }
}

/// Memory that is held for each byte of keys and values at the end of a workload.
fn held(line: &Line<'_>, workload: Workload) -> Option<f64> {
    line.row(workload).and_then(held_per_user_byte)
}

/// The throughput of a workload over that without compression: for the CPU time it takes if that is known, which other
/// work on the machine does not change, else by the clock.
fn speed(line: &Line<'_>, raw: &Line<'_>, workload: Workload) -> Option<f64> {
    let per_core = ratio(line.mops_per_core(workload), raw.mops_per_core(workload));
    per_core.or_else(|| ratio(line.mops(workload), raw.mops(workload)))
}

/// A sentence has figures of one workload: the main one, and then the one that loses most.
fn compared(setting: &Setting<'_>, line: &Line<'_>, raw: &Line<'_>) -> Option<String> {
    let main = setting.main_workload();
    let first = changes(line, raw, main)?;
    let of_all = setting.workloads.iter();
    let speeds = of_all.filter_map(|&workload| Some((workload, speed(line, raw, workload)?)));
    let worst = speeds.min_by(|(_, one), (_, other)| one.total_cmp(other));
    let worst = worst.filter(|(workload, _)| *workload != main);
    let worst = worst.and_then(|(workload, _)| Some(format!(" Worst, {workload}: {}.", changes(line, raw, workload)?)));
    Some(format!(
        "{} vs none, {main}: {first}.{}",
        line.codec,
        worst.unwrap_or_default()
    ))
}

/// Memory and speed in one workload, in words.
fn changes(line: &Line<'_>, raw: &Line<'_>, workload: Workload) -> Option<String> {
    let changes = [
        ratio(held(line, workload), held(raw, workload)).map(|ratio| change(ratio, Noun::Quantity("memory held"))),
        ratio(line.mops(workload), raw.mops(workload))
            .map(|ratio| change(ratio, Noun::Number("operations per second"))),
        ratio(line.mops_per_core(workload), raw.mops_per_core(workload))
            .map(|ratio| change(ratio, Noun::Number("per core"))),
    ];
    let changes: Vec<String> = changes.into_iter().flatten().collect();
    (!changes.is_empty()).then(|| changes.join(", "))
}

fn alone(setting: &Setting<'_>, line: &Line<'_>) -> Option<String> {
    let main = setting.main_workload();
    let memory = held(line, main)?;
    let speed = line.mops(main)?;
    Some(format!(
        "{}: {memory:.2} bytes of memory per byte of keys and values, {} Mops/s ({main}).",
        line.codec,
        three_digits(speed),
    ))
}
