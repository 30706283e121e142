//! What a configuration is made of, in layers.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hotmap_projection::{WatchConfig, WatchError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::LoadError;
use crate::format::Format;
use crate::live::{Live, OnReload, Reload};
use crate::loader::{FileKind, Layer, Loader, Validate};

/// What to do when a file or directory is not there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Missing {
    /// It is an error: at the start there is no configuration, later the last good one stays.
    #[default]
    Refuse,
    /// It counts as empty, and is read as soon as it appears.
    Ignore,
    /// The start waits for it so long, then it is an error.
    Wait(Duration),
}

/// There is no configuration to start with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// What is there cannot be loaded.
    #[error(transparent)]
    Load(LoadError),
    /// A file whose name does not say its format, or whose format is not built in.
    #[error("the name of {} does not say a format that is built in: name one with file_as, or add a feature", .path.display())]
    Format {
        /// Which.
        path: PathBuf,
    },
    /// Defaults that cannot be written as a mapping.
    #[error("the defaults are no mapping: {0}")]
    Defaults(String),
    /// A path cannot be watched.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// A thread cannot be started.
    #[error("cannot start a thread for {}", .path.display())]
    Thread {
        /// What it would watch.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Collects layers, then starts. A later layer wins over an earlier one: mappings are merged, all else is replaced.
pub struct Builder<T> {
    layers: Vec<Layer>,
    missing: Missing,
    watch: WatchConfig,
    validate: Vec<Validate<T>>,
    on_reload: Option<OnReload<T>>,
    agent_socket: Option<PathBuf>,
    problem: Option<StartError>,
}

impl<T: DeserializeOwned + Send + Sync + 'static> Builder<T> {
    pub(crate) fn new() -> Self {
        Self {
            layers: Vec::new(),
            missing: Missing::default(),
            watch: WatchConfig::default(),
            validate: Vec::new(),
            on_reload: None,
            agent_socket: Some(PathBuf::from(crate::report::AGENT_SOCKET)),
            problem: None,
        }
    }

    /// Values that hold where no other layer says anything. (`#[serde(default)]` does the same in the type.)
    pub fn defaults(mut self, defaults: &impl Serialize) -> Self {
        match serde_json::to_value(defaults) {
            Ok(value @ serde_json::Value::Object(_)) => self.layers.push(Layer::Defaults(value)),
            Ok(_) => self.note(StartError::Defaults("another kind of value".to_owned())),
            Err(error) => self.note(StartError::Defaults(error.to_string())),
        }
        self
    }

    /// A file, in the format that its name says.
    pub fn file(self, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        match Format::of(path) {
            Some(format) => self.file_as(path, format),
            None => {
                let path = path.to_owned();
                self.with_problem(StartError::Format { path })
            }
        }
    }

    /// A file in this format, whatever its name.
    pub fn file_as(mut self, path: impl Into<PathBuf>, format: Format) -> Self {
        let path = path.into();
        if !format.is_built_in() {
            return self.with_problem(StartError::Format { path });
        }
        self.add_path(path, FileKind::File(format));
        self
    }

    /// A directory, such as a mounted ConfigMap. Files whose names say a format are laid over each other, in the order of
    /// their names; of every other file the name is a field and the content its value, without the last end of line.
    pub fn directory(mut self, path: impl Into<PathBuf>) -> Self {
        self.add_path(path.into(), FileKind::Directory);
        self
    }

    /// A volume that the local endpoint of `hotmap reload`, `sync` or `run` serves (feature `endpoint`), at `unix:PATH` or
    /// `HOST:PORT`; its files are taken as those of a [`directory`](Self::directory). Without a name it must be the only one.
    /// What was loaded or refused is said there.
    #[cfg(feature = "endpoint")]
    pub fn endpoint(mut self, address: &str, volume: Option<&str>) -> Self {
        self.layers.push(Layer::Endpoint {
            endpoint: std::sync::Arc::new(crate::endpoint::Endpoint::new(address, volume)),
            missing: self.missing,
        });
        self
    }

    /// What the environment holds under this prefix: with `APP`, the variable `APP_SERVER__PORT` is the field `server.port`.
    /// One underscore belongs to a name, two lead inwards; case and underscores need not match (`APP_LOG_LEVEL` is `logLevel`
    /// if a layer below has that). It is read now, and once.
    pub fn environment(self, prefix: &str) -> Self {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
            Some((name, value))
        });
        self.environment_from(prefix, variables)
    }

    /// The same of other variables than those of this process.
    pub fn environment_from(
        mut self,
        prefix: &str,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let prefix = format!("{prefix}_");
        let mut ours: Vec<(String, String)> = variables
            .into_iter()
            .filter(|(name, _)| name.len() > prefix.len() && name.starts_with(&prefix))
            .collect();
        ours.sort();
        self.layers.push(Layer::Environment {
            prefix,
            variables: ours,
        });
        self
    }

    /// What to do when a file or directory is not there, for those added *after* this call.
    pub fn missing(mut self, missing: Missing) -> Self {
        self.missing = missing;
        self
    }

    /// Refuses what `check` refuses, before it goes live. Repeatable. The words should hold no value that is secret.
    pub fn validate<E: ToString>(mut self, check: impl Fn(&T) -> Result<(), E> + Send + 'static) -> Self {
        let check = move |config: &T| check(config).map_err(|error| error.to_string());
        self.validate.push(Box::new(check));
        self
    }

    /// `tell` hears of every load but the first, on a thread of the library: for logs and metrics.
    pub fn on_reload(mut self, tell: impl FnMut(Reload<'_, T>) + Send + 'static) -> Self {
        self.on_reload = Some(Box::new(tell));
        self
    }

    /// How files are watched.
    pub fn watch(mut self, watch: WatchConfig) -> Self {
        self.watch = watch;
        self
    }

    /// Where hotmap's node agent listens in a pod: what was loaded or refused is told there, if there is such a socket. `None`:
    /// never. Default `/run/hotmap/agent.sock`.
    pub fn agent_socket(mut self, path: Option<PathBuf>) -> Self {
        self.agent_socket = path;
        self
    }

    /// Loads, and follows from then on. Each file or directory costs one thread, which sleeps.
    ///
    /// # Errors
    /// [`StartError`]: there is no good configuration to start with.
    pub fn start(self) -> Result<Live<T>, StartError> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let patience = self.layers.iter().filter_map(Layer::patience).max();
        let deadline = Instant::now() + patience.unwrap_or_default();
        let loader = Loader::new(self.layers, self.watch.limits, self.validate);
        Live::start(loader, self.watch, deadline, self.on_reload, self.agent_socket)
    }

    fn add_path(&mut self, path: PathBuf, kind: FileKind) {
        let missing = self.missing;
        self.layers.push(Layer::Path { path, kind, missing });
    }

    fn with_problem(mut self, problem: StartError) -> Self {
        self.note(problem);
        self
    }

    fn note(&mut self, problem: StartError) {
        self.problem.get_or_insert(problem);
    }
}
