//! The images that need no file: programs that many manifests name, where Debian installs them, with the entrypoints, defaults
//! and volumes of the official images.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::HostImage;

/// Where Debian keeps the servers of PostgreSQL: `<release>/bin/postgres`.
const POSTGRES_RELEASES: &str = "/usr/lib/postgresql";

/// The server gets the working directory and, if it would be root, runs as the user whom Debian's package has made. A server that
/// nobody configured answers other pods too.
const REDIS: &str = r#"
case "${1-}" in ''|-*|*.conf) set -- redis-server "$@" ;; esac
[ "$1" = redis-server ] || exec "$@"
case " $* " in *".conf "*|*" --protected-mode "*) ;; *) set -- "$@" --protected-mode no ;; esac
[ "$(id -u)" = 0 ] || exec "$@"
chown redis . && exec setpriv --reuid=redis --regid=redis --init-groups "$@"
"#;

/// `$0` is the server. Its cluster is made when it is not there, with the user, password and database of the environment.
const POSTGRES: &str = r#"
PATH="${0%/*}:$PATH"
case "${1-}" in ''|-*) set -- postgres "$@" ;; esac
[ "$1" = postgres ] || exec "$@"
as=
mkdir -p "$PGDATA" || exit 1
if [ "$(id -u)" = 0 ]; then
  chown postgres "$PGDATA" /run/postgresql || exit 1
  as='setpriv --reuid=postgres --regid=postgres --init-groups'
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  if [ -n "$(ls /docker-entrypoint-initdb.d 2>/dev/null)" ]; then
    echo 'Error: the scripts in /docker-entrypoint-initdb.d are not run on a host; run them with psql.' >&2
    exit 1
  fi
  export POSTGRES_USER="${POSTGRES_USER:-postgres}" POSTGRES_HOST_AUTH_METHOD="${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}"
  if [ -n "${POSTGRES_PASSWORD-}" ]; then
    $as sh -c 'printf "%s\n" "$POSTGRES_PASSWORD" | initdb -U "$POSTGRES_USER" --auth-local=trust --auth-host=scram-sha-256 \
      --pwfile=/dev/stdin $POSTGRES_INITDB_ARGS' || exit 1
  elif [ "$POSTGRES_HOST_AUTH_METHOD" = trust ]; then
    $as initdb -U "$POSTGRES_USER" --auth=trust $POSTGRES_INITDB_ARGS || exit 1
  else
    echo 'Error: Database is uninitialized and superuser password is not specified.' >&2
    echo '       Set POSTGRES_PASSWORD, or POSTGRES_HOST_AUTH_METHOD=trust to let everybody in.' >&2
    exit 1
  fi
  $as sh -c 'echo "host all all all $POSTGRES_HOST_AUTH_METHOD" >> "$PGDATA/pg_hba.conf" &&
    echo "listen_addresses = '"'*'"'" >> "$PGDATA/postgresql.conf"' || exit 1
  database="${POSTGRES_DB:-$POSTGRES_USER}"
  if [ "$database" != postgres ]; then
    echo "CREATE DATABASE \"$database\";" | $as postgres --single -j postgres || exit 1
  fi
fi
exec $as "$@"
"#;

const HAPROXY: &str = r#"
case "${1-}" in ''|-*) set -- haproxy "$@" ;; esac
if [ "$1" = haproxy ]; then shift; set -- haproxy -W -db "$@"; fi
exec "$@"
"#;

/// Every built-in image by its name.
pub(super) fn images() -> BTreeMap<String, HostImage> {
    let images = [
        ("busybox", busybox()),
        ("haproxy", haproxy()),
        ("nginx", nginx()),
        ("postgres", postgres()),
        ("prometheus", prometheus()),
        ("redis", redis()),
    ];
    images.map(|(name, image)| (name.to_owned(), image)).into()
}

fn nginx() -> HostImage {
    HostImage {
        cmd: words(["-g", "daemon off;"]),
        writable: paths(["/var/log/nginx", "/var/lib/nginx", "/var/cache/nginx", "/run"]),
        links: BTreeMap::from([
            ("/var/log/nginx/access.log".into(), "/dev/stdout".into()),
            ("/var/log/nginx/error.log".into(), "/dev/stderr".into()),
        ]),
        ..program("/usr/sbin/nginx", words(["/usr/sbin/nginx"]))
    }
}

fn busybox() -> HostImage {
    HostImage {
        cmd: words(["/bin/busybox", "sh"]),
        ..program("/bin/busybox", Vec::new())
    }
}

fn redis() -> HostImage {
    HostImage {
        workdir: Some("/data".into()),
        writable: paths(["/data"]),
        ..program("/usr/bin/redis-server", script(REDIS, "redis"))
    }
}

fn postgres() -> HostImage {
    let path = newest_postgres(Path::new(POSTGRES_RELEASES));
    let server = path.to_string_lossy().into_owned();
    HostImage {
        env: BTreeMap::from([
            ("LANG".into(), "C.UTF-8".into()),
            ("PGDATA".into(), "/var/lib/postgresql/data".into()),
        ]),
        writable: paths(["/var/lib/postgresql/data", "/run/postgresql"]),
        ..program(&server, script(POSTGRES, &server))
    }
}

fn prometheus() -> HostImage {
    HostImage {
        cmd: words([
            "--config.file=/etc/prometheus/prometheus.yml",
            "--storage.tsdb.path=/prometheus",
        ]),
        user: Some("65534:65534".into()),
        workdir: Some("/prometheus".into()),
        writable: paths(["/prometheus"]),
        ..program("/usr/bin/prometheus", words(["/usr/bin/prometheus"]))
    }
}

fn haproxy() -> HostImage {
    HostImage {
        cmd: words(["haproxy", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]),
        user: Some("99:99".into()),
        workdir: Some("/var/lib/haproxy".into()),
        writable: paths(["/var/lib/haproxy"]),
        ..program("/usr/sbin/haproxy", script(HAPROXY, "haproxy"))
    }
}

fn program(path: &str, entrypoint: Vec<String>) -> HostImage {
    HostImage {
        path: path.into(),
        entrypoint: Some(entrypoint),
        cmd: Vec::new(),
        env: BTreeMap::new(),
        user: None,
        workdir: None,
        writable: Vec::new(),
        links: BTreeMap::new(),
    }
}

fn script(script: &str, name: &str) -> Vec<String> {
    words(["/bin/sh", "-c", script.trim_start(), name])
}

fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

fn paths<const N: usize>(paths: [&str; N]) -> Vec<PathBuf> {
    paths.map(PathBuf::from).to_vec()
}

/// The server of the newest release below a directory, or where one would be.
fn newest_postgres(releases: &Path) -> PathBuf {
    let entries = fs::read_dir(releases).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let server = |release: u32| releases.join(release.to_string()).join("bin/postgres");
    let installed = numbers.filter(|release| server(*release).exists()).max();
    installed.map_or_else(|| releases.join("bin/postgres"), server)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_release_of_postgres_serves() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        assert_eq!(newest_postgres(dir.path()), dir.path().join("bin/postgres"));
        for release in ["9", "15", "17", "common"] {
            fs::create_dir_all(dir.path().join(release).join("bin")).expect("made");
        }
        for release in ["9", "15"] {
            fs::write(dir.path().join(release).join("bin/postgres"), "").expect("written");
        }
        assert_eq!(newest_postgres(dir.path()), dir.path().join("15/bin/postgres"));
    }
}
