//! Requests to one API server.

mod answer_date;
mod params;
mod token;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use hotmap_object::Status;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode};
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::watch;

pub use answer_date::AnswerDate;
pub use params::{DeleteParams, ListParams, PatchType, Propagation, WatchParams, WriteParams};

use crate::config::{ClientConfig, ConfigError, Identity};
use crate::connection::Connector;
use crate::error::ClientError;
use crate::object::{ObjectList, RawObject};
use crate::path::{Query, ResourcePath};
use crate::pool::{Lease, Pool};
use crate::watch::WatchStream;
use token::TokenReader;

/// The largest answer to anything but a watch: a page of 500 objects of 512 KiB each.
const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Of an answer that is no Status, so much goes into the error.
const ERROR_TEXT_CHARS_MAX: usize = 200;
/// A request that was not sent, because its connection closed under it, is tried so often.
const UNSENT_TRIES: usize = 3;
const JSON: &str = "application/json";

/// A client of one API server. Connects when it is first used, and again when the connection broke; all requests
/// share one HTTP/2 connection. Cloning is cheap, clones share the connection.
///
/// Needs a tokio runtime with time and I/O enabled. Dropping a request's future cancels the request.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    pool: Pool,
    authority: String,
    base_path: String,
    user_agent: String,
    token: Option<TokenReader>,
    request_timeout: Duration,
    newest_date: Mutex<Option<AnswerDate>>,
}

impl Client {
    /// A client; nothing is sent yet.
    ///
    /// # Errors
    /// [`ConfigError`] for certificates and keys that cannot be used.
    pub fn new(config: ClientConfig) -> Result<Self, ConfigError> {
        let pool = Pool::new(Connector::new(&config)?, config.timeouts.reconnect_max);
        let shared = Shared {
            pool,
            authority: config.server.authority(),
            base_path: config.server.base_path,
            user_agent: config.user_agent,
            token: config.token.map(TokenReader::new),
            request_timeout: config.timeouts.request,
            newest_date: Mutex::default(),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Reads one object.
    ///
    /// # Errors
    /// [`ClientError`], as for all requests.
    pub async fn get(&self, path: &ResourcePath) -> Result<RawObject, ClientError> {
        self.raw(Method::GET, &path.to_string(), None)
            .await
            .and_then(RawObject::from_json)
    }

    /// Reads a list, or one page of it when `params` set a limit.
    ///
    /// # Errors
    /// [`ClientError`]; 410 when the continue token or exact revision is too old.
    pub async fn list(&self, path: &ResourcePath, params: &ListParams) -> Result<ObjectList, ClientError> {
        let target = format!("{path}{}", params.query().as_str());
        ObjectList::from_json(&self.raw(Method::GET, &target, None).await?)
    }

    /// Creates an object in the collection, or posts to the subresource, that `path` names.
    ///
    /// # Errors
    /// [`ClientError`]; see [`ClientError::is_outcome_unknown`].
    pub async fn create(
        &self,
        path: &ResourcePath,
        body: &(impl Serialize + ?Sized),
        params: &WriteParams,
    ) -> Result<RawObject, ClientError> {
        self.write(Method::POST, path, params.query(), JSON, body).await
    }

    /// Replaces the object at `path`; with a resourceVersion in the body only that version of it.
    ///
    /// # Errors
    /// [`ClientError`]; see [`ClientError::is_conflict`].
    pub async fn update(
        &self,
        path: &ResourcePath,
        body: &(impl Serialize + ?Sized),
        params: &WriteParams,
    ) -> Result<RawObject, ClientError> {
        self.write(Method::PUT, path, params.query(), JSON, body).await
    }

    /// Changes the object at `path`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn patch(
        &self,
        path: &ResourcePath,
        kind: PatchType,
        patch: &(impl Serialize + ?Sized),
        params: &WriteParams,
    ) -> Result<RawObject, ClientError> {
        self.write(Method::PATCH, path, params.query(), kind.media_type(), patch)
            .await
    }

    /// Deletes the object at `path`, or the whole collection. The answer is the object, a Status or a list.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn delete(&self, path: &ResourcePath, params: &DeleteParams) -> Result<Bytes, ClientError> {
        let body = Some((JSON, params.body()?));
        self.raw(Method::DELETE, &path.to_string(), body).await
    }

    /// Follows changes of the collection that `path` names.
    ///
    /// # Errors
    /// [`ClientError`]; a start that is too old comes as an error here or as the first event.
    pub async fn watch(&self, path: &ResourcePath, params: &WatchParams) -> Result<WatchStream, ClientError> {
        let target = format!("{path}{}", params.query().as_str());
        self.within(async {
            let (answer, lease) = self.send(Method::GET, &target, None).await?;
            if answer.status() == StatusCode::OK {
                Ok(WatchStream::new(answer.into_body(), lease))
            } else {
                Err(failure(answer).await)
            }
        })
        .await
    }

