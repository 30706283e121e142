//! The order of targets of different kinds on the command line. What clap's derive gives is a list for each flag.

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

/// The flags that name targets, in the order in which those of variables are told: commands, which may prepare something, then
/// the others.
const FLAGS: [&str; 5] = ["exec", "signal", "webhook_url", "unit", "container"];

/// Where the values of flags of targets stand.
#[derive(Debug, Clone, Default)]
pub(crate) struct FlagOrder {
    /// By flag as in [`FLAGS`], of each value; nothing of what comes from variables.
    places: [Vec<usize>; FLAGS.len()],
}

/// A flag that names targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TargetFlag {
    Exec,
    Signal,
    Webhook,
    Unit,
    Container,
}

impl FlagOrder {
    /// What the `number`-th target of a flag is sorted by. Those of variables come before those that are typed.
    pub(crate) fn rank(&self, flag: TargetFlag, number: usize) -> (Option<usize>, usize, usize) {
        let flag = flag as usize;
        (self.places[flag].get(number).copied(), flag, number)
    }
}

impl FromArgMatches for FlagOrder {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let places = FLAGS.map(|flag| {
            let is_typed = matches.value_source(flag) == Some(ValueSource::CommandLine);
            let places = is_typed.then(|| matches.indices_of(flag)).flatten();
            places.map(Iterator::collect).unwrap_or_default()
        });
        Ok(Self { places })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for FlagOrder {
    /// It has no flags of its own.
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}
