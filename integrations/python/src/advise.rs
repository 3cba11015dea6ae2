//! `leafpress.advise`: runs the lab's advisor in a separate thread, so that a signal can stop it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use leafpress_lab::LabError;
use leafpress_lab::advise::{self, Advice, DeviceSource, Event, Options, Verdict};
use leafpress_lab::model::{self, Access, TraceOptions};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt};

use crate::cache::options;
use crate::errors::{Class, of_codec};

/// The prefix of the name of a file with the numbers of the requested pages.
const TRACE: &str = "trace:";
/// The text that replaces the command line in reports.
const COMMAND_LINE: &str = "leafpress.advise";
/// Interval between two checks for signals.
const LOOK_FOR_SIGNALS: Duration = Duration::from_millis(50);

/// An advice, and all data that it is based on.
#[pyclass(name = "AdviceBase", module = "leafpress._leafpress", frozen)]
pub struct AdviceBase {
    advice: Advice,
}

/// Converts an error of the lab to an exception. Options are named as in Python.
fn of_lab(error: LabError) -> PyErr {
    match error {
        LabError::Option { option, reason } => {
            Class::InvalidOption.error(format!("{}: {}", option.replace('-', "_"), in_words_of_python(&reason)))
        }
        LabError::Data { .. } | LabError::Device(_) => {
            Class::InvalidOption.error(in_words_of_python(&error.to_string()))
        }
        // The class follows from its kind: FileNotFoundError and others.
        LabError::Io { path, source } => {
            std::io::Error::new(source.kind(), format!("{}: {source}", path.display())).into()
        }
        error => Class::Error.error(in_words_of_python(&error.to_string())),
    }
}

/// Phrases that need more than a renamed option; they are replaced first.
const WORDS: [(&str, &str); 5] = [
    ("--distribution trace:FILE", "access=\"trace:FILE\""),
    ("--verify runs", "the command `leafpress advise --verify` runs"),
    ("--out writes all of them", "candidates has all of them"),
    (
        "--trace-format u64le",
        "the command `leafpress advise --trace-format u64le`",
    ),
    ("--skip-junk skips", "the command `leafpress advise --skip-junk` skips"),
];

/// Replaces options of the command line by arguments: `--device-us` by `device_us=`.
fn in_words_of_python(text: &str) -> String {
    if let Some((theirs, ours)) = WORDS.iter().find(|(theirs, _)| text.contains(theirs))
        && let Some((before, behind)) = text.split_once(theirs)
    {
        return in_words_of_python(before) + ours + &in_words_of_python(behind);
    }
    let mut words = String::with_capacity(text.len());
    for (at, part) in text.split("--").enumerate() {
        let is_option = at > 0 && part.starts_with(|c: char| c.is_ascii_lowercase());
        if !is_option {
            words += if at > 0 { "--" } else { "" };
            words += part;
            continue;
        }
        let end = part
            .find(|c: char| !(c.is_ascii_lowercase() || c == '-'))
            .unwrap_or(part.len());
        let name = part[..end].trim_end_matches('-');
        words += &name.replace('-', "_");
        words += "=";
        words += &part[name.len()..];
    }
    words
}

fn list_of_codecs(codecs: Option<Vec<String>>) -> PyResult<Option<Vec<leafpress::Codec>>> {
    let parse = |name: String| name.parse().map_err(|error| of_codec(&error));
    codecs.map(|codecs| codecs.into_iter().map(parse).collect()).transpose()
}

