//! What is there to talk to: discovery, documentation, versions, health, who am I.

use crate::has;

each_kubectl! {
    fn discovery_lists_what_is_served(kubectl) {
        let resources = kubectl.ok("api-resources --no-headers");
        for line in ["configmaps cm v1 true ConfigMap", "events ev events.k8s.io/v1 true Event", "namespaces ns v1 false Namespace",
                     "leases coordination.k8s.io/v1 true Lease", "selfsubjectreviews authentication.k8s.io/v1 false SelfSubjectReview", "deliveryreports hotmap.dev/v1alpha1 false DeliveryReport"] {
            let found = resources.lines().any(|row| row.split_whitespace().collect::<Vec<_>>().join(" ") == line);
            assert!(found, "no {line:?} in:\n{resources}");
        }
        assert_eq!(kubectl.ok("api-resources --no-headers --namespaced=false -o name --verbs=list"), "namespaces\nnodes\ncertificatesigningrequests.certificates.k8s.io\ndeliveryreports.hotmap.dev\nclusterrolebindings.rbac.authorization.k8s.io\nclusterroles.rbac.authorization.k8s.io\n");
        has(&kubectl.ok("api-versions"), &["v1\n", "coordination.k8s.io/v1\n", "events.k8s.io/v1\n"]);
        for name in ["cm", "configmap", "configmaps", "configmaps.v1.", "ConfigMap"] {
            kubectl.ok(&format!("get {name}"));
        }
    }

    fn explain_shows_types(kubectl) {
        for (path, parts) in [
            ("configmap", &["KIND:       ConfigMap", "VERSION:    v1", "binaryData", "immutable", "<boolean>"][..]),
            ("configmap.data", &["FIELD: data <map[string]string>"]),
            ("pod.spec.containers", &["FIELD: containers <[]Container>", "livenessProbe", "<Probe>", "-required-"]),
            ("pod.spec.containers.env.valueFrom", &["configMapKeyRef", "secretKeyRef", "fieldRef"]),
            ("lease.spec", &["GROUP:      coordination.k8s.io", "holderIdentity"]),
            ("secret.type", &["FIELD: type <string>"]),
            ("deliveryreport.objects.behind", &["GROUP:      hotmap.dev", "VERSION:    v1alpha1", "reason", "-required-"]),
        ] {
            has(&kubectl.ok(&format!("explain {path}")), parts);
        }
        has(&kubectl.ok("explain pod --recursive"), &["terminationGracePeriodSeconds"]);
        has(&kubectl.run("explain configmap.nope").refused(), &[r#"field "nope" does not exist"#]);
    }

    fn who_i_am_and_what_i_may(kubectl) {
        has(&kubectl.ok("auth whoami"), &["kubernetes-admin", "system:masters", "system:authenticated"]);
        for call in ["create pods", "get secrets -n kube-system", "* *", "delete namespaces"] {
            assert_eq!(kubectl.ok(&format!("auth can-i {call}")), "yes\n", "{call}");
        }
    }

    fn the_administrator_can_act_as_others(kubectl) {
        for (call, answer) in [
            ("auth can-i get configmaps --as=bob", "no\n"),
            ("auth can-i get configmaps --as=bob --as-group=system:masters", "yes\n"),
            ("auth can-i list pods --as=system:node:n --as-group=system:nodes", "no - can only list/watch pods with spec.nodeName field selector\n"),
        ] {
            assert_eq!(kubectl.run(call).stdout, answer, "{call}");
        }
        has(&kubectl.ok("auth whoami --as=system:serviceaccount:default:robot"), &[
            "system:serviceaccount:default:robot", "system:serviceaccounts:default", "system:authenticated"]);
        has(&kubectl.run("get cm --as=bob").refused(), &[
            r#"Error from server (Forbidden): configmaps is forbidden: User "bob" cannot list resource "configmaps" in API group "" in the namespace "default""#]);
    }

    fn versions_and_health_answer(kubectl) {
        has(&kubectl.ok("version"), &["Server Version: v1.36."]);
        has(&kubectl.ok("get --raw /version"), &[r#""major": "1""#, r#""minor": "36""#, "+hotmap."]);
        for path in ["/livez", "/readyz", "/healthz", "/livez/ping", "/readyz/etcd"] {
            assert_eq!(kubectl.ok(&format!("get --raw {path}")).trim_end(), "ok", "{path}");
        }
        has(&kubectl.ok("get --raw /readyz?verbose"), &["[+]ping ok\n", "[+]etcd ok\n", "readyz check passed"]);
        has(&kubectl.ok("get --raw /livez?verbose&exclude=etcd"), &["[+]etcd excluded: ok\n", "livez check passed"]);
        has(&kubectl.ok("get --raw /openapi/v3"), &["api/v1", "serverRelativeURL", "apis/coordination.k8s.io/v1"]);
        has(&kubectl.ok("get --raw /metrics"), &["apiserver_request_total{verb=\"", "hotmap_"]);
        has(&kubectl.run("get --raw /nope").refused(), &["Error from server (NotFound): the server could not find the requested resource"]);
        has(&kubectl.ok("cluster-info"), &["Kubernetes control plane", kubectl.server.url()]);
    }

    fn raw_writes_pass_through(kubectl) {
        let object = kubectl.file("raw.json", r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"raw"}}"#);
        let collection = "/api/v1/namespaces/default/configmaps";
        has(&kubectl.ok(&format!("create --raw {collection} -f {}", object.display())), &["\"uid\""]);
        has(&kubectl.ok(&format!("replace --raw {collection}/raw -f {}", object.display())), &["\"uid\""]);
        has(&kubectl.ok(&format!("delete --raw {collection}/raw")), &["\"Success\""]);
        has(&kubectl.run(&format!("get --raw {collection}/raw")).refused(), &[r#"configmaps "raw" not found"#]);
    }
}
