//! `leafpress codecs`: lists every codec, its availability, a self-test, and its speed on a sample.

mod measure;
mod self_test;

use std::collections::HashMap;
use std::ffi::OsString;

use clap::Args;
use leafpress::codec::{Engine, EngineOptions};
use leafpress::{Codec, CodecError, Dictionary};
use leafpress_console::words::list;
use leafpress_lab::core::Bytes;
use leafpress_lab::core::corpus::{Corpus, Cut, Source};
use leafpress_lab::report::{of_parts, wrapped};
use leafpress_lab::suite;
use serde::Serialize;

use self::measure::Speed;
use crate::failure::Failure;
use crate::output;

/// Dictionary size for the last column, in bytes.
const DICTIONARY_BYTES: usize = 16 << 10;

/// Every codec processes all of the data several times; larger data is sampled.
const MAX_BYTES: u64 = 32 << 20;

/// Arguments of `leafpress codecs`.
#[derive(Debug, Args)]
pub struct CodecsArgs {
    /// Only these codecs, separated by commas or spaces
    #[arg(short = 'c', long, value_name = "LIST", num_args = 1..)]
    codecs: Option<Vec<String>>,
    /// Data to measure on: file, directory, archive, bundled sample, or synthetic:SHARE
    #[arg(long, value_name = "DATA", default_value = "packages")]
    data: OsString,
    /// Measure an archive's own, compressed bytes instead of opening it
    #[arg(long)]
    raw: bool,
    /// Raw bytes compressed at a time, 64 to 1048576
    #[arg(long, value_name = "BYTES", default_value = "1K", value_parser = Bytes::parse_usize)]
    frame_bytes: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A line of the report.
#[derive(Debug, Serialize)]
struct Line {
    codec: String,
    available: bool,
    /// The reason, if it is not available.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The implementation.
    #[serde(skip_serializing_if = "Option::is_none")]
    engine: Option<&'static str>,
    /// The library behind it and its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    provided_by: Option<String>,
    /// `ok`, or what went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    self_test: Option<String>,
    /// Absent for codecs that compress only with a dictionary.
    #[serde(skip_serializing_if = "Option::is_none")]
    speed: Option<Speed>,
    /// Raw bytes per compressed byte with a trained dictionary; absent for codecs without dictionaries.
    #[serde(skip_serializing_if = "Option::is_none")]
    dictionary_ratio: Option<f64>,
}

pub fn run(args: &CodecsArgs) -> Result<(), Failure> {
    let codecs = chosen(args)?;
    if !(64..=1 << 20).contains(&args.frame_bytes) {
        return Err(Failure::bad_input(format!(
            "--frame-bytes: {} is not between 64 and 1048576",
            args.frame_bytes
        )));
    }
    let source = Source::named(&args.data).map_err(|e| Failure::bad_input(format!("--{e}")))?;
    let corpus = Corpus::load_at_most(&source, Cut::Fixed(args.frame_bytes), args.raw, 1, MAX_BYTES)
        .map_err(|e| Failure::bad_input(format!("--{e}")))?;
    let frames: Vec<&[u8]> = (0..corpus.count()).map(|i| corpus.get(i)).collect();

    let library = Codec::list()
        .into_iter()
        .map(|known| (known.codec.family(), known.provided_by))
        .collect();
    let lines: Vec<Line> = codecs.iter().map(|codec| examine(*codec, &library, &frames)).collect();
    let text = if args.json {
        serde_json::to_string_pretty(&lines).map_err(|e| Failure::failed(e.to_string()))? + "\n"
    } else {
        table(&lines, args, &corpus)
    };
    let printed = if args.json {
        output::print(&text)
    } else {
        output::print_report(&text)
    };
    match lines
        .iter()
        .find(|line| line.self_test.as_deref().is_some_and(|test| test != "ok"))
    {
        Some(line) => Err(Failure::failed(format!("the self-test of {} failed", line.codec))),
        None => printed,
    }
}

fn chosen(args: &CodecsArgs) -> Result<Vec<Codec>, Failure> {
    let words = match &args.codecs {
        Some(words) => list(words),
        None => return Ok(Codec::list().iter().map(|availability| availability.codec).collect()),
    };
    if words.is_empty() {
        return Err(Failure::bad_input("--codecs: the list is empty"));
    }
    words
        .iter()
        .map(|word| word.parse().map_err(|e| Failure::bad_input(format!("--codecs: {e}"))))
        .collect()
}

fn examine(codec: Codec, library: &HashMap<&str, Option<String>>, frames: &[&[u8]]) -> Line {
    let mut line = Line {
        codec: codec.to_string(),
        available: false,
        reason: None,
        engine: None,
        provided_by: library.get(codec.family()).cloned().flatten(),
        self_test: None,
        speed: None,
        dictionary_ratio: None,
    };
    let engine = match codec.open(&EngineOptions::default()) {
        Ok(engine) => engine,
        Err(e) => {
            line.reason = Some(match e {
                CodecError::Unavailable { reason, .. } => reason,
                e => e.to_string(),
            });
            return line;
        }
    };
    line.available = true;
    line.engine = Some(engine.engine_name());
    let measured = self_test::run(&*engine, frames).and_then(|()| measure::speed(&engine, frames));
    match measured {
        Ok(speed) => {
            // Without a dictionary some codecs only copy, which says nothing about them.
            line.speed = (codec == Codec::None || suite::compresses(&line.codec)).then_some(speed);
            line.self_test = Some("ok".into());
            line.dictionary_ratio = dictionary_ratio(codec, &*engine, frames);
        }
        Err(e) => line.self_test = Some(e),
    }
    line
}

/// `None` when the codec takes no dictionary, or the sample is too small to train one.
fn dictionary_ratio(codec: Codec, engine: &dyn Engine, frames: &[&[u8]]) -> Option<f64> {
    if !engine.supports_dictionary() {
        return None;
    }
    // Trained on every fourth frame and measured on the others, to avoid overfitting.
    let part = |wanted: fn(usize) -> bool| -> Vec<&[u8]> {
        frames
            .iter()
            .enumerate()
            .filter(|(i, _)| wanted(*i))
            .map(|(_, frame)| *frame)
            .collect()
    };
    let dictionary = Dictionary::train(codec, &part(|i| i % 4 == 0), DICTIONARY_BYTES).ok()?;
    measure::ratio(engine, &dictionary, &part(|i| i % 4 != 0)).ok()
}

fn table(lines: &[Line], args: &CodecsArgs, corpus: &Corpus) -> String {
    const HEADINGS: [&str; 5] = [
        "codec",
        "compress\nMB/s",
        "decompress\nMB/s",
        "ratio",
        "with a\ndictionary",
    ];
    let number = |value: Option<f64>, digits: usize| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.digits$}"));
    let rows = lines.iter().filter(|line| line.available).map(|line| {
        let speed = line.speed.as_ref();
        [
            line.codec.clone(),
            number(speed.map(|s| s.compress_mb_per_s), 0),
            number(speed.map(|s| s.decompress_mb_per_s), 0),
            number(speed.map(|s| s.ratio), 2),
            number(line.dictionary_ratio, 2),
        ]
    });
    let verdicts: String = verdicts(lines, args)
        .iter()
        .map(|line| wrapped(line, "", "  "))
        .collect();
    let verdicts = if verdicts.is_empty() { verdicts } else { verdicts + "\n" };
    let table = of_parts(HEADINGS, rows, 1, &[("", &[1, 2, 3, 4])]);
    let table = if table.is_empty() { table } else { table + "\n" };
    let availability_lines = availability_lines(lines)
        .iter()
        .map(|line| wrapped(line, "", "  "))
        .collect::<String>();
    let notes = notes(args, corpus).map(|note| wrapped(&note, "", "")).concat();
    format!("{verdicts}{table}{availability_lines}\n{notes}")
}

