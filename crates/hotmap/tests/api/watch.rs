//! Changes come by themselves: `get -w`, `wait`.

use crate::has;

each_kubectl! {
    fn get_w_prints_each_change(kubectl) {
        kubectl.ok("create configmap first");
        let mut watch = kubectl.start("get cm -w --no-headers");
        watch.line_with("first");
        kubectl.ok("create configmap second --from-literal=a=1");
        has(&watch.line_with("second"), &["1"]);
        kubectl.call(&["patch", "cm", "second", "-p", r#"{"data":{"b":"2"}}"#]).ok();
        has(&watch.line_with("second"), &["2"]);
        kubectl.ok("delete cm second");
        watch.line_with("second");
    }

    fn get_w_of_one_name_labels_and_events(kubectl) {
        kubectl.ok("create configmap only");
        let mut one = kubectl.start("get cm only -w -o jsonpath={.metadata.labels.n}{\"\\n\"}");
        let mut labelled = kubectl.start("get cm -l n=2 -w --output-watch-events -o name");

        one.line_with("");
        kubectl.ok("label cm only n=1");
        one.line_with("1");
        kubectl.ok("label cm only n=2 --overwrite");
        one.line_with("2");
        labelled.line_with("configmap/only");
        kubectl.ok("label cm only n-");
        labelled.line_with("configmap/only");
    }

    fn a_watch_after_pages_goes_on_from_the_list(kubectl) {
        for name in ["a", "b", "c"] {
            kubectl.ok(&format!("create configmap {name}"));
        }
        let mut watch = kubectl.start("get cm --chunk-size=1 -w -o name");
        watch.line_with("configmap/c");
        kubectl.ok("create configmap d");
        watch.line_with("configmap/d");
    }

    fn wait_returns_when_it_is_so(kubectl) {
        kubectl.ok("create configmap here --from-literal=state=new");
        has(&kubectl.ok("wait cm/here --for=jsonpath={.data.state}=new --timeout=120s"), &["configmap/here condition met"]);
        let mut changed = kubectl.start("wait cm/here --for=jsonpath={.data.state}=done --timeout=120s");
        kubectl.call(&["patch", "cm", "here", "-p", r#"{"data":{"state":"done"}}"#]).ok();
        assert_eq!(changed.wait(), 0);
        let mut gone = kubectl.start("wait cm/here --for=delete --timeout=120s");
        kubectl.ok("delete cm here");
        assert_eq!(gone.wait(), 0);
        let mut made = kubectl.start("wait cm/later --for=create --timeout=120s");
        kubectl.ok("create configmap later");
        assert_eq!(made.wait(), 0);
        has(&kubectl.run("wait cm/later --for=delete --timeout=100ms").refused(), &["timed out waiting for the condition on configmaps/later"]);
        has(&kubectl.run("wait cm/none --for=jsonpath={.data}=x --timeout=1s").refused(), &[r#"configmaps "none" not found"#]);
    }
}
