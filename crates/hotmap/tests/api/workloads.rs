//! Workloads as objects: what kubectl makes of them, what is refused, what is warned of. Pods that run are elsewhere.

use crate::{
    harness::{Http, Kubectl},
    has,
};

const WEB: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: nginx, image: 'nginx:1.27', ports: [{containerPort: 80, name: http}]}
";

const PI: &str = "\
apiVersion: batch/v1
kind: Job
metadata: {name: pi}
spec:
  suspend: true
  template:
    spec: {restartPolicy: Never, containers: [{name: pi, image: perl}]}
";

/// What decides where a pod goes beside what does not, and limits that nobody watches over.
const WISHES: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: wishes}
spec:
  replicas: 0
  selector: {matchLabels: {app: wishes}}
  template:
    metadata: {labels: {app: wishes}}
    spec:
      nodeSelector: {disk: ssd}
      tolerations: [{key: dedicated, operator: Exists, effect: NoSchedule}]
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: Exists}]}]
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - weight: 100
            podAffinityTerm: {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: wishes}}}
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: wishes}}}
      containers:
      - {name: a, image: nginx, resources: {limits: {memory: 64Mi, example.com/door: '1'}}}
      - {name: b, image: nginx, resources: {limits: {memory: 64Mi, example.com/door: '1'}}}
";

