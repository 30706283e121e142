//! `hotmap-reload sync` over manifests: no API, no cluster, no root.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// What must happen happens within this time, also on a busy machine; a test that hits it has failed.
const PATIENCE: Duration = Duration::from_secs(150);

/// A home with manifests and a directory, and the calls in it.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let home = tempfile::Builder::new().prefix("hotmap-sync-").tempdir();
        let home = Self(home.expect("a temporary directory"));
        fs::create_dir(home.path("manifests")).expect("ours");
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Replaces a manifest of one ConfigMap by a rename, as editors do.
    fn config_map(&self, name: &str, data: &[(&str, &str)]) {
        let data: Vec<String> = data
            .iter()
            .map(|(key, value)| format!("{key}: {value:?}"))
            .collect();
        let manifest = format!(
            "kind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{{}}}\n",
            data.join(", ")
        );
        self.manifest(name, &manifest);
    }

    fn manifest(&self, name: &str, text: &str) {
        fs::write(self.path("staged"), text).expect("ours");
        fs::rename(self.path("staged"), self.path(&format!("manifests/{name}.yaml"))).expect("ours");
    }

    fn sync(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hotmap-reload"));
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("HOTMAP_")) {
                command.env_remove(name);
            }
        }
        command
            .args(["--log", "debug", "sync", "--from", "manifests"])
            .args(arguments)
            .env("NO_COLOR", "1")
            .current_dir(self.0.path());
        command
    }

    #[track_caller]
    fn start(&self, arguments: &[&str]) -> Running {
        Running::start(&mut self.sync(arguments))
    }

    /// Standard error and the exit code of a call with --once.
    #[track_caller]
    fn once(&self, arguments: &[&str]) -> (String, Option<i32>) {
        let output = self
            .sync(&[arguments, &["--once"]].concat())
            .output()
            .expect("it starts");
        (
            String::from_utf8_lossy(&output.stderr).into_owned(),
            output.status.code(),
        )
    }

    /// `name=content`, by name, of all files that show.
    fn shown(&self, directory: &str) -> String {
        let mut shown = Vec::new();
        collect(&self.path(directory), "", &mut shown);
        shown.sort();
        shown.join(" ")
    }
}

fn collect(directory: &Path, prefix: &str, shown: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if name.starts_with("..") {
            continue;
        }
        if path.is_dir() {
            collect(&path, &format!("{prefix}{name}/"), shown);
        } else {
            let content = fs::read_to_string(&path).expect("a file that shows can be read");
            shown.push(format!("{prefix}{name}={content}"));
        }
    }
}

/// A call that goes on; killed when dropped.
struct Running {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Running {
    #[track_caller]
    fn start(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
        let pipe = BufReader::new(child.stderr.take().expect("piped"));
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in pipe.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            lines,
            seen: Vec::new(),
        }
    }

