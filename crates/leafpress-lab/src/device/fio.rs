//! Reads a result of fio (`--output-format=json`) instead of probing: fio 3 with nanoseconds, and fio 2 with
//! microseconds as the thesis used it.

use std::path::Path;

use serde_json::{Map, Value};

use super::note::{Note, Topic};
use super::{DeviceError, Latency, Measurement, Operation, Report, Source};

/// Engines that have one request in flight, whatever `iodepth` is.
const SYNCHRONOUS: [&str; 7] = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice"];
/// Longest result that is read, in bytes.
const MAX_BYTES: u64 = 256 << 20;

/// Parses the report of a result of fio: a measurement for each job and direction that did something.
///
/// # Errors
/// [`DeviceError::Fio`] for a file that cannot be read, is not a result of fio, or has neither reads nor writes.
pub fn fio_report(path: &Path) -> Result<Report, DeviceError> {
    let refuse = |reason: String| DeviceError::Fio {
        path: path.to_owned(),
        reason,
    };
    let about = std::fs::metadata(path).map_err(|e| refuse(format!("cannot be read: {e}")))?;
    if !about.is_file() || about.len() > MAX_BYTES {
        return Err(refuse(
            "not a file of plausible size: name a file written by fio --output-format=json --output=FILE".into(),
        ));
    }
    let bytes = std::fs::read(path).map_err(|e| refuse(format!("cannot be read: {e}")))?;
    let text = String::from_utf8_lossy(&bytes);
    let document = document(&text).map_err(refuse)?;
    report(path, &document).map_err(refuse)
}

/// The JSON object in the text: fio may print warnings before and after it.
fn document(text: &str) -> Result<Map<String, Value>, String> {
    let start = if text.starts_with('{') {
        0
    } else {
        text.find("\n{")
            .ok_or("contains no JSON: run fio with --output-format=json")?
            + 1
    };
    let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
    match values.next() {
        Some(Ok(Value::Object(object))) => Ok(object),
        Some(Err(e)) => Err(format!("incomplete JSON: {e}")),
        _ => Err("contains no JSON: run fio with --output-format=json".into()),
    }
}

fn report(path: &Path, document: &Map<String, Value>) -> Result<Report, String> {
    let jobs = document
        .get("jobs")
        .and_then(Value::as_array)
        .ok_or("JSON, but not a result of fio: it has no `jobs`")?;
    let globals = Options(document.get("global options"), None);
    let (mut measurements, mut notes) = (Vec::new(), Vec::new());
    let (mut engines, mut patterns) = (Vec::new(), Vec::new());
    for job in jobs {
        let options = Options(job.get("job options"), globals.0);
        let name = job.get("jobname").and_then(Value::as_str).unwrap_or("?");
        let before = measurements.len();
        for operation in [Operation::Read, Operation::Write] {
            let Some(side) = job.get(operation.to_string()) else {
                continue;
            };
            if side.get("total_ios").and_then(Value::as_f64) != Some(0.0)
                && figure(side, &["iops"]).is_some_and(|iops| iops > 0.0)
            {
                let measured = measurement(operation, side, name, &options);
                measurements.push(measured.map_err(|reason| format!("job {name}: {reason}"))?);
            }
        }
        if let Some(error) = figure(job, &["error"]).filter(|error| *error != 0.0) {
            let text = format!("job {name} ended with error {error}: its measurements may be incomplete");
            notes.push(Note::new(Topic::Fio, text));
        }
        if measurements.len() == before {
            notes.push(Note::new(Topic::Fio, format!("job {name} neither read nor wrote")));
            continue;
        }
        engines.push(options.text("ioengine"));
        patterns.push(options.text("rw").or_else(|| options.text("readwrite")));
        if !options.is_on("direct") {
            let text = format!("job {name} ran without direct=1: its reads may come from the page cache");
            notes.push(Note::new(Topic::PageCache, text));
        }
        let without = measurements[before..]
            .iter()
            .any(|m| m.latency.p50_us.is_none() || m.latency.p99_us.is_none());
        if without {
            notes.push(Note::new(Topic::Fio, format!("job {name} has no p50 or p99 of clat")));
        }
    }
    if measurements.is_empty() {
        return Err("none of its jobs read or wrote anything".into());
    }
    Ok(Report {
        source: Source::Fio {
            path: path.to_owned(),
            version: document
                .get("fio version")
                .and_then(Value::as_str)
                .unwrap_or("fio of an unknown version")
                .to_owned(),
            engine: common(engines),
            pattern: common(patterns),
        },
        host: String::new(),
        measurements,
        notes,
        interrupted: false,
    })
}

/// The one value that all have.
fn common(values: Vec<Option<String>>) -> Option<String> {
    let mut values = values.into_iter();
    let first = values.next()??;
    values.all(|value| value.as_ref() == Some(&first)).then_some(first)
}

