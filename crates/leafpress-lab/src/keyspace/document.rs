//! The report of a survey.

use maud::Markup;

use super::groups::{Estimate, Group};
use super::survey::Survey;
use crate::core::{LabError, about};
use crate::report::document::{Document, Table};
use crate::report::draw::{Bars, bars};
use crate::report::html::{all, figure, legend};
use crate::report::numbers::{percent, thousands, three_digits};
use crate::report::palette::colours;
use crate::report::{NOT_APPLICABLE, tsv};

/// A group for which the module takes less than this share of today's memory is worth moving.
const WORTH: f64 = 0.9;
/// Rows of the table of groups.
const MAX_ROWS: usize = 24;
/// Groups of the chart.
const MAX_BARS: usize = 8;
const GIB: f64 = (1_u64 << 30) as f64;
const MIB: f64 = (1_u64 << 20) as f64;

const NOTES: [&str; 6] = [
    "<b>Memory</b> is that of <code>MEMORY USAGE</code>: the value, the name, and the key's entry. A server's tables, \
     buffers and fragmentation come on top, and stay.",
    "<b>LZ4 by clients</b>: programs compress each string, and each value of a hash, where that makes it shorter.",
    "<b>Module</b>: the values that were read are put into a tree of the module's default settings, as the module \
     stores them, and its memory is projected to all keys. Every key keeps its name and its entry in the server.",
    "<b>On SSD</b>: the compressed records of a cache with a disk tier, which needs about two bytes of memory for \
     each.",
    "<b>Idle</b> is the time since the last use; servers with an LFU policy do not tell it.",
    "The time that the servers were busy is an upper bound: the time of each batch of commands, less the shortest \
     round trip.",
];

impl Group {
    /// Returns the estimate if the module saves enough memory.
    fn gain(&self) -> Option<&Estimate> {
        self.estimate
            .as_ref()
            .filter(|estimate| estimate.module_bytes < WORTH * self.bytes)
    }

    /// Returns the group's name in a table.
    fn label(&self, has_databases: bool) -> String {
        let name = match (self.prefix.as_str(), self.is_rest) {
            ("", _) => "(other names)".to_owned(),
            (prefix, true) => format!("{prefix}* (others)"),
            (prefix, false) => format!("{prefix}*"),
        };
        match has_databases {
            true => format!("{name} in {}", self.database),
            false => name,
        }
    }

    /// Why it is not worth moving to the module.
    fn reason(&self) -> String {
        match (&self.estimate, self.kind.is_of_module()) {
            (_, false) => format!("the module has no type {}", self.kind.name()),
            (None, true) => "no value could be read".to_owned(),
            (Some(estimate), true) => match self.bytes / self.keys.max(1.0) {
                mean if mean < 128.0 => {
                    format!("the keys' names and entries outweigh values of {} in all", about(mean))
                }
                _ => format!(
                    "it would take {}% of today's memory",
                    percent(estimate.module_bytes / self.bytes, 0)
                ),
            },
        }
    }
}

/// Builds the report. Its table for programs is `summary.tsv`, a line for each prefix and type.
pub fn document(survey: &Survey) -> Document<'_> {
    let mut document = Document::new("Leafpress: memory of a server's keys");
    document.how = "estimated";
    document.verdicts = verdicts(survey);
    document.cautions = cautions(survey);
    document.head = head(survey);
    document.troubles.extend(
        survey
            .failure
            .iter()
            .map(|failure| format!("The survey ended early: {failure}")),
    );
    document.notes.extend(NOTES);
    document.page_only(|| chart(survey));
    document.table(groups(survey));
    if survey.groups.len() > MAX_ROWS {
        let more = survey.groups.len() - MAX_ROWS;
        document.caption(format!("and {more} more, which summary.tsv has"));
    }
    let settings = settings(survey);
    if !settings.is_empty() {
        document
            .paragraph("The module takes over these prefixes, for clients that know nothing of it, with the settings");
        document.paragraph(settings.join("   "));
    }
    for line in [unset(survey), unworthy(survey)].into_iter().flatten() {
        document.paragraph(line);
    }
    document.heading(match survey.is_complete {
        true => "The largest keys",
        false => "The largest keys of the sample",
    });
    document.table(largest(survey));
    document.tsv("summary", "summary.tsv", || summary(survey));
    document.results(survey);
    document
}

