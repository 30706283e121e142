//! Where requests go: what a URL on the command line says.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use hyper::Uri;
use hyper::header::HeaderValue;
use hyper::http::uri::PathAndQuery;

/// A place, and what to ask for there: `http://HOST[:PORT]/PATH`, `https://…`, or `unix:/SOCKET[:/PATH]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) place: Place,
    pub(crate) path: PathAndQuery,
}

/// Somebody who answers requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// Over TCP.
    Tcp {
        is_tls: bool,
        /// A name or an address, an IPv6 one without brackets.
        host: String,
        port: u16,
        /// Host and port as they were written.
        authority: String,
    },
    /// Over a unix socket, without TLS.
    Unix(PathBuf),
}

/// A text is no URL that a request could go to.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum UrlError {
    #[error("{text:?} is no URL such as http://127.0.0.1:9090/-/reload or unix:/run/app.sock:/reload: {why}")]
    Malformed { text: String, why: String },
    /// The text is not repeated: it holds a password.
    #[error(
        "a user and a password in the URL are seen by everybody who may list processes; they belong into a file"
    )]
    Credentials,
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        match text.strip_prefix("unix:") {
            Some(rest) => unix(text, rest),
            None => tcp(text),
        }
    }
}

impl Url {
    /// As it was written, without its query: people put tokens there.
    pub(crate) fn shown(&self) -> String {
        let (place, path) = (&self.place, self.path.path());
        let query = if self.path.query().is_some() { "?…" } else { "" };
        match place {
            Place::Tcp { .. } => format!("{place}{path}{query}"),
            Place::Unix(_) => format!("{place}:{path}{query}"),
        }
    }
}

impl Place {
    pub(crate) fn is_tls(&self) -> bool {
        matches!(self, Self::Tcp { is_tls: true, .. })
    }

