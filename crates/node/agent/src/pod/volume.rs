//! Volumes and where containers mount them.

use serde::Deserialize;

/// One volume; exactly one source is set, the API server sees to it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Volume {
    pub(crate) name: String,
    pub(crate) config_map: Option<ConfigMapSource>,
    pub(crate) secret: Option<SecretSource>,
    #[serde(rename = "downwardAPI")]
    pub(crate) downward_api: Option<DownwardSource>,
    pub(crate) projected: Option<ProjectedSource>,
    pub(crate) empty_dir: Option<EmptyDirSource>,
    pub(crate) host_path: Option<HostPathSource>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ConfigMapSource {
    pub(crate) name: String,
    pub(crate) items: Vec<KeyToPath>,
    pub(crate) default_mode: Option<u32>,
    pub(crate) optional: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SecretSource {
    /// `secretName` in a volume, `name` in a projected source.
    #[serde(alias = "name")]
    pub(crate) secret_name: String,
    pub(crate) items: Vec<KeyToPath>,
    pub(crate) default_mode: Option<u32>,
    pub(crate) optional: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct KeyToPath {
    pub(crate) key: String,
    pub(crate) path: String,
    pub(crate) mode: Option<u32>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DownwardSource {
    pub(crate) items: Vec<DownwardFile>,
    pub(crate) default_mode: Option<u32>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DownwardFile {
    pub(crate) path: String,
    pub(crate) mode: Option<u32>,
    pub(crate) field_ref: Option<super::ObjectFieldSelector>,
    pub(crate) resource_field_ref: Option<super::ResourceFieldSelector>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ProjectedSource {
    pub(crate) sources: Vec<ProjectedSourceEntry>,
    pub(crate) default_mode: Option<u32>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ProjectedSourceEntry {
    pub(crate) config_map: Option<ConfigMapSource>,
    pub(crate) secret: Option<SecretSource>,
    #[serde(rename = "downwardAPI")]
    pub(crate) downward_api: Option<DownwardSource>,
    pub(crate) service_account_token: Option<TokenSource>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct TokenSource {
    /// For whom the token is; empty for the API itself.
    pub(crate) audience: String,
    pub(crate) expiration_seconds: u64,
    pub(crate) path: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct EmptyDirSource {
    /// Empty for disk, `Memory` for tmpfs.
    pub(crate) medium: String,
    /// A quantity of bytes; empty or zero for no limit.
    pub(crate) size_limit: String,
}

impl EmptyDirSource {
    pub(crate) fn is_in_memory(&self) -> bool {
        self.medium == "Memory"
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct HostPathSource {
    pub(crate) path: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct VolumeMount {
    pub(crate) name: String,
    pub(crate) mount_path: String,
    pub(crate) sub_path: String,
    pub(crate) sub_path_expr: String,
    pub(crate) read_only: bool,
}