/// The codecs that compress best and are the fastest, by the suite's rule.
fn verdicts(lines: &[Line], args: &CodecsArgs) -> Vec<String> {
    // Frames have no dictionary here.
    let rows = || {
        let compressing = lines.iter().filter(|line| suite::compresses(&line.codec));
        compressing.filter_map(|line| Some(&line.speed.as_ref()?.row))
    };
    let where_ = format!("frames of {}, one thread", Bytes(args.frame_bytes as u64));
    let mut verdicts = suite::verdict_among(rows(), &where_, |speed| speed.us, &|row| {
        let [compress, decompress] = [&row.compress, &row.decompress].map(|speed| speed.mb_per_s);
        format!("{compress:.0} MB/s to compress and {decompress:.0} to decompress")
    });
    // The dictionary was measured on another part of the sample, so the ratios are not compared directly.
    let with = lines.iter().filter_map(|line| Some((line, line.dictionary_ratio?)));
    if let Some((line, ratio)) = with
        .max_by(|(_, one), (_, other)| one.total_cmp(other))
        .filter(|_| rows().count() > 1)
    {
        verdicts.push(format!(
            "With a dictionary {} compresses best: {ratio:.2}:1.",
            line.codec
        ));
    }
    let mut copying = lines.iter().filter(|line| line.dictionary_ratio.is_none());
    if verdicts.is_empty()
        && let Some(row) = copying.find_map(|line| Some(&line.speed.as_ref()?.row))
    {
        verdicts.push(format!(
            "{} only copies, at {:.0} MB/s ({where_}).",
            row.codec, row.compress.mb_per_s
        ));
    }
    verdicts
}

/// Implementation and self-test per codec, and why others are unavailable; codecs with the same text share a line.
fn availability_lines(lines: &[Line]) -> Vec<String> {
    let mut availability_lines: Vec<(Vec<&str>, String)> = Vec::new();
    for line in lines {
        let what = match (&line.reason, line.self_test.as_deref()) {
            (Some(reason), _) => format!("not available: {reason}"),
            (None, test) => {
                let by = [line.engine, line.provided_by.as_deref()];
                let by: Vec<&str> = by.into_iter().flatten().collect();
                let test = test.filter(|test| *test != "ok");
                let test = test.map_or("self-test ok".to_owned(), |test| format!("SELF-TEST FAILED: {test}"));
                format!("{}, {test}", by.join(" of "))
            }
        };
        match availability_lines.iter_mut().find(|(_, other)| *other == what) {
            Some((codecs, _)) => codecs.push(&line.codec),
            None => availability_lines.push((vec![&line.codec], what)),
        }
    }
    let lines = availability_lines.into_iter();
    lines
        .map(|(codecs, what)| format!("{}: {what}", codecs.join(", ")))
        .collect()
}

/// The measured sample.
fn notes(args: &CodecsArgs, corpus: &Corpus) -> [String; 2] {
    let frames = corpus.count();
    let sampled = corpus
        .sampled()
        .map_or_else(String::new, |sampled| format!(" ({sampled})"));
    [
        format!(
            "One thread, {} of {} of {}{}{sampled}, {frames} of them; MB/s of raw bytes, best of three passes; ratio: \
             raw bytes per compressed byte.",
            if frames == 1 { "one frame" } else { "frames" },
            Bytes(args.frame_bytes as u64),
            args.data.display(),
            if args.raw { " (its own bytes)" } else { "" },
        ),
        format!(
            "With a dictionary: the ratio with one of {}, trained on every fourth frame and measured on the others.",
            Bytes(DICTIONARY_BYTES as u64)
        ),
    ]
}
