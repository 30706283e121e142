//! Prometheus, as examples/reload-prometheus says.

use std::fs;
use std::process::Command;

use crate::program::{Program, Volume, example, free_port, get, hotmap_reload, tool, wait_until};

/// Prometheus over a volume with its configuration and its rules.
struct Prometheus {
    directory: tempfile::TempDir,
    volume: Volume,
    port: u16,
    running: Program,
}

impl Prometheus {
    fn start() -> Option<Self> {
        let program = tool("prometheus")?;
        let directory = tempfile::tempdir().expect("a temporary directory");
        let volume = Volume::new(
            directory.path().join("v"),
            &files("first").each_ref().map(|(key, text)| (*key, text.as_str())),
        );
        let port = free_port();
        let mut command = Command::new(program);
        command
            .arg(format!("--config.file={}/prometheus.yml", volume.name()))
            .arg(format!("--storage.tsdb.path={}/data", directory.path().display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .arg("--web.enable-lifecycle");
        let prometheus = Self {
            directory,
            volume,
            port,
            running: Program::start(&mut command),
        };
        prometheus.has_rules("first");
        Some(prometheus)
    }

    fn reload(&self, more: &[&str]) -> Program {
        let url = format!("http://127.0.0.1:{}/-/reload", self.port);
        let flags = [
            "reload",
            "--volume-dir",
            self.volume.name(),
            "--webhook-url",
            &url,
            "--retry-delay",
            "50ms",
        ];
        let mut reload = Program::hotmap_reload(&[&flags[..], more].concat());
        reload.says(&["content found"]);
        reload
    }

    fn swap(&mut self, group: &str) {
        let files = files(group);
        self.volume
            .swap(&files.each_ref().map(|(key, text)| (*key, text.as_str())));
    }

    fn break_rules(&mut self) {
        let broken = "groups:\n- name: broken\n  rules:\n  - record: a:b\n    expr: sum(\n".to_owned();
        let [configuration, _] = files("broken");
        self.volume
            .swap(&[(configuration.0, &configuration.1), ("rules.yml", &broken)]);
    }

    #[track_caller]
    fn has_rules(&self, group: &str) {
        wait_until(group, || {
            get(self.port, "/api/v1/rules").contains(&format!("\"name\":\"{group}\""))
        });
    }
}

fn files(group: &str) -> [(&'static str, String); 2] {
    let rules = example("reload-prometheus/rules.yml", &[("first", group)]);
    [
        ("prometheus.yml", example("reload-prometheus/prometheus.yml", &[])),
        ("rules.yml", rules),
    ]
}

#[test]
fn prometheus_says_itself_that_a_rule_file_is_broken_and_is_asked_until_it_is_mended() {
    let Some(mut prometheus) = Prometheus::start() else {
        return;
    };
    let mut reload = prometheus.reload(&[]);
    prometheus.swap("second");
    reload.says(&["change loaded"]);
    prometheus.has_rules("second");
    prometheus.break_rules();
    reload.says(&["told again", "/-/reload answers 500", "failed to reload config"]);
    prometheus.swap("third");
    reload.says(&["change loaded"]);
    prometheus.has_rules("third");
}

#[test]
fn a_signalled_prometheus_is_asked_whether_it_has_loaded_its_files() {
    let Some(mut prometheus) = Prometheus::start() else {
        return;
    };
    let pid = prometheus.running.pid().to_string();
    let url = format!("http://127.0.0.1:{}/api/v1/status/runtimeinfo", prometheus.port);
    let flags = [
        "reload",
        "--volume-dir",
        prometheus.volume.name(),
        "--signal",
        "HUP",
        "--pid",
        &pid,
        "--runtimeinfo-url",
        &url,
    ];
    let mut reload = Program::hotmap_reload(&flags);
    reload.says(&["content found"]);
    prometheus.swap("second");
    reload.says(&["change loaded"]);
    // Without waiting: it was confirmed.
    assert!(get(prometheus.port, "/api/v1/rules").contains("\"name\":\"second\""));
    prometheus.break_rules();
    reload.says(&["change not loaded", "it could not load its files"]);
    prometheus.swap("third");
    reload.says(&["change loaded"]);
    assert!(get(prometheus.port, "/api/v1/rules").contains("\"name\":\"third\""));
}

#[test]
fn promtool_holds_a_broken_rule_file_back() {
    let (Some(promtool), Some(mut prometheus)) = (tool("promtool"), Prometheus::start()) else {
        return;
    };
    let check = format!(
        "{} check config {}/prometheus.yml",
        promtool.display(),
        prometheus.volume.name()
    );
    let mut reload = prometheus.reload(&["--check", &check]);
    prometheus.break_rules();
    reload.says(&["held back", "check", "exit code", "could not parse expression"]);
    prometheus.has_rules("first");
    prometheus.swap("second");
    reload.says(&["change loaded"]);
    prometheus.has_rules("second");
    drop(prometheus.directory);
}

#[test]
fn the_flags_of_prometheus_config_reloader_do_what_they_did() {
    let Some(prometheus) = Prometheus::start() else {
        return;
    };
    let out = prometheus.directory.path().join("out.yml");
    let template = prometheus.directory.path().join("template.yml");
    fs::write(
        &template,
        "global:\n  external_labels:\n    replica: $(STATEFULSET_ORDINAL_NUMBER)\n",
    )
    .unwrap();
    let metrics = free_port();
    let flags = [
        format!("--config-file={}", template.display()),
        format!("--config-envsubst-file={}", out.display()),
        format!("--watched-dir={}", prometheus.volume.name()),
        format!("--reload-url=http://127.0.0.1:{}/-/reload", prometheus.port),
        format!("--listen-address=127.0.0.1:{metrics}"),
        "--delay-interval=0".to_owned(),
        "--log-format=json".to_owned(),
    ];
    let mut command = hotmap_reload(&flags.each_ref().map(String::as_str));
    let mut reload = Program::start(command.env("POD_NAME", "prometheus-7"));
    reload.says(&["--log-format is not followed"]);
    // What is found at the start is told as well.
    reload.says(&["change loaded"]);
    assert!(fs::read_to_string(&out).unwrap().ends_with("replica: 7\n"));
    fs::write(&template, "global:\n  scrape_interval: 1m\n").unwrap();
    reload.says(&["change loaded"]);
    assert!(fs::read_to_string(&out).unwrap().ends_with("1m\n"));
    let page = get(metrics, "/metrics");
    for line in [
        "reloader_last_reload_successful 1",
        "reloader_reloads_total 2",
        "hotmap_reload_changes_total",
    ] {
        assert!(page.contains(line), "{line} is not in {page}");
    }
}

#[test]
fn the_flags_of_configmap_reload_do_what_they_did() {
    let Some(mut prometheus) = Prometheus::start() else {
        return;
    };
    let url = format!("http://127.0.0.1:{}/-/reload", prometheus.port);
    let address = format!("127.0.0.1:{}", free_port());
    let volume = prometheus.volume.name().to_owned();
    let flags = [
        "-volume-dir",
        &volume,
        "-webhook-url",
        &url,
        "-web.listen-address",
        &address,
        "-webhook-retries",
        "1",
    ];
    let mut reload = Program::hotmap_reload(&flags);
    reload.says(&["content found"]);
    prometheus.swap("second");
    reload.says(&["change loaded"]);
    prometheus.has_rules("second");
    prometheus.break_rules();
    reload.says(&["change not loaded", "500"]);
    let port = address.rsplit(':').next().unwrap().parse().unwrap();
    let page = get(port, "/metrics");
    for line in [
        format!("configmap_reload_last_reload_error{{webhook=\"{url}\"}} 1"),
        format!("configmap_reload_requests_total{{webhook=\"{url}\",status_code=\"200\"}} 1"),
        format!("configmap_reload_requests_total{{webhook=\"{url}\",status_code=\"500\"}} 1"),
        format!("configmap_reload_success_reloads_total{{webhook=\"{url}\"}} 1"),
    ] {
        assert!(page.contains(&line), "{line} is not in {page}");
    }
    let (status, said) = Program::hotmap_reload(&["-volume-dir-archive", "/a"]).ends();
    assert_eq!(status.code(), Some(2));
    assert!(
        said.contains("--volume-dir-archive is not supported: archives are not unpacked"),
        "{said}"
    );
}
