//! The table for people.

use super::charts::codec_colour;
use super::pivot::{Line, Pivot, Setting};
use crate::core::keys::LoadOrder;
use crate::eval::Workload;
use crate::harness::resident_memory::RESIDENT;
use crate::report::document::Table;
use crate::report::numbers::three_digits;
use crate::report::table::{Best, Marked, ranked};

/// Titles of the tables for people: throughput, latency, cost.
const PARTS: [&str; 3] = ["", "CPU and times", "Work of writes, and memory"];

/// A column: its heading, the table for people it is in, its figures, how they are written, and which end is good.
struct Column {
    heading: String,
    part: usize,
    /// A text and the figure it is ranked by, for each codec.
    cells: Vec<Option<(String, f64)>>,
    best: Best,
}

fn short_name(workload: Workload) -> &'static str {
    match workload {
        Workload::ReadOnly => "read",
        Workload::ReadWrite82 => "8:2",
        Workload::ReadWrite55 => "5:5",
        Workload::ReadWrite28 => "2:8",
        Workload::WriteOnly => "write",
        Workload::Scan => "scan",
        Workload::Crud => "crud",
        Workload::HotSet => "hotset",
    }
}

fn columns(setting: &Setting<'_>) -> Vec<Column> {
    let mut columns = Vec::new();
    let mut push = |part, heading: String, best, figure: &dyn Fn(usize) -> Option<(String, f64)>| {
        columns.push(Column {
            heading,
            part,
            cells: (0..setting.lines.len()).map(figure).collect(),
            best,
        });
    };
    let line = |index: usize| &setting.lines[index];
    for &workload in &setting.workloads {
        push(0, format!("{}\nMops/s", short_name(workload)), Best::Most, &|index| {
            let figure = line(index).mops(workload)?;
            Some((three_digits(figure), figure))
        });
    }
    let main = setting.main_workload();
    push(1, format!("{}\nper core", short_name(main)), Best::Most, &|index| {
        let figure = line(index).mops_per_core(main)?;
        Some((three_digits(figure), figure))
    });
    let microseconds = |ns: u64| (format!("{:.2}", ns as f64 / 1e3), ns as f64);
    if setting.read_workload().is_some() {
        push(1, "read\np99 us".into(), Best::Least, &|index| {
            line(index)
                .read_latency(setting.read_workload())
                .map(|latency| microseconds(latency.p99_ns))
        });
    }
    if setting.write_workload().is_some() {
        push(1, "write\np99 us".into(), Best::Least, &|index| {
            line(index)
                .write_latency(setting.write_workload())
                .map(|latency| microseconds(latency.p99_ns))
        });
    }
    if let Some(workload) = setting.work_workload() {
        for (index, heading) in ["copied/\nput byte", "compr./\nput byte"].into_iter().enumerate() {
            push(2, heading.into(), Best::Least, &|codec| {
                let figure = line(codec).work_per_byte_put(workload)?[index];
                Some((format!("{figure:.2}"), figure))
            });
        }
    }
    push(2, "held/user\nbyte".into(), Best::Least, &|index| {
        line(index).held_per_user_byte().map(spread)
    });
    push(2, "resident/\nuser byte".into(), Best::Least, &|index| {
        line(index).resident_per_user_byte().map(spread)
    });
    columns
}

/// From the least to the most, ranked by the most.
fn spread((least, most): (f64, f64)) -> (String, f64) {
    let (low, high) = (format!("{least:.2}"), format!("{most:.2}"));
    (if low == high { high } else { format!("{low}-{high}") }, most)
}

/// A setting's table, with each codec in its colour.
pub(super) fn table(pivot: &Pivot<'_>, setting: &Setting<'_>) -> Table {
    let columns = columns(setting);
    let headings: Vec<String> = columns.iter().map(|column| column.heading.clone()).collect();
    let parts = [0, 1, 2].map(|part| -> Vec<usize> {
        let of_part = columns.iter().enumerate().filter(|(_, column)| column.part == part);
        of_part.map(|(at, _)| at + 1).collect()
    });
    let parts = [0, 1, 2].map(|part| (PARTS[part], parts[part].as_slice()));
    let codec = |line: &Line<'_>| {
        vec![Marked {
            text: line.codec.clone(),
            best: false,
        }]
    };
    let mut lines: Vec<Vec<Marked>> = setting.lines.iter().map(codec).collect();
    for column in columns {
        for (line, cell) in lines.iter_mut().zip(ranked(column.cells, Some(column.best))) {
            line.push(cell);
        }
    }
    let hues = setting.lines.iter().map(|line| codec_colour(pivot, line));
    Table {
        hues: hues.collect(),
        ..Table::marked(["codec".to_owned()].into_iter().chain(headings), lines).parts(&parts)
    }
}

/// Explanation of the columns of a setting's table.
pub(super) fn caption(setting: &Setting<'_>) -> String {
    let mut caption = format!("Per core: Mops/s of {} per core of CPU time.", setting.main_workload());
    if let Some(workload) = setting.read_workload() {
        caption += &format!(" Read p99: {workload}.");
    }
    if let Some(workload) = setting.write_workload() {
        caption += &format!(" Write p99: {workload}.");
    }
    if let Some(workload) = setting.work_workload() {
        caption += &format!(
            " Copied, compressed: bytes written into the tree's nodes, and bytes compressed for them, per byte of \
             keys and values put; {workload}."
        );
    }
    if setting.workloads.contains(&Workload::Scan) {
        caption += " A scan is one operation.";
    }
    if setting.load_order() == Some(LoadOrder::Sequential) {
        caption += " Loaded in the order of the keys, in bulk.";
    }
    caption += " Held/user byte: all memory of the tree at the end of a run over the keys and values in it, minimum to \
                maximum. ";
    caption += RESIDENT;
    for line in &setting.lines {
        if let Some(why) = line.resident_unknown() {
            caption += &format!(" {} has none: {why}.", line.codec);
        }
        if let Some(chosen) = line.chosen() {
            caption += &format!(" {} chose {chosen}.", line.codec);
        }
    }
    caption
}