fn measurement(operation: Operation, side: &Value, name: &str, options: &Options<'_>) -> Result<Measurement, String> {
    let need = |names: &[&str]| figure(side, names).ok_or_else(|| format!("has no `{}`", names.join(".")));
    let iops = need(&["iops"])?;
    // fio 3 counts bytes in `io_bytes` and `bw_bytes`; fio 2 has KiB in `io_bytes` and `bw`.
    let bandwidth = match figure(side, &["bw_bytes"]) {
        Some(bytes) => bytes,
        None => need(&["bw"])? * 1024.0,
    };
    let block_bytes = options
        .text("bs")
        .or_else(|| options.text("blocksize"))
        .and_then(|text| block_size(&text, operation))
        .unwrap_or_else(|| (bandwidth / iops / 512.0).round() as u64 * 512);
    if block_bytes == 0 {
        return Err("its block size is unknown".into());
    }
    let seconds = figure(side, &["runtime"]).unwrap_or(0.0) / 1e3;
    let operations = figure(side, &["total_ios"]).unwrap_or(iops * seconds) as u64;
    let (latency, per_us) = match (side.get("clat_ns"), side.get("clat")) {
        (Some(clat), _) => (clat, 1e3),
        (None, Some(clat)) => (clat, 1.0),
        (None, None) => return Err("has no clat: was it run with disable_clat?".into()),
    };
    let submit_us = figure(side, &["slat_ns", "mean"])
        .map(|ns| ns / 1e3)
        .or_else(|| figure(side, &["slat", "mean"]));
    // fio has percentiles of what comes after the handing over. What a reader waits is both.
    let whole = |us: f64| us + submit_us.unwrap_or(0.0);
    let us = |name: &str| figure(latency, &[name]).map(|value| whole(value / per_us));
    let percentile = |percent: f64| {
        let all = latency.get("percentile").and_then(Value::as_object)?;
        let found = all
            .iter()
            .find(|(key, _)| key.parse::<f64>().is_ok_and(|key| (key - percent).abs() < 1e-6));
        Some(whole(found?.1.as_f64()? / per_us))
    };
    Ok(Measurement {
        job: Some(name.to_owned()),
        operation,
        block_bytes,
        queue_depth: options.queue_depth(),
        seconds,
        operations,
        iops,
        mb_per_s: bandwidth / 1e6,
        us_per_block: 1e6 / iops,
        latency: Latency {
            samples: figure(latency, &["N"]).map_or(operations, |n| n as u64),
            min_us: us("min").ok_or("its clat has no min")?,
            mean_us: us("mean").ok_or("its clat has no mean")?,
            p50_us: percentile(50.0),
            p90_us: percentile(90.0),
            p99_us: percentile(99.0),
            p999_us: percentile(99.9),
            p9999_us: percentile(99.99),
            max_us: us("max").ok_or("its clat has no max")?,
        },
        random_latency: None,
        submit_us: submit_us.filter(|us| *us > 0.0),
        tenths: Vec::new(),
        cores: None,
    })
}

/// A finite number that is not negative, some levels down.
fn figure(value: &Value, names: &[&str]) -> Option<f64> {
    let found = names.iter().try_fold(value, |value, name| value.get(name))?;
    found.as_f64().filter(|figure| figure.is_finite() && *figure >= 0.0)
}

/// A job's options, falling back to the global ones.
struct Options<'v>(Option<&'v Value>, Option<&'v Value>);

impl Options<'_> {
    fn text(&self, name: &str) -> Option<String> {
        let value = [self.0, self.1]
            .into_iter()
            .flatten()
            .find_map(|options| options.get(name))?;
        match value {
            Value::String(text) => Some(text.trim().to_owned()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(on) => Some(u8::from(*on).to_string()),
            _ => None,
        }
    }

    /// A flag, which may have no value.
    fn is_on(&self, name: &str) -> bool {
        self.text(name).is_some_and(|value| value != "0")
    }

    fn queue_depth(&self) -> u32 {
        let number = |name| {
            self.text(name)
                .and_then(|text| text.parse::<u32>().ok())
                .unwrap_or(1)
                .max(1)
        };
        let synchronous = self
            .text("ioengine")
            .is_none_or(|engine| SYNCHRONOUS.contains(&engine.as_str()));
        let depth = if synchronous { 1 } else { number("iodepth") };
        // Jobs reported together work side by side.
        let jobs = if self.is_on("group_reporting") {
            number("numjobs")
        } else {
            1
        };
        depth.saturating_mul(jobs)
    }
}

/// fio's `bs`: one size, or sizes of reads, writes and trims. Units are powers of 1024 unless the job says otherwise,
/// which is seldom.
fn block_size(text: &str, operation: Operation) -> Option<u64> {
    let sizes: Vec<&str> = text.split(',').collect();
    let size = match operation {
        Operation::Read => sizes.first(),
        Operation::Write => sizes.get(1).filter(|size| !size.is_empty()).or(sizes.first()),
    }?;
    let size = size.trim().to_ascii_lowercase();
    let end = size.find(|c: char| !c.is_ascii_digit()).unwrap_or(size.len());
    let (number, unit) = size.split_at(end);
    let shift = match unit {
        "" | "b" => 0,
        "k" | "kb" | "ki" | "kib" => 10,
        "m" | "mb" | "mi" | "mib" => 20,
        _ => return None,
    };
    number
        .parse::<u64>()
        .ok()?
        .checked_mul(1 << shift)
        .filter(|bytes| *bytes > 0)
}

#[cfg(test)]
#[path = "fio_tests.rs"]
mod tests;
