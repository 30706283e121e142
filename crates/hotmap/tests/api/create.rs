//! Objects come in: manifests, typed commands with protobuf bodies, dry runs.

use crate::has;

const TWO: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: one, labels: {app: demo}}
data: {level: INFO}
---
apiVersion: v1
kind: Secret
metadata: {name: two}
stringData: {password: hunter2}
";

each_kubectl! {
    fn apply_creates_then_configures_then_leaves_alone(kubectl) {
        assert_eq!(kubectl.apply(TWO), "configmap/one created\nsecret/two created\n");
        let version = kubectl.field("configmap/one", ".metadata.resourceVersion");
        assert_eq!(kubectl.apply(TWO).lines().next(), Some("configmap/one unchanged"));
        assert_eq!(kubectl.field("configmap/one", ".metadata.resourceVersion"), version);
        let changed = TWO.replace("{level: INFO}", "{mode: fast}");
        assert_eq!(kubectl.apply(&changed).lines().next(), Some("configmap/one configured"));
        assert_eq!(kubectl.field("configmap/one", ".data"), r#"{"mode":"fast"}"#);
        assert_eq!(kubectl.field("secret/two", ".data.password"), "aHVudGVyMg==");
        assert_eq!(kubectl.field("secret/two", ".stringData"), "");
    }

    fn create_refuses_what_exists(kubectl) {
        assert_eq!(kubectl.feed("create -f -", TWO).ok(), "configmap/one created\nsecret/two created\n");
        let refused = kubectl.feed("create -f -", TWO).refused();
        has(&refused, &[
            r#"Error from server (AlreadyExists): error when creating "STDIN": configmaps "one" already exists"#,
            r#"secrets "two" already exists"#,
        ]);
    }

    fn typed_commands_create_what_they_say(kubectl) {
        kubectl.file("app.conf", "a = 1\nb = 2\n");
        kubectl.file("app.env", "ONE=1\nTWO=2\n");
        kubectl.file("docker.json", r#"{"auths":{}}"#);
        certificate(kubectl);
        for (call, object, path, value) in [
            ("configmap literal --from-literal=a=1 --from-literal=b=", "cm/literal", ".data", r#"{"a":"1","b":""}"#),
            ("configmap file --from-file=app.conf", "cm/file", ".data.app\\.conf", "a = 1\nb = 2\n"),
            ("configmap renamed --from-file=x=app.conf", "cm/renamed", ".data.x", "a = 1\nb = 2\n"),
            ("configmap env --from-env-file=app.env", "cm/env", ".data", r#"{"ONE":"1","TWO":"2"}"#),
            ("configmap hashed --append-hash --from-literal=a=1", "cm", ".items[?(@.data.a==\"1\")].metadata.name", ""),
            ("configmap empty", "cm/empty", ".data", ""),
            ("secret generic generic --from-literal=password=hunter2", "secret/generic", ".type", "Opaque"),
            ("secret generic typed --type=example.com/mine --from-literal=a=b", "secret/typed", ".type", "example.com/mine"),
            ("secret tls pair --cert=tls.crt --key=tls.key", "secret/pair", ".type", "kubernetes.io/tls"),
            ("secret docker-registry pull --docker-server=r.example --docker-username=u --docker-password=p",
             "secret/pull", ".type", "kubernetes.io/dockerconfigjson"),
            ("namespace team-a", "namespace/team-a", ".status.phase", "Active"),
            ("serviceaccount robot", "serviceaccount/robot", ".metadata.name", "robot"),
        ] {
            kubectl.ok(&format!("create {call}"));
            let found = kubectl.field(object, path);
            if !call.contains("--append-hash") {
                assert_eq!(found, value, "{call}");
            } else {
                has(&found, &["hashed-"]);
            }
        }
        assert_eq!(kubectl.field("namespace/team-a", ".spec.finalizers[0]"), "kubernetes");
        assert_eq!(kubectl.field("namespace/team-a", ".metadata.labels.kubernetes\\.io/metadata\\.name"), "team-a");
        let missing = kubectl.run("create configmap x -n nowhere").refused();
        has(&missing, &[r#"namespaces "nowhere" not found"#]);
    }

    fn dry_runs_show_and_store_nothing(kubectl) {
        for mode in ["client", "server"] {
            let made = kubectl.ok(&format!("create configmap dry --from-literal=a=1 --dry-run={mode} -o yaml"));
            has(&made, &["kind: ConfigMap", "a: \"1\""]);
            assert_eq!(made.contains("uid: "), mode == "server", "{made}");
            assert!(!made.contains("resourceVersion"), "{made}");
            has(&kubectl.feed(&format!("apply --dry-run={mode} -f -"), TWO).ok(),
                &[&format!("configmap/one created ({} dry run)\n", mode).replace("client dry run", "dry run")]);
        }
        assert_eq!(kubectl.ok("get cm,secret -o name --field-selector=metadata.name!=kube-root-ca.crt"), "");
        kubectl.apply(TWO);
        let version = kubectl.field("cm/one", ".metadata.resourceVersion");
        kubectl.ok("label cm one tier=x --dry-run=server");
        kubectl.ok("delete cm one --dry-run=server");
        kubectl.call(&["patch", "cm", "one", "--dry-run=server", "-p", r#"{"data":{"level":"X"}}"#]).ok();
        assert_eq!(kubectl.field("cm/one", ".metadata.resourceVersion"), version);
        let refused = kubectl.feed("create --dry-run=server -f -", TWO).refused();
        has(&refused, &[r#"configmaps "one" already exists"#]);
    }

    fn generated_names_differ(kubectl) {
        let manifest = "{apiVersion: v1, kind: ConfigMap, metadata: {generateName: run-}}";
        let names: Vec<_> = (0..2).map(|_| kubectl.feed("create -o name -f -", manifest).ok()).collect();
        assert_ne!(names[0], names[1]);
        for name in names {
            assert!(name.starts_with("configmap/run-") && name.trim().len() == "configmap/run-".len() + 5, "{name}");
        }
    }

    fn lists_and_directories_are_taken_apart(kubectl) {
        std::fs::create_dir(kubectl.server.home().join("all")).expect("a directory of ours");
        kubectl.file("all/a.yaml", TWO);
        kubectl.file("all/b.json", r#"{"apiVersion":"v1","kind":"List","items":[
            {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"three"}}]}"#);
        kubectl.file("all/ignored.txt", "not a manifest");
        assert_eq!(kubectl.ok("apply -f all/"), "configmap/one created\nsecret/two created\nconfigmap/three created\n");
    }
}

/// A self-signed pair: kubectl checks that key and certificate belong together.
fn certificate(kubectl: &crate::harness::Kubectl) {
    // The server's own pair is one, and no tool that makes another has to be here.
    let pki = kubectl.server.data_dir().join("pki");
    let read = |ending: &str| {
        let mut files: Vec<_> = std::fs::read_dir(&pki)
            .expect("the server's keys")
            .flatten()
            .map(|f| f.path())
            .collect();
        files.sort();
        let file = files
            .iter()
            .find(|file| file.file_name().and_then(|n| n.to_str()) == Some(ending));
        std::fs::read(file.unwrap_or_else(|| panic!("no {ending} in {files:?}"))).expect("readable")
    };
    kubectl.file("tls.crt", read("ca.crt"));
    kubectl.file("tls.key", read("ca.key"));
}