/// The memory of groups that are worth moving: now, and with the module.
fn worth(survey: &Survey) -> (f64, f64) {
    let gains = survey
        .groups
        .iter()
        .filter_map(|group| Some((group.bytes, group.gain()?.module_bytes)));
    gains.fold((0.0, 0.0), |(before, after), (bytes, module)| {
        (before + bytes, after + module)
    })
}

fn verdicts(survey: &Survey) -> Vec<String> {
    let (before, after) = worth(survey);
    let after = after + survey.module_fixed_bytes;
    let now = format!(
        "{} keys take {}.",
        thousands(survey.keys.round() as u64),
        about(survey.bytes)
    );
    let saved = before - after;
    if saved <= 0.0 {
        return vec![format!(
            "{now} The Leafpress module would not save memory: the reasons are below the table."
        )];
    }
    let money = survey.memory_gib_cost.map_or_else(String::new, |cost| {
        format!(", worth {:.2} a month at {cost} for each GiB", saved / GIB * cost)
    });
    let mut verdicts = vec![format!(
        "{now} With the Leafpress module, {} of it would take {}: {} less, {}% of the memory of all keys{money}.",
        about(before),
        about(after),
        about(saved),
        percent(saved / survey.bytes, 0)
    )];
    let of_client = |group: &Group| Some(group.bytes - group.estimate.as_ref()?.client_lz4_bytes);
    let by_clients: f64 = survey.groups.iter().filter_map(of_client).sum();
    verdicts.push(format!(
        "Clients that compress each value with LZ4 would save {} ({}%).",
        about(by_clients.max(0.0)),
        percent(by_clients.max(0.0) / survey.bytes, 0)
    ));
    let idle: f64 = survey
        .groups
        .iter()
        .filter_map(|group| Some(group.bytes * group.idle_a_day_share?))
        .sum();
    if idle >= 0.05 * survey.bytes {
        verdicts.push(format!(
            "{} ({}%) were not used for a day: a cache with a disk tier would keep them on an SSD.",
            about(idle),
            percent(idle / survey.bytes, 0)
        ));
    }
    verdicts
}

fn cautions(survey: &Survey) -> Vec<String> {
    let mut cautions = Vec::new();
    if survey.is_interrupted {
        cautions.push("It was interrupted: the figures are those of the keys that had been looked at.".to_owned());
    }
    if survey.is_in_scan_order {
        cautions.push(
            "The user may not run RANDOMKEY: the sample is the beginning of a scan, which need not resemble all keys."
                .to_owned(),
        );
    }
    if survey.bytes_error > 0.1 {
        cautions.push(format!(
            "Few large keys dominate the sample, so that memory is known to ±{}% only: --sample-keys all looks at all \
             keys.",
            percent(survey.bytes_error, 0)
        ));
    }
    if survey.denied > 0 {
        cautions.push(format!(
            "{} of the keys that were looked at are not for this user; they are left out.",
            thousands(survey.denied)
        ));
    }
    if survey.has_touched {
        cautions.push(
            "The server has no CLIENT NO-TOUCH, or the user may not run it: looking at a key counted as a use of it."
                .to_owned(),
        );
    }
    cautions
}

fn head(survey: &Survey) -> Vec<String> {
    let mut head: Vec<String> = survey
        .servers
        .iter()
        .map(|server| {
            let keys: u64 = server.databases.iter().map(|(_, keys)| keys).sum();
            let limit = match server.maxmemory {
                0 => "no limit".to_owned(),
                limit => format!("limit {}, {}", about(limit as f64), server.policy),
            };
            format!(
                "{} at {}: {} keys, {} of memory in use ({limit})",
                server.version,
                server.address,
                thousands(keys),
                about(server.used_memory as f64)
            )
        })
        .collect();
    let sample = match survey.is_complete {
        true => format!("All {} keys were looked at", thousands(survey.sampled)),
        false => format!(
            "{} random keys were looked at, so that the memory is known to ±{}% (95%)",
            thousands(survey.sampled),
            percent(survey.bytes_error, 1)
        ),
    };
    head.push(format!(
        "{sample}; {} of values were read",
        about(survey.read_bytes as f64)
    ));
    head.push(format!(
        "{} commands were sent, all of which only read. They kept the servers busy for {:.2} s at most, {}% of a core",
        thousands(survey.spent.commands),
        survey.spent.busy_s,
        three_digits(100.0 * survey.cpu_share)
    ));
    head
}