    /// Of a socket there is no host; `localhost` is what curl and Docker's own client say too.
    pub(super) fn host_header(&self) -> HeaderValue {
        match self {
            Self::Tcp { authority, .. } => HeaderValue::from_str(authority).ok(),
            Self::Unix(_) => None,
        }
        .unwrap_or(HeaderValue::from_static("localhost"))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp {
                is_tls, authority, ..
            } => {
                let scheme = if *is_tls { "https" } else { "http" };
                write!(f, "{scheme}://{authority}")
            }
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

fn malformed(text: &str, why: impl fmt::Display) -> UrlError {
    UrlError::Malformed {
        text: text.to_owned(),
        why: why.to_string(),
    }
}

/// `/run/app.sock`, `/run/app.sock:/reload?now=1`; `//` in front (`unix:///run/app.sock`) is how others write it.
fn unix(text: &str, rest: &str) -> Result<Url, UrlError> {
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    let (socket, path) = rest.split_once(':').unwrap_or((rest, "/"));
    if !socket.starts_with('/') {
        return Err(malformed(text, "the socket needs an absolute path"));
    }
    if !path.starts_with('/') {
        return Err(malformed(
            text,
            "the path of the request, after the second colon, starts with a slash",
        ));
    }
    Ok(Url {
        place: Place::Unix(socket.into()),
        path: path.parse().map_err(|error| malformed(text, error))?,
    })
}

fn tcp(text: &str) -> Result<Url, UrlError> {
    let scheme_end = text.find("://").map_or(0, |at| at + 3);
    let authority_end = text[scheme_end..]
        .find(['/', '?', '#'])
        .map_or(text.len(), |at| scheme_end + at);
    if text[scheme_end..authority_end].contains('@') {
        return Err(UrlError::Credentials);
    }
    let is_tls = match &text[..scheme_end] {
        "http://" => false,
        "https://" => true,
        _ => return Err(malformed(text, "it starts with http://, https:// or unix:")),
    };
    let uri: Uri = text.parse().map_err(|error| malformed(text, error))?;
    let authority = uri
        .authority()
        .ok_or_else(|| malformed(text, "it names no host"))?;
    let host = authority.host();
    if host.is_empty() {
        return Err(malformed(text, "it names no host"));
    }
    let after_host = &authority.as_str()[host.len()..];
    if !after_host.is_empty() && authority.port_u16().is_none() {
        return Err(malformed(text, "its port is no number up to 65535"));
    }
    Ok(Url {
        place: Place::Tcp {
            is_tls,
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: authority.port_u16().unwrap_or(if is_tls { 443 } else { 80 }),
            authority: authority.to_string(),
        },
        path: path_of(&uri),
    })
}

/// `http://app?x` asks for `/?x`.
fn path_of(uri: &Uri) -> PathAndQuery {
    let path = match uri.query() {
        Some(query) => format!("{}?{query}", uri.path()),
        None => uri.path().to_owned(),
    };
    path.parse()
        .expect("the path of a URI is one, and so is its query")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_say_where_and_what_and_are_shown_without_their_query() {
        // What is typed, where it goes, what is asked for, what is shown.
        for (text, place, path, shown) in [
            (
                "http://127.0.0.1:9090/-/reload",
                "http://127.0.0.1:9090",
                "/-/reload",
                "http://127.0.0.1:9090/-/reload",
            ),
            ("http://app", "http://app", "/", "http://app/"),
            ("http://app?now", "http://app", "/?now", "http://app/?…"),
            (
                "https://app:8443/a?token=x#top",
                "https://app:8443",
                "/a?token=x",
                "https://app:8443/a?…",
            ),
            ("http://[::1]:80/a", "http://[::1]:80", "/a", "http://[::1]:80/a"),
            ("http://app/a@b", "http://app", "/a@b", "http://app/a@b"),
            ("unix:/run/a.sock", "unix:/run/a.sock", "/", "unix:/run/a.sock:/"),
            (
                "unix:/run/a.sock:/re/load?x=1",
                "unix:/run/a.sock",
                "/re/load?x=1",
                "unix:/run/a.sock:/re/load?…",
            ),
            (
                "unix:///run/a.sock:/",
                "unix:/run/a.sock",
                "/",
                "unix:/run/a.sock:/",
            ),
        ] {
            let url: Url = text.parse().unwrap();
            assert_eq!(url.place.to_string(), place, "{text}");
            assert_eq!(url.path.as_str(), path, "{text}");
            assert_eq!(url.shown(), shown, "{text}");
        }
    }

    #[test]
    fn hosts_and_ports_are_found() {
        for (text, host, port) in [
            ("http://app", "app", 80),
            ("https://app", "app", 443),
            ("https://[fd00::1]", "fd00::1", 443),
            ("http://10.0.0.1:8080", "10.0.0.1", 8080),
        ] {
            let Place::Tcp { host: h, port: p, .. } = text.parse::<Url>().unwrap().place else {
                panic!("{text} is not TCP");
            };
            assert_eq!((h.as_str(), p), (host, port), "{text}");
        }
    }

    #[test]
    fn what_is_no_url_is_refused_with_its_reason() {
        for (text, why) in [
            ("", "no URL"),
            ("app:8080/reload", "starts with http://"),
            ("ftp://app/", "starts with http://"),
            ("http://", "no URL"),
            ("http://app:99999/", "no URL"),
            ("http://app:/", "port"),
            ("http://a b/", "no URL"),
            ("unix:app.sock", "absolute path"),
            ("unix:/run/a.sock:reload", "starts with a slash"),
            ("unix:/run/a.sock:/a b", "no URL"),
        ] {
            let error = text.parse::<Url>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn a_password_in_a_url_is_refused_and_not_repeated() {
        for text in [
            "http://user:hunter2@app/",
            "https://hunter2@app",
            "user:hunter2@app",
            "http://u:hunter2@a:1?x",
        ] {
            let error = text.parse::<Url>().unwrap_err();
            assert_eq!(error, UrlError::Credentials, "{text}");
            assert!(!error.to_string().contains("hunter2"));
        }
    }
}
