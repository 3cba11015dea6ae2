//! The runs that the arguments of `leafpress bench` request.

use leafpress_lab::LabError;
use leafpress_lab::bench::{
    Builtin, DEFAULT_LATEST_SKEW, Dump, Input, Law, Mode, Options, TreeOptions, ValueSource, Ycsb, look_at_records,
};
use leafpress_lab::core::corpus::Source;
use leafpress_lab::core::keys::Distribution;

use super::errors::bad_input;
use super::{BenchArgs, RecordsWord};
use crate::failure::Failure;

/// The runs to do.
#[derive(Debug)]
pub enum Plan {
    /// One index, one workload: PiBench's report.
    One(Box<Options>),
    /// Several indexes or workloads: a table.
    Several(Vec<Options>),
}

impl BenchArgs {
    /// Returns the requested runs, validated.
    pub fn plan(&self) -> Result<Plan, Failure> {
        self.runs().map_err(|e| bad_input(&self.with_length_hint(e)))
    }

    /// In other commands `-d` is the length of a run; here it has PiBench's meaning.
    fn with_length_hint(&self, error: LabError) -> LabError {
        match error {
            LabError::Option {
                option: option @ ("read_ratio" | "remove_ratio" | "ycsb"),
                reason,
            } if self.given.has("remove") && !self.given.has("seconds") => LabError::option(
                option,
                format!(
                    "{reason}; here -d is the share of removes, as in PiBench; use --seconds with -m time for the \
                     length of a run"
                ),
            ),
            error => error,
        }
    }

    fn runs(&self) -> Result<Plan, LabError> {
        let inputs: Vec<Input> = if self.compare.is_empty() {
            let input = self.positional.as_deref().or(self.input.as_deref());
            let input = input
                .ok_or_else(|| LabError::option("input", "none is given: name an index, or several with --compare"))?;
            vec![Input::named(input)?]
        } else {
            self.compare
                .iter()
                .map(|word| Input::named(word))
                .collect::<Result<_, _>>()?
        };
        let workloads = match &self.ycsb {
            Some(workloads) => workloads.iter().copied().map(Some).collect(),
            None => vec![None],
        };
        let mut runs = Vec::new();
        for workload in &workloads {
            for input in &inputs {
                let options = self.options(input.clone(), *workload)?;
                if runs.contains(&options) {
                    return Err(LabError::option("compare", format!("{input} is listed twice")));
                }
                runs.push(options);
            }
        }
        if let (true, [_]) = (self.compare.is_empty(), runs.as_slice()) {
            return Ok(Plan::One(Box::new(runs.remove(0))));
        }
        Ok(Plan::Several(runs))
    }

    fn options(&self, input: Input, workload: Option<Ycsb>) -> Result<Options, LabError> {
        let mut options = Options::new(input);
        if let Some(workload) = workload {
            let ratios = ["read", "insert", "update", "remove", "scan"];
            if ratios.iter().any(|ratio| self.given.has(ratio)) {
                return Err(LabError::option(
                    "ycsb",
                    format!("{workload} defines its own mix: omit the ratios"),
                ));
            }
            options.set_ycsb(workload);
        }
        self.given.set(&mut options);
        options.records = self.count().unwrap_or(options.records);
        self.set_key_choice(&mut options, workload)?;
        self.set_keys(&mut options)?;
        options.validate()?;
        Ok(options)
    }

    /// The number of records, if given.
    fn count(&self) -> Option<u64> {
        let mut counts = self.records.iter().filter_map(|word| match word {
            RecordsWord::Count(count) => Some(*count),
            RecordsWord::Format(_) => None,
        });
        counts.next_back()
    }

