//! `hotmap probe`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::{ArgGroup, Args};

use super::duration::duration;
use crate::probe::{Loaded, StateSource, Strictness, Verdict, age_of, judge, look, read};
use crate::target::signal::{Address, start_ticks};

/// Flags of `probe`, as typed.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("loaded").required(true)
    .args(["endpoint", "state_file", "process", "pid_file", "pid"]))]
pub struct ProbeArgs {
    /// A directory (or a file) that has to be loaded. Repeatable.
    #[arg(
        long,
        env = "HOTMAP_VOLUME_DIR",
        value_name = "DIR",
        required = true,
        value_delimiter = ','
    )]
    volume_dir: Vec<PathBuf>,
    /// Ask the local endpoint (--serve) what is loaded: unix:PATH or http://HOST:PORT.
    #[arg(long, env = "HOTMAP_ENDPOINT", value_name = "ENDPOINT")]
    endpoint: Option<StateSource>,
    /// Read what is loaded from the file that --state-file of run or reload writes.
    #[arg(long, env = "HOTMAP_STATE_FILE", value_name = "FILE")]
    state_file: Option<PathBuf>,
    /// The process of this name loads when it starts: it must have started after the last change.
    #[arg(long, value_name = "NAME")]
    process: Option<String>,
    /// The same, for the process whose id stands in the first line of this file.
    #[arg(long, value_name = "FILE")]
    pid_file: Option<PathBuf>,
    /// The same, for this process.
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,
    /// How long content may be there without being loaded, before the probe fails.
    #[arg(long = "for", env = "HOTMAP_PROBE_FOR", value_name = "DURATION", default_value = "0", value_parser = duration)]
    within: Duration,
    /// Fail as well if the content was written longer ago than this: for what is renewed, such as certificates.
    #[arg(long, env = "HOTMAP_PROBE_MAX_AGE", value_name = "DURATION", value_parser = duration)]
    max_age: Option<Duration>,
    /// A change that the check has refused is no failure: the process goes on with what it had. For liveness probes,
    /// which would restart it into the bad content.
    #[arg(long, env = "HOTMAP_PROBE_ALLOW_HELD_BACK")]
    allow_held_back: bool,
}

impl ProbeArgs {
    pub(crate) fn main(self) -> ExitCode {
        let verdict = self.verdict().unwrap_or_else(Verdict::Bad);
        println!("{verdict}");
        if verdict.is_good() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }

    /// What is to be said, or why nothing can be.
    fn verdict(&self) -> Result<Verdict, String> {
        // Asked before the disk is looked at: a change in between is one that is not loaded yet, and is said to be new.
        let loaded = self.loaded()?;
        let now = SystemTime::now();
        let volumes = self
            .volume_dir
            .iter()
            .map(|path| look(path, now).map_err(|error| format!("--volume-dir {}: {error}", path.display())));
        let volumes = volumes.collect::<Result<Vec<_>, _>>()?;
        let strictness = Strictness {
            within: self.within,
            max_age: self.max_age,
            allows_held_back: self.allow_held_back,
        };
        Ok(judge(&volumes, &loaded, &strictness))
    }

    fn loaded(&self) -> Result<Loaded, String> {
        let file = self.state_file.clone().map(StateSource::File);
        if let Some(source) = self.endpoint.clone().or(file) {
            return read(&source).map(Loaded::Told).map_err(|error| error.to_string());
        }
        let address = match (
            &self.process,
            &self.pid_file,
            self.pid.and_then(rustix::process::Pid::from_raw),
        ) {
            (Some(name), _, _) => Address::Process(name.clone()),
            (_, Some(file), _) => Address::PidFile(file.clone()),
            (_, _, Some(pid)) => Address::Pid(pid),
            (None, None, None) => return Err("nobody is named who has loaded it".to_owned()),
        };
        let age =
            age_of(start_ticks(&address)?).map_err(|error| format!("cannot read /proc/uptime: {error}"))?;
        Ok(Loaded::AtStart(age))
    }
}