    /// The next line with this text.
    #[track_caller]
    fn line_with(&mut self, text: &str) -> String {
        loop {
            let Ok(line) = self.lines.recv_timeout(PATIENCE) else {
                panic!("no line with {text:?} in {:#?}", self.seen);
            };
            self.seen.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
    }

    fn kill(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

#[test]
fn manifests_become_files_and_are_followed() {
    let home = Home::new();
    home.config_map("app", &[("level", "info")]);
    home.manifest("other", "kind: Deployment\nmetadata: {name: app}\n");
    let mut running = home.start(&["configmap/app", "d"]);
    running.line_with("revision written");
    assert_eq!(home.shown("d"), "level=info");
    home.config_map("app", &[("level", "debug"), ("new", "1")]);
    running.line_with("revision written");
    assert_eq!(home.shown("d"), "level=debug new=1");
    // What cannot be read changes nothing, and is told.
    home.manifest("app", "kind: ConfigMap\nmetadata: [\n");
    running.line_with("the manifests cannot be read, the last content stays");
    assert_eq!(home.shown("d"), "level=debug new=1");
    home.config_map("app", &[("level", "warn")]);
    running.line_with("the manifests can be read again");
    running.line_with("revision written");
    assert_eq!(home.shown("d"), "level=warn");
}

#[test]
fn targets_are_told_of_each_revision_and_of_its_keys() {
    let home = Home::new();
    home.config_map("app", &[("a", "1"), ("b", "1")]);
    let told = home.path("told");
    let tell = format!("sh -c 'echo $HOTMAP_CHANGED_KEYS >> {}'", told.display());
    let mut running = home.start(&["configmap/app", "d", "--exec", &tell]);
    running.line_with("change loaded");
    home.config_map("app", &[("a", "1"), ("b", "2"), ("c", "1")]);
    running.line_with("change loaded");
    running.kill();
    // The same content after a restart is no change.
    let mut running = home.start(&["configmap/app", "d", "--exec", &tell]);
    running.line_with("the directory has this content already");
    home.config_map("app", &[("a", "1")]);
    running.line_with("change loaded");
    assert_eq!(fs::read_to_string(told).expect("told"), "a b\nb c\nb c\n");
}

#[test]
fn the_plain_layout_has_no_links_and_leaves_other_files_alone() {
    let home = Home::new();
    home.config_map("app", &[("a", "1"), ("b", "1")]);
    home.config_map("site", &[("s", "1")]);
    fs::create_dir(home.path("d")).expect("ours");
    fs::write(home.path("d/b"), "theirs").expect("ours");
    let arguments = ["configmap/app", "cm/site=conf.d", "d", "--layout", "plain"];
    let mut running = home.start(&arguments);
    running.line_with("a file that is not ours is in the way of this one, and stays");
    assert_eq!(home.shown("d"), "a=1 b=theirs conf.d/s=1");
    assert!(home.path("d/a").symlink_metadata().expect("a file").is_file());
    running.kill();
    home.config_map("app", &[("new", "1")]);
    assert_eq!(home.once(&arguments).1, Some(0));
    assert_eq!(home.shown("d"), "b=theirs conf.d/s=1 new=1");
    let (error, code) = home.once(&["configmap/app", "d"]);
    assert!(error.contains("was filled with --layout plain"), "{error}");
    assert_eq!(code, Some(2));
}

#[test]
fn a_revision_that_does_not_pass_is_taken_back() {
    let home = Home::new();
    home.config_map("app", &[("level", "good")]);
    let told = home.path("told");
    let tell = format!("sh -c 'cat d/level >> {0}; echo >> {0}'", told.display());
    let arguments = [
        "configmap/app",
        "d",
        "--exec",
        &tell,
        "--verify",
        "grep -q good d/level",
        "--verify-for",
        "0",
    ];
    let mut running = home.start(&arguments);
    running.line_with("revision verified");
    home.config_map("app", &[("level", "bad")]);
    running.line_with("the revision has not passed");
    running.line_with("former revision put back");
    running.line_with("change loaded");
    assert_eq!(home.shown("d"), "level=good");
    home.config_map("app", &[("level", "good again")]);
    running.line_with("revision verified");
    assert_eq!(home.shown("d"), "level=good again");
    assert_eq!(
        fs::read_to_string(&told).expect("told"),
        "good\nbad\ngood\ngood again\n"
    );
    running.kill();

    // Once, it is a failure that says so.
    home.config_map("app", &[("level", "bad")]);
    let (error, code) = home.once(&arguments);
    assert!(
        error.contains("the revision was written, and then: check grep"),
        "{error}"
    );
    assert_eq!((code, home.shown("d").as_str()), (Some(1), "level=good again"));
}

#[test]
fn what_was_not_verified_before_the_end_is_taken_back_at_the_next_start() {
    let home = Home::new();
    home.config_map("app", &[("level", "good")]);
    let verified = |window| ["configmap/app", "d", "--verify", "true", "--verify-for", window];
    let (error, code) = home.once(&verified("0"));
    assert_eq!(code, Some(0), "{error}");
    home.config_map("app", &[("level", "risky")]);
    let mut running = home.start(&verified("1h"));
    running.line_with("change loaded");
    assert_eq!(home.shown("d"), "level=risky");
    running.kill();
    // And nobody has to be asked for that.
    fs::remove_dir_all(home.path("manifests")).expect("ours");
    let mut running = home.start(&verified("1h"));
    running.line_with("was never verified, the last verified revision is put back");
    running.line_with("change loaded");
    assert_eq!(home.shown("d"), "level=good");
    let kept = fs::metadata(home.path("d/..verified"))
        .expect("kept")
        .permissions()
        .mode();
    assert_eq!(kept & 0o777, 0o700);
}

#[test]
fn objects_of_manifests_are_named_without_a_version_and_what_verify_says_is_shown_once() {
    let home = Home::new();
    home.config_map("app", &[("level", "good")]);
    let (said, code) = home.once(&[
        "configmap/app",
        "d",
        "--verify",
        "echo all is well",
        "--verify-for",
        "1s",
    ]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("objects=\"default/configmap/app\""), "{said}");
    assert_eq!(said.matches("all is well").count(), 1, "{said}");
}

#[test]
fn files_have_the_owner_and_the_mode_that_are_asked_for() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root gives files away");
        return;
    }
    let home = Home::new();
    home.config_map("app", &[("a", "1")]);
    for layout in ["projected", "plain"] {
        let directory = format!("{layout}.d");
        let arguments = [
            "configmap/app=sub",
            &directory,
            "--layout",
            layout,
            "--owner",
            "33:34",
            "--mode",
            "0640",
        ];
        let (error, code) = home.once(&arguments);
        assert_eq!(code, Some(0), "{error}");
        let is = fs::metadata(home.path(&directory).join("sub/a")).expect("a file");
        assert_eq!(
            (is.uid(), is.gid(), is.mode() & 0o7777),
            (33, 34, 0o640),
            "{layout}"
        );
    }
}

#[test]
fn a_full_disk_keeps_the_last_good_content_until_there_is_room() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root mounts a small file system");
        return;
    }
    let home = Home::new();
    fs::create_dir(home.path("small")).expect("ours");
    let mounted = Mount::tmpfs(&home.path("small"), "size=128k");
    home.config_map("app", &[("a", "1")]);
    for layout in ["projected", "plain"] {
        home.config_map("app", &[("a", "1")]);
        let directory = format!("small/{layout}");
        let mut running = home.start(&["configmap/app", &directory, "--layout", layout]);
        running.line_with("revision written");
        home.config_map("app", &[("a", &"x".repeat(200_000))]);
        let line = running.line_with("cannot write, the last good content stays");
        assert!(line.contains("No space left on device"), "{line}");
        assert_eq!(home.shown(&directory), "a=1");
        home.config_map("app", &[("a", "2")]);
        running.line_with("revision written");
        assert_eq!(home.shown(&directory), "a=2");
    }
    drop(mounted);
}

