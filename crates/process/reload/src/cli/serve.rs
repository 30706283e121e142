//! Flags of the local endpoint and of reports: the same for `reload`, `sync` and `run`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::announcer::AnnouncerConfig;
use crate::endpoint::{EndpointConfig, HealthRule, MetricsAddress, Secrecy, ServeAddress};
use crate::http::Url;
use crate::report::{ReportConfig, Who};

/// Flags of the local endpoint, as typed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Local endpoint and reports")]
pub(crate) struct ServeArgs {
    /// Serves what is watched to the programs beside: `unix:PATH`, or `127.0.0.1:PORT` without values of Secrets.
    /// Repeatable.
    #[arg(long, env = "HOTMAP_SERVE", value_name = "ADDRESS", value_delimiter = ',')]
    serve: Vec<ServeAddress>,
    /// The mode of Unix sockets: who may write to one may ask.
    #[arg(long, env = "HOTMAP_SERVE_MODE", value_name = "OCTAL", default_value = "0600", value_parser = socket_mode)]
    serve_mode: u32,
    /// A watched directory whose values are given over Unix sockets only. Repeatable.
    #[arg(long, env = "HOTMAP_SERVE_SECRET", value_name = "DIR", value_delimiter = ',')]
    serve_secret: Vec<PathBuf>,
    /// A watched directory that holds nothing secret, though it is in memory or not readable by others. Repeatable.
    #[arg(long, env = "HOTMAP_SERVE_PUBLIC", value_name = "DIR", value_delimiter = ',')]
    serve_public: Vec<PathBuf>,
    /// Serves only /metrics and /healthz, for scrapers and kubelets: `0.0.0.0:9533`, or `:9533`. Repeatable.
    #[arg(
        long,
        env = "HOTMAP_METRICS_ADDRESS",
        value_name = "ADDRESS",
        value_delimiter = ','
    )]
    metrics_address: Vec<MetricsAddress>,
    /// What does not make /healthz bad. Repeatable.
    #[arg(
        long,
        env = "HOTMAP_HEALTHZ_IGNORE",
        value_name = "WHAT",
        value_delimiter = ','
    )]
    healthz_ignore: Vec<HealthzIgnore>,
    /// Where it is reported what is loaded, if there is no agent on this node: an http or https URL.
    #[arg(long, env = "HOTMAP_REPORT_TO", value_name = "URL")]
    report_to: Option<Url>,
    /// A file with the bearer token for reports, read again for each: a projected token of audience `hotmap`.
    #[arg(
        long,
        env = "HOTMAP_REPORT_TOKEN_FILE",
        value_name = "FILE",
        requires = "report_to"
    )]
    report_token_file: Option<PathBuf>,
    /// A file with the authorities that sign the receiver's certificate, instead of the system's.
    #[arg(long, env = "HOTMAP_REPORT_CA", value_name = "FILE", requires = "report_to")]
    report_ca: Option<PathBuf>,
    #[command(flatten)]
    who: WhoArgs,
    /// The agent's socket.
    #[arg(
        long,
        env = "HOTMAP_AGENT_SOCKET",
        value_name = "PATH",
        default_value = "/run/hotmap/agent.sock",
        hide = true
    )]
    agent_socket: PathBuf,
}

/// Who speaks: what the downward API puts into the environment.
#[derive(Debug, Args)]
struct WhoArgs {
    #[arg(long, env = "NODE_NAME", hide = true)]
    node_name: Option<String>,
    #[arg(long, env = "POD_NAMESPACE", hide = true)]
    pod_namespace: Option<String>,
    #[arg(long, env = "POD_NAME", hide = true)]
    pod_name: Option<String>,
    #[arg(long, env = "POD_UID", hide = true)]
    pod_uid: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum HealthzIgnore {
    /// The last reload failed, or was held back.
    Reload,
    /// Changes may be missed.
    Deaf,
}

impl ServeArgs {
    /// Whether anybody can ask for what is watched.
    pub(crate) fn is_serving(&self) -> bool {
        !self.serve.is_empty()
    }

    /// Whether anybody asks for metrics only.
    pub(crate) fn is_scraped(&self) -> bool {
        !self.metrics_address.is_empty()
    }

    pub(crate) fn into_config(self) -> AnnouncerConfig {
        AnnouncerConfig {
            endpoint: EndpointConfig {
                addresses: self.serve,
                socket_mode: self.serve_mode,
                metrics_addresses: self.metrics_address,
            },
            health: HealthRule {
                ignores_reload: self.healthz_ignore.contains(&HealthzIgnore::Reload),
                ignores_deaf: self.healthz_ignore.contains(&HealthzIgnore::Deaf),
            },
            secrecy: Secrecy {
                secret: self.serve_secret,
                public: self.serve_public,
            },
            reports: ReportConfig {
                agent_socket: self.agent_socket,
                url: self.report_to,
                token_file: self.report_token_file,
                ca_file: self.report_ca,
                who: Who {
                    node: self.who.node_name,
                    namespace: self.who.pod_namespace,
                    name: self.who.pod_name,
                    uid: self.who.pod_uid,
                },
            },
        }
    }
}

/// Bits of a mode beyond reading and writing mean nothing on a socket.
fn socket_mode(typed: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(typed, 8)
        .ok()
        .filter(|mode| mode & !0o777 == 0);
    mode.ok_or_else(|| format!("{typed:?} is not a mode such as 0600 or 0660"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        serve: ServeArgs,
    }

    #[test]
    fn flags_become_a_config() {
        let typed = "reload --serve unix:/run/a.sock --serve 127.0.0.1:0 --serve-mode 0660 --serve-public /etc/app \
                     --metrics-address :9533 --healthz-ignore reload,deaf";
        let config = Cli::try_parse_from(typed.split_whitespace())
            .unwrap()
            .serve
            .into_config();
        assert_eq!(config.endpoint.addresses.len(), 2);
        assert_eq!(config.endpoint.socket_mode, 0o660);
        assert_eq!(
            config.endpoint.metrics_addresses,
            [MetricsAddress::Any { port: 9533 }]
        );
        assert_eq!(
            config.health,
            HealthRule {
                ignores_reload: true,
                ignores_deaf: true
            }
        );
        assert_eq!(config.secrecy.public, [PathBuf::from("/etc/app")]);
        assert_eq!(
            config.reports.agent_socket,
            PathBuf::from("/run/hotmap/agent.sock")
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (typed, error) in [
            ("reload --serve 0.0.0.0:80", "--metrics-address"),
            ("reload --serve-mode 999", "not a mode"),
            ("reload --serve-mode 1777", "not a mode"),
            ("reload --report-token-file /token", "--report-to"),
            ("reload --report-to hub:80", "http://, https:// or unix:"),
            ("reload --healthz-ignore all", "possible values: reload, deaf"),
        ] {
            let told = Cli::try_parse_from(typed.split_whitespace())
                .unwrap_err()
                .to_string();
            assert!(told.contains(error), "{typed}: {told}");
        }
    }
}
