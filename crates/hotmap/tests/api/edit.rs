//! Objects change: edit, patch, replace, label, annotate, diff, apply's conflicts.

use crate::{harness::Kubectl, has};

const ONE: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: one, labels: {app: demo}}, data: {level: INFO, keep: x}}";

fn data(kubectl: &Kubectl) -> String {
    kubectl.field("cm/one", ".data")
}

each_kubectl! {
    fn edit_stores_what_the_editor_saved(kubectl) {
        kubectl.apply(ONE);
        has(&kubectl.edit("cm one", "sed -i s/INFO/DEBUG/ $1").ok(), &["configmap/one edited"]);
        assert_eq!(data(kubectl), r#"{"keep":"x","level":"DEBUG"}"#);
        let unchanged = kubectl.edit("cm one", "true");
        has(&unchanged.ended(0), &["Edit cancelled, no changes made."]);
        // What the server refuses comes back into the editor with the reason; leaving it as it is ends the edit.
        let script = r#"if grep -q 'was not valid' "$1"; then cp "$1" reopened; else sed -i 's/keep: x/"a\/b": x/' "$1"; fi"#;
        let refused = kubectl.edit("cm one", script);
        assert_eq!(refused.code, 1, "{refused:?}");
        let reopened = std::fs::read_to_string(kubectl.server.home().join("reopened")).expect("it was opened again");
        has(&reopened, &["# configmaps \"one\" was not valid:", "# * data[a/b]: Invalid value: \"a/b\": a valid config key"]);
        assert_eq!(data(kubectl), r#"{"keep":"x","level":"DEBUG"}"#);
    }

    fn edit_two_objects_at_once(kubectl) {
        kubectl.apply(ONE);
        kubectl.apply(&ONE.replace("one", "two"));
        has(&kubectl.edit("cm one two", "sed -i s/INFO/WARN/ $1").ok(), &["configmap/one edited", "configmap/two edited"]);
        assert_eq!(kubectl.ok("get cm -o jsonpath={.items[*].data.level}"), "WARN WARN");
    }

    fn patches_of_every_type_apply(kubectl) {
        kubectl.apply(ONE);
        for (patch_type, patch, expected) in [
            ("strategic", r#"{"data":{"level":"A"}}"#, r#"{"keep":"x","level":"A"}"#),
            ("merge", r#"{"data":{"level":"B","keep":null}}"#, r#"{"level":"B"}"#),
            ("json", r#"[{"op":"replace","path":"/data/level","value":"C"},{"op":"add","path":"/data/new","value":"1"}]"#,
             r#"{"level":"C","new":"1"}"#),
            ("json", r#"[{"op":"test","path":"/data/level","value":"C"},{"op":"remove","path":"/data/new"}]"#, r#"{"level":"C"}"#),
            ("strategic", r#"{"data":{"$patch":"replace","z":"1"}}"#, r#"{"z":"1"}"#),
            ("merge", "data: {yaml: works}", r#"{"yaml":"works","z":"1"}"#),
        ] {
            let done = kubectl.call(&["patch", "cm", "one", "--type", patch_type, "-p", patch]).ok();
            assert_eq!(done, "configmap/one patched\n", "{patch}");
            assert_eq!(data(kubectl), expected, "{patch}");
        }
        let same = kubectl.call(&["patch", "cm", "one", "-p", r#"{"data":{"z":"1"}}"#]).ok();
        assert_eq!(same, "configmap/one patched (no change)\n");
        for (patch_type, patch, error) in [
            ("json", r#"[{"op":"test","path":"/data/z","value":"9"}]"#, r#"The request is invalid: patch: operation 0 ("test" at "/data/z"): testing value failed"#),
            ("json", r#"[{"op":"remove","path":"/data/none"}]"#, "The request is invalid: patch: operation 0"),
            ("merge", r#"{"data":{"a/b":"1"}}"#, r#"The ConfigMap "one" is invalid: data[a/b]: Invalid value: "a/b": a valid config key"#),
            ("merge", r#"{"metadata":{"resourceVersion":"1"},"data":{"q":"1"}}"#, "the object has been modified; please apply your changes to the latest version and try again"),
            ("merge", r#"{"metadata":{"name":"other"}}"#, "the name of the object (other) does not match the name on the URL (one)"),
            ("merge", r#"{"data":{"n":1}}"#, "cannot unmarshal number into Go struct field ConfigMap.data of type string"),
        ] {
            let refused = kubectl.call(&["patch", "cm", "one", "--type", patch_type, "-p", patch]).refused();
            has(&refused, &[error]);
        }
        has(&kubectl.call(&["patch", "cm", "none", "-p", "{}"]).refused(), &[r#"configmaps "none" not found"#]);
    }

    fn strategic_merge_knows_the_lists_of_a_pod(kubectl) {
        kubectl.apply(crate::read::POD);
        let patch = r#"{"spec":{"containers":[{"name":"main","image":"busybox:1.36"}]}}"#;
        kubectl.call(&["patch", "pod", "idle", "-p", patch]).ok();
        assert_eq!(kubectl.field("pod/idle", ".spec.containers[*].image"), "busybox:1.36");
        assert_eq!(kubectl.field("pod/idle", ".spec.containers[*].command"), r#"["sleep","inf"]"#);
        kubectl.ok("set image pod/idle main=busybox:1.37");
        assert_eq!(kubectl.field("pod/idle", ".spec.containers[*].image"), "busybox:1.37");
        let refused = kubectl.call(&["patch", "pod", "idle", "-p", r#"{"spec":{"restartPolicy":"Never"}}"#]).refused();
        has(&refused, &[r#"The Pod "idle" is invalid: spec: Forbidden: pod updates may not change fields other than"#]);
        let status = r#"{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}"#;
        kubectl.call(&["patch", "pod", "idle", "--subresource=status", "-p", status]).ok();
        assert_eq!(kubectl.field("pod/idle", ".status.phase"), "Running");
        has(&kubectl.ok("wait pod/idle --for=condition=Ready --timeout=120s"), &["pod/idle condition met"]);
    }

    fn replace_swaps_the_object_and_minds_its_version(kubectl) {
        kubectl.apply(ONE);
        let (uid, version) = (kubectl.field("cm/one", ".metadata.uid"), kubectl.field("cm/one", ".metadata.resourceVersion"));
        let bare = "{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {only: this}}";
        assert_eq!(kubectl.feed("replace -f -", bare).ok(), "configmap/one replaced\n");
        assert_eq!(data(kubectl), r#"{"only":"this"}"#);
        assert_eq!(kubectl.field("cm/one", ".metadata.labels"), "");
        assert_eq!(kubectl.field("cm/one", ".metadata.uid"), uid);
        let stale = bare.replace("name: one", &format!("name: one, resourceVersion: '{version}'"));
        has(&kubectl.feed("replace -f -", stale).refused(), &[
            r#"Operation cannot be fulfilled on configmaps "one": the object has been modified; please apply your changes to the latest version and try again"#]);
        let elsewhere = bare.replace("name: one", "name: one, uid: 6f1e1a9e-0000-4000-8000-000000000000");
        has(&kubectl.feed("replace -f -", elsewhere).refused(), &["Precondition failed: UID in precondition: 6f1e1a9e"]);
        has(&kubectl.feed("replace -f -", bare.replace("one", "none")).refused(), &[r#"configmaps "none" not found"#]);
        let forced = kubectl.feed("replace --force -f -", bare).ok();
        has(&forced, &["configmap \"one\" deleted", "configmap/one replaced"]);
        assert_ne!(kubectl.field("cm/one", ".metadata.uid"), uid);
    }

    fn labels_and_annotations_come_and_go(kubectl) {
        kubectl.apply(ONE);
        assert_eq!(kubectl.ok("label cm one tier=web"), "configmap/one labeled\n");
        has(&kubectl.run("label cm one tier=db").refused(), &["'tier' already has a value (web), and --overwrite is false"]);
        kubectl.ok("label cm one tier=db --overwrite");
        assert_eq!(kubectl.field("cm/one", ".metadata.labels.tier"), "db");
        assert_eq!(kubectl.ok("label cm one tier-"), "configmap/one unlabeled\n");
        assert_eq!(kubectl.field("cm/one", ".metadata.labels"), r#"{"app":"demo"}"#);
        assert_eq!(kubectl.ok("annotate cm one hotmap.dev/keep=true"), "configmap/one annotated\n");
        assert_eq!(kubectl.field("cm/one", ".metadata.annotations.hotmap\\.dev/keep"), "true");
        kubectl.ok("annotate cm --all seen=yes");
        kubectl.ok("label cm -l app=demo picked=yes");
        assert_eq!(kubectl.ok("get cm -l picked=yes -o name"), "configmap/one\n");
        has(&kubectl.run("label cm one bad=a/b").refused(), &["a valid label must be an empty string or consist of alphanumeric characters"]);
    }

    fn diff_shows_the_change_and_exits_1(kubectl) {
        kubectl.apply(ONE);
        assert_eq!(kubectl.feed("diff -f -", ONE).ok(), "");
        let diff = kubectl.feed("diff -f -", ONE.replace("INFO", "DEBUG"));
        assert_eq!(diff.code, 1, "{diff:?}");
        has(&diff.stdout, &["-  level: INFO", "+  level: DEBUG"]);
        let new = kubectl.feed("diff -f -", ONE.replace("one", "new"));
        assert_eq!(new.code, 1, "{new:?}");
        has(&new.stdout, &["+  name: new"]);
        assert_eq!(kubectl.field("cm/one", ".data.level"), "INFO");
    }

    fn server_side_apply_is_refused_clearly_for_now(kubectl) {
        let refused = kubectl.feed("apply --server-side -f -", ONE).refused();
        has(&refused, &["Server-side apply not available on the server", "not supported by this server yet"]);
    }

    fn immutable_objects_stay_as_they_are(kubectl) {
        kubectl.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {a: '1'}, immutable: true}");
        kubectl.apply("{apiVersion: v1, kind: Secret, metadata: {name: two}, stringData: {a: '1'}, immutable: true}");
        for (object, patch, error) in [
            ("cm/one", r#"{"data":{"a":"2"}}"#, r#"The ConfigMap "one" is invalid: data: Forbidden: field is immutable when `immutable` is set"#),
            ("cm/one", r#"{"binaryData":{"b":"AA=="}}"#, "binaryData: Forbidden: field is immutable when `immutable` is set"),
            ("cm/one", r#"{"immutable":null}"#, "immutable: Forbidden: field is immutable when `immutable` is set"),
            ("cm/one", r#"{"immutable":false}"#, "immutable: Forbidden: field is immutable when `immutable` is set"),
            ("secret/two", r#"{"stringData":{"a":"2"}}"#, r#"The Secret "two" is invalid: data: Forbidden: field is immutable when `immutable` is set"#),
            ("secret/two", r#"{"type":"x"}"#, r#"type: Invalid value: "x": field is immutable"#),
        ] {
            has(&kubectl.call(&["patch", object, "--type=merge", "-p", patch]).refused(), &[error]);
        }
        kubectl.ok("label cm one still=labels");
        kubectl.ok("delete cm one");
    }
}
