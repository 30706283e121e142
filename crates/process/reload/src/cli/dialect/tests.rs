use clap::Parser;

use super::*;
use crate::cli::ProcessCommand;

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

/// What a call becomes, as a line without the program.
fn said(line: &str) -> Result<Option<String>, DialectError> {
    let translation = translate(&words(&format!("hotmap-reload {line}")))?;
    Ok(translation.map(|translation| {
        let said: Vec<_> = translation.arguments[1..]
            .iter()
            .map(|word| word.to_string_lossy())
            .collect();
        said.join(" ")
    }))
}

const CONFIGMAP_RELOAD_END: &str = "--metrics-address :9533 --metric-names configmap-reload";

#[test]
fn calls_of_configmap_reload_are_said_in_our_flags() {
    for (theirs, ours) in [
        (
            "-volume-dir /etc/a -volume-dir=/etc/b -webhook-url http://x/-/reload",
            "reload --volume-dir /etc/a --volume-dir /etc/b --webhook-url http://x/-/reload END",
        ),
        (
            "--volume-dir=/etc/a --webhook-url=http://x --webhook-method=PUT --webhook-status-code=204",
            "reload --volume-dir /etc/a --webhook-url http://x --webhook-method PUT --webhook-status 204 END",
        ),
        (
            "--volume-dir /a --webhook-url http://x -webhook-retries 3",
            "reload --volume-dir /a --webhook-url http://x --retries 2 --retry-delay 10s --retry-delay-max 10s END",
        ),
        (
            "-webhook-retries -1 --volume-dir /a --webhook-url http://x",
            "reload --retry-delay 10s --retry-delay-max 10s --volume-dir /a --webhook-url http://x END",
        ),
        (
            "--volume-dir /a --webhook-url http://x --web.listen-address 127.0.0.1:80 -web.telemetry-path /metrics",
            "reload --volume-dir /a --webhook-url http://x --metrics-address 127.0.0.1:80 --metric-names configmap-reload",
        ),
    ] {
        assert_eq!(
            said(theirs),
            Ok(Some(ours.replace("END", CONFIGMAP_RELOAD_END))),
            "{theirs}"
        );
    }
}

#[test]
fn calls_of_prometheus_config_reloader_are_said_in_our_flags() {
    let end = "--timeout 30s --delay 1s --retry-delay 5s --retry-delay-max 5s --on-start --watch-interval 3m";
    let names = "--metric-names prometheus-config-reloader";
    let webhook = "--webhook-url http://127.0.0.1:9090/-/reload --webhook-timeout 30s";
    for (theirs, ours) in [
        (
            "--watched-dir=/rules --watched-dir=/more",
            format!("--log info reload --volume-dir /rules --volume-dir /more {webhook} {end} {names}"),
        ),
        (
            "--config-file=/c/p.yaml.gz --config-envsubst-file=/out/p.yaml --listen-address=:8080 --log-level=debug",
            format!(
                "--log debug reload --render /c/p.yaml.gz:/out/p.yaml --render-syntax parentheses --render-ordinal-from \
                 POD_NAME {webhook} {end} --metrics-address :8080 {names}"
            ),
        ),
        (
            "--config-file /c/p.yaml --reload-method signal --process-executable-name thanos --watch-interval=0",
            format!(
                "--log info reload --volume-dir /c/p.yaml --signal HUP --process thanos --timeout 30s --delay 1s \
                 --retry-delay 5s --retry-delay-max 5s --once {names}"
            ),
        ),
        (
            "--watched-dir=/r --reload-url=https://localhost:9090/-/reload --reload-timeout=5s --delay-interval=2s \
             --retry-interval=1s --watch-interval=1m --auto-gomemlimit-ratio=0.5 --log-format=logfmt --web-config-file=",
            format!(
                "--log info reload --volume-dir /r --webhook-insecure --webhook-url https://localhost:9090/-/reload \
                 --webhook-timeout 5s --timeout 5s --delay 2s --retry-delay 1s --retry-delay-max 1s --on-start \
                 --watch-interval 1m {names}"
            ),
        ),
    ] {
        assert_eq!(said(theirs), Ok(Some(ours)), "{theirs}");
    }
}

#[test]
fn what_cannot_be_had_is_refused_with_its_name() {
    for (theirs, message) in [
        (
            "-volume-dir-archive /a",
            "--volume-dir-archive is not supported: archives are not unpacked",
        ),
        (
            "-volume-dir /a -web.telemetry-path /m",
            "--web.telemetry-path is not supported: metrics are at /metrics",
        ),
        (
            "-volume-dir /a -webhook-retries 0",
            "--webhook-retries 0: the number of calls is expected",
        ),
        (
            "-volume-dir /a -nonsense 1",
            "configmap-reload has no flag --nonsense",
        ),
        ("-volume-dir", "--volume-dir needs a value"),
        ("-volume-dir /a stray", "\"stray\" is neither a flag"),
        (
            "--watched-dir=/a --web-config-file=/w",
            "--web-config-file is not supported",
        ),
        (
            "--watched-dir=/a --reload-method=magic",
            "--reload-method magic: http or signal is expected",
        ),
        (
            "--watched-dir=/a --log-level=loud",
            "--log-level loud: all, debug",
        ),
        (
            "--config-envsubst-file=/a",
            "--config-envsubst-file /a: --config-file is missing",
        ),
    ] {
        let error = said(theirs).unwrap_err().to_string();
        assert!(error.starts_with(message), "{theirs}: {error}");
    }
}

#[test]
fn calls_in_our_own_flags_stay_as_they_are() {
    for ours in [
        "",
        "--help",
        "--version",
        "reload --volume-dir /a",
        "--log debug reload --volume-dir /a",
        "sync x y",
    ] {
        assert_eq!(said(ours), Ok(None), "{ours}");
    }
}

#[test]
fn what_is_said_in_our_flags_is_understood() {
    #[derive(Debug, Parser)]
    struct Cli {
        #[arg(long, global = true)]
        log: Option<String>,
        #[command(subcommand)]
        command: ProcessCommand,
    }
    for theirs in [
        "-volume-dir /a -webhook-url http://x -webhook-retries 3 -webhook-status-code 200 -webhook-method GET",
        "--config-file=/c/p.yaml.gz --config-envsubst-file=/out/p.yaml --listen-address=:8080 --watched-dir=/r",
        "--config-file=/c/p.yaml --reload-method=signal --runtimeinfo-url=http://x --watch-interval=0",
        "--watched-dir=/r --reload-url=https://x/-/reload",
    ] {
        let translation = translate(&words(&format!("hotmap-reload {theirs}")))
            .unwrap()
            .unwrap();
        let cli =
            Cli::try_parse_from(&translation.arguments).unwrap_or_else(|error| panic!("{theirs}: {error}"));
        assert!(matches!(cli.command, ProcessCommand::Reload(_)), "{:?}", cli.log);
    }
}
