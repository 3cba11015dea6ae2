//! What an evaluation came to: each codec beside no compression, or by itself.

use super::pivot::{Line, Pivot, Setting};
use crate::report::numbers::three_digits;
use crate::report::verdict::{Noun, against, change, ratio};

/// A line for each codec of the first setting.
pub(super) fn verdicts(pivot: &Pivot<'_>) -> Vec<String> {
    let Some(setting) = pivot.settings.first() else {
        return Vec::new();
    };
    let raw = setting.lines.iter().find(|line| line.codec == "none");
    let codecs = setting.lines.iter().filter(|line| line.codec != "none");
    match raw {
        Some(raw) if setting.lines.len() > 1 => codecs.filter_map(|line| beside(setting, line, raw)).collect(),
        _ => setting.lines.iter().filter_map(|line| alone(setting, line)).collect(),
    }
}

/// All memory over the keys and values, at the most.
fn held(line: &Line<'_>) -> Option<f64> {
    line.held_per_user_byte().map(|(_, most)| most)
}

fn beside(setting: &Setting<'_>, line: &Line<'_>, raw: &Line<'_>) -> Option<String> {
    let mut changes = vec![ratio(held(line), held(raw)).map(|ratio| change(ratio, Noun::Quantity("memory")))];
    for &workload in &setting.workloads {
        let speed = ratio(line.mops(workload), raw.mops(workload));
        let noun = Noun::Number("operations per second");
        changes.push(speed.map(|ratio| format!("{} ({workload})", change(ratio, noun))));
        // The two ends of the mix are enough for a line.
        if changes.len() > 2 {
            break;
        }
    }
    against(&line.codec, "none", changes)
}

fn alone(setting: &Setting<'_>, line: &Line<'_>) -> Option<String> {
    let memory = ratio(held(line), Some(1.0))?;
    let speed = line.mops(setting.main_workload())?;
    Some(format!(
        "{}: {memory:.2} bytes of memory for each byte of keys and values, {} Mops/s ({}).",
        line.codec,
        three_digits(speed),
        setting.main_workload()
    ))
}