/// A file system of a test; gone with it.
struct Mount(PathBuf);

impl Mount {
    fn tmpfs(path: &Path, options: &str) -> Self {
        let mut command = Command::new("mount");
        let mounted = command
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(path)
            .status();
        assert!(mounted.expect("mount is there").success());
        Self(path.to_owned())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("--lazy").arg(&self.0).status());
    }
}

#[test]
fn a_secret_of_a_manifest_is_refused_on_a_disk_too() {
    let home = Home::new();
    home.manifest(
        "tls",
        "kind: Secret\nmetadata: {name: tls}\nstringData: {key: hunter2}\n",
    );
    let disk = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sync-{}", std::process::id()));
    let (error, code) = home.once(&["secret/tls", &disk.display().to_string()]);
    fs::remove_dir(&disk).expect("it was made, and nothing in it");
    assert!(error.contains("is not on tmpfs"), "{error}");
    assert_eq!(code, Some(2), "{error}");
    let memory = tempfile::Builder::new()
        .prefix("hotmap-sync-")
        .tempdir_in("/dev/shm")
        .expect("a directory");
    let directory = memory.path().join("d").display().to_string();
    let (error, code) = home.once(&["secret/tls", &directory]);
    assert_eq!(code, Some(0), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
    assert_eq!(
        fs::read_to_string(memory.path().join("d/key")).expect("written"),
        "hunter2"
    );
}

/// A receiver of requests: the first line of each, and its body.
fn receiver() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    let (sender, requests) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut stream = BufReader::new(stream);
            let mut lines = Vec::new();
            let mut length = 0;
            loop {
                let mut line = String::new();
                if stream.read_line(&mut line).unwrap_or_default() <= 2 {
                    break;
                }
                let lower = line.to_ascii_lowercase();
                if let Some(text) = lower.strip_prefix("content-length:") {
                    length = text.trim().parse().unwrap_or_default();
                }
                if lines.is_empty() || lower.starts_with("authorization:") {
                    lines.push(line.trim().to_owned());
                }
            }
            let mut body = vec![0; length];
            drop(stream.read_exact(&mut body));
            lines.push(String::from_utf8_lossy(&body).into_owned());
            drop(
                stream
                    .get_mut()
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
            );
            if sender.send(lines.join(" | ")).is_err() {
                return;
            }
        }
    });
    (format!("http://{address}/reload"), requests)
}

