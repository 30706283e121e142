//! What is printed instead of syncing: rights, a unit.

use std::ffi::OsString;
use std::path::Path;

use hotmap_client::{ClientConfig, Surroundings};

use crate::sync::config::{SyncConfig, VerifyWho};
use crate::sync::merge::{Selection, Who};
use crate::sync::rbac;
use crate::sync::unit::{UnitConfig, UnitError};

/// Variables that may hold credentials.
const WITHHELD: [&str; 2] = ["HOTMAP_WEBHOOK_HEADER", "HOTMAP_WEBHOOK_BODY"];
/// The flag that is no part of what the service runs.
const PRINT_UNIT: &str = "--print-unit";

/// The role for this call. The namespace is the one the call would use; without an API that of `-n`, or `default`.
pub(crate) fn rbac(config: &SyncConfig, account: &str) -> String {
    let api = ClientConfig::find(
        config.kubeconfig.as_deref(),
        config.context.as_deref(),
        &Surroundings::of_process(),
    );
    let of_context = api.ok().and_then(|api| api.namespace);
    let selections = config.selections(of_context.as_deref());
    let home = config.home_namespace(of_context.as_deref());
    rbac::manifests(&selections, account, &home)
}

/// The service for this call.
pub(crate) fn unit(config: &SyncConfig) -> Result<String, UnitError> {
    let working_directory = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let program = std::env::current_exe().unwrap_or_else(|_| "/usr/bin/hotmap".into());
    let arguments = std::env::args_os()
        .skip(1)
        .filter(|argument| argument != PRINT_UNIT);
    let command: Vec<OsString> = std::iter::once(program.into_os_string())
        .chain(arguments)
        .collect();
    let (mut environment, mut withheld) = (Vec::new(), Vec::new());
    let mut variables: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| name.starts_with("HOTMAP_") && name != "HOTMAP_PRINT_UNIT")
        .collect();
    variables.sort_unstable();
    for (name, value) in variables {
        if WITHHELD.contains(&name.as_str()) {
            withheld.push(name);
        } else {
            environment.push(format!("{name}={value}"));
        }
    }
    if config.kubeconfig.is_none() && config.from.is_none() {
        environment.extend(kubeconfig().map(|path| format!("KUBECONFIG={path}")));
    }
    let directory = std::path::absolute(&config.directory).unwrap_or_else(|_| config.directory.clone());
    let unit = UnitConfig {
        command,
        working_directory,
        environment,
        withheld,
        directory,
        has_secrets: config.has_secrets(),
        what: what(&config.selections(None)),
        changes_owner: config.owner.is_some(),
        starts_commands: config.reloader.starts_commands()
            || matches!(&config.verify, Some(verify) if matches!(verify.who, VerifyWho::Command(_))),
    };
    unit.print()
}

/// The file that is found now by the environment; a service has another one.
fn kubeconfig() -> Option<String> {
    let named = std::env::var("KUBECONFIG").ok().filter(|path| !path.is_empty());
    named.or_else(|| {
        let home = std::env::var("HOME").ok()?;
        let path = format!("{home}/.kube/config");
        Path::new(&path).exists().then_some(path)
    })
}

fn what(selections: &[Selection]) -> String {
    let words = selections.iter().map(|selection| match &selection.who {
        Who::Named(name) => format!("{}/{name}", selection.kind),
        Who::Labelled(selector) => format!("{} with {selector}", selection.kind.resource()),
    });
    words.collect::<Vec<_>>().join(", ")
}
