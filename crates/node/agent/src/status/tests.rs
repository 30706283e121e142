use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("in range")
}

fn pod(policy: &str) -> Pod {
    Pod::from_document(&json!({"metadata": {"name": "p", "uid": "u", "generation": 2},
        "spec": {"restartPolicy": policy, "initContainers": [{"name": "i"}], "containers": [{"name": "a", "image": "nginx"}]},
        "status": {"conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "1970-01-01T00:00:01Z"}]}}))
    .expect("a pod")
}

fn ended(exit_code: i32) -> Ended {
    Ended {
        attempt: 0,
        exit_code,
        signal: None,
        reason: "Error",
        message: String::new(),
        started_at: at(1),
        finished_at: at(2),
    }
}

fn record(state: RunState, ready: bool) -> ContainerRecord {
    ContainerRecord {
        attempt: Some(0),
        state,
        ready,
        in_sandbox: true,
        ..ContainerRecord::default()
    }
}

fn condition<'a>(status: &'a Value, kind: &str) -> &'a Value {
    status["conditions"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|one| one["type"] == kind)
        .expect(kind)
}

#[test]
fn phases_and_conditions_are_those_kubectl_users_know() {
    let init_done = ("i".to_owned(), record(RunState::Ended(ended(0)), false));
    let running = |ready| {
        (
            "a".to_owned(),
            record(RunState::Running { started_at: at(3) }, ready),
        )
    };
    let over = |code| ("a".to_owned(), record(RunState::Ended(ended(code)), false));
    for (policy, records, phase, ready, initialized) in [
        ("Always", vec![], "Pending", "False", "False"),
        ("Always", vec![init_done.clone()], "Pending", "False", "True"),
        (
            "Always",
            vec![init_done.clone(), running(true)],
            "Running",
            "True",
            "True",
        ),
        (
            "Always",
            vec![init_done.clone(), running(false)],
            "Running",
            "False",
            "True",
        ),
        (
            "Always",
            vec![init_done.clone(), over(1)],
            "Running",
            "False",
            "True",
        ),
        (
            "Never",
            vec![init_done.clone(), over(0)],
            "Succeeded",
            "False",
            "True",
        ),
        (
            "Never",
            vec![init_done.clone(), over(1)],
            "Failed",
            "False",
            "True",
        ),
    ] {
        let records: Records = records.into_iter().collect();
        let ground = PodGround {
            pod_ip: "10.88.0.2".into(),
            ..PodGround::default()
        };
        let status = pod_status(&pod(policy), &records, &ground, at(9));
        assert_eq!(status["phase"], phase, "{policy} {records:?}");
        assert_eq!(
            condition(&status, "Ready")["status"],
            ready,
            "{policy} {records:?}"
        );
        assert_eq!(
            condition(&status, "Initialized")["status"],
            initialized,
            "{policy} {records:?}"
        );
        assert_eq!(
            condition(&status, "PodScheduled")["lastTransitionTime"],
            "1970-01-01T00:00:01Z"
        );
        assert_eq!(
            condition(&status, "Ready")["lastTransitionTime"],
            "1970-01-01T00:00:09Z"
        );
    }
}

#[test]
fn sidecars_count_for_readiness_and_not_for_the_phase() {
    let document = json!({"metadata": {"name": "p"}, "spec": {"restartPolicy": "Never",
        "initContainers": [{"name": "s", "restartPolicy": "Always"}, {"name": "i"}], "containers": [{"name": "a"}]}, "status": {}});
    let pod = Pod::from_document(&document).expect("a pod");
    let up = |ready, started_up| ContainerRecord {
        started_up,
        ..record(RunState::Running { started_at: at(3) }, ready)
    };
    let over = |code| record(RunState::Ended(ended(code)), false);
    let incomplete = |names: &str| format!("containers with incomplete status: [{names}]");
    let unready = |names: &str| format!("containers with unready status: [{names}]");
    for (records, phase, sidecar, initialized, ready) in [
        (
            vec![],
            "Pending",
            "false false",
            incomplete("s i"),
            unready("s a"),
        ),
        (
            vec![("s", up(false, false))],
            "Pending",
            "false false",
            incomplete("s i"),
            unready("s a"),
        ),
        (
            vec![("s", up(true, true))],
            "Pending",
            "true true",
            incomplete("i"),
            unready("a"),
        ),
        (
            vec![("s", up(true, true)), ("i", over(0)), ("a", up(true, true))],
            "Running",
            "true true",
            String::new(),
            String::new(),
        ),
        (
            vec![("s", up(false, true)), ("i", over(0)), ("a", up(true, true))],
            "Running",
            "true false",
            String::new(),
            unready("s"),
        ),
        (
            vec![("s", over(1)), ("i", over(0)), ("a", up(true, true))],
            "Running",
            "false false",
            String::new(),
            unready("s"),
        ),
        // The pod is at its end once its sidecars are.
        (
            vec![("s", up(true, true)), ("i", over(0)), ("a", over(0))],
            "Running",
            "true true",
            String::new(),
            unready("a"),
        ),
        (
            vec![("s", over(143)), ("i", over(0)), ("a", over(0))],
            "Succeeded",
            "false false",
            String::new(),
            String::new(),
        ),
        (
            vec![("s", over(0)), ("i", over(0)), ("a", over(1))],
            "Failed",
            "false false",
            String::new(),
            String::new(),
        ),
        (
            vec![("s", up(true, true)), ("i", over(1))],
            "Pending",
            "true true",
            incomplete("i"),
            unready("a"),
        ),
        (
            vec![("s", over(137)), ("i", over(1))],
            "Failed",
            "false false",
            incomplete("s i"),
            String::new(),
        ),
    ] {
        let records: Records = records
            .into_iter()
            .map(|(name, record)| (name.to_owned(), record))
            .collect();
        let status = pod_status(&pod, &records, &PodGround::default(), at(9));
        let container = &status["initContainerStatuses"][0];
        let found = format!("{} {}", container["started"], container["ready"]);
        let message = |kind: &str| condition(&status, kind)["message"].as_str().unwrap_or_default();
        assert_eq!(status["phase"], phase, "{records:?}");
        assert_eq!(
            (found.as_str(), message("Initialized"), message("ContainersReady")),
            (sidecar, initialized.as_str(), ready.as_str()),
            "{records:?}"
        );
    }
}

#[test]
fn a_container_is_not_there_before_its_hook_has_ended() {
    let starting = |last| ContainerRecord {
        is_starting: true,
        last,
        ..record(RunState::Running { started_at: at(3) }, true)
    };
    let document = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}]}, "status": {}});
    let pod = Pod::from_document(&document).expect("a pod");
    for (last, phase) in [(None, "Pending"), (Some(ended(1)), "Running")] {
        let records: Records = [("a".to_owned(), starting(last))].into();
        let status = pod_status(&pod, &records, &PodGround::default(), at(9));
        let container = &status["containerStatuses"][0];
        assert_eq!(container["state"]["waiting"]["reason"], "ContainerCreating");
        assert_eq!(
            (&container["started"], &container["ready"]),
            (&json!(false), &json!(false))
        );
        assert_eq!(status["phase"], phase);
        assert_eq!(condition(&status, "Ready")["status"], "False");
    }
}

