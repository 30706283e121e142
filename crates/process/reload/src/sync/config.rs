//! The flags of `sync`, checked once.

use std::path::PathBuf;
use std::time::Duration;

use hotmap_object::{LabelSelector, names};
use hotmap_volume::{FileMode, Ownership};

use crate::announcer::AnnouncerConfig;
use crate::cli::{ReloaderArgs, SyncArgs};
use crate::command::CommandLine;
use crate::http::Url;
use crate::sync::destination::Layout;
use crate::sync::fetch::FetchConfig;
use crate::sync::merge::{Modes, Selection, Who};
use crate::sync::object::{ObjectKind, TypedObject};
use crate::sync::sidecar::SidecarRules;

/// Where an object is looked for if nobody says otherwise.
const DEFAULT_NAMESPACE: &str = "default";
/// How long --once waits if nobody says otherwise.
const ONCE_TIMEOUT: Duration = Duration::from_secs(60);
/// Mode of files from Secrets if nobody says otherwise: for whoever runs `sync`, and nobody else.
const SECRET_BITS: u32 = 0o600;

/// What may run.
#[derive(Debug)]
pub(crate) struct SyncConfig {
    pub(crate) objects: Vec<TypedObject>,
    pub(crate) labels: Option<Labelled>,
    pub(crate) namespaces: Namespaces,
    pub(crate) directory: PathBuf,
    pub(crate) layout: Layout,
    pub(crate) modes: Modes,
    pub(crate) owner: Option<Ownership>,
    pub(crate) secrets_on_disk: bool,
    pub(crate) is_optional: bool,
    /// Write once and end, or fail after this long.
    pub(crate) once: Option<Duration>,
    pub(crate) sidecar: Option<SidecarRules>,
    /// How content is fetched, if some keys hold URLs.
    pub(crate) fetch: Option<FetchConfig>,
    /// Whether the API's certificate is not looked at.
    pub(crate) trusts_any_server: bool,
    pub(crate) kubeconfig: Option<PathBuf>,
    pub(crate) context: Option<String>,
    /// Manifests instead of an API.
    pub(crate) from: Option<PathBuf>,
    pub(crate) reloader: ReloaderArgs,
    pub(crate) verify: Option<VerifyConfig>,
    /// Who else is told how far it is.
    pub(crate) announcer: AnnouncerConfig,
}

/// Who is asked whether all is well, and how long.
#[derive(Debug)]
pub(crate) struct VerifyConfig {
    pub(crate) who: VerifyWho,
    pub(crate) window: Duration,
    /// Authorities of a URL's certificate.
    pub(crate) ca: Option<PathBuf>,
}

#[derive(Debug)]
pub(crate) enum VerifyWho {
    Command(CommandLine),
    Url(Url),
}

/// Objects by label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Labelled {
    pub(crate) selector: String,
    /// In the order in which they are merged.
    pub(crate) kinds: Vec<ObjectKind>,
}

/// Where objects are that do not say it themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Namespaces {
    /// The one of the kubeconfig's context or of the pod's account, else `default`.
    OfContext,
    /// These; one, if objects are named.
    These(Vec<String>),
    /// All: for labels only.
    All,
}

/// A call that cannot be meant.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ConfigError(pub(crate) String);

impl TryFrom<SyncArgs> for SyncConfig {
    type Error = ConfigError;

    fn try_from(args: SyncArgs) -> Result<Self, ConfigError> {
        let wrong = |text: &str| ConfigError(text.to_owned());
        let mut typed = args.objects;
        // Rights do not depend on the directory: it may be left out there.
        let is_last_an_object = typed
            .last()
            .is_some_and(|last| last.parse::<TypedObject>().is_ok());
        let directory = if args.print_rbac.is_some() && is_last_an_object {
            PathBuf::new()
        } else {
            let last = typed.pop().map(PathBuf::from);
            last.ok_or_else(|| wrong("which directory? give DIR as the last argument"))?
        };
        let objects = typed
            .iter()
            .map(|object| object.parse())
            .collect::<Result<Vec<TypedObject>, String>>()
            .map_err(ConfigError)?;
        let labels = args
            .selector
            .map(|selector| labelled(selector, args.kinds))
            .transpose()?;
        if objects.is_empty() && labels.is_none() {
            return Err(wrong(
                "which objects? give configmap/NAME or secret/NAME before DIR, or labels with -l",
            ));
        }
        let namespaces = namespaces(args.namespace, args.all_namespaces)?;
        if objects.iter().any(|object| object.namespace.is_none()) && namespaces.is_several() {
            return Err(wrong(
                "with several namespaces say where each object is: NAMESPACE/configmap/NAME",
            ));
        }
        let has_rules = args.as_k8s_sidecar || args.unique_names || args.folder_annotation.is_some();
        if has_rules && objects.iter().any(|object| object.subdirectory.is_some()) {
            return Err(wrong(
                "--folder-annotation and --unique-names say where files go, and so does KIND/NAME=SUBDIRECTORY: give one",
            ));
        }
        let sidecar = has_rules.then(|| SidecarRules {
            annotation: args.folder_annotation,
            folder: directory.clone(),
            unique_names: args.unique_names,
            fetches_urls: args.as_k8s_sidecar,
        });
        let verify = args.verify.map(verify_who).transpose()?;
        let mut announcer = args.serve.into_config();
        if has_secrets(&objects, labels.as_ref()) {
            announcer.secrecy.secret.push(directory.clone());
        }
        Ok(Self {
            objects,
            labels,
            namespaces,
            directory,
            announcer,
            layout: args.layout,
            modes: modes(args.mode)?,
            owner: args.owner,
            secrets_on_disk: args.secrets_on_disk,
            is_optional: args.optional,
            once: args.once.then(|| args.once_timeout.unwrap_or(ONCE_TIMEOUT)),
            sidecar,
            fetch: args
                .as_k8s_sidecar
                .then(|| args.fetch.into_config())
                .transpose()?,
            trusts_any_server: args.insecure_skip_tls_verify,
            kubeconfig: args.kubeconfig,
            context: args.context,
            from: args.from,
            reloader: args.reloader,
            verify: verify.map(|who| VerifyConfig {
                who,
                window: args.verify_for,
                ca: args.verify_ca,
            }),
        })
    }
}

