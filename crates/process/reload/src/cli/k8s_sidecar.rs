//! The environment of kiwigrid's k8s-sidecar, read as a call of `sync`: an image swap is a migration.
//!
//! Names and meanings: k8s-sidecar 1.30 and 2.0, README.md.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The annotation that is looked at if `FOLDER_ANNOTATION` does not name another.
const FOLDER_ANNOTATION: &str = "k8s-sidecar-target-directory";

/// What the environment says, in our words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SidecarCall {
    /// The words of the call, without the program: `sync -l … FOLDER`. They may hold credentials: not for a process's argv.
    pub arguments: Vec<String>,
    /// Variables that are set and do nothing here, each with a sentence.
    pub notes: Vec<String>,
}

/// Variables that are set for k8s-sidecar and have nothing to do here.
const WITHOUT_EFFECT: [(&str, &str); 12] = [
    (
        "SLEEP_TIME",
        "objects are watched, and files are up to date without it",
    ),
    (
        "ERROR_THROTTLE_SLEEP",
        "attempts to reach the API have a back-off of their own",
    ),
    (
        "WATCH_SERVER_TIMEOUT",
        "watches last 5 to 10 minutes, and miss nothing in between",
    ),
    ("WATCH_CLIENT_TIMEOUT", "a dead connection is found within 10 s"),
    (
        "IGNORE_ALREADY_PROCESSED",
        "a version that is known is never processed again",
    ),
    (
        "REQ_RETRY_CONNECT",
        "a request is repeated until it succeeds, or REQ_RETRY_TOTAL times",
    ),
    (
        "REQ_RETRY_READ",
        "a request is repeated until it succeeds, or REQ_RETRY_TOTAL times",
    ),
    (
        "REQ_RETRY_BACKOFF_FACTOR",
        "the pause doubles, see HOTMAP_RETRY_DELAY and HOTMAP_RETRY_DELAY_MAX",
    ),
    (
        "REQ_SKIP_INIT",
        "nobody is told at the start of files that are there already, and of new ones in any case",
    ),
    ("LOG_FORMAT", "lines are text"),
    ("LOG_TZ", "times are in UTC"),
    ("LOG_CONFIG", "see HOTMAP_LOG"),
];

/// Reads an environment. `None`: it is not k8s-sidecar's (`LABEL` is not set).
///
/// # Errors
/// A sentence that names the variable.
pub fn k8s_sidecar_call(get: &dyn Fn(&str) -> Option<String>) -> Option<Result<SidecarCall, String>> {
    let get = |name: &str| get(name).filter(|value| !value.is_empty());
    let label = get("LABEL")?;
    Some(call(&label, &get))
}

fn call(label: &str, get: &dyn Fn(&str) -> Option<String>) -> Result<SidecarCall, String> {
    let mut words = Words::default();
    if let Some(level) = get("LOG_LEVEL") {
        let level = match level.to_ascii_uppercase().as_str() {
            "CRITICAL" => "error".to_owned(),
            other => other.to_ascii_lowercase(),
        };
        words.flag("--log", level);
    }
    words.push("sync");
    words.push("--as-k8s-sidecar");
    let folder = get("FOLDER").ok_or("FOLDER is not set: it names the directory for the files")?;
    let annotation = get("FOLDER_ANNOTATION").unwrap_or_else(|| FOLDER_ANNOTATION.to_owned());
    words.flag("--folder-annotation", annotation);
    if get("HOTMAP_LAYOUT").is_none() {
        words.flag("--layout", "plain");
    }
    let kinds = match get("RESOURCE").as_deref().unwrap_or("configmap") {
        "configmap" => vec!["configmap"],
        "secret" => vec!["secret"],
        "both" => vec!["configmap", "secret"],
        other => return Err(format!("RESOURCE={other:?} is none of configmap, secret, both")),
    };
    if let Some(mode) = get("DEFAULT_FILE_MODE") {
        words.flag("--mode", mode);
    }
    if is_true(get("UNIQUE_FILENAMES")) {
        words.push("--unique-names");
    }
    if get("METHOD").as_deref() == Some("LIST") {
        words.push("--once");
    }
    if let Some(port) = get("HEALTH_PORT") {
        words.flag("--metrics-address", format!("0.0.0.0:{port}"));
    }
    // As there, it is run before the request.
    if let Some(script) = get("SCRIPT") {
        let quoted = format!("'{}'", script.replace('\'', r"'\''"));
        let is_executable = rustix::fs::access(script.as_str(), rustix::fs::Access::EXEC_OK).is_ok();
        words.flag(
            "--exec",
            if is_executable {
                quoted
            } else {
                format!("sh {quoted}")
            },
        );
    }
    // As there, only this one word is it.
    if get("SKIP_TLS_VERIFY").as_deref() == Some("true") {
        words.push("--insecure-skip-tls-verify");
    }
    request(get, &mut words)?;
    let objects = objects(label, &kinds, get, &mut words)?;
    words.0.push("--".to_owned());
    words.0.extend(objects);
    words.push(folder);
    let notes = WITHOUT_EFFECT
        .iter()
        .filter(|(name, _)| get(name).is_some())
        .map(|(name, why)| format!("{name} has no effect here: {why}"));
    Ok(SidecarCall {
        notes: notes.collect(),
        arguments: words.0,
    })
}

