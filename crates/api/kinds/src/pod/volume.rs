//! Volumes: a name, and exactly one source.
//!
//! Paths and texts follow `validateVolumeSource` in `pkg/apis/core/validation/validation.go`, Kubernetes 1.36, its
//! misspelt and missing path elements included: clients match on them.

use std::collections::BTreeSet;

use hotmap_object::FieldError;
use serde_json::{Map, Value};

use super::environment::{field_reference, resource_reference};
use crate::{
    fields::Fields,
    quantity,
    rules::{self, Errors, broken, child, file_mode, index},
};

const VOLUME_FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];
const HOST_PATH_TYPES: &[&str] = &[
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];
const TOKEN_SECONDS_MIN: i64 = 10 * 60;
const TOKEN_SECONDS_MAX: i64 = 1 << 32;
const ONE_TYPE: &str = "may not specify more than 1 volume type";
const CONFLICT: &str = "conflicting duplicate paths";

/// Sources in the order in which upstream looks for them, with the path element of the complaint about a second one.
const SOURCES: [(&str, &str); 30] = [
    ("emptyDir", "emptyDir"),
    ("hostPath", "hostPath"),
    ("gitRepo", "gitRepo"),
    ("gcePersistentDisk", "gcePersistentDisk"),
    ("awsElasticBlockStore", "awsElasticBlockStore"),
    ("secret", "secret"),
    ("nfs", "nfs"),
    ("iscsi", "iscsi"),
    ("glusterfs", "glusterfs"),
    ("flocker", "flocker"),
    ("persistentVolumeClaim", "persistentVolumeClaim"),
    ("rbd", "rbd"),
    ("cinder", "cinder"),
    ("cephfs", "cephFS"),
    ("quobyte", "quobyte"),
    ("downwardAPI", "downwarAPI"),
    ("fc", "fc"),
    ("flexVolume", "flexVolume"),
    ("configMap", "configMap"),
    ("azureFile", "azureFile"),
    ("vsphereVolume", "vsphereVolume"),
    ("photonPersistentDisk", "photonPersistentDisk"),
    ("portworxVolume", "portworxVolume"),
    ("azureDisk", "azureDisk"),
    ("storageos", "storageos"),
    ("projected", "projected"),
    ("scaleIO", "scaleIO"),
    ("csi", "csi"),
    ("ephemeral", "ephemeral"),
    ("image", "image"),
];

/// Checks all volumes; returns the names of the valid ones, which are those that containers may mount.
pub(super) fn validate<'a>(errors: &mut Errors, spec: &'a Map<String, Value>) -> BTreeSet<&'a str> {
    let mut valid = BTreeSet::new();
    for (at, volume) in spec.list("volumes").iter().enumerate() {
        let path = index("spec.volumes", at);
        let mut found = Vec::new();
        source(&mut found, &path, volume);
        let name = volume.text("name");
        if name.is_empty() {
            found.push(FieldError::required(child(&path, "name"), ""));
        } else {
            broken(&mut found, &child(&path, "name"), name, rules::label(name));
        }
        if valid.contains(name) {
            found.push(FieldError::duplicate(child(&path, "name"), name));
        }
        if found.is_empty() {
            valid.insert(name);
        }
        errors.extend(found);
    }
    valid
}

fn source(errors: &mut Errors, path: &str, volume: &Value) {
    let mut held = SOURCES
        .iter()
        .filter(|(source, _)| volume.member(source).is_some());
    let Some((first, _)) = held.next() else {
        errors.push(FieldError::required(path, "must specify a volume type"));
        return;
    };
    let of = &volume[*first];
    let path_of = child(path, first);
    match *first {
        "emptyDir" => empty_dir(errors, &path_of, of),
        "hostPath" => host_path(errors, &path_of, of),
        "secret" => keys(errors, &path_of, of, "secretName"),
        "configMap" => keys(errors, &path_of, of, "name"),
        "downwardAPI" => downward(errors, &path_of, of),
        "projected" => projected(errors, &path_of, of),
        "persistentVolumeClaim" if !of.has("claimName") => {
            errors.push(FieldError::required(child(&path_of, "claimName"), ""));
        }
        _ => {}
    }
    errors.extend(held.map(|(_, element)| FieldError::forbidden(child(path, element), ONE_TYPE)));
}

fn empty_dir(errors: &mut Errors, path: &str, source: &Value) {
    let limit = source.member("sizeLimit").and_then(quantity::parse);
    if limit.is_some_and(|limit| limit.is_negative()) {
        errors.push(FieldError::forbidden(
            child(path, "sizeLimit"),
            "SizeLimit field must be a valid resource quantity",
        ));
    }
}

fn host_path(errors: &mut Errors, path: &str, source: &Value) {
    match source.text("path") {
        "" => errors.push(FieldError::required(child(path, "path"), "")),
        target => {
            rules::no_backsteps(errors, &child(path, "path"), target);
            let of = source.text("type");
            if !HOST_PATH_TYPES.contains(&of) {
                errors.push(FieldError::not_supported(
                    child(path, "type"),
                    of,
                    HOST_PATH_TYPES,
                ));
            }
        }
    }
}

