//! Flags of webhooks.

use std::path::PathBuf;
use std::sync::atomic::AtomicU16;
use std::time::Duration;

use clap::Args;
use hyper::Method;
use hyper::header::{HeaderName, HeaderValue};

use super::{BodyTemplate, Credentials, Statuses, Webhook, WebhookConfigError};
use crate::cli::duration::duration;
use crate::http::{HttpClient, TlsFiles, Url};

/// Who is called over HTTP, and how. What stands beside `--webhook-url` holds for all of them.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Webhooks")]
pub(crate) struct WebhookArgs {
    /// Send a request there after a change: http://…, https://… or unix:/SOCKET:/PATH. Repeatable.
    #[arg(long, env = "HOTMAP_WEBHOOK_URL", value_name = "URL", value_delimiter = ' ')]
    pub(crate) webhook_url: Vec<String>,
    /// The method of the request.
    #[arg(
        long,
        env = "HOTMAP_WEBHOOK_METHOD",
        value_name = "METHOD",
        default_value = "POST"
    )]
    pub(crate) webhook_method: Method,
    /// A header of the request, such as `X-Scope: a`. Repeatable. Credentials belong into files: see below.
    #[arg(
        long,
        env = "HOTMAP_WEBHOOK_HEADER",
        value_name = "NAME: VALUE",
        value_delimiter = '\n',
        value_parser = header,
        hide_env_values = true
    )]
    pub(crate) webhook_header: Vec<(HeaderName, HeaderValue)>,
    /// The body of the request, with `$(revision)`, `$(volume)`, `$(keys)`, `$(changes)` filled in as JSON.
    #[arg(
        long,
        env = "HOTMAP_WEBHOOK_BODY",
        value_name = "TEMPLATE",
        hide_env_values = true
    )]
    pub(crate) webhook_body: Option<BodyTemplate>,
    /// Statuses that mean that the change was taken, such as `200`, `200-204` or `2xx,404`.
    #[arg(
        long,
        env = "HOTMAP_WEBHOOK_STATUS",
        value_name = "STATUS,…",
        default_value = "2xx",
        alias = "webhook-status-code"
    )]
    pub(crate) webhook_status: Statuses,
    /// How long one request may take, from the connection to the answer.
    #[arg(long, env = "HOTMAP_WEBHOOK_TIMEOUT", value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(crate) webhook_timeout: Duration,
    /// A file with `USER:PASSWORD` for basic authentication; read for each request.
    #[arg(
        long,
        env = "HOTMAP_WEBHOOK_BASIC_AUTH_FILE",
        value_name = "FILE",
        conflicts_with = "webhook_bearer_token_file"
    )]
    pub(crate) webhook_basic_auth_file: Option<PathBuf>,
    /// A file with a bearer token; read for each request.
    #[arg(long, env = "HOTMAP_WEBHOOK_BEARER_TOKEN_FILE", value_name = "FILE")]
    pub(crate) webhook_bearer_token_file: Option<PathBuf>,
    /// Authorities (PEM) that sign the certificates of https:// places, instead of the system's.
    #[arg(long, env = "HOTMAP_WEBHOOK_CA", value_name = "FILE")]
    pub(crate) webhook_ca: Option<PathBuf>,
    /// A certificate (PEM) to show to https:// places; read for each request.
    #[arg(
        long,
        env = "HOTMAP_WEBHOOK_CLIENT_CERT",
        value_name = "FILE",
        requires = "webhook_client_key"
    )]
    pub(crate) webhook_client_cert: Option<PathBuf>,
    /// Its key (PEM).
    #[arg(
        long,
        env = "HOTMAP_WEBHOOK_CLIENT_KEY",
        value_name = "FILE",
        requires = "webhook_client_cert"
    )]
    pub(crate) webhook_client_key: Option<PathBuf>,
    /// Believe every certificate: whoever stands between reads the credentials.
    #[arg(long, env = "HOTMAP_WEBHOOK_INSECURE", conflicts_with = "webhook_ca")]
    pub(crate) webhook_insecure: bool,
}

impl Default for WebhookArgs {
    /// As without any flag.
    fn default() -> Self {
        Self {
            webhook_url: Vec::new(),
            webhook_method: Method::POST,
            webhook_header: Vec::new(),
            webhook_body: None,
            webhook_status: Statuses::success(),
            webhook_timeout: Duration::from_secs(10),
            webhook_basic_auth_file: None,
            webhook_bearer_token_file: None,
            webhook_ca: None,
            webhook_client_cert: None,
            webhook_client_key: None,
            webhook_insecure: false,
        }
    }
}

impl WebhookArgs {
    /// The targets, in the order of their URLs. Reads the files once, so that a wrong flag is told at the start.
    pub(crate) fn targets(&self) -> Result<Vec<Webhook>, WebhookConfigError> {
        let tls = self.tls();
        let credentials = self.credentials();
        if let Some(credentials) = &credentials {
            credentials.header()?;
        }
        let mut targets = Vec::new();
        for text in &self.webhook_url {
            let url: Url = text.parse()?;
            if url.place.is_tls() {
                tls.connector()?;
            }
            targets.push(Webhook {
                name: format!("{} {}", self.webhook_method, url.shown()),
                client: HttpClient::new(url.place, tls.clone(), self.webhook_timeout),
                path: url.path,
                method: self.webhook_method.clone(),
                headers: self.webhook_header.iter().cloned().collect(),
                body: self.webhook_body.clone(),
                statuses: self.webhook_status.clone(),
                credentials: credentials.clone(),
                last_status: AtomicU16::new(0),
            });
        }
        Ok(targets)
    }

    fn tls(&self) -> TlsFiles {
        TlsFiles {
            flags: "webhook",
            ca: self.webhook_ca.clone(),
            identity: self
                .webhook_client_cert
                .clone()
                .zip(self.webhook_client_key.clone()),
            is_insecure: self.webhook_insecure,
        }
    }

    fn credentials(&self) -> Option<Credentials> {
        let basic = self.webhook_basic_auth_file.clone().map(Credentials::Basic);
        basic.or_else(|| self.webhook_bearer_token_file.clone().map(Credentials::Bearer))
    }
}

/// The text of a header is not repeated in the error: it may be a credential.
fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text.split_once(':').ok_or("not `NAME: VALUE`")?;
    let name: HeaderName = name
        .trim()
        .parse()
        .map_err(|_| "the name of the header has characters that none has")?;
    let value: HeaderValue = value
        .trim()
        .parse()
        .map_err(|_| "the value of the header has a control character")?;
    Ok((name, value))
}