/// By name if `RESOURCE_NAME` is set, else by label.
fn objects(
    label: &str,
    kinds: &[&str],
    get: &dyn Fn(&str) -> Option<String>,
    words: &mut Words,
) -> Result<Vec<String>, String> {
    let namespaces = get("NAMESPACE");
    let is_everywhere = namespaces.as_deref() == Some("ALL");
    let Some(names) = get("RESOURCE_NAME").filter(|_| !is_everywhere) else {
        let selector = match get("LABEL_VALUE") {
            Some(value) => format!("{label}={value}"),
            None => label.to_owned(),
        };
        words.flag("--selector", selector);
        words.flag("--kind", kinds.join(","));
        match namespaces {
            Some(_) if is_everywhere => words.push("--all-namespaces"),
            Some(namespaces) => words.flag("--namespace", namespaces),
            None => {}
        }
        return Ok(Vec::new());
    };
    // As there, what is named may be missing.
    words.push("--optional");
    let namespaces: Vec<&str> = namespaces.iter().flat_map(|list| list.split(',')).collect();
    let mut objects = Vec::new();
    for item in names.split(',') {
        let parts: Vec<&str> = item.split('/').collect();
        let (of_namespace, of_kind, name) = match parts[..] {
            [name] => (None, None, name),
            [kind, name] => (None, Some(kind), name),
            [namespace, kind, name] => (Some(namespace), Some(kind), name),
            _ => return Err(format!("RESOURCE_NAME: {item:?} is no [[NAMESPACE/]KIND/]NAME")),
        };
        for kind in kinds.iter().filter(|kind| of_kind.is_none_or(|of| of == **kind)) {
            let here: Vec<Option<&str>> = match of_namespace {
                Some(namespace) => vec![Some(namespace)],
                None if namespaces.is_empty() => vec![None],
                None => namespaces.iter().copied().map(Some).collect(),
            };
            objects.extend(here.into_iter().map(|namespace| match namespace {
                Some(namespace) => format!("{namespace}/{kind}/{name}"),
                None => format!("{kind}/{name}"),
            }));
        }
    }
    if objects.is_empty() {
        return Err("RESOURCE_NAME names nothing that RESOURCE asks for".to_owned());
    }
    Ok(objects)
}

/// What is said of requests: for `REQ_URL`, and for keys that end in `.url`.
fn request(get: &dyn Fn(&str) -> Option<String>, words: &mut Words) -> Result<(), String> {
    let is_telling = get("REQ_URL").is_some();
    if let Some(url) = get("REQ_URL") {
        words.flag("--webhook-url", url);
        let method = get("REQ_METHOD").unwrap_or_else(|| "GET".to_owned());
        if !matches!(method.as_str(), "GET" | "POST") {
            return Err(format!("REQ_METHOD={method:?} is neither GET nor POST"));
        }
        if method == "POST"
            && let Some(payload) = get("REQ_PAYLOAD")
        {
            let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&payload).is_ok();
            let body = if is_json {
                payload
            } else {
                serde_json::Value::String(payload).to_string()
            };
            words.flag("--webhook-body", body);
        }
        words.flag("--webhook-method", method);
    }
    // Both, where somebody is told.
    let mut both = |webhook: &str, fetch: &str| {
        if is_telling {
            words.push(webhook);
        }
        words.push(fetch);
    };
    if let Some(timeout) = get("REQ_TIMEOUT") {
        both(
            &format!("--webhook-timeout={timeout}s"),
            &format!("--fetch-timeout={timeout}s"),
        );
    }
    if is_true(get("REQ_SKIP_TLS_VERIFY")) {
        both("--webhook-insecure", "--fetch-insecure");
    } else if let Some(bundle) = get("REQUESTS_CA_BUNDLE") {
        both(&format!("--webhook-ca={bundle}"), &format!("--fetch-ca={bundle}"));
    }
    if let Some(credentials) = credentials(get)? {
        let webhook = format!("--webhook-header=Authorization: {credentials}");
        both(&webhook, &format!("--fetch-authorization={credentials}"));
    }
    if let Some(retries) = get("REQ_RETRY_TOTAL") {
        words.flag("--retries", retries);
    }
    if is_true(get("ENABLE_5XX")) {
        words.push("--fetch-5xx");
    }
    Ok(())
}

