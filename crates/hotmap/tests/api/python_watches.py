from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException

config.load_kube_config()
v1 = client.CoreV1Api()


def events(count, **options):
    stream = watch.Watch()
    seen = []
    for event in stream.stream(v1.list_namespaced_config_map, "default", timeout_seconds=60, **options):
        seen.append((event["type"], event["object"].metadata.name, event["object"].metadata.resource_version))
        if len(seen) == count:
            break
    return seen


def make(name, **labels):
    metadata = client.V1ObjectMeta(name=name, labels=labels)
    return v1.create_namespaced_config_map("default", client.V1ConfigMap(metadata=metadata)).metadata.resource_version


start = v1.list_namespaced_config_map("default").metadata.resource_version
first = make("a", app="x")
second = make("b", app="y")
v1.patch_namespaced_config_map("a", "default", {"data": {"k": "1"}})
v1.patch_namespaced_config_map("a", "default", {"metadata": {"labels": {"app": "z"}}})
v1.delete_namespaced_config_map("b", "default")

everything = events(5, resource_version=start)
assert [event[:2] for event in everything] == [
    ("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a"), ("MODIFIED", "a"), ("DELETED", "b")], everything
versions = [int(event[2]) for event in everything]
assert versions == sorted(set(versions)), versions
# From the middle on: nothing twice, nothing lost.
assert events(3, resource_version=second) == everything[2:]
# An object that leaves a selector is deleted for who looks through it.
assert [event[:2] for event in events(3, resource_version=start, label_selector="app=x")] == [
    ("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
# Without a start: what is there now, as new.
assert [event[:2] for event in events(1)] == [("ADDED", "a")]
# A revision that does not exist yet is refused, once.
try:
    events(1, resource_version=str(int(everything[-1][2]) + 1000))
except ApiException as error:
    assert error.status == 504, error
else:
    raise AssertionError("watched the future")
print("done")
