//! Resolves the configuration of an evaluation: defaults, then the environment, then the flags.

use std::collections::BTreeMap;
use std::ffi::OsString;

use leafpress_lab::{EvalConfig, LabError};

use super::args::EvalArgs;
use super::environment::{Environment, VARIABLES};
use crate::COMMAND;
use crate::failure::Failure;
use crate::output::{self, quoted};
use crate::records;

/// A resolved configuration, and the origin of each setting.
#[derive(Debug)]
pub struct Settings {
    pub config: EvalConfig,
    /// Lines for standard error before the run.
    pub notes: Vec<String>,
    /// Options set by an environment variable and not overridden by a flag.
    origins: BTreeMap<&'static str, &'static str>,
}

impl Settings {
    /// Resolves the settings: defaults, which the environment overrides, which flags override.
    ///
    /// # Errors
    /// A variable or flag that cannot be read, by its name.
    pub fn resolve(
        args: &EvalArgs,
        lookup: &dyn Fn(&str) -> Option<OsString>,
        command_line: impl Iterator<Item = OsString>,
    ) -> Result<Self, Failure> {
        let mut config = EvalConfig::default();
        let mut applied = Environment::new(lookup).apply(&mut config)?;
        args.apply(&mut config)?;
        records::check(config.records.is_some(), config.key_shape, &args.given)?;
        if config.records.is_some() && !args.given.has("keys") && !applied.origins.contains_key("keys") {
            config.keys = 0;
        }
        applied.origins.retain(|option, _| !args.given.has(option));
        if args.given.has("data") {
            applied.notes.clear();
        }
        if let Some(qpl) = &applied.qpl {
            for word in config.codecs.iter_mut().filter(|word| *word == "qpl") {
                word.clone_from(qpl);
            }
        }
        config.command_line = Some(reproduction(lookup, command_line));
        Ok(Self {
            config,
            notes: applied.notes,
            origins: applied.origins,
        })
    }

    /// Converts the laboratory's error to a failure, naming options as the user gave them.
    pub fn failure(&self, error: &LabError) -> Failure {
        match error {
            LabError::Option { option, reason } => match self.origins.get(option) {
                Some(variable) => Failure::bad_input(format!("{variable}: {reason}")),
                None => Failure::bad_input(format!("--{option}: {reason}")),
            },
            LabError::Data { .. } => Failure::bad_input(format!("--{error}")),
            LabError::Io { .. } => output::unwritable(error),
            LabError::Tree(leafpress::TreeError::Option { option, reason }) => {
                Failure::bad_input(format!("--{}: {reason}", option.replace('_', "-")))
            }
            LabError::Tree(leafpress::TreeError::Codec(e)) => {
                Failure::bad_input(format!("{e}; `leafpress codecs` lists what runs here"))
            }
            _ => Failure::failed(error.to_string()),
        }
    }
}

/// The command line, prefixed with the relevant variables, quoted for a shell.
fn reproduction(lookup: &dyn Fn(&str) -> Option<OsString>, command_line: impl Iterator<Item = OsString>) -> String {
    let variables = VARIABLES
        .iter()
        .filter_map(|name| lookup(name).map(|value| format!("{name}={}", quoted(&value.to_string_lossy()))));
    let mut words: Vec<String> = variables.collect();
    words.push(output::command_line(COMMAND, command_line));
    words.join(" ")
}