/// The value of `Authorization`.
fn credentials(get: &dyn Fn(&str) -> Option<String>) -> Result<Option<String>, String> {
    let (Some(user), Some(password)) = (said(get, "REQ_USERNAME")?, said(get, "REQ_PASSWORD")?) else {
        return Ok(None);
    };
    let credentials = format!("{user}:{password}");
    let encoding = get("REQ_BASIC_AUTH_ENCODING").unwrap_or_else(|| "latin1".to_owned());
    let bytes = match encoding.to_ascii_lowercase().as_str() {
        "utf-8" | "utf8" => credentials.into_bytes(),
        "latin1" | "latin-1" | "iso-8859-1" => credentials
            .chars()
            .map(u8::try_from)
            .collect::<Result<_, _>>()
            .map_err(|_| "REQ_PASSWORD is not latin1: set REQ_BASIC_AUTH_ENCODING=utf-8")?,
        _ => {
            return Err(format!(
                "REQ_BASIC_AUTH_ENCODING={encoding:?} is neither latin1 nor utf-8"
            ));
        }
    };
    Ok(Some(format!("Basic {}", STANDARD.encode(bytes))))
}

/// A variable, or the file that its twin `…_FILE` names, which wins. It is read once, at the start.
fn said(get: &dyn Fn(&str) -> Option<String>, name: &str) -> Result<Option<String>, String> {
    let Some(path) = get(&format!("{name}_FILE")) else {
        return Ok(get(name));
    };
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(error) => Err(format!("{name}_FILE={path:?} cannot be read: {error}")),
    }
}