fn keys(errors: &mut Errors, path: &str, source: &Value, name: &str) {
    if !source.has(name) {
        errors.push(FieldError::required(child(path, name), ""));
    }
    file_mode(errors, child(path, "defaultMode"), source.int("defaultMode"));
    for (at, item) in source.list("items").iter().enumerate() {
        key_to_path(errors, &index(&child(path, "items"), at), item);
    }
}

fn key_to_path(errors: &mut Errors, path: &str, item: &Value) {
    for field in ["key", "path"] {
        if !item.has(field) {
            errors.push(FieldError::required(child(path, field), ""));
        }
    }
    rules::unreserved_path(errors, &child(path, "path"), item.text("path"));
    file_mode(errors, child(path, "mode"), item.int("mode"));
}

fn downward(errors: &mut Errors, path: &str, source: &Value) {
    file_mode(errors, child(path, "defaultMode"), source.int("defaultMode"));
    for item in source.list("items") {
        downward_file(errors, path, item);
    }
}

fn downward_file(errors: &mut Errors, path: &str, item: &Value) {
    if !item.has("path") {
        errors.push(FieldError::required(child(path, "path"), ""));
    }
    rules::unreserved_path(errors, &child(path, "path"), item.text("path"));
    match (item.member("fieldRef"), item.member("resourceFieldRef")) {
        (Some(field), resource) => {
            field_reference(errors, &child(path, "fieldRef"), field, VOLUME_FIELDS);
            if resource.is_some() {
                errors.push(FieldError::invalid(
                    path,
                    "resource",
                    "fieldRef and resourceFieldRef can not be specified simultaneously",
                ));
            }
        }
        (None, Some(resource)) => {
            resource_reference(errors, &child(path, "resourceFieldRef"), resource, true);
        }
        (None, None) => errors.push(FieldError::required(
            path,
            "one of fieldRef and resourceFieldRef is required",
        )),
    }
    file_mode(errors, child(path, "mode"), item.int("mode"));
}

fn projected(errors: &mut Errors, path: &str, volume: &Value) {
    file_mode(errors, child(path, "defaultMode"), volume.int("defaultMode"));
    let mut taken = BTreeSet::new();
    for (at, source) in volume.list("sources").iter().enumerate() {
        projection(
            errors,
            path,
            &index(&child(path, "sources"), at),
            source,
            &mut taken,
        );
    }
}

/// `path` is the volume's, `source_path` that of one of its sources.
fn projection<'a>(
    errors: &mut Errors,
    path: &str,
    source_path: &str,
    source: &'a Value,
    taken: &mut BTreeSet<&'a str>,
) {
    let mut count = 0;
    for kind in ["secret", "configMap"] {
        let Some(of) = source.member(kind) else { continue };
        count += 1;
        let of_path = child(source_path, kind);
        let name = of.text("name");
        if name.is_empty() {
            errors.push(FieldError::required(child(&of_path, "name"), ""));
        }
        for (at, item) in of.list("items").iter().enumerate() {
            key_to_path(errors, &index(&child(&of_path, "items"), at), item);
            if item.has("path") && !taken.insert(item.text("path")) {
                errors.push(FieldError::invalid(path, name, CONFLICT));
            }
        }
    }
    if let Some(of) = source.member("downwardAPI") {
        count += 1;
        for item in of.list("items") {
            downward_file(errors, &child(source_path, "downwardAPI"), item);
            if item.has("path") && !taken.insert(item.text("path")) {
                errors.push(FieldError::invalid(path, item.text("path"), CONFLICT));
            }
        }
    }
    if let Some(of) = source.member("serviceAccountToken") {
        count += 1;
        token(errors, path, &child(source_path, "serviceAccountToken"), of);
    }
    count += usize::from(source.member("clusterTrustBundle").is_some());
    count += usize::from(source.member("podCertificate").is_some());
    if count > 1 {
        errors.push(FieldError::forbidden(
            source_path,
            "may not specify more than 1 volume type per source",
        ));
    }
}