#[test]
fn readiness_waits_for_what_others_say() {
    let document = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}],
        "readinessGates": [{"conditionType": "example.com/lb"}, {"conditionType": "example.com/dns"}]}, "status": {}});
    let pod = Pod::from_document(&document).expect("a pod");
    let running: Records = [(
        "a".to_owned(),
        record(RunState::Running { started_at: at(3) }, true),
    )]
    .into();
    let said = |lb: Value, dns: Value| {
        let held = json!({"conditions": [{"type": "Ready", "status": "False"},
            {"type": "example.com/lb", "status": lb}, {"type": dns, "status": "True"}]});
        let ground = PodGround {
            foreign_conditions: foreign_conditions(&held),
            ..PodGround::default()
        };
        let status = pod_status(&pod, &running, &ground, at(9));
        assert_eq!(condition(&status, "ContainersReady")["status"], "True");
        let ready = condition(&status, "Ready");
        let text = |field: &str| ready[field].as_str().unwrap_or_default().to_owned();
        format!("{} {} {}", text("status"), text("reason"), text("message"))
    };
    assert_eq!(said(json!("True"), json!("example.com/dns")), "True  ");
    assert_eq!(
        said(json!("False"), json!("other")),
        "False ReadinessGatesNotReady the status of pod readiness gate \"example.com/lb\" is not \"True\", but False, \
         corresponding condition of pod readiness gate \"example.com/dns\" does not exist."
    );
}

#[test]
fn a_deleted_pod_says_how_its_containers_ended() {
    for (policy, code, phase) in [
        ("Always", 0, "Succeeded"),
        ("Always", 143, "Failed"),
        ("OnFailure", 143, "Failed"),
        ("Never", 0, "Succeeded"),
    ] {
        let records: Records = [
            ("i".to_owned(), record(RunState::Ended(ended(0)), false)),
            ("a".to_owned(), record(RunState::Ended(ended(code)), false)),
        ]
        .into();
        let ground = PodGround {
            is_over: true,
            ..PodGround::default()
        };
        let status = pod_status(&pod(policy), &records, &ground, at(9));
        assert_eq!(status["phase"], phase, "{policy} {code}");
    }
    let ground = PodGround {
        is_over: true,
        ..PodGround::default()
    };
    let never_ran = pod_status(&pod("Always"), &Records::new(), &ground, at(9));
    assert_eq!(never_ran["phase"], "Pending");
}

