import json
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

config.load_kube_config()
v1 = client.CoreV1Api()


def refused(call, code, reason, text):
    try:
        call()
    except ApiException as error:
        status = json.loads(error.body)
        assert (error.status, status["kind"], status["reason"]) == (code, "Status", reason), error
        assert text in status["message"], status["message"]
    else:
        raise AssertionError(f"not refused: {text}")


def config_map(name, **data):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels={"app": "py"}), data=data)


made = v1.create_namespaced_config_map("default", config_map("a", k="1"))
assert made.metadata.uid and made.data == {"k": "1"}
read = v1.read_namespaced_config_map("a", "default")
assert read.metadata.resource_version == made.metadata.resource_version
assert read.metadata.creation_timestamp.tzinfo is not None

patched = v1.patch_namespaced_config_map("a", "default", {"data": {"l": "2"}})
assert patched.data == {"k": "1", "l": "2"}
patched = v1.patch_namespaced_config_map("a", "default", [{"op": "remove", "path": "/data/k"}])
assert patched.data == {"l": "2"}

stale = read
stale.data = {"lost": "update"}
refused(lambda: v1.replace_namespaced_config_map("a", "default", stale), 409, "Conflict", "the object has been modified")
fresh = v1.read_namespaced_config_map("a", "default")
fresh.data = {"m": "3"}
replaced = v1.replace_namespaced_config_map("a", "default", fresh)
assert replaced.data == {"m": "3"} and int(replaced.metadata.resource_version) > int(fresh.metadata.resource_version)

refused(lambda: v1.create_namespaced_config_map("default", config_map("a")), 409, "AlreadyExists", 'configmaps "a" already exists')
refused(lambda: v1.read_namespaced_config_map("none", "default"), 404, "NotFound", 'configmaps "none" not found')
refused(lambda: v1.create_namespaced_config_map("default", config_map("A_")), 422, "Invalid", "lowercase RFC 1123 subdomain")
refused(lambda: v1.create_namespaced_config_map("nowhere", config_map("a")), 404, "NotFound", 'namespaces "nowhere" not found')
refused(lambda: v1.patch_namespaced_config_map("a", "default", {"data": {"x": 1}}), 422, "Invalid", "cannot unmarshal number")

secret = client.V1Secret(metadata=client.V1ObjectMeta(name="s"), string_data={"p": "hunter2"})
assert v1.create_namespaced_secret("default", secret).data == {"p": "aHVudGVyMg=="}

for name in ("b", "c"):
    v1.create_namespaced_config_map("default", config_map(name))
names, token, version = [], None, None
while True:
    page = v1.list_namespaced_config_map("default", limit=1, _continue=token)
    names += [item.metadata.name for item in page.items]
    version = version or page.metadata.resource_version
    assert page.metadata.resource_version == version
    token = page.metadata._continue
    if not token:
        break
    assert page.metadata.remaining_item_count == 4 - len(names)
assert names == ["a", "b", "c", "kube-root-ca.crt"], names
assert len(v1.list_config_map_for_all_namespaces(label_selector="app=py").items) == 3
assert [i.metadata.name for i in v1.list_namespaced_config_map("default", field_selector="metadata.name=b").items] == ["b"]

assert v1.create_namespaced_config_map("default", config_map("dry"), dry_run="All").metadata.uid
deleted = v1.delete_namespaced_config_map("a", "default")
# Newer releases of the client leave a Status as the dictionary it is.
assert (deleted["status"] if isinstance(deleted, dict) else deleted.status) == "Success"
v1.delete_collection_namespaced_config_map("default", label_selector="app=py")
assert [i.metadata.name for i in v1.list_namespaced_config_map("default").items] == ["kube-root-ca.crt"]

pod = client.V1Pod(
    metadata=client.V1ObjectMeta(name="p"),
    spec=client.V1PodSpec(containers=[client.V1Container(name="m", image="busybox", env=[client.V1EnvVar(name="A", value="1")])]),
)
made = v1.create_namespaced_pod("default", pod)
assert (made.status.phase, made.status.qos_class, made.spec.restart_policy) == ("Pending", "BestEffort", "Always")
assert v1.delete_namespaced_pod("p", "default").metadata.name == "p"
assert client.VersionApi().get_code().minor == "36"
assert "configmaps" in [r.name for r in v1.get_api_resources().resources]
lease = client.V1Lease(
    metadata=client.V1ObjectMeta(name="lock"),
    spec=client.V1LeaseSpec(holder_identity="me", lease_duration_seconds=15, renew_time=made.metadata.creation_timestamp.replace(microsecond=1)),
)
coordination = client.CoordinationV1Api()
assert coordination.create_namespaced_lease("default", lease).spec.holder_identity == "me"
lease.spec.holder_identity = "you"
refused(lambda: coordination.replace_namespaced_lease("lock", "default", lease), 422, "Invalid", "must be specified for an update")
print("done")