fn has_databases(survey: &Survey) -> bool {
    let databases = survey.servers.iter().flat_map(|server| &server.databases);
    databases.map(|(number, _)| number).max() > Some(&0)
}

fn groups(survey: &Survey) -> Table {
    let headings = [
        "prefix",
        "type",
        "keys",
        "memory",
        "memory\n%",
        "a key\nbytes",
        "with TTL\n%",
        "idle\nmedian",
        "LZ4 by\nclients",
        "module",
        "module\n% of now",
        "on SSD",
    ];
    let row = |group: &Group| {
        let of = |figure: &dyn Fn(&Estimate) -> String| {
            group
                .estimate
                .as_ref()
                .map_or_else(|| NOT_APPLICABLE.to_owned(), figure)
        };
        vec![
            group.label(has_databases(survey)),
            group.kind.name().to_owned(),
            thousands(group.keys.round() as u64),
            about(group.bytes),
            percent(group.bytes / survey.bytes, 1),
            thousands((group.bytes / group.keys.max(1.0)).round() as u64),
            percent(group.ttl_share, 0),
            group.median_idle_s.map_or_else(|| NOT_APPLICABLE.to_owned(), duration),
            of(&|estimate| about(estimate.client_lz4_bytes)),
            of(&|estimate| about(estimate.module_bytes)),
            of(&|estimate| percent(estimate.module_bytes / group.bytes, 0)),
            of(&|estimate| about(estimate.ssd_bytes)),
        ]
    };
    Table {
        words: 2,
        ..Table::new(headings, survey.groups.iter().take(MAX_ROWS).map(row))
    }
}

/// The memory of the largest groups that the module can have: now, compressed by clients, and with the module.
fn chart(survey: &Survey) -> Result<Markup, LabError> {
    let estimated = survey.groups.iter().filter_map(|group| Some((group, group.estimate?)));
    let shown: Vec<(&Group, Estimate)> = estimated.take(MAX_BARS).collect();
    let labels: Vec<String> = shown
        .iter()
        .map(|(group, _)| group.label(has_databases(survey)))
        .collect();
    let hues = colours([Some("none"), Some("lz4"), Some("trial")]);
    let svg = bars(&Bars {
        name: "memory by prefix",
        size: (960, 300),
        unit: "MiB",
        groups: &labels.iter().map(String::as_str).collect::<Vec<_>>(),
        colours: &hues,
        figure: &|group, bar| {
            let (group, estimate) = shown.get(group)?;
            Some([group.bytes, estimate.client_lz4_bytes, estimate.module_bytes].get(bar)? / MIB)
        },
    })?;
    let names = ["now", "LZ4 by clients", "module"];
    let parts = svg.map(|svg| {
        [
            legend(hues.iter().copied().zip(names)),
            figure("Memory by prefix", &svg),
        ]
    });
    Ok(all(&parts.into_iter().flatten().collect::<Vec<_>>()))
}

/// A time in its largest unit.
fn duration(seconds: u64) -> String {
    match seconds {
        172_800.. => format!("{} d", seconds / 86_400),
        7200.. => format!("{} h", seconds / 3600),
        120.. => format!("{} min", seconds / 60),
        _ => format!("{seconds} s"),
    }
}

/// Returns whether the group's prefix, as a setting of the module, takes keys for which it is worth it, and no others.
fn is_setting(group: &Group, survey: &Survey) -> bool {
    let takes = |other: &Group| other.kind == group.kind && other.prefix.starts_with(&group.prefix);
    let has_others = survey.groups.iter().any(|other| takes(other) && other.gain().is_none());
    !has_others && !group.prefix.is_empty() && !group.prefix.contains([' ', '\\', '"'])
}

