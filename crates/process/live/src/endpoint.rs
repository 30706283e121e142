//! Configuration from the local endpoint of `hotmap reload`, `sync` or `run` (docs/endpoint.md of hotmap), for programs that
//! do not see the files. HTTP/1.0 is enough: one request a connection, and an answer that ends with it.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine};
use serde::Deserialize;

use crate::live::lock;

/// The endpoint is on this machine: it answers at once or not at all.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// A stream of events has a comment every 15 s; three that do not come mean that nobody is there.
const SILENCE_MAX: Duration = Duration::from_secs(45);

/// Status and headers of an answer, and one line of a stream.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// Where the endpoint listens, and what of it is wanted.
pub(crate) struct Endpoint {
    /// As it was given.
    pub(crate) name: String,
    address: Address,
    volume: Option<String>,
    state: Mutex<State>,
    stopped: Condvar,
}

enum Address {
    Unix(PathBuf),
    Tcp(String),
}

#[derive(Default)]
struct State {
    events: Option<Connection>,
    is_stopped: bool,
}

/// One revision of a volume.
pub(crate) struct Fetched {
    pub(crate) revision: String,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

impl Endpoint {
    /// `unix:PATH`, or `HOST:PORT`.
    pub(crate) fn new(name: &str, volume: Option<&str>) -> Self {
        let address = match name.strip_prefix("unix:") {
            Some(path) => Address::Unix(path.into()),
            None => Address::Tcp(name.to_owned()),
        };
        Self {
            name: name.to_owned(),
            address,
            volume: volume.map(str::to_owned),
            state: Mutex::default(),
            stopped: Condvar::new(),
        }
    }

    /// What is there now. The error is a sentence.
    pub(crate) fn fetch(&self, bytes_max: u64) -> Result<Fetched, String> {
        let path = format!("/v1/config{}", self.query());
        let answer = self
            .request("GET", &path, "")
            .map_err(|error| error.to_string())?;
        let mut body = Vec::new();
        let read = answer.take(bytes_max + 1).read_to_end(&mut body);
        read.map_err(|error| error.to_string())?;
        if body.len() as u64 > bytes_max {
            return Err(format!("the answer has more than {bytes_max} bytes"));
        }
        let config: Config = serde_json::from_slice(&body)
            .map_err(|_| "the answer is not what this version understands".to_owned())?;
        config.only()
    }

    /// Calls `seen` with the name of each revision that is told of, until the stream ends; why it ended.
    pub(crate) fn events(&self, mut seen: impl FnMut(&str)) -> String {
        let path = format!("/v1/events{}", self.query());
        let followed = self.request("GET", &path, "").and_then(|mut answer| {
            answer.get_ref().set_read_timeout(SILENCE_MAX)?;
            let mut state = lock(&self.state);
            state.events = Some(answer.get_ref().try_clone()?);
            if state.is_stopped {
                return Ok(());
            }
            drop(state);
            while let Some(line) = line(&mut answer)? {
                let told = line
                    .strip_prefix("data:")
                    .and_then(|data| serde_json::from_str::<Told>(data).ok());
                if let Some(told) = told {
                    seen(&told.revision);
                }
            }
            Ok(())
        });
        lock(&self.state).events = None;
        followed.map_or_else(|error| error.to_string(), |()| "the stream has ended".to_owned())
    }

    /// Says what was loaded, or why not. Nobody waits for it: the endpoint asks nothing back.
    pub(crate) fn acknowledge(&self, revision: &str, refused: Option<&str>) {
        let mut said = serde_json::json!({ "revision": revision, "ok": refused.is_none() });
        if let Some(message) = refused {
            said["message"] = message.into();
        }
        if let Some(volume) = &self.volume {
            said["volume"] = volume.as_str().into();
        }
        // It may be away, or have forgotten this revision: it will be told of the next.
        let _ = self.request("POST", "/v1/ack", &said.to_string());
    }

    /// Waits so long. True if it was stopped.
    pub(crate) fn pause(&self, time: Duration) -> bool {
        let state = lock(&self.state);
        let waited = self
            .stopped
            .wait_timeout_while(state, time, |state| !state.is_stopped);
        waited.unwrap_or_else(PoisonError::into_inner).0.is_stopped
    }

    pub(crate) fn stop(&self) {
        let mut state = lock(&self.state);
        state.is_stopped = true;
        if let Some(events) = &state.events {
            events.shutdown();
        }
        self.stopped.notify_all();
    }

