//! Options of a command line that are set over defaults from elsewhere.

use std::marker::PhantomData;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};

/// The flags of `O` that were given. It is the first field of a command's arguments: fields before it are not among
/// what was given.
#[derive(Debug, Clone, Default)]
pub struct Given<O> {
    matches: ArgMatches,
    options: PhantomData<O>,
}

impl<O: Args> Given<O> {
    /// Sets the options that were given, and all switches.
    pub fn set(&self, options: &mut O) {
        let set = options.update_from_arg_matches(&self.matches);
        // An update leaves out what was not given, and what was given has been parsed.
        debug_assert!(set.is_ok(), "{set:?}");
    }

    /// Returns whether the option of this name was given.
    pub fn has(&self, option: &str) -> bool {
        self.matches.value_source(&option.replace('-', "_")) == Some(ValueSource::CommandLine)
    }
}

impl<O: Args> FromArgMatches for Given<O> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self {
            matches: matches.clone(),
            options: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// No option is required, as each has a default.
impl<O: Args> Args for Given<O> {
    fn augment_args(command: Command) -> Command {
        O::augment_args_for_update(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        O::augment_args_for_update(command)
    }
}