    fn set_keys(&self, options: &mut Options) -> Result<(), LabError> {
        let has_key_size = options.key_size != Options::DEFAULT_KEY_SIZE;
        if let Some(shape) = options.key_shape {
            if !shape.has_key_bytes() && has_key_size {
                return Err(LabError::option(
                    "key_size",
                    format!("{shape} keys have their own lengths: omit it, or use dense or scattered keys"),
                ));
            }
            options.set_key_shape(shape);
        }
        let mut formats = self.records.iter().filter_map(|word| match word {
            RecordsWord::Format(format) => Some(format),
            RecordsWord::Count(_) => None,
        });
        let Some(format) = formats.next_back() else {
            if self.data.is_some() {
                return Err(LabError::option(
                    "data",
                    "requires --records FORMAT; use --value_source for values alone",
                ));
            }
            return Ok(());
        };
        for (option, given) in [
            ("key_size", has_key_size),
            ("value_size", options.value_size != Options::DEFAULT_VALUE_SIZE),
            ("value_source", options.value_source != ValueSource::Pool),
        ] {
            if given {
                return Err(LabError::option(
                    option,
                    format!("keys and values come from the records: omit it with --records {format}"),
                ));
            }
        }
        options.dump = Some(Dump {
            data: Source::named(self.data.as_deref().unwrap_or("packages".as_ref()))?,
            format: format.clone(),
            left_out: None,
        });
        look_at_records(options, self.count().is_none())
    }

    fn set_key_choice(&self, options: &mut Options, workload: Option<Ycsb>) -> Result<(), LabError> {
        if let Some(name) = &self.distribution {
            // PiBench's distributions take their parameter from --skew; ours include it.
            match name.contains([':', ',']) {
                true => return self.set_law(options, name.parse()?),
                false => options.law = Law::named(name)?,
            }
        }
        if self.given.has("hotset") && options.law != Law::HotSet {
            return Err(LabError::option("hotset", "requires --distribution hotset"));
        }
        let skew = self.given.has("skew").then_some(options.skew);
        match skew {
            // A distribution may be stricter; a value that none accepts is rejected here.
            Some(skew) if skew >= 0.0 && skew.is_finite() => {}
            Some(skew) => return Err(LabError::option("skew", format!("{skew} must be at least 0"))),
            None if workload.is_none() && options.law == Law::Latest => options.skew = DEFAULT_LATEST_SKEW,
            // A YCSB workload with a self-similar choice uses that distribution's own default.
            None if options.law == Law::SelfSimilar => options.skew = 0.2,
            None => {}
        }
        Ok(())
    }

    /// A distribution with its parameters.
    fn set_law(&self, options: &mut Options, law: Distribution) -> Result<(), LabError> {
        for option in ["skew", "hotset"] {
            if self.given.has(option) {
                return Err(LabError::option(
                    option,
                    "already set by --distribution: omit one of them",
                ));
            }
        }
        (options.law, options.skew) = match law {
            Distribution::Uniform => (Law::Uniform, options.skew),
            Distribution::Zipfian { theta } => (Law::Zipfian, theta),
            Distribution::SelfSimilar { h } => (Law::SelfSimilar, h),
            Distribution::Latest { theta } => (Law::Latest, theta),
            Distribution::HotSet {
                keys_pct,
                operations_pct,
            } => {
                options.hotset = (keys_pct, operations_pct);
                (Law::HotSet, options.skew)
            }
        };
        Ok(())
    }

    /// Returns notes on accepted options that have no effect on these runs.
    pub fn notes(&self, runs: &[&Options]) -> Vec<String> {
        let any = |check: fn(&Options) -> bool| runs.iter().any(|run| check(run));
        let mut notes = Vec::new();
        if self.given.has("seconds") && any(|run| run.mode == Mode::Operation) {
            notes.push("note: --seconds has no effect without --mode time".to_owned());
        }
        if any(|run| run.rate.is_some() && run.latency_sampling == 0.0) {
            notes.push("note: --rate without --latency_sampling measures no latency".to_owned());
        }
        let ours = any(|run| matches!(run.input, Input::Builtin(Builtin::Leafpress(_))));
        if any(|run| run.tree != TreeOptions::default()) && !ours {
            notes.push("note: --tree has no effect without leafpress among the indexes".to_owned());
        }
        notes
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