fn token(errors: &mut Errors, volume_path: &str, path: &str, token: &Value) {
    let seconds = token.int("expirationSeconds").unwrap_or_default();
    let rule = match seconds {
        ..TOKEN_SECONDS_MIN => Some("may not specify a duration less than 10 minutes"),
        TOKEN_SECONDS_MIN..=TOKEN_SECONDS_MAX => None,
        _ => Some("may not specify a duration larger than 2^32 seconds"),
    };
    errors.extend(rule.map(|rule| FieldError::invalid(child(path, "expirationSeconds"), seconds, rule)));
    match token.text("path") {
        "" => errors.push(FieldError::required(child(volume_path, "path"), "")),
        target => rules::unreserved_path(errors, &child(volume_path, "path"), target),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{map, texts};

    fn check(volumes: Value, wanted: &[&str]) {
        let spec = map(json!({ "volumes": volumes }));
        let mut errors = Vec::new();
        validate(&mut errors, &spec);
        assert_eq!(texts(&errors), wanted, "{spec:?}");
    }

    #[test]
    fn a_volume_has_a_name_and_one_source() {
        check(
            json!([{"name": "a", "emptyDir": {}}, {"name": "b", "configMap": {"name": "c"}}]),
            &[],
        );
        check(
            json!([{"name": "a", "emptyDir": {}}, {"name": "a", "emptyDir": {}}]),
            &["spec.volumes[1].name: Duplicate value: \"a\""],
        );
        check(
            json!([{"emptyDir": {}}]),
            &["spec.volumes[0].name: Required value"],
        );
        check(
            json!([{"name": "a.b", "emptyDir": {}}]),
            &["spec.volumes[0].name: Invalid value: \"a.b\": must not contain dots"],
        );
        check(
            json!([{"name": "a"}]),
            &["spec.volumes[0]: Required value: must specify a volume type"],
        );
        check(
            json!([{"name": "a", "configMap": {"name": "c"}, "secret": {"secretName": "s"}, "downwardAPI": {}}]),
            &[
                "spec.volumes[0].downwarAPI: Forbidden: may not specify more than 1 volume type",
                "spec.volumes[0].configMap: Forbidden: may not specify more than 1 volume type",
            ],
        );
    }

    #[test]
    fn items_stay_inside_and_modes_are_modes() {
        check(
            json!([{"name": "a", "configMap": {"name": "c", "defaultMode": 512,
                "items": [{"key": "k", "path": "../x", "mode": -1}, {"path": "/x"}, {"key": "k", "path": "..x"}]}}]),
            &[
                "spec.volumes[0].configMap.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive",
                "spec.volumes[0].configMap.items[0].path: Invalid value: \"../x\": must not contain '..'",
                "spec.volumes[0].configMap.items[0].mode: Invalid value: -1: must be a number between 0 and 0777 (octal), both inclusive",
                "spec.volumes[0].configMap.items[1].key: Required value",
                "spec.volumes[0].configMap.items[1].path: Invalid value: \"/x\": must be a relative path",
                "spec.volumes[0].configMap.items[2].path: Invalid value: \"..x\": must not start with '..'",
            ],
        );
        check(
            json!([{"name": "a", "secret": {}}]),
            &["spec.volumes[0].secret.secretName: Required value"],
        );
    }

    #[test]
    fn host_paths_and_limits_are_checked() {
        check(
            json!([{"name": "a", "hostPath": {"path": "/a/../b", "type": "Dir"}}]),
            &[
                "spec.volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
                "spec.volumes[0].hostPath.type: Unsupported value: \"Dir\": supported values: \"\", \"BlockDevice\", \"CharDevice\", \"Directory\", \"DirectoryOrCreate\", \"File\", \"FileOrCreate\", \"Socket\"",
            ],
        );
        check(
            json!([{"name": "a", "emptyDir": {"sizeLimit": "-1"}}]),
            &[
                "spec.volumes[0].emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity",
            ],
        );
    }

    #[test]
    fn downward_files_name_known_fields() {
        let item = |path: &str| json!({"path": "f", "fieldRef": {"apiVersion": "v1", "fieldPath": path}});
        let volume = |item: Value| json!([{"name": "a", "downwardAPI": {"items": [item]}}]);
        check(volume(item("metadata.labels")), &[]);
        check(volume(item("metadata.annotations['a/b']")), &[]);
        check(
            volume(item("status.podIP")),
            &[
                "spec.volumes[0].downwardAPI.fieldRef.fieldPath: Unsupported value: \"status.podIP\": supported values: \"metadata.annotations\", \"metadata.labels\", \"metadata.name\", \"metadata.namespace\", \"metadata.uid\"",
            ],
        );
        check(
            volume(item("spec.nope")),
            &[
                "spec.volumes[0].downwardAPI.fieldRef.fieldPath: Invalid value: \"spec.nope\": error converting fieldPath: field label not supported: spec.nope",
            ],
        );
        check(
            volume(json!({"path": "f"})),
            &[
                "spec.volumes[0].downwardAPI: Required value: one of fieldRef and resourceFieldRef is required",
            ],
        );
        check(
            volume(json!({"path": "f", "resourceFieldRef": {"resource": "limits.cpu"}})),
            &["spec.volumes[0].downwardAPI.resourceFieldRef.containerName: Required value"],
        );
    }

    #[test]
    fn projected_sources_do_not_collide() {
        check(
            json!([{"name": "a", "projected": {"sources": [
                {"configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}},
                {"secret": {"name": "s", "items": [{"key": "k", "path": "p"}]}, "downwardAPI": {}},
                {"serviceAccountToken": {"path": "t", "expirationSeconds": 60}}]}}]),
            &[
                "spec.volumes[0].projected: Invalid value: \"s\": conflicting duplicate paths",
                "spec.volumes[0].projected.sources[1]: Forbidden: may not specify more than 1 volume type per source",
                "spec.volumes[0].projected.sources[2].serviceAccountToken.expirationSeconds: Invalid value: 60: may not specify a duration less than 10 minutes",
            ],
        );
    }
}
