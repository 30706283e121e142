//! What an image name stands for on this host: a program that is installed here.

mod built_in;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A YAML table longer than this is refused.
const TABLE_BYTES_MAX: u64 = 1 << 20;

/// One image of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct HostImage {
    /// The program whose presence says that the image is there.
    pub path: PathBuf,
    /// Run when the container has no `command`. Absent it is `path`; an empty list means none, as in an image that has
    /// only a `cmd`.
    #[serde(default)]
    pub entrypoint: Option<Vec<String>>,
    /// Appended when the container has neither `command` nor `args`.
    #[serde(default)]
    pub cmd: Vec<String>,
    /// Environment under the container's own.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// `uid` or `uid:gid` when the pod says nothing; 0 when absent.
    #[serde(default)]
    pub user: Option<String>,
    /// Working directory when the container has none; `/` when absent.
    #[serde(default)]
    pub workdir: Option<PathBuf>,
    /// Directories that become an empty tmpfs.
    #[serde(default)]
    pub writable: Vec<PathBuf>,
    /// Links made before the start, such as a log file to `/dev/stdout`.
    #[serde(default)]
    pub links: BTreeMap<PathBuf, PathBuf>,
}

impl HostImage {
    /// What a container runs, by the rules of Kubernetes: `command` replaces the entrypoint and drops `cmd`, `args` replace `cmd`.
    pub fn argv(&self, command: &[String], args: &[String]) -> Vec<String> {
        let path = || vec![self.path.to_string_lossy().into_owned()];
        let (head, tail) = match (command.is_empty(), args.is_empty()) {
            (false, _) => (command.to_vec(), args),
            (true, false) => (self.entrypoint.clone().unwrap_or_else(path), args),
            (true, true) => (self.entrypoint.clone().unwrap_or_else(path), self.cmd.as_slice()),
        };
        head.into_iter().chain(tail.iter().cloned()).collect()
    }
}

/// The table of images: the built-in ones, and those of a file over them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostImages {
    images: BTreeMap<String, HostImage>,
}

/// Why the file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum HostImagesError {
    /// It could not be read.
    #[error("cannot read {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is longer than 1 MiB.
    #[error("{} is longer than 1 MiB", .path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// It is not a table of images.
    #[error("{}: {reason}", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        reason: String,
    },
}

impl HostImages {
    /// busybox, haproxy, nginx, postgres, prometheus and redis, as Debian installs them.
    pub fn built_in() -> Self {
        Self {
            images: built_in::images(),
        }
    }

    /// The built-in images and, over them, those of a YAML file: a map from name to image. A missing file is an empty one.
    pub fn load(path: &Path) -> Result<Self, HostImagesError> {
        let mut table = Self::built_in();
        let text = match read_bounded(path) {
            Ok(text) => text,
            Err(ReadError::Io(source)) if source.kind() == io::ErrorKind::NotFound => return Ok(table),
            Err(ReadError::Io(source)) => {
                return Err(HostImagesError::Read {
                    path: path.to_owned(),
                    source,
                });
            }
            Err(ReadError::TooLong) => {
                return Err(HostImagesError::TooLong {
                    path: path.to_owned(),
                });
            }
        };
        let images = parse(&text).map_err(|reason| HostImagesError::Invalid {
            path: path.to_owned(),
            reason,
        })?;
        table.images.extend(images);
        Ok(table)
    }

    /// The image that a reference names: its last path segment without tag and digest.
    ///
    /// `registry.example:5000/library/nginx:1.29@sha256:…` is `nginx`.
    pub fn resolve(&self, image: &str) -> Option<&HostImage> {
        self.images.get(name_of(image))
    }

    /// The names of the table, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.images.keys().map(String::as_str)
    }
}

fn name_of(image: &str) -> &str {
    let without_digest = image.split_once('@').map_or(image, |(name, _)| name);
    let last = without_digest
        .rsplit_once('/')
        .map_or(without_digest, |(_, last)| last);
    last.split_once(':').map_or(last, |(name, _)| name)
}

enum ReadError {
    Io(io::Error),
    TooLong,
}