fn options_of(sample: Vec<PathBuf>, of: &Bound<'_, PyDict>) -> PyResult<Options> {
    let given =
        |name: &str| -> PyResult<Option<Bound<'_, PyAny>>> { Ok(of.get_item(name)?.filter(|value| !value.is_none())) };
    let bytes = |name: &str| given(name)?.map(|value| options::bytes(name, &value)).transpose();
    let path = |name: &str| given(name)?.map(|value| value.extract::<PathBuf>()).transpose();
    let device_us = given("device_us")?.map(|us| us.extract::<f64>()).transpose()?;
    let device = match (path("device")?, device_us, path("fio_json")?) {
        (Some(path), None, None) => DeviceSource::Probe(path),
        (None, Some(us), None) => DeviceSource::Latency(us),
        (None, None, Some(path)) => DeviceSource::Fio(path),
        (None, None, None) => {
            return Err(Class::InvalidOption.error(
                "device: say what a miss costs: device_us= the microseconds of a read, device= a directory on the \
                 device, which is measured, or fio_json=",
            ));
        }
        _ => return Err(Class::InvalidOption.error("device: give one of device=, device_us= and fio_json=")),
    };
    let mut wanted = Options::new(sample, device);
    wanted.memory_bytes = bytes("memory")?;
    wanted.data_bytes = bytes("data")?;
    if let Some(bytes) = bytes("access_bytes")? {
        wanted.access_bytes = bytes;
    }
    wanted.sample_bytes = bytes("sample_bytes")?;
    if let Some(list) = given("block_bytes")? {
        let bytes = list.try_iter()?.map(|one| options::bytes("block_bytes", &one?));
        wanted.block_bytes = Some(bytes.collect::<PyResult<_>>()?);
    }
    wanted.codecs = list_of_codecs(given("codecs")?.map(|codecs| codecs.extract()).transpose()?)?;
    if let Some(access) = given("access")? {
        let access: String = access.extract()?;
        // A trace is read later, where it can be stopped.
        if !access.starts_with(TRACE) {
            wanted.access = Access::parse(&access).map_err(of_lab)?;
            wanted.access_is_given = true;
        }
    }
    if let Some(workers) = given("workers")? {
        let refused = |_| Class::InvalidOption.error("workers: must be 1 or more, the number of requests at a time");
        wanted.workers = match workers.is_instance_of::<PyInt>() {
            true => workers.extract().map_err(refused)?,
            false => workers.extract()?,
        };
    }
    wanted.quick = given("quick")?
        .map(|quick| quick.extract())
        .transpose()?
        .unwrap_or_default();
    wanted.validate().map_err(of_lab)?;
    Ok(wanted)
}

/// Returns the path of the trace, if one is named.
fn trace_of(of: &Bound<'_, PyDict>) -> PyResult<Option<PathBuf>> {
    let access: Option<String> = of.get_item("access")?.and_then(|access| access.extract().ok());
    Ok(access
        .as_deref()
        .and_then(|access| access.strip_prefix(TRACE))
        .map(PathBuf::from))
}

/// Reads the trace, if there is one, and runs the advisor.
fn work(
    mut wanted: Options,
    trace: Option<&Path>,
    cancel: &AtomicBool,
    say: &mut dyn FnMut(Event),
) -> Result<Advice, LabError> {
    if let Some(path) = trace {
        let what = format!("reading {}", path.display());
        say(Event { share: 0.0, what });
        let trace = model::read_trace(path, TraceOptions::default(), cancel, &mut |_| ())?;
        wanted.access = Access::Trace(Arc::new(trace));
    }
    advise::run(&wanted, cancel, say)
}

/// Runs the advisor, calls `progress`, and checks for signals.
fn run(py: Python<'_>, wanted: Options, trace: Option<&Path>, progress: Option<&Bound<'_, PyAny>>) -> PyResult<Advice> {
    let cancel = AtomicBool::new(false);
    let (sender, mut events) = mpsc::channel::<Event>();
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new().name("leafpress-advise".into());
        let cancel = &cancel;
        let worker = worker.spawn_scoped(scope, move || {
            let mut say = |event| drop(sender.send(event));
            work(wanted, trace, cancel, &mut say)
        });
        let worker =
            worker.map_err(|error| Class::BackgroundFailed.error(format!("cannot start a thread: {error}")))?;
        let mut stopped = Ok(());
        // The channel is closed when the thread ends.
        loop {
            let waiting = &mut events;
            let event = py.detach(move || waiting.recv_timeout(LOOK_FOR_SIGNALS));
            let heard = match &event {
                Ok(Event { share, what }) => progress.map_or(Ok(()), |call| call.call1((share, what)).map(drop)),
                Err(RecvTimeoutError::Timeout) => Ok(()),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if let Err(error) = heard.and_then(|()| py.check_signals())
                && stopped.is_ok()
            {
                stopped = Err(error);
                cancel.store(true, Ordering::Relaxed);
            }
        }
        let advice = py.detach(|| worker.join());
        stopped?;
        let advice = advice.map_err(|_| PyRuntimeError::new_err("the advisor failed by a bug: please report it"))?;
        advice.map_err(of_lab)
    })
}