#[test]
fn a_waiting_container_says_why_and_remembers_its_end() {
    let mut waiting = record(RunState::Ended(ended(3)), false);
    waiting.waits("CrashLoopBackOff", "back-off 10s restarting".into());
    let records: Records = [
        ("i".to_owned(), record(RunState::Ended(ended(0)), false)),
        ("a".to_owned(), waiting),
    ]
    .into();
    let status = pod_status(&pod("Always"), &records, &PodGround::default(), at(9));
    let container = &status["containerStatuses"][0];
    assert_eq!(container["state"]["waiting"]["reason"], "CrashLoopBackOff");
    assert_eq!(container["lastState"]["terminated"]["exitCode"], 3);
    assert_eq!(status["phase"], "Running");
}

#[test]
fn a_refused_pod_has_failed_and_says_why() {
    let refusal = Refusal {
        reason: "Unsupported",
        message: "spec.hostNetwork is not supported".into(),
    };
    let ground = PodGround {
        refusal: Some(refusal),
        ..PodGround::default()
    };
    let status = pod_status(&pod("Always"), &Records::new(), &ground, at(9));
    assert_eq!(
        (&status["phase"], &status["reason"]),
        (&json!("Failed"), &json!("Unsupported"))
    );
    assert!(status.get("containerStatuses").is_none());
}

#[test]
fn a_pod_whose_time_is_up_is_unready_at_once_and_has_failed_once_nothing_runs() {
    let failure = Failure {
        reason: "DeadlineExceeded".into(),
        message: "too long".into(),
        grace: None,
    };
    let ground = PodGround {
        pod_ip: "10.88.0.2".into(),
        failure: Some(failure.clone()),
        ..PodGround::default()
    };
    let done = ("i".to_owned(), record(RunState::Ended(ended(0)), false));
    let status = |main: Option<ContainerRecord>| {
        let main = main.map(|record| ("a".to_owned(), record));
        let records: Records = [done.clone()].into_iter().chain(main).collect();
        pod_status(&pod("Always"), &records, &ground, at(9))
    };
    let running = RunState::Running { started_at: at(1) };
    let seen = status(Some(record(running, true)));
    assert_eq!(
        (&seen["phase"], &seen["reason"]),
        (&json!("Running"), &Value::Null)
    );
    let ready = condition(&seen, "Ready");
    assert_eq!(
        (&ready["status"], &ready["reason"]),
        (&json!("False"), &json!("PodFailed"))
    );

    let mut crashed = record(RunState::Ended(ended(3)), false);
    crashed.waits("CrashLoopBackOff", "soon".to_owned());
    for (main, reason, code) in [
        (Some(crashed), "Error", 3),
        (Some(record(RunState::Ended(ended(4)), false)), "Error", 4),
        (None, "ContainerStatusUnknown", 137),
    ] {
        let seen = status(main);
        let told = ["phase", "reason", "message"].map(|field| seen[field].as_str().unwrap_or_default());
        assert_eq!(told, ["Failed", "DeadlineExceeded", "too long"]);
        let state = &seen["containerStatuses"][0]["state"]["terminated"];
        assert_eq!(
            (&state["reason"], &state["exitCode"]),
            (&json!(reason), &json!(code))
        );
        assert_eq!(Failure::in_status(&seen), Some(failure.clone()));
    }
    let never = pod_status(&pod("Always"), &Records::new(), &ground, at(9));
    let state = &never["containerStatuses"][0]["state"]["waiting"]["reason"];
    assert_eq!(
        (&never["phase"], state),
        (&json!("Failed"), &json!("PodInitializing"))
    );
}

#[test]
fn mounts_and_messages_are_shown_within_their_limits() {
    let document = json!({"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": {"restartPolicy": "Never",
        "containers": [{"name": "m", "volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": true}, {"name": "w", "mountPath": "/w"}]},
            {"name": "n"}]}});
    let pod = Pod::from_document(&document).expect("a pod");
    let mut record = record(RunState::Ended(ended(1)), false);
    let attempt = record.unread().expect("not read").attempt;
    record.said(attempt, &"x".repeat(9000));
    assert_eq!(record.unread(), None);
    let records = Records::from([("m".to_owned(), record)]);
    let seen = pod_status(&pod, &records, &PodGround::default(), at(9));
    let shown = &seen["containerStatuses"][0];
    let mounts = json!([{"name": "v", "mountPath": "/v", "readOnly": true, "recursiveReadOnly": "Enabled"},
        {"name": "w", "mountPath": "/w"}]);
    assert_eq!(shown["volumeMounts"], mounts);
    let message = shown["state"]["terminated"]["message"]
        .as_str()
        .expect("a message");
    assert_eq!(message.len(), 6 * 1024, "two containers share 12 KiB");
}

