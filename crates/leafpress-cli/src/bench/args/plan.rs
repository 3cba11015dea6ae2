//! The runs that the arguments of `leafpress bench` request.

use std::str::FromStr;

use leafpress_lab::LabError;
use leafpress_lab::bench::{
    Builtin, DEFAULT_LATEST_SKEW, Dump, Input, Law, Mode, Options, Ratios, ValueSource, Ycsb, look_at_records,
};
use leafpress_lab::core::corpus::Source;
use leafpress_lab::core::keys::{Distribution, KeyShape};

use super::errors::{bad_input, option_error, underscored};
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
    /// The requested runs, validated.
    pub fn plan(&self) -> Result<Plan, Failure> {
        self.runs().map_err(|e| bad_input(&self.with_length_hint(e)))
    }

    /// In other commands `-d` is the length of a run; here it has PiBench's meaning.
    fn with_length_hint(&self, error: LabError) -> LabError {
        match error {
            LabError::Option {
                option: option @ ("read_ratio" | "remove_ratio" | "ycsb"),
                reason,
            } if self.remove_ratio.is_some() && self.seconds.is_none() => option_error(
                option,
                format!(
                    "{reason}; here -d is the share of removes, as in PiBench; use --seconds with -m time for the length of a run"
                ),
            ),
            error => error,
        }
    }

    fn runs(&self) -> Result<Plan, LabError> {
        let inputs: Vec<Input> = if self.compare.is_empty() {
            let input = self.positional.as_deref().or(self.input.as_deref());
            let input = input
                .ok_or_else(|| option_error("input", "none is given: name an index, or several with --compare"))?;
            vec![Input::named(input)?]
        } else {
            self.compare
                .iter()
                .map(|word| Input::named(word))
                .collect::<Result<_, _>>()?
        };
        let workloads = match self.ycsb.as_deref().map(Ycsb::list).transpose()? {
            Some(workloads) => workloads.into_iter().map(Some).collect(),
            None => vec![None],
        };
        let mut runs = Vec::new();
        for workload in &workloads {
            for input in &inputs {
                let options = self.options(input.clone(), *workload)?;
                if runs.contains(&options) {
                    return Err(option_error("compare", format!("{input} is listed twice")));
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
        options.records = self.count().unwrap_or(options.records);
        options.operations = self.operations;
        options.threads = self.threads;
        options.key_prefix.clone_from(&self.key_prefix);
        options.key_size = self.key_size;
        options.value_size = self.value_size;
        options.scan_size = self.scan_size;
        options.sampling_ms = self.sampling_ms;
        options.seed = self.seed;
        options.hardware = self.pcm.unwrap_or(true);
        options.pool_path = self.pool_path.clone().into();
        options.pool_size = self.pool_size.0;
        options.skip_load = self.skip_load.unwrap_or(false);
        options.latency_sampling = self.latency_sampling;
        options.protocol = self.protocol;
        options.clock = self.clock;
        options.garbage_collector = self.garbage_collector;
        options.rate = self.rate;
        options.value_source = ValueSource::named(&self.value_source)?;
        options.warmup_seconds = self.warmup;
        options.pin = self.pin.parse()?;
        options.repeat = self.repeat;
        options.tree = self.tree.parse()?;
        if self
            .mode
            .as_deref()
            .is_some_and(|mode| mode.eq_ignore_ascii_case("time"))
        {
            options.mode = Mode::Time;
        }
        options.seconds = self.seconds.unwrap_or(options.seconds);
        self.set_mix(&mut options, workload)?;
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
        if let Some(order) = &self.load_order {
            options.load_order = order.parse().map_err(|e| underscored(e, "load_order"))?;
        }
        if let Some(shape) = &self.key_shape {
            let shape: KeyShape = shape.parse().map_err(|e| underscored(e, "key_shape"))?;
            if !shape.has_key_bytes() && self.key_size != Options::DEFAULT_KEY_SIZE {
                return Err(option_error(
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
                return Err(option_error(
                    "data",
                    "requires --records FORMAT; use --value_source for values alone",
                ));
            }
            return Ok(());
        };
        for (option, given) in [
            ("key_size", self.key_size != Options::DEFAULT_KEY_SIZE),
            ("value_size", self.value_size != Options::DEFAULT_VALUE_SIZE),
            ("value_source", self.value_source != "pool"),
        ] {
            if given {
                return Err(option_error(
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

    fn set_mix(&self, options: &mut Options, workload: Option<Ycsb>) -> Result<(), LabError> {
        let given = [
            self.read_ratio,
            self.insert_ratio,
            self.update_ratio,
            self.remove_ratio,
            self.scan_ratio,
        ];
        if let Some(workload) = workload {
            if given.iter().any(Option::is_some) {
                return Err(option_error(
                    "ycsb",
                    format!("{workload} defines its own mix: omit the ratios"),
                ));
            }
            options.set_ycsb(workload);
            return Ok(());
        }
        let [read, insert, update, remove, scan] = given.map(|share| share.unwrap_or(0.0));
        options.ratios = Ratios {
            read: self.read_ratio.map_or(1.0, |_| read),
            insert,
            update,
            remove,
            scan,
            ..Ratios::NONE
        };
        Ok(())
    }

    fn set_key_choice(&self, options: &mut Options, workload: Option<Ycsb>) -> Result<(), LabError> {
        if let Some(name) = &self.distribution {
            // PiBench's distributions take their parameter from --skew; ours include it.
            match name.contains([':', ',']) {
                true => return self.set_law(options, name.parse()?),
                false => options.law = Law::named(name)?,
            }
        }
        if let Some(hotset) = &self.hotset {
            if options.law != Law::HotSet {
                return Err(option_error("hotset", "requires --distribution hotset"));
            }
            options.hotset = percentages(hotset)?;
        }
        match self.skew {
            // A distribution may be stricter; a value that none accepts is rejected here.
            Some(skew) if skew >= 0.0 && skew.is_finite() => options.skew = skew,
            Some(skew) => return Err(option_error("skew", format!("{skew} must be at least 0"))),
            None if workload.is_none() && options.law == Law::Latest => options.skew = DEFAULT_LATEST_SKEW,
            // A YCSB workload with a self-similar choice uses that distribution's own default.
            None if options.law == Law::SelfSimilar => options.skew = 0.2,
            None => {}
        }
        Ok(())
    }

    /// A distribution with its parameters.
    fn set_law(&self, options: &mut Options, law: Distribution) -> Result<(), LabError> {
        for (option, is_given) in [("skew", self.skew.is_some()), ("hotset", self.hotset.is_some())] {
            if is_given {
                return Err(option_error(option, "already set by --distribution: omit one of them"));
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

    /// Notes on accepted options that have no effect on these runs.
    pub fn notes(&self, runs: &[&Options]) -> Vec<String> {
        let time = self
            .mode
            .as_deref()
            .is_some_and(|mode| mode.eq_ignore_ascii_case("time"));
        let mut notes = Vec::new();
        if self.seconds.is_some() && !time {
            notes.push("note: --seconds has no effect without --mode time".to_owned());
        }
        if self.rate.is_some() && self.latency_sampling == 0.0 {
            notes.push("note: --rate without --latency_sampling measures no latency".to_owned());
        }
        let ours = |run: &&Options| matches!(run.input, Input::Builtin(Builtin::Leafpress(_)));
        if !self.tree.is_empty() && !runs.iter().any(ours) {
            notes.push("note: --tree has no effect without leafpress among the indexes".to_owned());
        }
        notes
    }
}

fn percentages(text: &str) -> Result<(f64, f64), LabError> {
    let numbers = text.split_once(',').and_then(|(keys, operations)| {
        Some((f64::from_str(keys.trim()).ok()?, f64::from_str(operations.trim()).ok()?))
    });
    numbers.ok_or_else(|| {
        option_error(
            "hotset",
            format!("`{text}`: use KEYS,OPERATIONS in percent, as in 20,80"),
        )
    })
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