#[pyfunction]
#[pyo3(signature = (sample, options, progress=None))]
fn _advise(
    py: Python<'_>,
    sample: Vec<PathBuf>,
    options: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<AdviceBase> {
    let wanted = options_of(sample, options)?;
    let trace = trace_of(options)?;
    Ok(AdviceBase {
        advice: run(py, wanted, trace.as_deref(), progress)?,
    })
}

#[pymethods]
impl AdviceBase {
    /// Returns the figures by their names.
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (recommendation, question) = (&self.advice.recommendation, &self.advice.question);
        let (choice, fields) = (recommendation.choice(), PyDict::new(py));
        let verdict = match recommendation.verdict {
            Verdict::Compress => "compress",
            Verdict::TooClose => "too_close",
            Verdict::DoNotCompress => "do_not_compress",
            Verdict::AllFits => "all_fits",
        };
        let reasons = advise::reasons(recommendation, question);
        fields.set_item("verdict", verdict)?;
        fields.set_item("sentence", in_words_of_python(&advise::sentence(recommendation)))?;
        fields.set_item(
            "reasons",
            reasons.iter().map(|one| in_words_of_python(one)).collect::<Vec<_>>(),
        )?;
        let cautions = self.advice.cautions.iter();
        fields.set_item(
            "cautions",
            cautions.map(|one| in_words_of_python(one)).collect::<Vec<_>>(),
        )?;
        fields.set_item("codec", choice.name())?;
        fields.set_item("block_bytes", choice.block_bytes)?;
        fields.set_item("share", choice.best.share)?;
        fields.set_item("gain", recommendation.gain())?;
        fields.set_item("hit_ratio", choice.best.hit_ratio)?;
        fields.set_item("raw_hit_ratio", recommendation.raw.best.hit_ratio)?;
        fields.set_item("us_per_page", choice.best.us_per_page)?;
        fields.set_item("raw_us_per_page", recommendation.raw.best.us_per_page)?;
        fields.set_item("device_us", choice.device_us)?;
        fields.set_item("pays_from_us", recommendation.pays_from_us)?;
        fields.set_item("raw_memory_bytes", recommendation.raw_memory_bytes)?;
        fields.set_item("enough_memory_bytes", recommendation.enough_memory_bytes)?;
        fields.set_item("data_bytes", question.data_bytes)?;
        fields.set_item("memory_bytes", question.memory_bytes)?;
        Ok(fields)
    }

    /// Returns the candidates, tab-separated.
    fn table(&self) -> String {
        advise::summary(&self.advice)
    }

    /// Returns the whole report as text.
    fn text(&self) -> String {
        in_words_of_python(&advise::document(&self.advice, None).text())
    }

    /// Writes summary.tsv, results.json and report.html into an existing directory.
    fn write(&self, py: Python<'_>, directory: PathBuf) -> PyResult<()> {
        let directory: &Path = &directory;
        let written = py.detach(|| advise::document(&self.advice, None).write(COMMAND_LINE, directory));
        written.map(drop).map_err(of_lab)
    }
}

/// Adds the function and the class.
///
/// # Errors
/// Where they cannot be added.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<AdviceBase>()?;
    module.add_function(wrap_pyfunction!(_advise, module)?)
}
