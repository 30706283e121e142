//! Whom to ask for what, and where an answer leads from there.
//!
//! A redirect is followed within its host, as `RedirectChecker` in `pkg/probe/http/request.go`, Kubernetes 1.36, has it: to another
//! host it is an answer like any other.

use hyper::{StatusCode, Uri};

/// Requests that one look may take.
pub(super) const REQUESTS_MAX: usize = 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) is_https: bool,
    /// A name or an address; an address of IPv6 without its brackets.
    pub(super) host: String,
    pub(super) port: u16,
    /// Begins with a slash, and has its query.
    pub(super) path: String,
}

impl Target {
    pub(super) fn authority(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        }
    }

    pub(super) fn url(&self) -> String {
        let scheme = if self.is_https { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority(), self.path)
    }

    /// Where an answer with this code and `Location` leads, if it leads anywhere on this host.
    pub(super) fn redirected(&self, code: StatusCode, location: Option<&str>) -> Option<Self> {
        const FOLLOWED: [u16; 5] = [301, 302, 303, 307, 308];
        let location = location.filter(|_| FOLLOWED.contains(&code.as_u16()))?;
        let location = location.split('#').next().unwrap_or_default();
        let scheme = if self.is_https { "https:" } else { "http:" };
        if location.starts_with("//") {
            return self.elsewhere(&format!("{scheme}{location}"));
        }
        if location.contains("://") {
            return self.elsewhere(location);
        }
        let (own_path, _) = self.path.split_once('?').unwrap_or((&self.path, ""));
        let path = if location.starts_with('/') {
            location.to_owned()
        } else if location.is_empty() || location.starts_with('?') {
            format!("{own_path}{location}")
        } else {
            let (directory, _) = own_path.rsplit_once('/').unwrap_or_default();
            format!("{directory}/{location}")
        };
        Some(Self {
            path: without_dots(&path),
            ..self.clone()
        })
    }

    fn elsewhere(&self, url: &str) -> Option<Self> {
        let uri: Uri = url.parse().ok()?;
        let is_https = match uri.scheme_str()? {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let host = uri.host()?.trim_matches(['[', ']']);
        if !host.eq_ignore_ascii_case(&self.host) {
            return None;
        }
        let default_port = if is_https { 443 } else { 80 };
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Some(Self {
            is_https,
            host: self.host.clone(),
            port: uri.port_u16().unwrap_or(default_port),
            path: without_dots(path),
        })
    }
}

/// A path whose `.` and `..` are walked.
fn without_dots(path: &str) -> String {
    let (path, query) = path.split_at(path.find('?').unwrap_or(path.len()));
    let mut walked: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." => {}
            ".." => {
                walked.pop();
            }
            other => {
                walked.push(other);
                continue;
            }
        }
        if is_last {
            walked.push("");
        }
    }
    format!("/{}{query}", walked.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_are_followed_within_their_host() {
        let from = Target {
            is_https: false,
            host: "10.0.0.1".to_owned(),
            port: 8080,
            path: "/a/b?x=1".to_owned(),
        };
        for (code, location, url) in [
            (302, Some("/login"), Some("http://10.0.0.1:8080/login")),
            (301, Some("c?y"), Some("http://10.0.0.1:8080/a/c?y")),
            (303, Some("../../.././c/."), Some("http://10.0.0.1:8080/c/")),
            (307, Some("?y=2#top"), Some("http://10.0.0.1:8080/a/b?y=2")),
            (308, Some("https://10.0.0.1"), Some("https://10.0.0.1:443/")),
            (302, Some("//10.0.0.1:1/z"), Some("http://10.0.0.1:1/z")),
            (302, Some("http://elsewhere.example/"), None),
            (302, Some("ftp://10.0.0.1/"), None),
            (302, Some("http://"), None),
            (302, None, None),
            (200, Some("/login"), None),
            (304, Some("/login"), None),
        ] {
            let code = StatusCode::from_u16(code).expect("a code");
            let to = from.redirected(code, location).map(|to| to.url());
            assert_eq!(to.as_deref(), url, "{code} {location:?}");
        }
        let six = Target {
            host: "fd00::1".to_owned(),
            ..from
        };
        let found = six.redirected(StatusCode::FOUND, Some("http://[fd00::1]:81/x"));
        assert_eq!(found.map(|to| to.url()).as_deref(), Some("http://[fd00::1]:81/x"));
    }
}