fn is_true(value: Option<String>) -> bool {
    value.is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

#[derive(Default)]
struct Words(Vec<String>);

impl Words {
    fn push(&mut self, word: impl Into<String>) {
        self.0.push(word.into());
    }

    /// In one word: a value may start with a dash.
    fn flag(&mut self, name: &str, value: impl AsRef<str>) {
        self.0.push(format!("{name}={}", value.as_ref()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words after `sync --as-k8s-sidecar`, space separated, or the error.
    fn check(environment: &[(&str, &str)], expected: &str) {
        let get = |name: &str| {
            let found = environment.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let shown = match k8s_sidecar_call(&get) {
            None => "not k8s-sidecar's".to_owned(),
            Some(Err(why)) => why,
            Some(Ok(call)) => call.arguments.join(" ").replacen("sync --as-k8s-sidecar ", "", 1),
        };
        assert_eq!(shown, expected, "{environment:?}");
    }

    #[test]
    fn an_environment_becomes_a_call() {
        check(&[], "not k8s-sidecar's");
        check(
            &[("LABEL", "x")],
            "FOLDER is not set: it names the directory for the files",
        );
        check(
            &[("LABEL", "grafana_dashboard"), ("FOLDER", "/tmp/dashboards")],
            "--folder-annotation=k8s-sidecar-target-directory --layout=plain --selector=grafana_dashboard \
             --kind=configmap -- /tmp/dashboards",
        );
        check(
            &[
                ("LABEL", "a"),
                ("LABEL_VALUE", "1"),
                ("FOLDER", "/d"),
                ("FOLDER_ANNOTATION", "f"),
                ("RESOURCE", "both"),
                ("NAMESPACE", "ALL"),
                ("UNIQUE_FILENAMES", "True"),
                ("DEFAULT_FILE_MODE", "440"),
                ("METHOD", "LIST"),
                ("LOG_LEVEL", "DEBUG"),
                ("HEALTH_PORT", "8080"),
                ("HOTMAP_LAYOUT", "projected"),
            ],
            "--log=debug --folder-annotation=f --mode=440 --unique-names --once --metrics-address=0.0.0.0:8080 --selector=a=1 \
             --kind=configmap,secret --all-namespaces -- /d",
        );
        check(
            &[
                ("LABEL", "a"),
                ("FOLDER", "/d"),
                ("NAMESPACE", "x,y"),
                ("RESOURCE_NAME", "one,secret/two,z/configmap/three"),
            ],
            "--folder-annotation=k8s-sidecar-target-directory --layout=plain --optional -- x/configmap/one \
             y/configmap/one z/configmap/three /d",
        );
        check(
            &[("LABEL", "a"), ("FOLDER", "/d"), ("RESOURCE", "pods")],
            "RESOURCE=\"pods\" is none of configmap, secret, both",
        );
    }

    #[test]
    fn requests_and_scripts_become_targets() {
        let with = |more: &[(&'static str, &'static str)], expected: &str| {
            let environment = [&[("LABEL", "a"), ("FOLDER", "/d")], more].concat();
            let get = |name: &str| {
                let found = environment.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            let call = k8s_sidecar_call(&get).expect("it is k8s-sidecar's");
            let shown = match call {
                Err(why) => why,
                Ok(call) => {
                    let end = call
                        .arguments
                        .iter()
                        .position(|word| word.starts_with("--selector"));
                    call.arguments[4..end.expect("a selector")].join(" ")
                }
            };
            assert_eq!(shown, expected, "{more:?}");
        };
        with(
            &[("REQ_URL", "http://a/")],
            "--webhook-url=http://a/ --webhook-method=GET",
        );
        with(
            &[
                ("REQ_URL", "http://a/"),
                ("REQ_METHOD", "POST"),
                ("REQ_PAYLOAD", "reload"),
                ("REQ_TIMEOUT", "2.5"),
                ("REQ_RETRY_TOTAL", "3"),
                ("REQ_USERNAME", "u"),
                ("REQ_PASSWORD", "p"),
            ],
            "--webhook-url=http://a/ --webhook-body=\"reload\" --webhook-method=POST --webhook-timeout=2.5s --fetch-timeout=2.5s \
             --webhook-header=Authorization: Basic dTpw --fetch-authorization=Basic dTpw --retries=3",
        );
        with(
            &[
                ("REQ_TIMEOUT", "2"),
                ("REQ_SKIP_TLS_VERIFY", "true"),
                ("REQUESTS_CA_BUNDLE", "/ca"),
                ("ENABLE_5XX", "true"),
                ("SKIP_TLS_VERIFY", "true"),
            ],
            "--insecure-skip-tls-verify --fetch-timeout=2s --fetch-insecure --fetch-5xx",
        );
        with(
            &[("REQUESTS_CA_BUNDLE", "/ca"), ("SKIP_TLS_VERIFY", "1")],
            "--fetch-ca=/ca",
        );
        with(
            &[
                ("REQ_USERNAME", "u"),
                ("REQ_PASSWORD", "x"),
                ("REQ_PASSWORD_FILE", "/no/such/file"),
            ],
            "REQ_PASSWORD_FILE=\"/no/such/file\" cannot be read: No such file or directory (os error 2)",
        );
        with(
            &[("REQ_URL", "http://a/"), ("REQ_METHOD", "PUT")],
            "REQ_METHOD=\"PUT\" is neither GET nor POST",
        );
        with(&[("SCRIPT", "/no/such script")], "--exec=sh '/no/such script'");
        with(&[("SCRIPT", "/bin/sh")], "--exec='/bin/sh'");
    }

    #[test]
    fn what_has_no_effect_is_named() {
        let get = |name: &str| {
            ["LABEL", "FOLDER", "SLEEP_TIME"]
                .contains(&name)
                .then(|| "1".to_owned())
        };
        let call = k8s_sidecar_call(&get)
            .expect("it is k8s-sidecar's")
            .expect("it is right");
        assert_eq!(
            call.notes,
            ["SLEEP_TIME has no effect here: objects are watched, and files are up to date without it"]
        );
    }
}