/// The module's settings for the prefixes that are worth it.
fn settings(survey: &Survey) -> Vec<String> {
    let of = |kind: &str| {
        let gains = survey
            .groups
            .iter()
            .filter(|group| group.kind.name() == kind && group.gain().is_some());
        let prefixes = gains.filter(|group| is_setting(group, survey));
        let mut prefixes: Vec<&str> = prefixes.map(|group| group.prefix.as_str()).collect();
        prefixes.sort_unstable();
        prefixes.dedup();
        prefixes.join(" ")
    };
    let settings = [("hash", of("hash")), ("string", of("string"))];
    let settings = settings.into_iter().filter(|(_, prefixes)| !prefixes.is_empty());
    settings
        .map(|(kind, prefixes)| format!("leafpress.{kind}-prefixes \"{prefixes}\""))
        .collect()
}

/// Groups that are worth it, and whose prefix is none that the module can be given.
fn unset(survey: &Survey) -> Option<String> {
    let groups = survey
        .groups
        .iter()
        .filter(|group| group.gain().is_some() && !is_setting(group, survey));
    let names: Vec<String> = groups
        .map(|group| format!("{} ({})", group.label(has_databases(survey)), group.kind.name()))
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "Worth it too, but the prefix would take other keys as well, or cannot be written as a setting: {}.",
            names.join(", ")
        )
    })
}

fn unworthy(survey: &Survey) -> Option<String> {
    let of = |group: &Group| {
        format!(
            "{} ({}): {}",
            group.label(has_databases(survey)),
            group.kind.name(),
            group.reason()
        )
    };
    let groups = survey.groups.iter().filter(|group| group.gain().is_none());
    let reasons: Vec<String> = groups.take(MAX_ROWS).map(of).collect();
    (!reasons.is_empty()).then(|| format!("Not worth it: {}.", reasons.join("; ")))
}

fn largest(survey: &Survey) -> Table {
    let rows = survey.largest.iter().map(|key| {
        vec![
            shortened(&key.name),
            key.kind.clone(),
            key.database.to_string(),
            about(key.bytes as f64),
            thousands(key.length),
        ]
    });
    Table {
        words: 2,
        ..Table::new(["key", "type", "database", "memory", "length"], rows)
    }
}

/// The beginning of a long name.
fn shortened(name: &str) -> String {
    const MAX: usize = 48;
    match name.chars().count() {
        ..=MAX => name.to_owned(),
        _ => name.chars().take(MAX - 3).chain("...".chars()).collect(),
    }
}

fn summary(survey: &Survey) -> String {
    let names = [
        "database",
        "prefix",
        "is_rest",
        "type",
        "sampled",
        "keys",
        "bytes",
        "length",
        "ttl_share",
        "median_ttl_s",
        "median_idle_s",
        "idle_a_day_share",
        "values_read",
        "client_lz4_bytes",
        "module_bytes",
        "ssd_bytes",
    ];
    let row = |group: &Group| {
        let of = |figure: &dyn Fn(&Estimate) -> f64| {
            group
                .estimate
                .as_ref()
                .and_then(|estimate| tsv::number(figure(estimate), 0))
        };
        vec![
            tsv::word(group.database),
            tsv::word(&group.prefix),
            tsv::word(group.is_rest),
            tsv::word(group.kind.name()),
            tsv::word(group.sampled),
            tsv::number(group.keys, 0),
            tsv::number(group.bytes, 0),
            tsv::number(group.length, 0),
            tsv::number(group.ttl_share, 4),
            group.median_ttl_s.and_then(tsv::word),
            group.median_idle_s.and_then(tsv::word),
            group.idle_a_day_share.and_then(|share| tsv::number(share, 4)),
            of(&|estimate| estimate.values as f64),
            of(&|estimate| estimate.client_lz4_bytes),
            of(&|estimate| estimate.module_bytes),
            of(&|estimate| estimate.ssd_bytes),
        ]
    };
    tsv::table(names, survey.groups.iter().map(row))
}
