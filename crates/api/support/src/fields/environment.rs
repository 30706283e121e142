//! Variables and where their values come from.

use crate::{
    Table,
    row::{refused, works},
};

const ENVIRONMENT: &str = "crates/hotmap/tests/node/lifecycle.rs::variables_come_from_everywhere_and_expand";
const SOURCES: &str = "crates/node/agent/src/environment.rs::later_sources_win_and_values_expand";
const MISSING: &str =
    "crates/hotmap/tests/node/broken_config.rs::what_is_missing_is_named_and_a_pod_starts_once_it_is_there";
const FIELD: &str = "crates/node/agent/src/fields.rs::volumes_see_metadata_and_env_sees_the_running_pod";
const RESOURCE: &str = "crates/node/agent/src/fields.rs::resources_round_up_and_limits_fall_back_to_the_node";

pub(super) const ENV_VAR: Table = Table {
    message: "EnvVar",
    rows: &[
        works("name", "any text without `=`", &[ENVIRONMENT]),
        works(
            "value",
            "references to earlier variables expand",
            &[ENVIRONMENT, SOURCES],
        ),
        works("valueFrom", "one source", &[ENVIRONMENT]),
    ],
};

pub(super) const ENV_VAR_SOURCE: Table = Table {
    message: "EnvVarSource",
    rows: &[
        works(
            "configMapKeyRef",
            "one key, as it is when the container starts",
            &[ENVIRONMENT],
        ),
        works("fieldRef", "a field of the pod", &[ENVIRONMENT, FIELD]),
        refused("fileKeyRef", "variables are not read from files of a volume"),
        works(
            "resourceFieldRef",
            "a request or limit of a container",
            &[ENVIRONMENT, RESOURCE],
        ),
        works(
            "secretKeyRef",
            "one key, as it is when the container starts",
            &[ENVIRONMENT],
        ),
    ],
};

pub(super) const CONFIG_MAP_KEY_SELECTOR: Table = Table {
    message: "ConfigMapKeySelector",
    rows: &[
        works("key", "of `data`", &[ENVIRONMENT]),
        works("name", "in the pod's namespace", &[ENVIRONMENT]),
        works("optional", "whether the container starts without it", &[SOURCES]),
    ],
};

pub(super) const SECRET_KEY_SELECTOR: Table = Table {
    message: "SecretKeySelector",
    rows: &[
        works("key", "of `data`", &[ENVIRONMENT]),
        works("name", "in the pod's namespace", &[ENVIRONMENT]),
        works("optional", "whether the container starts without it", &[SOURCES]),
    ],
};

pub(super) const OBJECT_FIELD_SELECTOR: Table = Table {
    message: "ObjectFieldSelector",
    rows: &[
        works(
            "apiVersion",
            "v1",
            &["crates/api/kinds/src/pod/environment.rs::variables_have_names_and_one_source"],
        ),
        works(
            "fieldPath",
            "the fields that upstream names for variables and for files",
            &[FIELD],
        ),
    ],
};

pub(super) const RESOURCE_FIELD_SELECTOR: Table = Table {
    message: "ResourceFieldSelector",
    rows: &[
        works(
            "containerName",
            "whose; in a volume it must be named",
            &[RESOURCE],
        ),
        works("divisor", "the unit, rounded up", &[RESOURCE]),
        works(
            "resource",
            "requests and limits of cpu, memory and more",
            &[ENVIRONMENT, RESOURCE],
        ),
    ],
};

pub(super) const ENV_FROM_SOURCE: Table = Table {
    message: "EnvFromSource",
    rows: &[
        works("configMapRef", "every key of `data`", &[ENVIRONMENT, SOURCES]),
        works("prefix", "stands before each name", &[ENVIRONMENT, SOURCES]),
        works("secretRef", "every key", &[MISSING]),
    ],
};

pub(super) const CONFIG_MAP_ENV_SOURCE: Table = Table {
    message: "ConfigMapEnvSource",
    rows: &[
        works("name", "in the pod's namespace", &[ENVIRONMENT]),
        works("optional", "whether the container starts without it", &[SOURCES]),
    ],
};

pub(super) const SECRET_ENV_SOURCE: Table = Table {
    message: "SecretEnvSource",
    rows: &[
        works("name", "in the pod's namespace", &[MISSING]),
        works("optional", "whether the container starts without it", &[SOURCES]),
    ],
};