/// Rows of `get`, their cells one blank apart.
fn rows(kubectl: &Kubectl, call: &str) -> Vec<String> {
    let table = kubectl.ok(call);
    table
        .lines()
        .map(|row| row.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

each_kubectl! {
    fn what_has_no_effect_is_said_once(kubectl) {
        let finished = kubectl.feed("apply -f -", WISHES);
        let mut said: Vec<&str> = finished.stderr.lines().collect();
        said.sort_unstable();
        let warning = |what: &str| format!("Warning: spec.template.spec.{what}");
        assert_eq!(said, [
            warning("affinity.podAntiAffinity: stored, but without effect: pods are not placed by it"),
            warning("containers[0].resources.limits.example.com/door: stored, but without effect: the node has nothing of this name to give (in 1 more container too)"),
            warning("topologySpreadConstraints: stored, but without effect: pods are not placed by it"),
        ]);
        finished.ok();
        // What is as it was is not told again, nor what is not about pods.
        assert_eq!(kubectl.apply(WISHES), "deployment.apps/wishes unchanged\n");
        assert_eq!(kubectl.run("label deploy/wishes tier=front").stderr, "");
        let exposed = kubectl.run("expose deploy/wishes --port=80");
        has(&exposed.stderr, &["Warning: spec: stored, but without effect: there is no cluster address and no DNS"]);
        exposed.ok();
        let broken = WISHES.replace("weight: 100", "weight: 101").replace("operator: Exists}]", "operator: In}]");
        has(&kubectl.feed("apply -f -", broken).refused(), &[
            "preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101: must be in the range 1-100",
            "matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
        ]);
    }

    fn kubectl_creates_workloads(kubectl) {
        for (call, said) in [
            ("create deployment web --image=nginx:1.27 --replicas=0 --port=80", "deployment.apps/web created\n"),
            ("create job once --image=busybox -- true", "job.batch/once created\n"),
            ("create cronjob hello --image=busybox --schedule=0\u{a0}3\u{a0}29\u{a0}2\u{a0}* -- date", "cronjob.batch/hello created\n"),
            ("create pdb web --selector=app=web --min-available=50%", "poddisruptionbudget.policy/web created\n"),
        ] {
            let arguments: Vec<String> = call.split(' ').map(|one| one.replace('\u{a0}', " ")).collect();
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            assert_eq!(kubectl.call(&arguments).ok(), said);
        }
        assert_eq!(kubectl.ok("create job now --from=cronjob/hello"), "job.batch/now created\n");
        assert_eq!(kubectl.field("job/now", ".metadata.ownerReferences[0].kind"), "CronJob");
        let jobs = rows(kubectl, "get jobs -o wide");
        assert_eq!(jobs[0], "NAME STATUS COMPLETIONS DURATION AGE CONTAINERS IMAGES SELECTOR");
        assert!(jobs[2].contains("busybox batch.kubernetes.io/controller-uid="), "{jobs:?}");
        let cron_jobs = rows(kubectl, "get cronjob -o wide");
        assert_eq!(cron_jobs[0], "NAME SCHEDULE TIMEZONE SUSPEND ACTIVE LAST SCHEDULE AGE CONTAINERS IMAGES SELECTOR");
        assert!(cron_jobs[1].starts_with("hello 0 3 29 2 * <none> False 0 <none>"), "{cron_jobs:?}");
        let budgets = rows(kubectl, "get pdb");
        assert_eq!(budgets[0], "NAME MIN AVAILABLE MAX UNAVAILABLE ALLOWED DISRUPTIONS AGE");
        assert!(budgets[1].starts_with("web 50% N/A 0"), "{budgets:?}");
        has(&kubectl.ok("get all"), &["deployment.apps/web", "job.batch/once", "cronjob.batch/hello"]);
        assert_eq!(kubectl.ok("get jobs --field-selector=status.successful=1 -o name"), "");
        has(&kubectl.ok("describe job once"), &["Completions:      1", "Completion Mode:  NonIndexed"]);
        has(&kubectl.ok("describe cronjob hello"), &["Schedule:                      0 3 29 2 *"]);
        has(&kubectl.ok("describe pdb web"), &["Min available:  50%"]);
    }

    fn the_other_kinds_have_their_tables(kubectl) {
        let pods = "selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {nodeSelector: {a: b}, containers: [{name: c, image: i}]}}";
        kubectl.apply(&format!("{{apiVersion: apps/v1, kind: StatefulSet, metadata: {{name: db}}, spec: {{serviceName: db, replicas: 0, {pods}}}}}"));
        kubectl.apply(&format!("{{apiVersion: apps/v1, kind: DaemonSet, metadata: {{name: agent}}, spec: {{{pods}}}}}"));
        kubectl.apply(&format!("{{apiVersion: apps/v1, kind: ReplicaSet, metadata: {{name: rs}}, spec: {{replicas: 0, {pods}}}}}"));
        kubectl.apply("{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: old}, data: {spec: {}}, revision: 7}");
        for (kind, head, row) in [
            ("sts", "NAME READY AGE CONTAINERS IMAGES", "db 0/0"),
            ("ds", "NAME DESIRED CURRENT READY UP-TO-DATE AVAILABLE NODE SELECTOR AGE CONTAINERS IMAGES SELECTOR", "agent 0 0 0 0 0 a=b"),
            ("rs", "NAME DESIRED CURRENT READY AGE CONTAINERS IMAGES SELECTOR", "rs 0 0 0"),
            ("controllerrevision/old", "NAME CONTROLLER REVISION AGE", "old <none> 7"),
        ] {
            let found = rows(kubectl, &format!("get {kind} -o wide"));
            assert_eq!(found[0], head);
            assert!(found[1].starts_with(row), "{found:?}");
        }
        kubectl.ok("scale sts/db rs/rs --replicas=1");
        for (path, wanted) in [("sts/db", "1"), ("rs/rs", "1")] {
            assert_eq!(kubectl.field(path, ".spec.replicas"), wanted);
        }
        has(&kubectl.ok("explain sts.spec.updateStrategy"), &["GROUP:      apps", "rollingUpdate"]);
        has(&kubectl.ok("explain cronjob.spec"), &["GROUP:      batch", "schedule"]);
        has(&kubectl.ok("explain pdb.spec"), &["GROUP:      policy", "minAvailable"]);
        has(&kubectl.ok("api-resources --api-group=apps --no-headers"), &["controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"]);
    }

    fn kubectl_changes_a_deployment(kubectl) {
        kubectl.apply(&WEB.replace("replicas: 2", "replicas: 0"));
        kubectl.ok("rollout pause deploy/web");
        assert_eq!(kubectl.field("deploy/web", ".spec.paused"), "true");
        has(&kubectl.run("rollout restart deploy/web").refused(), &["can't restart paused deployment"]);
        assert_eq!(kubectl.ok("scale deploy/web --replicas=0 --current-replicas=0"), "deployment.apps/web scaled\n");
        has(&kubectl.run("scale deploy/web --replicas=1 --current-replicas=7").refused(), &["Expected replicas to be 7, was 0"]);
        kubectl.ok("set image deploy/web nginx=nginx:1.28");
        kubectl.ok("set env deploy/web LEVEL=debug");
        kubectl.ok("set resources deploy/web --limits=cpu=200m");
        kubectl.ok("label deploy/web tier=front");
        kubectl.ok("annotate deploy/web kubernetes.io/change-cause=1.28");
        has(&kubectl.edit("deploy web", "sed -i 's/minReadySeconds: .*//; s/progressDeadlineSeconds: 600/progressDeadlineSeconds: 60/' $1").ok(), &["deployment.apps/web edited"]);
        kubectl.ok("rollout resume deploy/web");
        kubectl.ok("rollout restart deploy/web");
        for (path, wanted) in [
            (".spec.template.spec.containers[0].image", "nginx:1.28"),
            (".spec.template.spec.containers[0].env[0].value", "debug"),
            (".spec.template.spec.containers[0].resources.limits.cpu", "200m"),
            (".spec.progressDeadlineSeconds", "60"),
            (".metadata.labels.tier", "front"),
        ] {
            assert_eq!(kubectl.field("deploy/web", path), wanted, "{path}");
        }
        has(&kubectl.ok("get deploy/web --subresource=scale -o yaml"), &["kind: Scale", "selector: app=web"]);
        has(&kubectl.ok("rollout history deploy/web"), &["deployment.apps/web"]);
        assert_eq!(kubectl.ok("expose deploy/web --port=80"), "service/web exposed\n");
        assert_eq!(kubectl.field("svc/web", ".spec.selector"), r#"{"app":"web"}"#);
    }

    fn what_a_workload_may_not_do_is_refused_with_upstreams_words(kubectl) {
        kubectl.apply(&WEB.replace("replicas: 2", "replicas: 0"));
        kubectl.apply(PI);
        for (manifest, why) in [
            (WEB.replace("app: web", "app: api"), r#"The Deployment "web" is invalid: spec.selector: Invalid value: {"matchLabels":{"app":"api"}}: field is immutable"#),
            (WEB.replace("matchLabels: {app: web}", "matchLabels: {app: other}").replace("name: web", "name: other"),
             r#"spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`"#),
            (PI.replace("perl", "perl:5"), r#"The Job "pi" is invalid: spec.template"#),
            (PI.replace("Never", "Always").replace("pi}", "pie}"), r#"spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never""#),
            ("{apiVersion: batch/v1, kind: CronJob, metadata: {name: x}, spec: {schedule: '61 * * * *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}}".to_owned(),
             "spec.schedule: Invalid value: \"61 * * * *\": end of range (61) above maximum (59): 61"),
            (WEB.replace("kind: Deployment", "kind: StatefulSet").replace("  replicas: 2", "  serviceName: web\n  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce]}}]"),
             "spec.volumeClaimTemplates: Forbidden: volumes are not claimed here: mount an emptyDir"),
        ] {
            has(&kubectl.feed("apply -f -", &manifest).refused(), &[why]);
        }
        // The newest kubectl says "empty input" to whatever it is answered: the warning tells.
        let not_served = "are not served here; kubectl api-resources lists what is";
        let autoscale = kubectl.run("autoscale deploy/web --max=3");
        has(&autoscale.refused(), &["horizontalpodautoscalers of autoscaling/v", not_served]);
        has(&kubectl.run("create quota small --hard=pods=1").refused(), &["resourcequotas of v1", not_served]);
        assert_eq!(Http::admin(&kubectl.server).post("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", "{}").json()["code"], 404);
        has(&kubectl.run("top pods").refused(), &["Metrics API not available"]);
        has(&kubectl.run("top nodes").refused(), &["Metrics API not available"]);
    }

    fn owners_may_block_and_budgets_hold_pods(kubectl) {
        kubectl.apply(&WEB.replace("replicas: 2", "replicas: 0"));
        let uid = kubectl.field("deploy/web", ".metadata.uid");
        let owner = format!("{{apiVersion: apps/v1, kind: Deployment, name: web, uid: {uid}, blockOwnerDeletion: true}}");
        kubectl.apply(&format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: owned, ownerReferences: [{owner}]}}}}"));
        assert_eq!(kubectl.field("cm/owned", ".metadata.ownerReferences[0].blockOwnerDeletion"), "true");
        kubectl.apply("{apiVersion: v1, kind: Pod, metadata: {name: one, labels: {app: one}}, spec: {nodeName: box, containers: [{name: c, image: busybox}]}}");
        let running = r#"{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}"#;
        kubectl.call(&["patch", "pod", "one", "--subresource=status", "-p", running]).ok();
        kubectl.ok("create pdb one --selector=app=one --min-available=1");
        let eviction = kubectl.file("eviction.json", r#"{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"one","namespace":"default"}}"#);
        let evict = format!("create --raw /api/v1/namespaces/default/pods/one/eviction -f {}", eviction.display());
        has(&kubectl.run(&evict).refused(), &["Cannot evict pod as it would violate the pod's disruption budget."]);
        kubectl.ok("delete pdb one");
        has(&kubectl.ok(&evict), &["\"Success\""]);
        assert_eq!(kubectl.field("pod/one", ".status.conditions[1].reason"), "EvictionByEvictionAPI");
        assert!(!kubectl.field("pod/one", ".metadata.deletionTimestamp").is_empty());
    }
}