    fn query(&self) -> String {
        let Some(volume) = &self.volume else {
            return String::new();
        };
        let mut query = "?volume=".to_owned();
        for byte in volume.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    query.push(byte.into())
                }
                _ => query.push_str(&format!("%{byte:02X}")),
            }
        }
        query
    }

    /// The answer's body, if its status is one of success.
    fn request(&self, method: &str, path: &str, body: &str) -> io::Result<BufReader<Connection>> {
        let (mut connection, host) = self.connect()?;
        connection.set_read_timeout(ANSWER_MAX)?;
        let kind = match body {
            "" => "",
            _ => "Content-Type: application/json\r\n",
        };
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.0\r\nHost: {host}\r\n{kind}Content-Length: {length}\r\n\r\n{body}"
        );
        connection.write_all(request.as_bytes())?;
        let mut answer = BufReader::new(connection);
        let status = line(&mut answer)?.unwrap_or_default();
        while line(&mut answer)?.is_some_and(|header| !header.is_empty()) {}
        let code = status.split(' ').nth(1).unwrap_or("no status");
        if code.starts_with('2') {
            return Ok(answer);
        }
        let mut body = Vec::new();
        answer.take(LINE_BYTES_MAX).read_to_end(&mut body)?;
        let refusal = serde_json::from_slice::<Refusal>(&body).map(|refusal| refusal.error);
        Err(io::Error::other(match refusal {
            Ok(words) => format!("{code}: {words}"),
            Err(_) => format!("it answers {code}"),
        }))
    }

    fn connect(&self) -> io::Result<(Connection, &str)> {
        match &self.address {
            Address::Unix(path) => Ok((Connection::Unix(UnixStream::connect(path)?), "localhost")),
            Address::Tcp(address) => {
                let mut last = io::ErrorKind::AddrNotAvailable.into();
                for socket in address.to_socket_addrs()? {
                    match TcpStream::connect_timeout(&socket, ANSWER_MAX) {
                        Ok(connection) => return Ok((Connection::Tcp(connection), address)),
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
        }
    }
}

/// A line without its end; `None` at the end of the stream.
fn line(answer: &mut BufReader<Connection>) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    answer
        .by_ref()
        .take(LINE_BYTES_MAX)
        .read_until(b'\n', &mut bytes)?;
    let is_whole = bytes.ends_with(b"\n");
    if bytes.len() as u64 == LINE_BYTES_MAX && !is_whole {
        return Err(io::Error::other("a line of its answer is too long"));
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok(is_whole.then(|| text.trim_end_matches(['\r', '\n']).to_owned()))
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
}

#[derive(Deserialize)]
struct Told {
    revision: String,
}

#[derive(Deserialize)]
struct Config {
    volumes: Vec<Volume>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Volume {
    volume: String,
    revision: Option<String>,
    error: Option<String>,
    withheld: Option<String>,
    #[serde(default)]
    data: BTreeMap<String, String>,
    #[serde(default)]
    binary_data: BTreeMap<String, String>,
}

impl Config {
    fn only(self) -> Result<Fetched, String> {
        let names: Vec<&str> = self.volumes.iter().map(|volume| volume.volume.as_str()).collect();
        if names.len() != 1 {
            return Err(format!("name one of its volumes: {}", names.join(", ")));
        }
        let volume = self.volumes.into_iter().next().expect("there is one");
        if let Some(reason) = volume.withheld {
            return Err(format!("it gives no values: {reason}"));
        }
        let Some(revision) = volume.revision else {
            return Err(volume
                .error
                .unwrap_or_else(|| "it has no revision yet".to_owned()));
        };
        let texts = volume.data.into_iter();
        let mut files: BTreeMap<String, Vec<u8>> =
            texts.map(|(key, text)| (key, text.into_bytes())).collect();
        for (key, text) in volume.binary_data {
            let broken = |_| format!("its value of {key:?} is not base64");
            let bytes = BASE64_STANDARD.decode(&text).map_err(broken)?;
            files.insert(key, bytes);
        }
        Ok(Fetched { revision, files })
    }
}

enum Connection {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Connection {
    fn set_read_timeout(&self, time: Duration) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream
                .set_read_timeout(Some(time))
                .and_then(|()| stream.set_write_timeout(Some(ANSWER_MAX))),
            Self::Tcp(stream) => stream
                .set_read_timeout(Some(time))
                .and_then(|()| stream.set_write_timeout(Some(ANSWER_MAX))),
        }
    }

    fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Unix(stream) => Self::Unix(stream.try_clone()?),
            Self::Tcp(stream) => Self::Tcp(stream.try_clone()?),
        })
    }

    fn shutdown(&self) {
        // It ends the read of the thread that follows; it fails where that has ended already.
        let _ = match self {
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl Read for Connection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(buffer),
            Self::Tcp(stream) => stream.read(buffer),
        }
    }
}

impl Write for Connection {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(buffer),
            Self::Tcp(stream) => stream.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
