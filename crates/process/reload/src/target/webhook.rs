//! A target that is told over HTTP.

mod args;
mod body;
mod credentials;
mod statuses;

use std::sync::atomic::{AtomicU16, Ordering};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use hotmap_projection::Change;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION};
use hyper::http::uri::PathAndQuery;
use hyper::{HeaderMap, Method, Request, StatusCode};

pub(crate) use args::WebhookArgs;

use super::{Fired, Target, TargetError, TargetKind};
use crate::http::{Answer, HttpClient, HttpError, TlsFileError, UrlError};
use body::BodyTemplate;
pub(crate) use credentials::{Credentials, CredentialsError};
use statuses::Statuses;

/// A message quotes no more of an answer than this.
const QUOTED_CHARS_MAX: usize = 200;

/// One URL that is called after a change.
#[derive(Debug)]
pub(crate) struct Webhook {
    name: String,
    client: HttpClient,
    path: PathAndQuery,
    method: Method,
    headers: HeaderMap,
    body: Option<BodyTemplate>,
    statuses: Statuses,
    credentials: Option<Credentials>,
    /// Of the last answer, for metrics; 0 if there was none.
    last_status: AtomicU16,
}

/// Why flags of webhooks cannot work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WebhookConfigError {
    #[error("--webhook-url: {0}")]
    Url(#[from] UrlError),
    #[error("cannot use TLS for --webhook-url: {0}")]
    Tls(#[from] TlsFileError),
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
}

impl Target for Webhook {
    fn kind(&self) -> TargetKind {
        TargetKind::Webhook
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn last_status(&self) -> Option<u16> {
        Some(self.last_status.load(Ordering::Relaxed)).filter(|status| *status != 0)
    }

    fn fire<'a>(&'a self, changes: &'a [Change]) -> BoxFuture<'a, Result<Fired, TargetError>> {
        Box::pin(async move {
            self.last_status.store(0, Ordering::Relaxed);
            let request = self.request(changes)?;
            let answer = self.client.send(request).await?;
            self.last_status.store(answer.status.as_u16(), Ordering::Relaxed);
            if self.statuses.contain(answer.status) {
                return Ok(Fired::Confirmed);
            }
            Err(self.refused(&answer))
        })
    }
}

impl Webhook {
    fn request(&self, changes: &[Change]) -> Result<Request<Bytes>, CredentialsError> {
        let body = self.body.as_ref().map(|template| template.render(changes));
        let mut request = Request::new(Bytes::from(body.unwrap_or_default()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.path.clone().into();
        let headers = request.headers_mut();
        if let Some(template) = &self.body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(template.content_type()));
        }
        if let Some(credentials) = &self.credentials {
            headers.insert(AUTHORIZATION, credentials.header()?);
        }
        // What is given by name wins; a name that is given twice is sent twice.
        for name in self.headers.keys() {
            headers.remove(name);
        }
        headers.extend(
            self.headers
                .iter()
                .map(|(name, value)| (name.clone(), value.clone())),
        );
        Ok(request)
    }

    fn refused(&self, answer: &Answer) -> TargetError {
        let said = first_line(&answer.body)
            .map(|line| format!(": {line}"))
            .unwrap_or_default();
        let moved = answer
            .headers
            .get(LOCATION)
            .filter(|_| answer.status.is_redirection());
        let hint = match moved {
            Some(_) => "; redirects are not followed, --webhook-url needs the URL that it leads to",
            None => hint(answer.status, self.credentials.is_some()),
        };
        TargetError {
            message: format!(
                "{} answers {}{said} ({} is expected{hint})",
                self.name, answer.status, self.statuses
            ),
            reason: "status",
            is_temporary: is_temporary(answer.status, self.credentials.is_some()),
        }
    }
}

/// Whether the same request may be taken later. A path may appear while a program starts, and credentials in a file
/// are renewed; other refusals in the 4xx and redirects are for good.
fn is_temporary(status: StatusCode, has_credentials: bool) -> bool {
    match status {
        StatusCode::UNAUTHORIZED => has_credentials,
        StatusCode::NOT_FOUND
        | StatusCode::REQUEST_TIMEOUT
        | StatusCode::CONFLICT
        | StatusCode::LOCKED
        | StatusCode::TOO_EARLY
        | StatusCode::TOO_MANY_REQUESTS => true,
        StatusCode::NOT_IMPLEMENTED | StatusCode::HTTP_VERSION_NOT_SUPPORTED => false,
        _ => status.is_server_error(),
    }
}

fn hint(status: StatusCode, has_credentials: bool) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED if !has_credentials => {
            "; --webhook-basic-auth-file or --webhook-bearer-token-file give credentials"
        }
        StatusCode::METHOD_NOT_ALLOWED => "; --webhook-method sends another method",
        _ => "",
    }
}

/// What a person wrote for a person: the first line with anything in it, without what a terminal would obey.
fn first_line(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let mut quoted: String = line
        .chars()
        .filter(|c| !c.is_control())
        .take(QUOTED_CHARS_MAX)
        .collect();
    if line.chars().count() > QUOTED_CHARS_MAX {
        quoted.push('…');
    }
    Some(quoted)
}

impl From<HttpError> for TargetError {
    fn from(error: HttpError) -> Self {
        Self {
            message: error.to_string(),
            reason: error.reason(),
            is_temporary: error.is_temporary(),
        }
    }
}

impl From<CredentialsError> for TargetError {
    fn from(error: CredentialsError) -> Self {
        Self {
            message: error.to_string(),
            reason: "file",
            // Files of credentials are renewed and may be away for a moment; at the start they were there.
            is_temporary: true,
        }
    }
}

#[cfg(test)]
mod tests;
