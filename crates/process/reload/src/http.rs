//! One HTTP/1.1 request to one place, for webhooks, reports and the sockets of container engines.
//!
//! ```text
//!   Request ─▶ connect (TCP · TLS · unix socket) ─▶ head and body ─▶ Answer { status, headers, first 64 KiB }
//! ```
//!
//! Each request has a connection of its own. Configuration changes hours apart, and a connection that was kept that
//! long is one that a firewall may have forgotten without a word; a new one costs less than 0.1 ms on the same machine.
//! Nothing runs in the background: whoever drops the future gives the request up, and an idle process has no timer
//! and no socket. Redirects are not followed and answers are not decoded.

mod connect;
mod error;
mod place;
mod tls;

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, HOST, HeaderValue, USER_AGENT};
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::time::timeout;

pub(crate) use error::HttpError;
pub(crate) use place::{Place, Url, UrlError};
pub(crate) use tls::{TlsFileError, TlsFiles};

use connect::Stream;

/// So much of an answer's body is read: enough for a sentence of an engine or of a person, and no more.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// An answer's head has said what it has to say; its body is waited for no longer than this.
const ANSWER_BODY_PATIENCE: Duration = Duration::from_secs(1);
/// An answer whose head is longer is none that is meant for us.
const ANSWER_HEAD_BYTES_MAX: usize = 64 * 1024;

/// Sends requests to one place.
#[derive(Debug)]
pub(crate) struct HttpClient {
    place: Place,
    /// Only used where the place is `https`.
    tls: TlsFiles,
    /// From the first packet to the head of the answer.
    patience: Duration,
}

/// How much of an answer's body is of use.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    Beginning,
    All { bytes_max: usize },
}

/// What came back. Of the body only the beginning, unless all was asked for.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl HttpClient {
    /// A client of this place. `patience` is how long a whole request may take.
    pub(crate) fn new(place: Place, tls: TlsFiles, patience: Duration) -> Self {
        Self { place, tls, patience }
    }

    /// Sends a request, whose URI is a path with its query. `Host`, `Connection` and `User-Agent` are filled in.
    ///
    /// # Errors
    /// [`HttpError`] if there is no answer. An answer of any status is `Ok`.
    pub(crate) async fn send(&self, request: Request<Bytes>) -> Result<Answer, HttpError> {
        self.send_for(request, Wanted::Beginning).await
    }

    /// As [`send`](Self::send), and the body of the answer is whole: of at most this many bytes.
    ///
    /// # Errors
    /// [`HttpError`]: also if the body is longer, or breaks off.
    pub(crate) async fn send_for_all(
        &self,
        request: Request<Bytes>,
        bytes_max: usize,
    ) -> Result<Answer, HttpError> {
        self.send_for(request, Wanted::All { bytes_max }).await
    }

    async fn send_for(&self, request: Request<Bytes>, wanted: Wanted) -> Result<Answer, HttpError> {
        let exchange = async {
            let stream = connect::connect(&self.place, &self.tls).await?;
            self.exchange(stream, self.complete(request), wanted).await
        };
        timeout(self.patience, exchange)
            .await
            .unwrap_or_else(|_| Err(HttpError::timeout(&self.place, self.patience)))
    }

    fn complete(&self, request: Request<Bytes>) -> Request<Full<Bytes>> {
        let mut request = request.map(Full::new);
        let headers = request.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        headers.entry(HOST).or_insert_with(|| self.place.host_header());
        headers
            .entry(USER_AGENT)
            .or_insert(HeaderValue::from_static(concat!(
                "hotmap/",
                env!("CARGO_PKG_VERSION")
            )));
        request
    }

    async fn exchange(
        &self,
        stream: Box<dyn Stream>,
        request: Request<Full<Bytes>>,
        wanted: Wanted,
    ) -> Result<Answer, HttpError> {
        let broken = |error| HttpError::exchange(&self.place, &self.tls, &error);
        let (mut sender, connection) = http1::Builder::new()
            .max_buf_size(ANSWER_HEAD_BYTES_MAX)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(broken)?;
        let answer = async move {
            let response = sender.send_request(request).await.map_err(broken)?;
            match wanted {
                Wanted::Beginning => Ok(read(response).await),
                Wanted::All { bytes_max } => self.read_all(response, bytes_max).await,
            }
        };
        beside(connection, answer).await
    }

    async fn read_all(&self, response: Response<Incoming>, bytes_max: usize) -> Result<Answer, HttpError> {
        let (head, mut incoming) = response.into_parts();
        let mut body = Vec::new();
        while let Some(frame) = incoming.frame().await {
            let frame = frame.map_err(|error| HttpError::exchange(&self.place, &self.tls, &error))?;
            if let Ok(data) = frame.into_data() {
                body.extend_from_slice(&data);
            }
            if body.len() > bytes_max {
                let place = self.place.to_string();
                return Err(HttpError::TooLong { place, bytes_max });
            }
        }
        Ok(Answer {
            status: head.status,
            headers: head.headers,
            body: body.into(),
        })
    }
}

/// Polls a connection along with what happens over it, and ends with the latter. How the connection ended reaches
/// whoever waits for an answer.
async fn beside<T>(connection: impl Future, answer: impl Future<Output = T>) -> T {
    let mut answer = pin!(answer);
    tokio::select! {
        biased;
        answer = &mut answer => return answer,
        _ = connection => {}
    }
    answer.await
}

/// The status counts; a body that breaks off or does not end only shortens a message.
async fn read(response: Response<Incoming>) -> Answer {
    let (head, mut incoming) = response.into_parts();
    let mut body = Vec::new();
    let reading = async {
        while let Some(Ok(frame)) = incoming.frame().await {
            if let Ok(data) = frame.into_data() {
                body.extend_from_slice(&data);
            }
            if body.len() >= ANSWER_BYTES_MAX {
                body.truncate(ANSWER_BYTES_MAX);
                break;
            }
        }
    };
    // Without its end it is still the beginning of what was said.
    let _ = timeout(ANSWER_BODY_PATIENCE, reading).await;
    Answer {
        status: head.status,
        headers: head.headers,
        body: body.into(),
    }
}

#[cfg(test)]
pub(crate) mod scripted;
#[cfg(test)]
mod tests;