impl SyncConfig {
    /// What is followed, in the order in which it is merged: labels first, so that what was named wins.
    /// `of_context` is the namespace of the kubeconfig's context or of the pod's account.
    pub(crate) fn selections(&self, of_context: Option<&str>) -> Vec<Selection> {
        let of_context = of_context.unwrap_or(DEFAULT_NAMESPACE);
        let places: Vec<Option<&str>> = match &self.namespaces {
            Namespaces::OfContext => vec![Some(of_context)],
            Namespaces::These(names) => names.iter().map(|name| Some(name.as_str())).collect(),
            Namespaces::All => vec![None],
        };
        let mut selections = Vec::new();
        if let Some(labels) = &self.labels {
            for kind in &labels.kinds {
                for place in &places {
                    selections.push(Selection {
                        kind: *kind,
                        namespace: place.map(str::to_owned),
                        who: Who::Labelled(labels.selector.clone()),
                        subdirectory: None,
                    });
                }
            }
        }
        let here = places.first().copied().flatten().unwrap_or(of_context);
        for object in &self.objects {
            selections.push(Selection {
                kind: object.kind,
                namespace: Some(object.namespace.as_deref().unwrap_or(here).to_owned()),
                who: Who::Named(object.name.clone()),
                subdirectory: object.subdirectory.clone(),
            });
        }
        selections
    }

    /// Where objects are that do not say it.
    pub(crate) fn home_namespace(&self, of_context: Option<&str>) -> String {
        let named = match &self.namespaces {
            Namespaces::These(names) => names.first().map(String::as_str),
            Namespaces::OfContext | Namespaces::All => of_context,
        };
        named.unwrap_or(DEFAULT_NAMESPACE).to_owned()
    }

    /// Whether Secrets are among what is asked for.
    pub(crate) fn has_secrets(&self) -> bool {
        has_secrets(&self.objects, self.labels.as_ref())
    }
}

fn has_secrets(objects: &[TypedObject], labels: Option<&Labelled>) -> bool {
    let of_labels = labels.iter().flat_map(|labels| &labels.kinds);
    let mut kinds = objects.iter().map(|object| &object.kind).chain(of_labels);
    kinds.any(|kind| *kind == ObjectKind::Secret)
}

impl Namespaces {
    fn is_several(&self) -> bool {
        match self {
            Self::OfContext => false,
            Self::These(names) => names.len() > 1,
            Self::All => true,
        }
    }
}

fn labelled(selector: String, kinds: Vec<ObjectKind>) -> Result<Labelled, ConfigError> {
    selector
        .parse::<LabelSelector>()
        .map_err(|error| ConfigError(format!("-l {selector:?}: {error}")))?;
    let mut kinds = if kinds.is_empty() {
        vec![ObjectKind::ConfigMap]
    } else {
        kinds
    };
    kinds.sort_unstable();
    kinds.dedup();
    Ok(Labelled { selector, kinds })
}

fn verify_who(text: String) -> Result<VerifyWho, ConfigError> {
    let wrong = |why: String| ConfigError(format!("--verify: {why}"));
    if ["http://", "https://", "unix:"]
        .iter()
        .any(|scheme| text.starts_with(scheme))
    {
        let url = text.parse::<Url>().map_err(|error| wrong(error.to_string()))?;
        return Ok(VerifyWho::Url(url));
    }
    CommandLine::parse(&text)
        .map(VerifyWho::Command)
        .map_err(|error| wrong(error.to_string()))
}

fn namespaces(named: Vec<String>, all: bool) -> Result<Namespaces, ConfigError> {
    if all {
        return Ok(Namespaces::All);
    }
    for name in &named {
        if let Some(rule) = names::dns_1123_label(name).first() {
            return Err(ConfigError(format!("-n {name:?} is no namespace: {rule}")));
        }
    }
    Ok(if named.is_empty() {
        Namespaces::OfContext
    } else {
        Namespaces::These(named)
    })
}

fn modes(asked: Option<u32>) -> Result<Modes, ConfigError> {
    let mode = |bits| FileMode::new(bits).map_err(|error| ConfigError(format!("--mode {error}")));
    Ok(Modes {
        config_map: asked.map_or(Ok(FileMode::DEFAULT), mode)?,
        secret: mode(asked.unwrap_or(SECRET_BITS))?,
    })
}