fn read_bounded(path: &Path) -> Result<String, ReadError> {
    use io::Read;
    let file = std::fs::File::open(path).map_err(ReadError::Io)?;
    let mut text = String::new();
    let read = file
        .take(TABLE_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .map_err(ReadError::Io)?;
    if read as u64 > TABLE_BYTES_MAX {
        Err(ReadError::TooLong)
    } else {
        Ok(text)
    }
}

fn parse(text: &str) -> Result<BTreeMap<String, HostImage>, String> {
    if text
        .lines()
        .all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
    {
        return Ok(BTreeMap::new());
    }
    let images: BTreeMap<String, HostImage> =
        serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    for (name, image) in &images {
        if name.is_empty() || name_of(name) != name {
            return Err(format!(
                "{name:?} must be a bare image name, without registry, tag or digest"
            ));
        }
        let paths = [&image.path]
            .into_iter()
            .chain(&image.workdir)
            .chain(&image.writable)
            .chain(image.links.keys());
        for path in paths {
            if !path.is_absolute() {
                return Err(format!(
                    "{name}: {:?} must be an absolute path",
                    path.display().to_string()
                ));
            }
        }
    }
    Ok(images)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_matches_on_its_last_segment_without_tag_or_digest() {
        let table = HostImages::built_in();
        let cases = [
            ("nginx", Some("/usr/sbin/nginx")),
            ("nginx:1.29", Some("/usr/sbin/nginx")),
            ("docker.io/library/nginx:1.29@sha256:00", Some("/usr/sbin/nginx")),
            ("registry.example:5000/a/b/busybox", Some("/bin/busybox")),
            ("busybox@sha256:00", Some("/bin/busybox")),
            ("nginx-unprivileged", None),
            ("", None),
            ("nginx/", None),
            (":latest", None),
        ];
        for (image, path) in cases {
            assert_eq!(
                table.resolve(image).map(|image| image.path.as_path()),
                path.map(Path::new),
                "{image:?}"
            );
        }
    }

    #[test]
    fn command_and_args_replace_entrypoint_and_cmd_as_kubernetes_does() {
        let table = HostImages::built_in();
        type Case<'a> = (&'a str, &'a [&'a str], &'a [&'a str], &'a [&'a str]);
        let cases: [Case<'_>; 6] = [
            ("nginx", &[], &[], &["/usr/sbin/nginx", "-g", "daemon off;"]),
            ("nginx", &[], &["-t"], &["/usr/sbin/nginx", "-t"]),
            ("nginx", &["sh"], &[], &["sh"]),
            ("nginx", &["sh"], &["-c", "id"], &["sh", "-c", "id"]),
            ("busybox", &[], &[], &["/bin/busybox", "sh"]),
            ("busybox", &[], &["sleep", "9"], &["sleep", "9"]),
        ];
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        for (image, command, args, argv) in cases {
            let image = table.resolve(image).expect("built in");
            assert_eq!(image.argv(&owned(command), &owned(args)), owned(argv));
        }
    }

    #[test]
    fn a_file_adds_to_the_built_in_table_and_replaces_in_it() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("host-images.yaml");
        assert_eq!(
            HostImages::load(&path).expect("a missing file is empty"),
            HostImages::built_in()
        );
        let text = "redis:\n  path: /usr/bin/redis-server\n  cmd: [--save, '']\n  user: \"999:999\"\n  writable: [/data]\n\
                    nginx:\n  path: /opt/nginx/nginx\n";
        std::fs::write(&path, text).expect("written");
        let table = HostImages::load(&path).expect("valid");
        assert_eq!(
            table.names().collect::<Vec<_>>(),
            ["busybox", "haproxy", "nginx", "postgres", "prometheus", "redis"]
        );
        assert_eq!(
            table.resolve("redis:8").expect("named").writable,
            [PathBuf::from("/data")]
        );
        assert_eq!(
            table.resolve("nginx").expect("named").path,
            Path::new("/opt/nginx/nginx")
        );
    }

    #[test]
    fn a_wrong_file_is_refused_with_its_reason() {
        for (text, part) in [
            ("redis: {path: bin/redis}\n", "absolute"),
            ("a/b: {path: /x}\n", "bare image name"),
            ("redis: {paths: /x}\n", "paths"),
            ("- x\n", ""),
        ] {
            let reason = parse(text).expect_err(text);
            assert!(reason.contains(part), "{text:?}: {reason}");
        }
        assert_eq!(parse("# nothing yet\n\n"), Ok(BTreeMap::new()));
    }
}