    /// Sends any request; `path` starts with a slash and may have a query. For `/version`, `/readyz` and what
    /// this client has no method for.
    ///
    /// # Errors
    /// [`ClientError`]; every answer outside 2xx is one.
    pub async fn raw(
        &self,
        method: Method,
        path: &str,
        body: Option<(&'static str, Bytes)>,
    ) -> Result<Bytes, ClientError> {
        self.within(async {
            let (answer, _lease) = self.send(method, path, body).await?;
            if answer.status().is_success() {
                read(answer).await
            } else {
                Err(failure(answer).await)
            }
        })
        .await
    }

    /// The date of the newest answer to this client and its clones, refusals included; `None` before the first one that had a
    /// date.
    pub fn newest_date(&self) -> Option<AnswerDate> {
        *self.shared.newest_date.lock()
    }

    /// Whether it is known by a certificate; else by a token, or not at all.
    pub fn has_identity(&self) -> bool {
        self.shared.pool.has_identity()
    }

    /// Is known by another certificate from now on: new requests go over a new connection, while watches and answers under
    /// way end on theirs. All clones change with it.
    ///
    /// # Errors
    /// [`ConfigError`] for a certificate and key that cannot be used; the client stays who it was.
    pub fn exchange_identity(&self, identity: &Identity) -> Result<(), ConfigError> {
        self.shared.pool.exchange(identity)
    }

    pub(crate) fn established(&self) -> watch::Receiver<u64> {
        self.shared.pool.established()
    }

    async fn write(
        &self,
        method: Method,
        path: &ResourcePath,
        query: Query,
        media_type: &'static str,
        body: &(impl Serialize + ?Sized),
    ) -> Result<RawObject, ClientError> {
        let body = params::to_json(body)?;
        let target = format!("{path}{}", query.as_str());
        self.raw(method, &target, Some((media_type, body)))
            .await
            .and_then(RawObject::from_json)
    }

    async fn within<T>(
        &self,
        request: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        let after = self.shared.request_timeout;
        // On the heap while it is under way: whoever waits between two requests keeps no room for one.
        tokio::time::timeout(after, Box::pin(request))
            .await
            .unwrap_or(Err(ClientError::Timeout { after }))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<(&'static str, Bytes)>,
    ) -> Result<(Response<Incoming>, Lease), ClientError> {
        let token = match &self.shared.token {
            Some(token) => Some(token.header(&self.shared.authority).await?),
            None => None,
        };
        let mut tries = 0;
        loop {
            let lease = self.shared.pool.lease().await?;
            let connection = lease.connection();
            let mut request = self.request(&method, path, &body, connection.is_http2())?;
            if let Some(token) = &token {
                request.headers_mut().insert(AUTHORIZATION, token.clone());
            }
            tries += 1;
            let sent = Instant::now();
            match connection.send(request).await {
                Ok(answer) => {
                    if let Some(date) = AnswerDate::of(answer.headers(), SystemTime::now(), sent.elapsed()) {
                        *self.shared.newest_date.lock() = Some(date);
                    }
                    return Ok((answer, lease));
                }
                // It never left: to send it again is safe, whatever it is.
                Err(mut error) => {
                    // What never left is safe to send again, whatever it is.
                    let is_unsent = error.take_message().is_some();
                    if !is_unsent || tries >= UNSENT_TRIES {
                        return Err(ClientError::transport(error.into_error()));
                    }
                }
            }
        }
    }

    fn request(
        &self,
        method: &Method,
        path: &str,
        body: &Option<(&'static str, Bytes)>,
        is_http2: bool,
    ) -> Result<Request<Full<Bytes>>, ClientError> {
        let Shared {
            authority,
            base_path,
            user_agent,
            ..
        } = &*self.shared;
        let mut request = Request::builder()
            .method(method)
            .header(ACCEPT, JSON)
            .header(USER_AGENT, user_agent);
        request = if is_http2 {
            request.uri(format!("https://{authority}{base_path}{path}"))
        } else {
            request.uri(format!("{base_path}{path}")).header(HOST, authority)
        };
        let bytes = match body {
            Some((media_type, bytes)) => {
                request = request.header(CONTENT_TYPE, *media_type);
                bytes.clone()
            }
            None => Bytes::new(),
        };
        request
            .body(Full::new(bytes))
            .map_err(|error| ClientError::Request {
                why: error.to_string(),
            })
    }
}

async fn read(answer: Response<Incoming>) -> Result<Bytes, ClientError> {
    match Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(ClientError::TooLarge {
            limit: ANSWER_BYTES_MAX,
        }),
        Err(error) => Err(ClientError::transport(error)),
    }
}

/// The Status of a refusal; of a proxy that speaks no Status, its code and the start of its text.
async fn failure(answer: Response<Incoming>) -> ClientError {
    let code = answer.status();
    let body = match read(answer).await {
        Ok(body) => body,
        Err(error) => return error,
    };
    match serde_json::from_slice::<Status>(&body) {
        Ok(mut status) if !status.message.is_empty() || !status.reason.is_empty() => {
            status.code = code.as_u16();
            status.into()
        }
        _ => {
            let text: String = String::from_utf8_lossy(&body)
                .trim()
                .chars()
                .take(ERROR_TEXT_CHARS_MAX)
                .collect();
            let text = if text.is_empty() {
                code.to_string()
            } else {
                format!("{code}: {text}")
            };
            Status::new(code.as_u16(), "", text).into()
        }
    }
}

#[cfg(test)]
mod tests;
