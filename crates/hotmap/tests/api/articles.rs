//! Manifests from articles about ConfigMaps, as people paste them.

use crate::has;

/// "Kubernetes Configmap 配置更新: 原理解析与方案对比" shows this one; its second value is a map, which no ConfigMap can hold.
const A_MAP_FOR_A_VALUE: &str = "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: test-config
data:
  config.yml: |-
    start-message: 'Hello, World!'
    log-level: INFO
  bootstrap.yml:
    listen-address: 127.0.0.1:8080
";

/// The text in "ConfigMap的热更新" (kubernetes-handbook, jimmysong.io): quotes, dollars, tildes, blank lines, no last line end.
const NGINX_CONF: &str = include_str!("../fixtures/nginx.conf");

fn nginx_manifest() -> String {
    let indented: String = NGINX_CONF
        .lines()
        .map(|line| {
            if line.is_empty() {
                "\n".to_owned()
            } else {
                format!("    {line}\n")
            }
        })
        .collect();
    format!(
        "apiVersion: v1\ndata:\n  nginx.conf: |-\n{indented}kind: ConfigMap\nmetadata:\n  name: nginx-config\n  namespace: default\n"
    )
}

each_kubectl! {
    fn a_map_for_a_value_is_refused_with_its_path(kubectl) {
        for call in ["apply -f -", "create -f -", "apply --validate=false -f -"] {
            let refused = kubectl.feed(call, A_MAP_FOR_A_VALUE).refused();
            has(&refused, &[
                "Error from server (BadRequest)",
                "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal object into Go struct field ConfigMap.data of type string",
                "data[bootstrap.yml]",
            ]);
        }
        assert_eq!(kubectl.ok("get cm -o name --field-selector=metadata.name!=kube-root-ca.crt"), "");
        // As its author meant it.
        kubectl.apply(&A_MAP_FOR_A_VALUE.replace("bootstrap.yml:", "bootstrap.yml: |-"));
        assert_eq!(kubectl.field("cm/test-config", ".data.bootstrap\\.yml"), "listen-address: 127.0.0.1:8080");
    }

    fn an_nginx_conf_comes_back_byte_for_byte(kubectl) {
        kubectl.apply(&nginx_manifest());
        assert_eq!(kubectl.field("cm/nginx-config", ".data.nginx\\.conf"), NGINX_CONF);
        let yaml = kubectl.ok("get cm nginx-config -o yaml");
        kubectl.ok("delete cm nginx-config");
        let server_set = ["  creationTimestamp:", "  resourceVersion:", "  uid:"];
        let kept = |line: &&str| !server_set.iter().any(|field| line.starts_with(field));
        let again: String = yaml.lines().filter(kept).map(|line| format!("{line}\n")).collect();
        kubectl.feed("create -f -", again).ok();
        assert_eq!(kubectl.field("cm/nginx-config", ".data.nginx\\.conf"), NGINX_CONF);
        kubectl.edit("cm nginx-config", "sed -i 's/worker_processes 1;/worker_processes 2;/' \"$1\"").ok();
        let edited = NGINX_CONF.replace("worker_processes 1;", "worker_processes 2;");
        assert_eq!(kubectl.field("cm/nginx-config", ".data.nginx\\.conf"), edited);
        kubectl.ok("delete cm nginx-config");
        kubectl.file("nginx.conf", NGINX_CONF);
        kubectl.ok("create configmap nginx-config --from-file=nginx.conf");
        assert_eq!(kubectl.field("cm/nginx-config", ".data.nginx\\.conf"), NGINX_CONF);
    }

    fn a_list_as_old_as_its_article_says_what_is_wrong(kubectl) {
        // extensions/v1beta1 is what the article's Deployment says; its ConfigMap beside it is created.
        let manifest = "{apiVersion: extensions/v1beta1, kind: Deployment, metadata: {name: my-nginx}}\n---\n\
                        {apiVersion: v1, kind: ConfigMap, metadata: {name: env-config, namespace: default}, data: {log_level: INFO}}\n";
        let tried = kubectl.feed("apply -f -", manifest);
        assert_eq!(tried.code, 1, "{tried:?}");
        has(&tried.stderr, &[r#"no matches for kind "Deployment" in version "extensions/v1beta1""#]);
        assert_eq!(kubectl.field("cm/env-config", ".data.log_level"), "INFO");
    }
}
