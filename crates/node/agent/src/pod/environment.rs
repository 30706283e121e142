//! Where environment variables come from.

use serde::Deserialize;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct EnvVar {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) value_from: Option<EnvVarSource>,
}

/// Exactly one is set; the API server sees to it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct EnvVarSource {
    pub(crate) field_ref: Option<ObjectFieldSelector>,
    pub(crate) resource_field_ref: Option<ResourceFieldSelector>,
    pub(crate) config_map_key_ref: Option<KeySelector>,
    pub(crate) secret_key_ref: Option<KeySelector>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ObjectFieldSelector {
    pub(crate) field_path: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ResourceFieldSelector {
    pub(crate) container_name: String,
    pub(crate) resource: String,
    pub(crate) divisor: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct KeySelector {
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) optional: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct EnvFromSource {
    pub(crate) prefix: String,
    pub(crate) config_map_ref: Option<ObjectReference>,
    pub(crate) secret_ref: Option<ObjectReference>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ObjectReference {
    pub(crate) name: String,
    pub(crate) optional: bool,
}