/// Gives `hello` at /motd to who knows the password, and is broken elsewhere.
fn content_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                if !matches!(stream.read(&mut byte), Ok(1)) {
                    break;
                }
                asked.extend(byte);
            }
            let asked = String::from_utf8_lossy(&asked).to_lowercase();
            let is_good = asked.starts_with("get /motd ") && asked.contains("authorization: basic dtpw");
            let answer: &[u8] = match is_good {
                true => b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
                false => b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n",
            };
            drop(stream.write_all(answer));
        }
    });
    format!("http://{address}")
}

#[test]
fn in_the_environment_of_k8s_sidecar_keys_that_end_in_url_are_fetched_and_the_last_content_stays() {
    let home = Home::new();
    let server = content_server();
    let write = |path: &str, plain: &str| {
        let manifest = format!(
            "kind: ConfigMap\nmetadata: {{name: app, labels: {{x: '1'}}}}\ndata: {{motd.txt.url: '{server}{path}', plain: '{plain}'}}\n"
        );
        home.manifest("app", &manifest);
    };
    write("/motd", "1");
    let mut call = Command::new(env!("CARGO_BIN_EXE_hotmap-reload"));
    call.env_clear()
        .envs([("LABEL", "x"), ("FOLDER", "d"), ("HOTMAP_FROM", "manifests")])
        .envs([("REQ_USERNAME", "u"), ("REQ_PASSWORD", "p"), ("NO_COLOR", "1")])
        .current_dir(home.0.path());
    let mut running = Running::start(&mut call);
    running.line_with("revision written");
    assert_eq!(home.shown("d"), "motd.txt=hello plain=1");
    write("/gone", "2");
    running.line_with("content cannot be fetched, the last one stays");
    running.line_with("revision written");
    assert_eq!(home.shown("d"), "motd.txt=hello plain=2");
    // Once: it is asked as often as it may be, and then the rest is written.
    call.env("METHOD", "LIST")
        .env("REQ_RETRY_TOTAL", "1")
        .env("FOLDER", "once");
    let output = call.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("/gone answers 500"), "{said}");
    assert_eq!(home.shown("once"), "plain=2");
}

#[test]
fn the_endpoint_tells_of_health_and_counts_what_went_wrong() {
    let home = Home::new();
    let get = |path: &str| {
        let mut stream = UnixStream::connect(home.path("sock")).expect("it listens");
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("asked");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered");
        answer
    };
    let address = format!("unix:{}", home.path("sock").display());
    let mut running = home.start(&["configmap/app", "d", "--serve", &address]);
    running.line_with("waiting for an object that does not exist");
    let answer = get("/healthz");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(
        answer.contains("nothing could be written yet: configmap/app in namespace"),
        "{answer}"
    );
    assert!(get("/metrics").contains("hotmap_sync_objects_missing 1"));
    home.config_map("app", &[("level", "info")]);
    running.line_with("change loaded");
    assert!(get("/healthz").starts_with("HTTP/1.1 200 "));
    assert!(get("/v1/config/level").ends_with("\r\n\r\ninfo"));
    home.manifest("app", "kind: ConfigMap\nmetadata: [\n");
    running.line_with("the manifests cannot be read, the last content stays");
    let metrics = get("/metrics");
    for line in [
        "hotmap_sync_writes_total{outcome=\"new\"} 1",
        "hotmap_sync_objects_missing 0",
        "hotmap_sync_deaf 1",
    ] {
        assert!(
            metrics.lines().any(|shown| shown == line),
            "{line}\nis not in\n{metrics}"
        );
    }
    assert!(get("/healthz").contains("changes may be missed"));
}

