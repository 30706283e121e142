//! The bearer token of a request, read again from its file now and then.

use std::sync::Arc;
use std::time::Duration;

use hyper::header::HeaderValue;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::config::Token;
use crate::error::ClientError;

/// How long a token from a file is used without looking again; whoever renews it does so long before it expires.
const FRESH: Duration = Duration::from_secs(60);

pub(super) struct TokenReader {
    token: Token,
    last: Mutex<Option<(Instant, HeaderValue)>>,
}

impl TokenReader {
    pub(super) fn new(token: Token) -> Self {
        Self {
            token,
            last: Mutex::default(),
        }
    }

    /// The `Authorization` header. A file that cannot be read any more leaves the last token in use.
    pub(super) async fn header(&self, server: &str) -> Result<HeaderValue, ClientError> {
        let last = self.last.lock().clone();
        if let Some((read, header)) = &last
            && (matches!(self.token, Token::Fixed(_)) || read.elapsed() < FRESH)
        {
            return Ok(header.clone());
        }
        match self.read().await {
            Ok(header) => {
                *self.last.lock() = Some((Instant::now(), header.clone()));
                Ok(header)
            }
            Err(error) => match last {
                Some((_, header)) => Ok(header),
                None => Err(ClientError::Connect {
                    server: server.to_owned(),
                    source: Arc::new(error),
                }),
            },
        }
    }

    async fn read(&self) -> std::io::Result<HeaderValue> {
        let token = match &self.token {
            Token::Fixed(token) => token.clone(),
            Token::File(path) => {
                let path = path.clone();
                tokio::task::spawn_blocking(move || std::fs::read_to_string(path)).await??
            }
        };
        let mut header = HeaderValue::try_from(format!("Bearer {}", token.trim())).map_err(|_| {
            std::io::Error::new(std::io::ErrorKind::InvalidData, "the token is no header value")
        })?;
        header.set_sensitive(true);
        Ok(header)
    }
}
