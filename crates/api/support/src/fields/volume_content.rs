//! What is written into the volumes that follow objects.

use crate::{
    Table,
    row::{refused, works},
};

const FIELD: &str = "crates/node/agent/src/fields.rs::volumes_see_metadata_and_env_sees_the_running_pod";
const KIND: &str = "this kind of source is not supported";
const MISSING: &str =
    "crates/hotmap/tests/node/broken_config.rs::what_is_missing_is_named_and_a_pod_starts_once_it_is_there";
const RESOURCE: &str = "crates/node/agent/src/fields.rs::resources_round_up_and_limits_fall_back_to_the_node";
const TOKEN: &str = "crates/hotmap/tests/node/tokens_in_pods.rs::a_pod_speaks_as_its_account_and_the_token_is_for_its_user_alone";
const VOLUMES: &str =
    "crates/hotmap/tests/node/volumes.rs::every_kind_of_configuration_has_its_content_owner_and_mode";

pub(super) const CONFIG_MAP_VOLUME_SOURCE: Table = Table {
    message: "ConfigMapVolumeSource",
    rows: &[
        works("defaultMode", "of files that name no mode", &[VOLUMES]),
        works("items", "these keys alone, at these paths", &[VOLUMES]),
        works("name", "in the pod's namespace", &[VOLUMES]),
        works("optional", "whether the pod starts without it", &[MISSING]),
    ],
};

pub(super) const SECRET_VOLUME_SOURCE: Table = Table {
    message: "SecretVolumeSource",
    rows: &[
        works("defaultMode", "of files that name no mode", &[VOLUMES]),
        works("items", "these keys alone, at these paths", &[VOLUMES]),
        works("optional", "whether the pod starts without it", &[MISSING]),
        works("secretName", "in the pod's namespace", &[VOLUMES]),
    ],
};

pub(super) const KEY_TO_PATH: Table = Table {
    message: "KeyToPath",
    rows: &[
        works("key", "of the object", &[VOLUMES]),
        works("mode", "of this file", &[VOLUMES]),
        works("path", "beneath the volume", &[VOLUMES]),
    ],
};

pub(super) const DOWNWARD_API_VOLUME_SOURCE: Table = Table {
    message: "DownwardAPIVolumeSource",
    rows: &[
        works("defaultMode", "of files that name no mode", &[VOLUMES]),
        works("items", "one file each", &[VOLUMES]),
    ],
};

pub(super) const DOWNWARD_API_VOLUME_FILE: Table = Table {
    message: "DownwardAPIVolumeFile",
    rows: &[
        works(
            "fieldRef",
            "labels, annotations, name, namespace, uid",
            &[VOLUMES, FIELD],
        ),
        works("mode", "of this file", &[VOLUMES]),
        works("path", "beneath the volume", &[VOLUMES]),
        works(
            "resourceFieldRef",
            "a request or limit of a container",
            &[RESOURCE],
        ),
    ],
};

pub(super) const PROJECTED_VOLUME_SOURCE: Table = Table {
    message: "ProjectedVolumeSource",
    rows: &[
        works("defaultMode", "of files that name no mode", &[VOLUMES]),
        works("sources", "later ones win", &[VOLUMES]),
    ],
};

pub(super) const VOLUME_PROJECTION: Table = Table {
    message: "VolumeProjection",
    rows: &[
        refused("clusterTrustBundle", KIND),
        works("configMap", "its keys", &[VOLUMES]),
        works("downwardAPI", "fields of the pod", &[VOLUMES]),
        refused("podCertificate", KIND),
        works("secret", "its keys", &[VOLUMES]),
        works("serviceAccountToken", "a token that is renewed in time", &[TOKEN]),
    ],
};

pub(super) const CONFIG_MAP_PROJECTION: Table = Table {
    message: "ConfigMapProjection",
    rows: &[
        works("items", "these keys alone, at these paths", &[VOLUMES]),
        works("name", "in the pod's namespace", &[VOLUMES]),
        works("optional", "whether the pod starts without it", &[MISSING]),
    ],
};

pub(super) const SECRET_PROJECTION: Table = Table {
    message: "SecretProjection",
    rows: &[
        works("items", "these keys alone, at these paths", &[VOLUMES]),
        works("name", "in the pod's namespace", &[VOLUMES]),
        works("optional", "whether the pod starts without it", &[MISSING]),
    ],
};

pub(super) const DOWNWARD_API_PROJECTION: Table = Table {
    message: "DownwardAPIProjection",
    rows: &[works("items", "one file each", &[VOLUMES])],
};

pub(super) const SERVICE_ACCOUNT_TOKEN_PROJECTION: Table = Table {
    message: "ServiceAccountTokenProjection",
    rows: &[
        works("audience", "who shall believe it", &[TOKEN]),
        works(
            "expirationSeconds",
            "how long it is good for, at least 600",
            &[TOKEN],
        ),
        works("path", "beneath the volume", &[TOKEN]),
    ],
};