#[test]
fn the_environment_of_k8s_sidecar_is_a_call() {
    let home = Home::new();
    let manifest = |folder: &str, data: &str| {
        format!(
            "kind: ConfigMap\nmetadata: {{name: one, namespace: shop, labels: {{grafana_dashboard: '1'}}, annotations: \
             {{k8s-sidecar-target-directory: {folder}}}}}\ndata: {data}\n"
        )
    };
    home.manifest("one", &manifest("team", "{a.json: '1', b.json.url: 'ftp://a/'}"));
    let (url, requests) = receiver();
    let mut command = Command::new(env!("CARGO_BIN_EXE_hotmap-reload"));
    command
        .env_clear()
        .envs([
            ("NO_COLOR", "1"),
            ("HOTMAP_FROM", "manifests"),
            ("LABEL", "grafana_dashboard"),
            ("LABEL_VALUE", "1"),
            ("FOLDER", "dashboards"),
            ("NAMESPACE", "ALL"),
            ("UNIQUE_FILENAMES", "true"),
            ("REQ_URL", &url),
            ("REQ_METHOD", "POST"),
            ("REQ_PAYLOAD", "{\"a\":1}"),
            ("REQ_USERNAME", "u"),
            ("REQ_PASSWORD", "hunter2"),
            ("SLEEP_TIME", "60"),
            ("DEFAULT_FILE_MODE", "440"),
        ])
        .current_dir(home.0.path());
    let mut running = Running::start(&mut command);
    running.line_with("SLEEP_TIME has no effect here");
    running.line_with("its value is no http:// or https:// URL");
    running.line_with("change loaded");
    let file = "team/namespace_shop.configmap_one.a.json";
    assert_eq!(home.shown("dashboards"), format!("{file}=1"));
    let mode = fs::metadata(home.path("dashboards").join(file))
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o440);
    let request = requests.recv_timeout(PATIENCE).expect("a request");
    assert_eq!(
        request,
        "POST /reload HTTP/1.1 | authorization: Basic dTpodW50ZXIy | {\"a\":1}"
    );
    home.manifest("one", &manifest("/etc", "{a.json: '1'}"));
    running.line_with("which is not beneath dashboards");
    running.line_with("change loaded");
    assert_eq!(home.shown("dashboards"), "");
    assert!(
        running.seen.iter().all(|line| !line.contains("hunter2")),
        "{:#?}",
        running.seen
    );

    // What is wrong is named.
    let mut command = Command::new(env!("CARGO_BIN_EXE_hotmap-reload"));
    command
        .env_clear()
        .envs([("LABEL", "a"), ("FOLDER", "d"), ("RESOURCE", "pods")]);
    let output = command.output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("RESOURCE=\"pods\" is none of"));
}

#[test]
fn the_printed_unit_is_one_that_systemd_takes() {
    let home = Home::new();
    let output = home
        .sync(&[
            "configmap/app",
            "conf d",
            "--exec",
            "echo $HOME 100%",
            "--print-unit",
        ])
        .output()
        .expect("it starts");
    assert!(output.status.success());
    let unit = String::from_utf8(output.stdout).expect("text");
    let command = r#"sync --from manifests configmap/app "conf d" --exec "echo $$HOME 100%%""#;
    assert!(
        unit.lines()
            .any(|line| line.starts_with("ExecStart=/") && line.ends_with(command)),
        "{unit}"
    );
    let file = home.path("hotmap-sync.service");
    fs::write(&file, &unit).expect("ours");
    let Ok(verified) = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .arg(&file)
        .output()
    else {
        println!("skipped: systemd-analyze is not here");
        return;
    };
    let said = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success(), "{said}\n{unit}");
    assert!(!said.contains("hotmap-sync.service"), "{said}\n{unit}");
    // 0 is safest, 10 is a service without any limit.
    let rated = Command::new("systemd-analyze")
        .args(["security", "--offline=yes", "--threshold=25", "--no-pager"])
        .arg(&file)
        .output()
        .expect("it is here");
    assert!(
        rated.status.success(),
        "{}",
        String::from_utf8_lossy(&rated.stdout)
    );
}
