//! Who says what is loaded: a file, or the local endpoint.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::state_file::State;

/// How long the endpoint may take for each step; a kubelet gives a probe one second if it is not told otherwise.
const STEP: Duration = Duration::from_millis(800);
/// More is no answer of ours: it has no values in it.
const ANSWER_BYTES_MAX: u64 = 4 * 1_024 * 1_024;

/// Where it is said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StateSource {
    /// What `--state-file` writes.
    File(PathBuf),
    /// `unix:PATH`, what `--serve` serves.
    Unix(PathBuf),
    /// `http://HOST:PORT`, the same.
    Tcp(String),
}

impl FromStr for StateSource {
    type Err = String;

    /// An endpoint.
    fn from_str(raw: &str) -> Result<Self, String> {
        if let Some(path) = raw.strip_prefix("unix:") {
            return Ok(Self::Unix(PathBuf::from(path)));
        }
        let authority = raw.strip_prefix("http://").unwrap_or(raw).trim_end_matches('/');
        if authority.contains('/') || !authority.contains(':') {
            return Err("write unix:/run/app/hotmap.sock or http://127.0.0.1:7070".to_owned());
        }
        Ok(Self::Tcp(authority.to_owned()))
    }
}

/// Nobody says anything.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StateError {
    #[error("cannot read --state-file {}: {source}", .path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("--endpoint {endpoint}: {source}")]
    Endpoint { endpoint: String, source: io::Error },
    #[error("--endpoint {endpoint} answers {status}")]
    Status { endpoint: String, status: String },
    #[error("{from} holds no state: {source}")]
    Form { from: String, source: serde_json::Error },
}

/// Asks once.
pub(crate) fn read(source: &StateSource) -> Result<State, StateError> {
    let (from, json) = match source {
        StateSource::File(path) => {
            let json = fs::read(path).map_err(|source| StateError::File {
                path: path.clone(),
                source,
            })?;
            (path.display().to_string(), json)
        }
        StateSource::Unix(path) => {
            let endpoint = format!("unix:{}", path.display());
            let failed = |source| StateError::Endpoint {
                endpoint: endpoint.clone(),
                source,
            };
            let stream = UnixStream::connect(path).map_err(failed)?;
            stream
                .set_read_timeout(Some(STEP))
                .and_then(|()| stream.set_write_timeout(Some(STEP)))
                .map_err(failed)?;
            let answer = ask(stream, "localhost").map_err(failed)?;
            (endpoint.clone(), body(&endpoint, answer)?)
        }
        StateSource::Tcp(authority) => {
            let endpoint = format!("http://{authority}");
            let failed = |source| StateError::Endpoint {
                endpoint: endpoint.clone(),
                source,
            };
            let stream = TcpStream::connect(authority).map_err(failed)?;
            stream
                .set_read_timeout(Some(STEP))
                .and_then(|()| stream.set_write_timeout(Some(STEP)))
                .map_err(failed)?;
            let answer = ask(stream, authority).map_err(failed)?;
            (endpoint.clone(), body(&endpoint, answer)?)
        }
    };
    serde_json::from_slice(&json).map_err(|source| StateError::Form { from, source })
}

/// HTTP/1.0, so that the end of the answer is the end of the connection.
fn ask(mut stream: impl Read + Write, host: &str) -> io::Result<Vec<u8>> {
    write!(
        stream,
        "GET /v1/config?values=false HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    Ok(answer)
}

fn body(endpoint: &str, answer: Vec<u8>) -> Result<Vec<u8>, StateError> {
    let head_end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let head = String::from_utf8_lossy(&answer[..head_end.unwrap_or(0)]).into_owned();
    let status = head.lines().next().unwrap_or_default();
    let code = status.split(' ').nth(1).unwrap_or("nothing");
    match head_end {
        Some(end) if code == "200" => Ok(answer[end + 4..].to_vec()),
        _ => Err(StateError::Status {
            endpoint: endpoint.to_owned(),
            status: code.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_sockets_or_urls() {
        assert_eq!(
            "unix:/run/a.sock".parse(),
            Ok(StateSource::Unix(PathBuf::from("/run/a.sock")))
        );
        assert_eq!(
            "http://127.0.0.1:7070/".parse(),
            Ok(StateSource::Tcp("127.0.0.1:7070".to_owned()))
        );
        assert_eq!(
            "127.0.0.1:7070".parse(),
            Ok(StateSource::Tcp("127.0.0.1:7070".to_owned()))
        );
        for raw in ["", "localhost", "http://a:1/path", "https://a:1"] {
            assert!(raw.parse::<StateSource>().is_err(), "{raw}");
        }
    }

    #[test]
    fn an_answer_is_its_body_or_its_status() {
        let ok = b"HTTP/1.0 200 OK\r\nA: b\r\n\r\n{}".to_vec();
        assert_eq!(body("e", ok).expect("it is good"), b"{}");
        for bad in [
            &b"HTTP/1.0 403 Forbidden\r\n\r\n{}"[..],
            b"",
            b"HTTP/1.0 200 OK\r\n",
        ] {
            assert!(body("e", bad.to_vec()).is_err());
        }
    }
}