#[test]
fn a_container_says_who_it_is_and_what_it_was_given() {
    use hotmap_runtime::ContainerUser;
    let user = || ContainerUser {
        uid: 1000,
        gid: 3,
        groups: vec![3, 4000],
    };
    let asked = json!({"requests": {"cpu": "100m", "memory": "32Mi"},
        "limits": {"cpu": "1", "memory": "64Mi", "ephemeral-storage": "1Gi"}});
    let running = || RunState::Running { started_at: at(3) };
    let has = |state, user| ContainerRecord {
        user,
        ..record(state, true)
    };
    let shown_user = json!({"linux": {"uid": 1000, "gid": 3, "supplementalGroups": [3, 4000]}});
    for (record, resources, unenforced, shown) in [
        // Nothing is known of one that was never started.
        (ContainerRecord::default(), asked.clone(), vec![], json!({})),
        (
            has(running(), Some(user())),
            asked.clone(),
            vec![],
            json!({"user": shown_user, "resources": asked, "allocatedResources": asked["requests"]}),
        ),
        // Its shim does not say, and it asks for nothing.
        (has(running(), None), json!({}), vec![], json!({"resources": {}})),
        // What is not in force is not said to be.
        (
            has(running(), None),
            asked.clone(),
            vec!["cpu", "memory", "pids"],
            json!({"resources": {"requests": {"memory": "32Mi"}, "limits": {"ephemeral-storage": "1Gi"}},
                "allocatedResources": asked["requests"]}),
        ),
        (
            has(RunState::Ended(ended(0)), Some(user())),
            asked.clone(),
            vec!["cpu"],
            json!({"user": shown_user, "resources": asked, "allocatedResources": asked["requests"]}),
        ),
    ] {
        let document = json!({"metadata": {"name": "p", "namespace": "n", "uid": "u"},
            "spec": {"containers": [{"name": "a", "resources": resources}]}});
        let pod = Pod::from_document(&document).expect("a pod");
        let records = Records::from([("a".to_owned(), record)]);
        let ground = PodGround {
            unenforced,
            ..PodGround::default()
        };
        let seen = pod_status(&pod, &records, &ground, at(9));
        let status = &seen["containerStatuses"][0];
        for field in ["user", "resources", "allocatedResources"] {
            assert_eq!(status[field], shown[field], "{field} {document} {records:?}");
        }
    }
}

#[test]
fn ephemeral_containers_have_a_state_and_no_say() {
    let document = json!({"metadata": {"name": "p", "uid": "u"}, "spec": {"restartPolicy": "Never",
        "containers": [{"name": "a"}], "ephemeralContainers": [{"name": "e", "image": "busybox"}]}, "status": {}});
    let pod = Pod::from_document(&document).expect("a pod");
    let up = |started_up| ContainerRecord {
        started_up,
        ..record(RunState::Running { started_at: at(3) }, true)
    };
    let over = |code| record(RunState::Ended(ended(code)), false);
    for (records, phase, ready, state) in [
        (vec![("a", up(true))], "Running", "True", "waiting"),
        (
            vec![("a", up(true)), ("e", up(true))],
            "Running",
            "True",
            "running",
        ),
        (
            vec![("a", up(true)), ("e", over(1))],
            "Running",
            "True",
            "terminated",
        ),
        (vec![("e", up(true))], "Pending", "False", "running"),
        // How the pod ended is said once nothing of it runs.
        (
            vec![("a", over(0)), ("e", up(true))],
            "Running",
            "False",
            "running",
        ),
        (
            vec![("a", over(0)), ("e", over(1))],
            "Succeeded",
            "False",
            "terminated",
        ),
        (
            vec![("a", over(1)), ("e", over(0))],
            "Failed",
            "False",
            "terminated",
        ),
    ] {
        let shown = format!("{records:?}");
        let records = records
            .into_iter()
            .map(|(name, record)| (name.to_owned(), record));
        let ground = PodGround {
            pod_ip: "10.88.0.2".into(),
            ..PodGround::default()
        };
        let status = pod_status(&pod, &records.collect(), &ground, at(9));
        assert_eq!(status["phase"], phase, "{shown}");
        assert_eq!(condition(&status, "Ready")["status"], ready, "{shown}");
        let one = &status["ephemeralContainerStatuses"][0];
        assert!(one["state"].get(state).is_some(), "{shown}: {one}");
        assert_eq!(one["ready"], false, "{shown}");
        assert_eq!(one.get("started"), None, "{shown}");
    }
}
