//! `io.k8s.api.core.v1`, written by `cargo xtask schema`; do not edit.

use crate::message::{Field, ListType as L, Message, PatchStrategy as P, Type as T};

#[rustfmt::skip]
pub(crate) static AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.AWSElasticBlockStoreVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("volumeID", 1, T::String).required(),
    Field::new("fsType", 2, T::String).omitempty(),
    Field::new("partition", 3, T::Int32).omitempty(),
    Field::new("readOnly", 4, T::Bool).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static AFFINITY: Message = Message { name: "io.k8s.api.core.v1.Affinity", type_meta: false, atomic: false, fields: &[
    Field::new("nodeAffinity", 1, T::Message(&NODE_AFFINITY)).pointer().omitempty(),
    Field::new("podAffinity", 2, T::Message(&POD_AFFINITY)).pointer().omitempty(),
    Field::new("podAntiAffinity", 3, T::Message(&POD_ANTI_AFFINITY)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static APP_ARMOR_PROFILE: Message = Message { name: "io.k8s.api.core.v1.AppArmorProfile", type_meta: false, atomic: false, fields: &[
    Field::new("type", 1, T::String).required().go("v1.AppArmorProfileType").one_of(&["Localhost", "RuntimeDefault", "Unconfined"]),
    Field::new("localhostProfile", 2, T::String).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static ATTACHED_VOLUME: Message = Message { name: "io.k8s.api.core.v1.AttachedVolume", type_meta: false, atomic: false, fields: &[
    Field::new("name", 1, T::String).required().go("v1.UniqueVolumeName"),
    Field::new("devicePath", 2, T::String).required(),
] };

#[rustfmt::skip]
pub(crate) static AZURE_DISK_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.AzureDiskVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("diskName", 1, T::String).required(),
    Field::new("diskURI", 2, T::String).required(),
    Field::new("cachingMode", 3, T::String).pointer().omitempty().go("v1.AzureDataDiskCachingMode").one_of(&["None", "ReadOnly", "ReadWrite"]),
    Field::new("fsType", 4, T::String).pointer().omitempty(),
    Field::new("readOnly", 5, T::Bool).pointer().omitempty(),
    Field::new("kind", 6, T::String).pointer().omitempty().go("v1.AzureDataDiskKind").one_of(&["Dedicated", "Managed", "Shared"]),
] };

#[rustfmt::skip]
pub(crate) static AZURE_FILE_PERSISTENT_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.AzureFilePersistentVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("secretName", 1, T::String).required(),
    Field::new("shareName", 2, T::String).required(),
    Field::new("readOnly", 3, T::Bool).omitempty(),
    Field::new("secretNamespace", 4, T::String).pointer(),
] };

#[rustfmt::skip]
pub(crate) static AZURE_FILE_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.AzureFileVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("secretName", 1, T::String).required(),
    Field::new("shareName", 2, T::String).required(),
    Field::new("readOnly", 3, T::Bool).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static BINDING: Message = Message { name: "io.k8s.api.core.v1.Binding", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("target", 2, T::Message(&OBJECT_REFERENCE)).required(),
] };

#[rustfmt::skip]
pub(crate) static CSI_PERSISTENT_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.CSIPersistentVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("driver", 1, T::String).required(),
    Field::new("volumeHandle", 2, T::String).required(),
    Field::new("readOnly", 3, T::Bool).omitempty(),
    Field::new("fsType", 4, T::String).omitempty(),
    Field::new("volumeAttributes", 5, T::String).map().omitempty(),
    Field::new("controllerPublishSecretRef", 6, T::Message(&SECRET_REFERENCE)).pointer().omitempty(),
    Field::new("nodeStageSecretRef", 7, T::Message(&SECRET_REFERENCE)).pointer().omitempty(),
    Field::new("nodePublishSecretRef", 8, T::Message(&SECRET_REFERENCE)).pointer().omitempty(),
    Field::new("controllerExpandSecretRef", 9, T::Message(&SECRET_REFERENCE)).pointer().omitempty(),
    Field::new("nodeExpandSecretRef", 10, T::Message(&SECRET_REFERENCE)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static CSI_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.CSIVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("driver", 1, T::String).required(),
    Field::new("readOnly", 2, T::Bool).pointer().omitempty(),
    Field::new("fsType", 3, T::String).pointer().omitempty(),
    Field::new("volumeAttributes", 4, T::String).map().omitempty(),
    Field::new("nodePublishSecretRef", 5, T::Message(&LOCAL_OBJECT_REFERENCE)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static CAPABILITIES: Message = Message { name: "io.k8s.api.core.v1.Capabilities", type_meta: false, atomic: false, fields: &[
    Field::new("add", 1, T::String).list().omitempty().go("[]v1.Capability").list_type(L::Atomic),
    Field::new("drop", 2, T::String).list().omitempty().go("[]v1.Capability").list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static CEPH_FS_PERSISTENT_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.CephFSPersistentVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("monitors", 1, T::String).list().required().list_type(L::Atomic),
    Field::new("path", 2, T::String).omitempty(),
    Field::new("user", 3, T::String).omitempty(),
    Field::new("secretFile", 4, T::String).omitempty(),
    Field::new("secretRef", 5, T::Message(&SECRET_REFERENCE)).pointer().omitempty(),
    Field::new("readOnly", 6, T::Bool).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static CEPH_FS_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.CephFSVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("monitors", 1, T::String).list().required().list_type(L::Atomic),
    Field::new("path", 2, T::String).omitempty(),
    Field::new("user", 3, T::String).omitempty(),
    Field::new("secretFile", 4, T::String).omitempty(),
    Field::new("secretRef", 5, T::Message(&LOCAL_OBJECT_REFERENCE)).pointer().omitempty(),
    Field::new("readOnly", 6, T::Bool).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static CINDER_PERSISTENT_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.CinderPersistentVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("volumeID", 1, T::String).required(),
    Field::new("fsType", 2, T::String).omitempty(),
    Field::new("readOnly", 3, T::Bool).omitempty(),
    Field::new("secretRef", 4, T::Message(&SECRET_REFERENCE)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static CINDER_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.CinderVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("volumeID", 1, T::String).required(),
    Field::new("fsType", 2, T::String).omitempty(),
    Field::new("readOnly", 3, T::Bool).omitempty(),
    Field::new("secretRef", 4, T::Message(&LOCAL_OBJECT_REFERENCE)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static CLIENT_IP_CONFIG: Message = Message { name: "io.k8s.api.core.v1.ClientIPConfig", type_meta: false, atomic: false, fields: &[
    Field::new("timeoutSeconds", 1, T::Int32).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static CLUSTER_TRUST_BUNDLE_PROJECTION: Message = Message { name: "io.k8s.api.core.v1.ClusterTrustBundleProjection", type_meta: false, atomic: false, fields: &[
    Field::new("name", 1, T::String).pointer().omitempty(),
    Field::new("signerName", 2, T::String).pointer().omitempty(),
    Field::new("labelSelector", 3, T::Message(&super::meta_v1::LABEL_SELECTOR)).pointer().omitempty(),
    Field::new("path", 4, T::String).required(),
    Field::new("optional", 5, T::Bool).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static COMPONENT_CONDITION: Message = Message { name: "io.k8s.api.core.v1.ComponentCondition", type_meta: false, atomic: false, fields: &[
    Field::new("type", 1, T::String).required().go("v1.ComponentConditionType"),
    Field::new("status", 2, T::String).required().go("v1.ConditionStatus"),
    Field::new("message", 3, T::String).omitempty(),
    Field::new("error", 4, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static COMPONENT_STATUS: Message = Message { name: "io.k8s.api.core.v1.ComponentStatus", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("conditions", 2, T::Message(&COMPONENT_CONDITION)).list().omitempty().list_type(L::Map(&["type"])).merge_key("type").patch(P::Merge),
] };

#[rustfmt::skip]
pub(crate) static COMPONENT_STATUS_LIST: Message = Message { name: "io.k8s.api.core.v1.ComponentStatusList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&COMPONENT_STATUS)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static CONFIG_MAP: Message = Message { name: "io.k8s.api.core.v1.ConfigMap", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("data", 2, T::String).map().omitempty(),
    Field::new("binaryData", 3, T::Bytes).map().omitempty(),
    Field::new("immutable", 4, T::Bool).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static CONFIG_MAP_ENV_SOURCE: Message = Message { name: "io.k8s.api.core.v1.ConfigMapEnvSource", type_meta: false, atomic: false, fields: &[
    Field::new("localObjectReference", 1, T::Message(&LOCAL_OBJECT_REFERENCE)).inline(),
    Field::new("optional", 2, T::Bool).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static CONFIG_MAP_KEY_SELECTOR: Message = Message { name: "io.k8s.api.core.v1.ConfigMapKeySelector", type_meta: false, atomic: true, fields: &[
    Field::new("localObjectReference", 1, T::Message(&LOCAL_OBJECT_REFERENCE)).inline(),
    Field::new("key", 2, T::String).required(),
    Field::new("optional", 3, T::Bool).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static CONFIG_MAP_LIST: Message = Message { name: "io.k8s.api.core.v1.ConfigMapList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&CONFIG_MAP)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static CONFIG_MAP_NODE_CONFIG_SOURCE: Message = Message { name: "io.k8s.api.core.v1.ConfigMapNodeConfigSource", type_meta: false, atomic: false, fields: &[
    Field::new("namespace", 1, T::String).required(),
    Field::new("name", 2, T::String).required(),
    Field::new("uid", 3, T::String).omitempty().go("types.UID"),
    Field::new("resourceVersion", 4, T::String).omitempty(),
    Field::new("kubeletConfigKey", 5, T::String).required(),
] };

#[rustfmt::skip]
pub(crate) static CONFIG_MAP_PROJECTION: Message = Message { name: "io.k8s.api.core.v1.ConfigMapProjection", type_meta: false, atomic: false, fields: &[
    Field::new("localObjectReference", 1, T::Message(&LOCAL_OBJECT_REFERENCE)).inline(),
    Field::new("items", 2, T::Message(&KEY_TO_PATH)).list().omitempty().list_type(L::Atomic),
    Field::new("optional", 4, T::Bool).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static CONFIG_MAP_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.ConfigMapVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("localObjectReference", 1, T::Message(&LOCAL_OBJECT_REFERENCE)).inline(),
    Field::new("items", 2, T::Message(&KEY_TO_PATH)).list().omitempty().list_type(L::Atomic),
    Field::new("defaultMode", 3, T::Int32).pointer().omitempty(),
    Field::new("optional", 4, T::Bool).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static CONTAINER: Message = Message { name: "io.k8s.api.core.v1.Container", type_meta: false, atomic: false, fields: &[
    Field::new("name", 1, T::String).required(),
    Field::new("image", 2, T::String).omitempty(),
    Field::new("command", 3, T::String).list().omitempty().list_type(L::Atomic),
    Field::new("args", 4, T::String).list().omitempty().list_type(L::Atomic),
    Field::new("workingDir", 5, T::String).omitempty(),
    Field::new("ports", 6, T::Message(&CONTAINER_PORT)).list().omitempty().list_type(L::Map(&["containerPort", "protocol"])).merge_key("containerPort").patch(P::Merge),
    Field::new("env", 7, T::Message(&ENV_VAR)).list().omitempty().list_type(L::Map(&["name"])).merge_key("name").patch(P::Merge),
    Field::new("resources", 8, T::Message(&RESOURCE_REQUIREMENTS)).omitempty(),
    Field::new("volumeMounts", 9, T::Message(&VOLUME_MOUNT)).list().omitempty().list_type(L::Map(&["mountPath"])).merge_key("mountPath").patch(P::Merge),
    Field::new("livenessProbe", 10, T::Message(&PROBE)).pointer().omitempty(),
    Field::new("readinessProbe", 11, T::Message(&PROBE)).pointer().omitempty(),
    Field::new("lifecycle", 12, T::Message(&LIFECYCLE)).pointer().omitempty(),
    Field::new("terminationMessagePath", 13, T::String).omitempty(),
    Field::new("imagePullPolicy", 14, T::String).omitempty().go("v1.PullPolicy").one_of(&["Always", "IfNotPresent", "Never"]),
    Field::new("securityContext", 15, T::Message(&SECURITY_CONTEXT)).pointer().omitempty(),
    Field::new("stdin", 16, T::Bool).omitempty(),
    Field::new("stdinOnce", 17, T::Bool).omitempty(),
    Field::new("tty", 18, T::Bool).omitempty(),
    Field::new("envFrom", 19, T::Message(&ENV_FROM_SOURCE)).list().omitempty().list_type(L::Atomic),
    Field::new("terminationMessagePolicy", 20, T::String).omitempty().go("v1.TerminationMessagePolicy").one_of(&["FallbackToLogsOnError", "File"]),
    Field::new("volumeDevices", 21, T::Message(&VOLUME_DEVICE)).list().omitempty().list_type(L::Map(&["devicePath"])).merge_key("devicePath").patch(P::Merge),
    Field::new("startupProbe", 22, T::Message(&PROBE)).pointer().omitempty(),
    Field::new("resizePolicy", 23, T::Message(&CONTAINER_RESIZE_POLICY)).list().omitempty().list_type(L::Atomic),
    Field::new("restartPolicy", 24, T::String).pointer().omitempty().go("v1.ContainerRestartPolicy"),
    Field::new("restartPolicyRules", 25, T::Message(&CONTAINER_RESTART_RULE)).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static CONTAINER_EXTENDED_RESOURCE_REQUEST: Message = Message { name: "io.k8s.api.core.v1.ContainerExtendedResourceRequest", type_meta: false, atomic: false, fields: &[
    Field::new("containerName", 1, T::String).required(),
    Field::new("resourceName", 2, T::String).required(),
    Field::new("requestName", 3, T::String).required(),
] };

#[rustfmt::skip]
pub(crate) static CONTAINER_IMAGE: Message = Message { name: "io.k8s.api.core.v1.ContainerImage", type_meta: false, atomic: false, fields: &[
    Field::new("names", 1, T::String).list().list_type(L::Atomic),
    Field::new("sizeBytes", 2, T::Int64).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static CONTAINER_PORT: Message = Message { name: "io.k8s.api.core.v1.ContainerPort", type_meta: false, atomic: false, fields: &[
    Field::new("name", 1, T::String).omitempty(),
    Field::new("hostPort", 2, T::Int32).omitempty(),
    Field::new("containerPort", 3, T::Int32).required(),
    Field::new("protocol", 4, T::String).omitempty().go("v1.Protocol").one_of(&["SCTP", "TCP", "UDP"]),
    Field::new("hostIP", 5, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static CONTAINER_RESIZE_POLICY: Message = Message { name: "io.k8s.api.core.v1.ContainerResizePolicy", type_meta: false, atomic: false, fields: &[
    Field::new("resourceName", 1, T::String).required().go("v1.ResourceName"),
    Field::new("restartPolicy", 2, T::String).required().go("v1.ResourceResizeRestartPolicy"),
] };

#[rustfmt::skip]
pub(crate) static CONTAINER_RESTART_RULE: Message = Message { name: "io.k8s.api.core.v1.ContainerRestartRule", type_meta: false, atomic: false, fields: &[
    Field::new("action", 1, T::String).omitempty().required().go("v1.ContainerRestartRuleAction"),
    Field::new("exitCodes", 2, T::Message(&CONTAINER_RESTART_RULE_ON_EXIT_CODES)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static CONTAINER_RESTART_RULE_ON_EXIT_CODES: Message = Message { name: "io.k8s.api.core.v1.ContainerRestartRuleOnExitCodes", type_meta: false, atomic: false, fields: &[
    Field::new("operator", 1, T::String).omitempty().required().go("v1.ContainerRestartRuleOnExitCodesOperator"),
    Field::new("values", 2, T::Int32).list().omitempty().list_type(L::Set),
] };

#[rustfmt::skip]
pub(crate) static CONTAINER_STATE: Message = Message { name: "io.k8s.api.core.v1.ContainerState", type_meta: false, atomic: false, fields: &[
    Field::new("waiting", 1, T::Message(&CONTAINER_STATE_WAITING)).pointer().omitempty(),
    Field::new("running", 2, T::Message(&CONTAINER_STATE_RUNNING)).pointer().omitempty(),
    Field::new("terminated", 3, T::Message(&CONTAINER_STATE_TERMINATED)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static CONTAINER_STATE_RUNNING: Message = Message { name: "io.k8s.api.core.v1.ContainerStateRunning", type_meta: false, atomic: false, fields: &[
    Field::new("startedAt", 1, T::Time).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static CONTAINER_STATE_TERMINATED: Message = Message { name: "io.k8s.api.core.v1.ContainerStateTerminated", type_meta: false, atomic: false, fields: &[
    Field::new("exitCode", 1, T::Int32).required(),
    Field::new("signal", 2, T::Int32).omitempty(),
    Field::new("reason", 3, T::String).omitempty(),
    Field::new("message", 4, T::String).omitempty(),
    Field::new("startedAt", 5, T::Time).omitempty(),
    Field::new("finishedAt", 6, T::Time).omitempty(),
    Field::new("containerID", 7, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static CONTAINER_STATE_WAITING: Message = Message { name: "io.k8s.api.core.v1.ContainerStateWaiting", type_meta: false, atomic: false, fields: &[
    Field::new("reason", 1, T::String).omitempty(),
    Field::new("message", 2, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static CONTAINER_STATUS: Message = Message { name: "io.k8s.api.core.v1.ContainerStatus", type_meta: false, atomic: false, fields: &[
    Field::new("name", 1, T::String).required(),
    Field::new("state", 2, T::Message(&CONTAINER_STATE)).omitempty(),
    Field::new("lastState", 3, T::Message(&CONTAINER_STATE)).omitempty(),
    Field::new("ready", 4, T::Bool).required(),
    Field::new("restartCount", 5, T::Int32).required(),
    Field::new("image", 6, T::String).required(),
    Field::new("imageID", 7, T::String).required(),
    Field::new("containerID", 8, T::String).omitempty(),
    Field::new("started", 9, T::Bool).pointer().omitempty(),
    Field::new("allocatedResources", 10, T::Quantity).map().omitempty().go("v1.ResourceList"),
    Field::new("resources", 11, T::Message(&RESOURCE_REQUIREMENTS)).pointer().omitempty(),
    Field::new("volumeMounts", 12, T::Message(&VOLUME_MOUNT_STATUS)).list().omitempty().list_type(L::Map(&["mountPath"])).merge_key("mountPath").patch(P::Merge),
    Field::new("user", 13, T::Message(&CONTAINER_USER)).pointer().omitempty(),
    Field::new("allocatedResourcesStatus", 14, T::Message(&RESOURCE_STATUS)).list().omitempty().list_type(L::Map(&["name"])).merge_key("name").patch(P::Merge),
    Field::new("stopSignal", 15, T::String).pointer().omitempty().go("v1.Signal").one_of(&["SIGABRT", "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCLD", "SIGCONT", "SIGFPE", "SIGHUP", "SIGILL", "SIGINT", "SIGIO", "SIGIOT", "SIGKILL", "SIGPIPE", "SIGPOLL", "SIGPROF", "SIGPWR", "SIGQUIT", "SIGRTMAX", "SIGRTMAX-1", "SIGRTMAX-10", "SIGRTMAX-11", "SIGRTMAX-12", "SIGRTMAX-13", "SIGRTMAX-14", "SIGRTMAX-2", "SIGRTMAX-3", "SIGRTMAX-4", "SIGRTMAX-5", "SIGRTMAX-6", "SIGRTMAX-7", "SIGRTMAX-8", "SIGRTMAX-9", "SIGRTMIN", "SIGRTMIN+1", "SIGRTMIN+10", "SIGRTMIN+11", "SIGRTMIN+12", "SIGRTMIN+13", "SIGRTMIN+14", "SIGRTMIN+15", "SIGRTMIN+2", "SIGRTMIN+3", "SIGRTMIN+4", "SIGRTMIN+5", "SIGRTMIN+6", "SIGRTMIN+7", "SIGRTMIN+8", "SIGRTMIN+9", "SIGSEGV", "SIGSTKFLT", "SIGSTOP", "SIGSYS", "SIGTERM", "SIGTRAP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGUSR1", "SIGUSR2", "SIGVTALRM", "SIGWINCH", "SIGXCPU", "SIGXFSZ"]),
] };

#[rustfmt::skip]
pub(crate) static CONTAINER_USER: Message = Message { name: "io.k8s.api.core.v1.ContainerUser", type_meta: false, atomic: false, fields: &[
    Field::new("linux", 1, T::Message(&LINUX_CONTAINER_USER)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static DAEMON_ENDPOINT: Message = Message { name: "io.k8s.api.core.v1.DaemonEndpoint", type_meta: false, atomic: false, fields: &[
    Field::new("Port", 1, T::Int32).required(),
] };

#[rustfmt::skip]
pub(crate) static DOWNWARD_API_PROJECTION: Message = Message { name: "io.k8s.api.core.v1.DownwardAPIProjection", type_meta: false, atomic: false, fields: &[
    Field::new("items", 1, T::Message(&DOWNWARD_API_VOLUME_FILE)).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static DOWNWARD_API_VOLUME_FILE: Message = Message { name: "io.k8s.api.core.v1.DownwardAPIVolumeFile", type_meta: false, atomic: false, fields: &[
    Field::new("path", 1, T::String).required(),
    Field::new("fieldRef", 2, T::Message(&OBJECT_FIELD_SELECTOR)).pointer().omitempty(),
    Field::new("resourceFieldRef", 3, T::Message(&RESOURCE_FIELD_SELECTOR)).pointer().omitempty(),
    Field::new("mode", 4, T::Int32).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static DOWNWARD_API_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.DownwardAPIVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("items", 1, T::Message(&DOWNWARD_API_VOLUME_FILE)).list().omitempty().list_type(L::Atomic),
    Field::new("defaultMode", 2, T::Int32).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static EMPTY_DIR_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.EmptyDirVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("medium", 1, T::String).omitempty().go("v1.StorageMedium"),
    Field::new("sizeLimit", 2, T::Quantity).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static ENDPOINT_ADDRESS: Message = Message { name: "io.k8s.api.core.v1.EndpointAddress", type_meta: false, atomic: true, fields: &[
    Field::new("ip", 1, T::String).required(),
    Field::new("targetRef", 2, T::Message(&OBJECT_REFERENCE)).pointer().omitempty(),
    Field::new("hostname", 3, T::String).omitempty(),
    Field::new("nodeName", 4, T::String).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static ENDPOINT_PORT: Message = Message { name: "io.k8s.api.core.v1.EndpointPort", type_meta: false, atomic: true, fields: &[
    Field::new("name", 1, T::String).omitempty(),
    Field::new("port", 2, T::Int32).required(),
    Field::new("protocol", 3, T::String).omitempty().go("v1.Protocol").one_of(&["SCTP", "TCP", "UDP"]),
    Field::new("appProtocol", 4, T::String).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static ENDPOINT_SUBSET: Message = Message { name: "io.k8s.api.core.v1.EndpointSubset", type_meta: false, atomic: false, fields: &[
    Field::new("addresses", 1, T::Message(&ENDPOINT_ADDRESS)).list().omitempty().list_type(L::Atomic),
    Field::new("notReadyAddresses", 2, T::Message(&ENDPOINT_ADDRESS)).list().omitempty().list_type(L::Atomic),
    Field::new("ports", 3, T::Message(&ENDPOINT_PORT)).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static ENDPOINTS: Message = Message { name: "io.k8s.api.core.v1.Endpoints", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("subsets", 2, T::Message(&ENDPOINT_SUBSET)).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static ENDPOINTS_LIST: Message = Message { name: "io.k8s.api.core.v1.EndpointsList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&ENDPOINTS)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static ENV_FROM_SOURCE: Message = Message { name: "io.k8s.api.core.v1.EnvFromSource", type_meta: false, atomic: false, fields: &[
    Field::new("prefix", 1, T::String).omitempty(),
    Field::new("configMapRef", 2, T::Message(&CONFIG_MAP_ENV_SOURCE)).pointer().omitempty(),
    Field::new("secretRef", 3, T::Message(&SECRET_ENV_SOURCE)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static ENV_VAR: Message = Message { name: "io.k8s.api.core.v1.EnvVar", type_meta: false, atomic: false, fields: &[
    Field::new("name", 1, T::String).required(),
    Field::new("value", 2, T::String).omitempty(),
    Field::new("valueFrom", 3, T::Message(&ENV_VAR_SOURCE)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static ENV_VAR_SOURCE: Message = Message { name: "io.k8s.api.core.v1.EnvVarSource", type_meta: false, atomic: false, fields: &[
    Field::new("fieldRef", 1, T::Message(&OBJECT_FIELD_SELECTOR)).pointer().omitempty(),
    Field::new("resourceFieldRef", 2, T::Message(&RESOURCE_FIELD_SELECTOR)).pointer().omitempty(),
    Field::new("configMapKeyRef", 3, T::Message(&CONFIG_MAP_KEY_SELECTOR)).pointer().omitempty(),
    Field::new("secretKeyRef", 4, T::Message(&SECRET_KEY_SELECTOR)).pointer().omitempty(),
    Field::new("fileKeyRef", 5, T::Message(&FILE_KEY_SELECTOR)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static EPHEMERAL_CONTAINER: Message = Message { name: "io.k8s.api.core.v1.EphemeralContainer", type_meta: false, atomic: false, fields: &[
    Field::new("ephemeralContainerCommon", 1, T::Message(&EPHEMERAL_CONTAINER_COMMON)).inline(),
    Field::new("targetContainerName", 2, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static EPHEMERAL_CONTAINER_COMMON: Message = Message { name: "io.k8s.api.core.v1.EphemeralContainerCommon", type_meta: false, atomic: false, fields: &[
    Field::new("name", 1, T::String).required(),
    Field::new("image", 2, T::String).omitempty(),
    Field::new("command", 3, T::String).list().omitempty().list_type(L::Atomic),
    Field::new("args", 4, T::String).list().omitempty().list_type(L::Atomic),
    Field::new("workingDir", 5, T::String).omitempty(),
    Field::new("ports", 6, T::Message(&CONTAINER_PORT)).list().omitempty().list_type(L::Map(&["containerPort", "protocol"])).merge_key("containerPort").patch(P::Merge),
    Field::new("env", 7, T::Message(&ENV_VAR)).list().omitempty().list_type(L::Map(&["name"])).merge_key("name").patch(P::Merge),
    Field::new("resources", 8, T::Message(&RESOURCE_REQUIREMENTS)).omitempty(),
    Field::new("volumeMounts", 9, T::Message(&VOLUME_MOUNT)).list().omitempty().list_type(L::Map(&["mountPath"])).merge_key("mountPath").patch(P::Merge),
    Field::new("livenessProbe", 10, T::Message(&PROBE)).pointer().omitempty(),
    Field::new("readinessProbe", 11, T::Message(&PROBE)).pointer().omitempty(),
    Field::new("lifecycle", 12, T::Message(&LIFECYCLE)).pointer().omitempty(),
    Field::new("terminationMessagePath", 13, T::String).omitempty(),
    Field::new("imagePullPolicy", 14, T::String).omitempty().go("v1.PullPolicy").one_of(&["Always", "IfNotPresent", "Never"]),
    Field::new("securityContext", 15, T::Message(&SECURITY_CONTEXT)).pointer().omitempty(),
    Field::new("stdin", 16, T::Bool).omitempty(),
    Field::new("stdinOnce", 17, T::Bool).omitempty(),
    Field::new("tty", 18, T::Bool).omitempty(),
    Field::new("envFrom", 19, T::Message(&ENV_FROM_SOURCE)).list().omitempty().list_type(L::Atomic),
    Field::new("terminationMessagePolicy", 20, T::String).omitempty().go("v1.TerminationMessagePolicy").one_of(&["FallbackToLogsOnError", "File"]),
    Field::new("volumeDevices", 21, T::Message(&VOLUME_DEVICE)).list().omitempty().list_type(L::Map(&["devicePath"])).merge_key("devicePath").patch(P::Merge),
    Field::new("startupProbe", 22, T::Message(&PROBE)).pointer().omitempty(),
    Field::new("resizePolicy", 23, T::Message(&CONTAINER_RESIZE_POLICY)).list().omitempty().list_type(L::Atomic),
    Field::new("restartPolicy", 24, T::String).pointer().omitempty().go("v1.ContainerRestartPolicy"),
    Field::new("restartPolicyRules", 25, T::Message(&CONTAINER_RESTART_RULE)).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static EPHEMERAL_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.EphemeralVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("volumeClaimTemplate", 1, T::Message(&PERSISTENT_VOLUME_CLAIM_TEMPLATE)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static EVENT: Message = Message { name: "io.k8s.api.core.v1.Event", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).required(),
    Field::new("involvedObject", 2, T::Message(&OBJECT_REFERENCE)).required(),
    Field::new("reason", 3, T::String).omitempty(),
    Field::new("message", 4, T::String).omitempty(),
    Field::new("source", 5, T::Message(&EVENT_SOURCE)).omitempty(),
    Field::new("firstTimestamp", 6, T::Time).omitempty(),
    Field::new("lastTimestamp", 7, T::Time).omitempty(),
    Field::new("count", 8, T::Int32).omitempty(),
    Field::new("type", 9, T::String).omitempty(),
    Field::new("eventTime", 10, T::MicroTime).omitempty(),
    Field::new("series", 11, T::Message(&EVENT_SERIES)).pointer().omitempty(),
    Field::new("action", 12, T::String).omitempty(),
    Field::new("related", 13, T::Message(&OBJECT_REFERENCE)).pointer().omitempty(),
    Field::new("reportingComponent", 14, T::String),
    Field::new("reportingInstance", 15, T::String),
] };

#[rustfmt::skip]
pub(crate) static EVENT_LIST: Message = Message { name: "io.k8s.api.core.v1.EventList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&EVENT)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static EVENT_SERIES: Message = Message { name: "io.k8s.api.core.v1.EventSeries", type_meta: false, atomic: false, fields: &[
    Field::new("count", 1, T::Int32).omitempty(),
    Field::new("lastObservedTime", 2, T::MicroTime).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static EVENT_SOURCE: Message = Message { name: "io.k8s.api.core.v1.EventSource", type_meta: false, atomic: false, fields: &[
    Field::new("component", 1, T::String).omitempty(),
    Field::new("host", 2, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static EXEC_ACTION: Message = Message { name: "io.k8s.api.core.v1.ExecAction", type_meta: false, atomic: false, fields: &[
    Field::new("command", 1, T::String).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static FC_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.FCVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("targetWWNs", 1, T::String).list().omitempty().list_type(L::Atomic),
    Field::new("lun", 2, T::Int32).pointer().omitempty(),
    Field::new("fsType", 3, T::String).omitempty(),
    Field::new("readOnly", 4, T::Bool).omitempty(),
    Field::new("wwids", 5, T::String).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static FILE_KEY_SELECTOR: Message = Message { name: "io.k8s.api.core.v1.FileKeySelector", type_meta: false, atomic: true, fields: &[
    Field::new("volumeName", 1, T::String).required(),
    Field::new("path", 2, T::String).required(),
    Field::new("key", 3, T::String).required(),
    Field::new("optional", 4, T::Bool).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static FLEX_PERSISTENT_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.FlexPersistentVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("driver", 1, T::String).required(),
    Field::new("fsType", 2, T::String).omitempty(),
    Field::new("secretRef", 3, T::Message(&SECRET_REFERENCE)).pointer().omitempty(),
    Field::new("readOnly", 4, T::Bool).omitempty(),
    Field::new("options", 5, T::String).map().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static FLEX_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.FlexVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("driver", 1, T::String).required(),
    Field::new("fsType", 2, T::String).omitempty(),
    Field::new("secretRef", 3, T::Message(&LOCAL_OBJECT_REFERENCE)).pointer().omitempty(),
    Field::new("readOnly", 4, T::Bool).omitempty(),
    Field::new("options", 5, T::String).map().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static FLOCKER_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.FlockerVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("datasetName", 1, T::String).omitempty(),
    Field::new("datasetUUID", 2, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static GCE_PERSISTENT_DISK_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.GCEPersistentDiskVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("pdName", 1, T::String).required(),
    Field::new("fsType", 2, T::String).omitempty(),
    Field::new("partition", 3, T::Int32).omitempty(),
    Field::new("readOnly", 4, T::Bool).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static GRPC_ACTION: Message = Message { name: "io.k8s.api.core.v1.GRPCAction", type_meta: false, atomic: false, fields: &[
    Field::new("port", 1, T::Int32).required(),
    Field::new("service", 2, T::String).pointer(),
] };

#[rustfmt::skip]
pub(crate) static GIT_REPO_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.GitRepoVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("repository", 1, T::String).required(),
    Field::new("revision", 2, T::String).omitempty(),
    Field::new("directory", 3, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static GLUSTERFS_PERSISTENT_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.GlusterfsPersistentVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("endpoints", 1, T::String).required(),
    Field::new("path", 2, T::String).required(),
    Field::new("readOnly", 3, T::Bool).omitempty(),
    Field::new("endpointsNamespace", 4, T::String).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static GLUSTERFS_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.GlusterfsVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("endpoints", 1, T::String).required(),
    Field::new("path", 2, T::String).required(),
    Field::new("readOnly", 3, T::Bool).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static HTTP_GET_ACTION: Message = Message { name: "io.k8s.api.core.v1.HTTPGetAction", type_meta: false, atomic: false, fields: &[
    Field::new("path", 1, T::String).omitempty(),
    Field::new("port", 2, T::IntOrString).required(),
    Field::new("host", 3, T::String).omitempty(),
    Field::new("scheme", 4, T::String).omitempty().go("v1.URIScheme").one_of(&["HTTP", "HTTPS"]),
    Field::new("httpHeaders", 5, T::Message(&HTTP_HEADER)).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static HTTP_HEADER: Message = Message { name: "io.k8s.api.core.v1.HTTPHeader", type_meta: false, atomic: false, fields: &[
    Field::new("name", 1, T::String).required(),
    Field::new("value", 2, T::String).required(),
] };

#[rustfmt::skip]
pub(crate) static HOST_ALIAS: Message = Message { name: "io.k8s.api.core.v1.HostAlias", type_meta: false, atomic: false, fields: &[
    Field::new("ip", 1, T::String).required(),
    Field::new("hostnames", 2, T::String).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static HOST_IP: Message = Message { name: "io.k8s.api.core.v1.HostIP", type_meta: false, atomic: false, fields: &[
    Field::new("ip", 1, T::String).required(),
] };

#[rustfmt::skip]
pub(crate) static HOST_PATH_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.HostPathVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("path", 1, T::String).required(),
    Field::new("type", 2, T::String).pointer().omitempty().go("v1.HostPathType").one_of(&["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"]),
] };

#[rustfmt::skip]
pub(crate) static ISCSI_PERSISTENT_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.ISCSIPersistentVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("targetPortal", 1, T::String).required(),
    Field::new("iqn", 2, T::String).required(),
    Field::new("lun", 3, T::Int32).required(),
    Field::new("iscsiInterface", 4, T::String).omitempty(),
    Field::new("fsType", 5, T::String).omitempty(),
    Field::new("readOnly", 6, T::Bool).omitempty(),
    Field::new("portals", 7, T::String).list().omitempty().list_type(L::Atomic),
    Field::new("chapAuthDiscovery", 8, T::Bool).omitempty(),
    Field::new("secretRef", 10, T::Message(&SECRET_REFERENCE)).pointer().omitempty(),
    Field::new("chapAuthSession", 11, T::Bool).omitempty(),
    Field::new("initiatorName", 12, T::String).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static ISCSI_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.ISCSIVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("targetPortal", 1, T::String).required(),
    Field::new("iqn", 2, T::String).required(),
    Field::new("lun", 3, T::Int32).required(),
    Field::new("iscsiInterface", 4, T::String).omitempty(),
    Field::new("fsType", 5, T::String).omitempty(),
    Field::new("readOnly", 6, T::Bool).omitempty(),
    Field::new("portals", 7, T::String).list().omitempty().list_type(L::Atomic),
    Field::new("chapAuthDiscovery", 8, T::Bool).omitempty(),
    Field::new("secretRef", 10, T::Message(&LOCAL_OBJECT_REFERENCE)).pointer().omitempty(),
    Field::new("chapAuthSession", 11, T::Bool).omitempty(),
    Field::new("initiatorName", 12, T::String).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static IMAGE_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.ImageVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("reference", 1, T::String).omitempty(),
    Field::new("pullPolicy", 2, T::String).omitempty().go("v1.PullPolicy").one_of(&["Always", "IfNotPresent", "Never"]),
] };

#[rustfmt::skip]
pub(crate) static IMAGE_VOLUME_STATUS: Message = Message { name: "io.k8s.api.core.v1.ImageVolumeStatus", type_meta: false, atomic: false, fields: &[
    Field::new("imageRef", 1, T::String).omitempty().required(),
] };

#[rustfmt::skip]
pub(crate) static KEY_TO_PATH: Message = Message { name: "io.k8s.api.core.v1.KeyToPath", type_meta: false, atomic: false, fields: &[
    Field::new("key", 1, T::String).required(),
    Field::new("path", 2, T::String).required(),
    Field::new("mode", 3, T::Int32).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static LIFECYCLE: Message = Message { name: "io.k8s.api.core.v1.Lifecycle", type_meta: false, atomic: false, fields: &[
    Field::new("postStart", 1, T::Message(&LIFECYCLE_HANDLER)).pointer().omitempty(),
    Field::new("preStop", 2, T::Message(&LIFECYCLE_HANDLER)).pointer().omitempty(),
    Field::new("stopSignal", 3, T::String).pointer().omitempty().go("v1.Signal").one_of(&["SIGABRT", "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCLD", "SIGCONT", "SIGFPE", "SIGHUP", "SIGILL", "SIGINT", "SIGIO", "SIGIOT", "SIGKILL", "SIGPIPE", "SIGPOLL", "SIGPROF", "SIGPWR", "SIGQUIT", "SIGRTMAX", "SIGRTMAX-1", "SIGRTMAX-10", "SIGRTMAX-11", "SIGRTMAX-12", "SIGRTMAX-13", "SIGRTMAX-14", "SIGRTMAX-2", "SIGRTMAX-3", "SIGRTMAX-4", "SIGRTMAX-5", "SIGRTMAX-6", "SIGRTMAX-7", "SIGRTMAX-8", "SIGRTMAX-9", "SIGRTMIN", "SIGRTMIN+1", "SIGRTMIN+10", "SIGRTMIN+11", "SIGRTMIN+12", "SIGRTMIN+13", "SIGRTMIN+14", "SIGRTMIN+15", "SIGRTMIN+2", "SIGRTMIN+3", "SIGRTMIN+4", "SIGRTMIN+5", "SIGRTMIN+6", "SIGRTMIN+7", "SIGRTMIN+8", "SIGRTMIN+9", "SIGSEGV", "SIGSTKFLT", "SIGSTOP", "SIGSYS", "SIGTERM", "SIGTRAP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGUSR1", "SIGUSR2", "SIGVTALRM", "SIGWINCH", "SIGXCPU", "SIGXFSZ"]),
] };

#[rustfmt::skip]
pub(crate) static LIFECYCLE_HANDLER: Message = Message { name: "io.k8s.api.core.v1.LifecycleHandler", type_meta: false, atomic: false, fields: &[
    Field::new("exec", 1, T::Message(&EXEC_ACTION)).pointer().omitempty(),
    Field::new("httpGet", 2, T::Message(&HTTP_GET_ACTION)).pointer().omitempty(),
    Field::new("tcpSocket", 3, T::Message(&TCP_SOCKET_ACTION)).pointer().omitempty(),
    Field::new("sleep", 4, T::Message(&SLEEP_ACTION)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static LIMIT_RANGE: Message = Message { name: "io.k8s.api.core.v1.LimitRange", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("spec", 2, T::Message(&LIMIT_RANGE_SPEC)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static LIMIT_RANGE_ITEM: Message = Message { name: "io.k8s.api.core.v1.LimitRangeItem", type_meta: false, atomic: false, fields: &[
    Field::new("type", 1, T::String).required().go("v1.LimitType"),
    Field::new("max", 2, T::Quantity).map().omitempty().go("v1.ResourceList"),
    Field::new("min", 3, T::Quantity).map().omitempty().go("v1.ResourceList"),
    Field::new("default", 4, T::Quantity).map().omitempty().go("v1.ResourceList"),
    Field::new("defaultRequest", 5, T::Quantity).map().omitempty().go("v1.ResourceList"),
    Field::new("maxLimitRequestRatio", 6, T::Quantity).map().omitempty().go("v1.ResourceList"),
] };

#[rustfmt::skip]
pub(crate) static LIMIT_RANGE_LIST: Message = Message { name: "io.k8s.api.core.v1.LimitRangeList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&LIMIT_RANGE)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static LIMIT_RANGE_SPEC: Message = Message { name: "io.k8s.api.core.v1.LimitRangeSpec", type_meta: false, atomic: false, fields: &[
    Field::new("limits", 1, T::Message(&LIMIT_RANGE_ITEM)).list().required().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static LINUX_CONTAINER_USER: Message = Message { name: "io.k8s.api.core.v1.LinuxContainerUser", type_meta: false, atomic: false, fields: &[
    Field::new("uid", 1, T::Int64).required(),
    Field::new("gid", 2, T::Int64).required(),
    Field::new("supplementalGroups", 3, T::Int64).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static LOAD_BALANCER_INGRESS: Message = Message { name: "io.k8s.api.core.v1.LoadBalancerIngress", type_meta: false, atomic: false, fields: &[
    Field::new("ip", 1, T::String).omitempty(),
    Field::new("hostname", 2, T::String).omitempty(),
    Field::new("ipMode", 3, T::String).pointer().omitempty().go("v1.LoadBalancerIPMode"),
    Field::new("ports", 4, T::Message(&PORT_STATUS)).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static LOAD_BALANCER_STATUS: Message = Message { name: "io.k8s.api.core.v1.LoadBalancerStatus", type_meta: false, atomic: false, fields: &[
    Field::new("ingress", 1, T::Message(&LOAD_BALANCER_INGRESS)).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static LOCAL_OBJECT_REFERENCE: Message = Message { name: "io.k8s.api.core.v1.LocalObjectReference", type_meta: false, atomic: true, fields: &[
    Field::new("name", 1, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static LOCAL_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.LocalVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("path", 1, T::String).required(),
    Field::new("fsType", 2, T::String).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static MODIFY_VOLUME_STATUS: Message = Message { name: "io.k8s.api.core.v1.ModifyVolumeStatus", type_meta: false, atomic: false, fields: &[
    Field::new("targetVolumeAttributesClassName", 1, T::String).omitempty(),
    Field::new("status", 2, T::String).required().go("v1.PersistentVolumeClaimModifyVolumeStatus").one_of(&["InProgress", "Infeasible", "Pending"]),
] };

#[rustfmt::skip]
pub(crate) static NFS_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.NFSVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("server", 1, T::String).required(),
    Field::new("path", 2, T::String).required(),
    Field::new("readOnly", 3, T::Bool).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static NAMESPACE: Message = Message { name: "io.k8s.api.core.v1.Namespace", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("spec", 2, T::Message(&NAMESPACE_SPEC)).omitempty(),
    Field::new("status", 3, T::Message(&NAMESPACE_STATUS)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static NAMESPACE_CONDITION: Message = Message { name: "io.k8s.api.core.v1.NamespaceCondition", type_meta: false, atomic: false, fields: &[
    Field::new("type", 1, T::String).required().go("v1.NamespaceConditionType"),
    Field::new("status", 2, T::String).required().go("v1.ConditionStatus"),
    Field::new("lastTransitionTime", 4, T::Time).omitempty(),
    Field::new("reason", 5, T::String).omitempty(),
    Field::new("message", 6, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static NAMESPACE_LIST: Message = Message { name: "io.k8s.api.core.v1.NamespaceList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&NAMESPACE)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static NAMESPACE_SPEC: Message = Message { name: "io.k8s.api.core.v1.NamespaceSpec", type_meta: false, atomic: false, fields: &[
    Field::new("finalizers", 1, T::String).list().omitempty().go("[]v1.FinalizerName").list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static NAMESPACE_STATUS: Message = Message { name: "io.k8s.api.core.v1.NamespaceStatus", type_meta: false, atomic: false, fields: &[
    Field::new("phase", 1, T::String).omitempty().go("v1.NamespacePhase").one_of(&["Active", "Terminating"]),
    Field::new("conditions", 2, T::Message(&NAMESPACE_CONDITION)).list().omitempty().list_type(L::Map(&["type"])).merge_key("type").patch(P::Merge),
] };

#[rustfmt::skip]
pub(crate) static NODE: Message = Message { name: "io.k8s.api.core.v1.Node", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("spec", 2, T::Message(&NODE_SPEC)).omitempty(),
    Field::new("status", 3, T::Message(&NODE_STATUS)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static NODE_ADDRESS: Message = Message { name: "io.k8s.api.core.v1.NodeAddress", type_meta: false, atomic: false, fields: &[
    Field::new("type", 1, T::String).required().go("v1.NodeAddressType"),
    Field::new("address", 2, T::String).required(),
] };

#[rustfmt::skip]
pub(crate) static NODE_AFFINITY: Message = Message { name: "io.k8s.api.core.v1.NodeAffinity", type_meta: false, atomic: false, fields: &[
    Field::new("requiredDuringSchedulingIgnoredDuringExecution", 1, T::Message(&NODE_SELECTOR)).pointer().omitempty(),
    Field::new("preferredDuringSchedulingIgnoredDuringExecution", 2, T::Message(&PREFERRED_SCHEDULING_TERM)).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static NODE_ALLOCATABLE_RESOURCE_CLAIM_STATUS: Message = Message { name: "io.k8s.api.core.v1.NodeAllocatableResourceClaimStatus", type_meta: false, atomic: false, fields: &[
    Field::new("resourceClaimName", 1, T::String).required(),
    Field::new("containers", 2, T::String).list().omitempty().list_type(L::Set),
    Field::new("resources", 3, T::Quantity).map().required().go("map[v1.ResourceName]resource.Quantity"),
] };

#[rustfmt::skip]
pub(crate) static NODE_CONDITION: Message = Message { name: "io.k8s.api.core.v1.NodeCondition", type_meta: false, atomic: false, fields: &[
    Field::new("type", 1, T::String).required().go("v1.NodeConditionType"),
    Field::new("status", 2, T::String).required().go("v1.ConditionStatus"),
    Field::new("lastHeartbeatTime", 3, T::Time).omitempty(),
    Field::new("lastTransitionTime", 4, T::Time).omitempty(),
    Field::new("reason", 5, T::String).omitempty(),
    Field::new("message", 6, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static NODE_CONFIG_SOURCE: Message = Message { name: "io.k8s.api.core.v1.NodeConfigSource", type_meta: false, atomic: false, fields: &[
    Field::new("configMap", 2, T::Message(&CONFIG_MAP_NODE_CONFIG_SOURCE)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static NODE_CONFIG_STATUS: Message = Message { name: "io.k8s.api.core.v1.NodeConfigStatus", type_meta: false, atomic: false, fields: &[
    Field::new("assigned", 1, T::Message(&NODE_CONFIG_SOURCE)).pointer().omitempty(),
    Field::new("active", 2, T::Message(&NODE_CONFIG_SOURCE)).pointer().omitempty(),
    Field::new("lastKnownGood", 3, T::Message(&NODE_CONFIG_SOURCE)).pointer().omitempty(),
    Field::new("error", 4, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static NODE_DAEMON_ENDPOINTS: Message = Message { name: "io.k8s.api.core.v1.NodeDaemonEndpoints", type_meta: false, atomic: false, fields: &[
    Field::new("kubeletEndpoint", 1, T::Message(&DAEMON_ENDPOINT)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static NODE_FEATURES: Message = Message { name: "io.k8s.api.core.v1.NodeFeatures", type_meta: false, atomic: false, fields: &[
    Field::new("supplementalGroupsPolicy", 1, T::Bool).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static NODE_LIST: Message = Message { name: "io.k8s.api.core.v1.NodeList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&NODE)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static NODE_PROXY_OPTIONS: Message = Message { name: "io.k8s.api.core.v1.NodeProxyOptions", type_meta: true, atomic: false, fields: &[
    Field::new("path", 1, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static NODE_RUNTIME_HANDLER: Message = Message { name: "io.k8s.api.core.v1.NodeRuntimeHandler", type_meta: false, atomic: false, fields: &[
    Field::new("name", 1, T::String),
    Field::new("features", 2, T::Message(&NODE_RUNTIME_HANDLER_FEATURES)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static NODE_RUNTIME_HANDLER_FEATURES: Message = Message { name: "io.k8s.api.core.v1.NodeRuntimeHandlerFeatures", type_meta: false, atomic: false, fields: &[
    Field::new("recursiveReadOnlyMounts", 1, T::Bool).pointer().omitempty(),
    Field::new("userNamespaces", 2, T::Bool).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static NODE_SELECTOR: Message = Message { name: "io.k8s.api.core.v1.NodeSelector", type_meta: false, atomic: true, fields: &[
    Field::new("nodeSelectorTerms", 1, T::Message(&NODE_SELECTOR_TERM)).list().required().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static NODE_SELECTOR_REQUIREMENT: Message = Message { name: "io.k8s.api.core.v1.NodeSelectorRequirement", type_meta: false, atomic: false, fields: &[
    Field::new("key", 1, T::String).required(),
    Field::new("operator", 2, T::String).required().go("v1.NodeSelectorOperator").one_of(&["DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn"]),
    Field::new("values", 3, T::String).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static NODE_SELECTOR_TERM: Message = Message { name: "io.k8s.api.core.v1.NodeSelectorTerm", type_meta: false, atomic: true, fields: &[
    Field::new("matchExpressions", 1, T::Message(&NODE_SELECTOR_REQUIREMENT)).list().omitempty().list_type(L::Atomic),
    Field::new("matchFields", 2, T::Message(&NODE_SELECTOR_REQUIREMENT)).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static NODE_SPEC: Message = Message { name: "io.k8s.api.core.v1.NodeSpec", type_meta: false, atomic: false, fields: &[
    Field::new("podCIDR", 1, T::String).omitempty(),
    Field::new("externalID", 2, T::String).omitempty(),
    Field::new("providerID", 3, T::String).omitempty(),
    Field::new("unschedulable", 4, T::Bool).omitempty(),
    Field::new("taints", 5, T::Message(&TAINT)).list().omitempty().list_type(L::Atomic),
    Field::new("configSource", 6, T::Message(&NODE_CONFIG_SOURCE)).pointer().omitempty(),
    Field::new("podCIDRs", 7, T::String).list().omitempty().list_type(L::Set).patch(P::Merge),
] };

#[rustfmt::skip]
pub(crate) static NODE_STATUS: Message = Message { name: "io.k8s.api.core.v1.NodeStatus", type_meta: false, atomic: false, fields: &[
    Field::new("capacity", 1, T::Quantity).map().omitempty().go("v1.ResourceList"),
    Field::new("allocatable", 2, T::Quantity).map().omitempty().go("v1.ResourceList"),
    Field::new("phase", 3, T::String).omitempty().go("v1.NodePhase").one_of(&["Pending", "Running", "Terminated"]),
    Field::new("conditions", 4, T::Message(&NODE_CONDITION)).list().omitempty().list_type(L::Map(&["type"])).merge_key("type").patch(P::Merge),
    Field::new("addresses", 5, T::Message(&NODE_ADDRESS)).list().omitempty().list_type(L::Map(&["type"])).merge_key("type").patch(P::Merge),
    Field::new("daemonEndpoints", 6, T::Message(&NODE_DAEMON_ENDPOINTS)).omitempty(),
    Field::new("nodeInfo", 7, T::Message(&NODE_SYSTEM_INFO)).omitempty(),
    Field::new("images", 8, T::Message(&CONTAINER_IMAGE)).list().omitempty().list_type(L::Atomic),
    Field::new("volumesInUse", 9, T::String).list().omitempty().go("[]v1.UniqueVolumeName").list_type(L::Atomic),
    Field::new("volumesAttached", 10, T::Message(&ATTACHED_VOLUME)).list().omitempty().list_type(L::Atomic),
    Field::new("config", 11, T::Message(&NODE_CONFIG_STATUS)).pointer().omitempty(),
    Field::new("runtimeHandlers", 12, T::Message(&NODE_RUNTIME_HANDLER)).list().omitempty().list_type(L::Atomic),
    Field::new("features", 13, T::Message(&NODE_FEATURES)).pointer().omitempty(),
    Field::new("declaredFeatures", 14, T::String).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static NODE_SWAP_STATUS: Message = Message { name: "io.k8s.api.core.v1.NodeSwapStatus", type_meta: false, atomic: false, fields: &[
    Field::new("capacity", 1, T::Int64).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static NODE_SYSTEM_INFO: Message = Message { name: "io.k8s.api.core.v1.NodeSystemInfo", type_meta: false, atomic: false, fields: &[
    Field::new("machineID", 1, T::String).required(),
    Field::new("systemUUID", 2, T::String).required(),
    Field::new("bootID", 3, T::String).required(),
    Field::new("kernelVersion", 4, T::String).required(),
    Field::new("osImage", 5, T::String).required(),
    Field::new("containerRuntimeVersion", 6, T::String).required(),
    Field::new("kubeletVersion", 7, T::String).required(),
    Field::new("kubeProxyVersion", 8, T::String).required(),
    Field::new("operatingSystem", 9, T::String).required(),
    Field::new("architecture", 10, T::String).required(),
    Field::new("swap", 11, T::Message(&NODE_SWAP_STATUS)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static OBJECT_FIELD_SELECTOR: Message = Message { name: "io.k8s.api.core.v1.ObjectFieldSelector", type_meta: false, atomic: true, fields: &[
    Field::new("apiVersion", 1, T::String).omitempty(),
    Field::new("fieldPath", 2, T::String).required(),
] };

#[rustfmt::skip]
pub(crate) static OBJECT_REFERENCE: Message = Message { name: "io.k8s.api.core.v1.ObjectReference", type_meta: false, atomic: true, fields: &[
    Field::new("kind", 1, T::String).omitempty(),
    Field::new("namespace", 2, T::String).omitempty(),
    Field::new("name", 3, T::String).omitempty(),
    Field::new("uid", 4, T::String).omitempty().go("types.UID"),
    Field::new("apiVersion", 5, T::String).omitempty(),
    Field::new("resourceVersion", 6, T::String).omitempty(),
    Field::new("fieldPath", 7, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static PERSISTENT_VOLUME: Message = Message { name: "io.k8s.api.core.v1.PersistentVolume", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("spec", 2, T::Message(&PERSISTENT_VOLUME_SPEC)).omitempty(),
    Field::new("status", 3, T::Message(&PERSISTENT_VOLUME_STATUS)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static PERSISTENT_VOLUME_CLAIM: Message = Message { name: "io.k8s.api.core.v1.PersistentVolumeClaim", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("spec", 2, T::Message(&PERSISTENT_VOLUME_CLAIM_SPEC)).omitempty(),
    Field::new("status", 3, T::Message(&PERSISTENT_VOLUME_CLAIM_STATUS)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static PERSISTENT_VOLUME_CLAIM_CONDITION: Message = Message { name: "io.k8s.api.core.v1.PersistentVolumeClaimCondition", type_meta: false, atomic: false, fields: &[
    Field::new("type", 1, T::String).required().go("v1.PersistentVolumeClaimConditionType"),
    Field::new("status", 2, T::String).required().go("v1.ConditionStatus"),
    Field::new("lastProbeTime", 3, T::Time).omitempty(),
    Field::new("lastTransitionTime", 4, T::Time).omitempty(),
    Field::new("reason", 5, T::String).omitempty(),
    Field::new("message", 6, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static PERSISTENT_VOLUME_CLAIM_LIST: Message = Message { name: "io.k8s.api.core.v1.PersistentVolumeClaimList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&PERSISTENT_VOLUME_CLAIM)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static PERSISTENT_VOLUME_CLAIM_SPEC: Message = Message { name: "io.k8s.api.core.v1.PersistentVolumeClaimSpec", type_meta: false, atomic: false, fields: &[
    Field::new("accessModes", 1, T::String).list().omitempty().go("[]v1.PersistentVolumeAccessMode").list_type(L::Atomic).one_of(&["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"]),
    Field::new("resources", 2, T::Message(&VOLUME_RESOURCE_REQUIREMENTS)).omitempty(),
    Field::new("volumeName", 3, T::String).omitempty(),
    Field::new("selector", 4, T::Message(&super::meta_v1::LABEL_SELECTOR)).pointer().omitempty(),
    Field::new("storageClassName", 5, T::String).pointer().omitempty(),
    Field::new("volumeMode", 6, T::String).pointer().omitempty().go("v1.PersistentVolumeMode").one_of(&["Block", "Filesystem"]),
    Field::new("dataSource", 7, T::Message(&TYPED_LOCAL_OBJECT_REFERENCE)).pointer().omitempty(),
    Field::new("dataSourceRef", 8, T::Message(&TYPED_OBJECT_REFERENCE)).pointer().omitempty(),
    Field::new("volumeAttributesClassName", 9, T::String).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static PERSISTENT_VOLUME_CLAIM_STATUS: Message = Message { name: "io.k8s.api.core.v1.PersistentVolumeClaimStatus", type_meta: false, atomic: false, fields: &[
    Field::new("phase", 1, T::String).omitempty().go("v1.PersistentVolumeClaimPhase").one_of(&["Bound", "Lost", "Pending"]),
    Field::new("accessModes", 2, T::String).list().omitempty().go("[]v1.PersistentVolumeAccessMode").list_type(L::Atomic).one_of(&["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"]),
    Field::new("capacity", 3, T::Quantity).map().omitempty().go("v1.ResourceList"),
    Field::new("conditions", 4, T::Message(&PERSISTENT_VOLUME_CLAIM_CONDITION)).list().omitempty().list_type(L::Map(&["type"])).merge_key("type").patch(P::Merge),
    Field::new("allocatedResources", 5, T::Quantity).map().omitempty().go("v1.ResourceList"),
    Field::new("allocatedResourceStatuses", 7, T::String).map().omitempty().go("map[v1.ResourceName]v1.ClaimResourceStatus"),
    Field::new("currentVolumeAttributesClassName", 8, T::String).pointer().omitempty(),
    Field::new("modifyVolumeStatus", 9, T::Message(&MODIFY_VOLUME_STATUS)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static PERSISTENT_VOLUME_CLAIM_TEMPLATE: Message = Message { name: "io.k8s.api.core.v1.PersistentVolumeClaimTemplate", type_meta: false, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("spec", 2, T::Message(&PERSISTENT_VOLUME_CLAIM_SPEC)).required(),
] };

#[rustfmt::skip]
pub(crate) static PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.PersistentVolumeClaimVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("claimName", 1, T::String).required(),
    Field::new("readOnly", 2, T::Bool).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static PERSISTENT_VOLUME_LIST: Message = Message { name: "io.k8s.api.core.v1.PersistentVolumeList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&PERSISTENT_VOLUME)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static PERSISTENT_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.PersistentVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("gcePersistentDisk", 1, T::Message(&GCE_PERSISTENT_DISK_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("awsElasticBlockStore", 2, T::Message(&AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("hostPath", 3, T::Message(&HOST_PATH_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("glusterfs", 4, T::Message(&GLUSTERFS_PERSISTENT_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("nfs", 5, T::Message(&NFS_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("rbd", 6, T::Message(&RBD_PERSISTENT_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("iscsi", 7, T::Message(&ISCSI_PERSISTENT_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("cinder", 8, T::Message(&CINDER_PERSISTENT_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("cephfs", 9, T::Message(&CEPH_FS_PERSISTENT_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("fc", 10, T::Message(&FC_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("flocker", 11, T::Message(&FLOCKER_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("flexVolume", 12, T::Message(&FLEX_PERSISTENT_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("azureFile", 13, T::Message(&AZURE_FILE_PERSISTENT_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("vsphereVolume", 14, T::Message(&VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("quobyte", 15, T::Message(&QUOBYTE_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("azureDisk", 16, T::Message(&AZURE_DISK_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("photonPersistentDisk", 17, T::Message(&PHOTON_PERSISTENT_DISK_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("portworxVolume", 18, T::Message(&PORTWORX_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("scaleIO", 19, T::Message(&SCALE_IO_PERSISTENT_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("local", 20, T::Message(&LOCAL_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("storageos", 21, T::Message(&STORAGE_OS_PERSISTENT_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("csi", 22, T::Message(&CSI_PERSISTENT_VOLUME_SOURCE)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static PERSISTENT_VOLUME_SPEC: Message = Message { name: "io.k8s.api.core.v1.PersistentVolumeSpec", type_meta: false, atomic: false, fields: &[
    Field::new("capacity", 1, T::Quantity).map().omitempty().go("v1.ResourceList"),
    Field::new("persistentVolumeSource", 2, T::Message(&PERSISTENT_VOLUME_SOURCE)).inline(),
    Field::new("accessModes", 3, T::String).list().omitempty().go("[]v1.PersistentVolumeAccessMode").list_type(L::Atomic).one_of(&["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"]),
    Field::new("claimRef", 4, T::Message(&OBJECT_REFERENCE)).pointer().omitempty(),
    Field::new("persistentVolumeReclaimPolicy", 5, T::String).omitempty().go("v1.PersistentVolumeReclaimPolicy").one_of(&["Delete", "Recycle", "Retain"]),
    Field::new("storageClassName", 6, T::String).omitempty(),
    Field::new("mountOptions", 7, T::String).list().omitempty().list_type(L::Atomic),
    Field::new("volumeMode", 8, T::String).pointer().omitempty().go("v1.PersistentVolumeMode").one_of(&["Block", "Filesystem"]),
    Field::new("nodeAffinity", 9, T::Message(&VOLUME_NODE_AFFINITY)).pointer().omitempty(),
    Field::new("volumeAttributesClassName", 10, T::String).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static PERSISTENT_VOLUME_STATUS: Message = Message { name: "io.k8s.api.core.v1.PersistentVolumeStatus", type_meta: false, atomic: false, fields: &[
    Field::new("phase", 1, T::String).omitempty().go("v1.PersistentVolumePhase").one_of(&["Available", "Bound", "Failed", "Pending", "Released"]),
    Field::new("message", 2, T::String).omitempty(),
    Field::new("reason", 3, T::String).omitempty(),
    Field::new("lastPhaseTransitionTime", 4, T::Time).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static PHOTON_PERSISTENT_DISK_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.PhotonPersistentDiskVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("pdID", 1, T::String).required(),
    Field::new("fsType", 2, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static POD: Message = Message { name: "io.k8s.api.core.v1.Pod", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("spec", 2, T::Message(&POD_SPEC)).omitempty(),
    Field::new("status", 3, T::Message(&POD_STATUS)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static POD_AFFINITY: Message = Message { name: "io.k8s.api.core.v1.PodAffinity", type_meta: false, atomic: false, fields: &[
    Field::new("requiredDuringSchedulingIgnoredDuringExecution", 1, T::Message(&POD_AFFINITY_TERM)).list().omitempty().list_type(L::Atomic),
    Field::new("preferredDuringSchedulingIgnoredDuringExecution", 2, T::Message(&WEIGHTED_POD_AFFINITY_TERM)).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static POD_AFFINITY_TERM: Message = Message { name: "io.k8s.api.core.v1.PodAffinityTerm", type_meta: false, atomic: false, fields: &[
    Field::new("labelSelector", 1, T::Message(&super::meta_v1::LABEL_SELECTOR)).pointer().omitempty(),
    Field::new("namespaces", 2, T::String).list().omitempty().list_type(L::Atomic),
    Field::new("topologyKey", 3, T::String).required(),
    Field::new("namespaceSelector", 4, T::Message(&super::meta_v1::LABEL_SELECTOR)).pointer().omitempty(),
    Field::new("matchLabelKeys", 5, T::String).list().omitempty().list_type(L::Atomic),
    Field::new("mismatchLabelKeys", 6, T::String).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static POD_ANTI_AFFINITY: Message = Message { name: "io.k8s.api.core.v1.PodAntiAffinity", type_meta: false, atomic: false, fields: &[
    Field::new("requiredDuringSchedulingIgnoredDuringExecution", 1, T::Message(&POD_AFFINITY_TERM)).list().omitempty().list_type(L::Atomic),
    Field::new("preferredDuringSchedulingIgnoredDuringExecution", 2, T::Message(&WEIGHTED_POD_AFFINITY_TERM)).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static POD_ATTACH_OPTIONS: Message = Message { name: "io.k8s.api.core.v1.PodAttachOptions", type_meta: true, atomic: false, fields: &[
    Field::new("stdin", 1, T::Bool).omitempty(),
    Field::new("stdout", 2, T::Bool).omitempty(),
    Field::new("stderr", 3, T::Bool).omitempty(),
    Field::new("tty", 4, T::Bool).omitempty(),
    Field::new("container", 5, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static POD_CERTIFICATE_PROJECTION: Message = Message { name: "io.k8s.api.core.v1.PodCertificateProjection", type_meta: false, atomic: false, fields: &[
    Field::new("signerName", 1, T::String).omitempty().required(),
    Field::new("keyType", 2, T::String).omitempty().required(),
    Field::new("maxExpirationSeconds", 3, T::Int32).pointer().omitempty(),
    Field::new("credentialBundlePath", 4, T::String).omitempty(),
    Field::new("keyPath", 5, T::String).omitempty(),
    Field::new("certificateChainPath", 6, T::String).omitempty(),
    Field::new("userAnnotations", 7, T::String).map().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static POD_CONDITION: Message = Message { name: "io.k8s.api.core.v1.PodCondition", type_meta: false, atomic: false, fields: &[
    Field::new("type", 1, T::String).required().go("v1.PodConditionType"),
    Field::new("status", 2, T::String).required().go("v1.ConditionStatus"),
    Field::new("lastProbeTime", 3, T::Time).omitempty(),
    Field::new("lastTransitionTime", 4, T::Time).omitempty(),
    Field::new("reason", 5, T::String).omitempty(),
    Field::new("message", 6, T::String).omitempty(),
    Field::new("observedGeneration", 7, T::Int64).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static POD_DNS_CONFIG: Message = Message { name: "io.k8s.api.core.v1.PodDNSConfig", type_meta: false, atomic: false, fields: &[
    Field::new("nameservers", 1, T::String).list().omitempty().list_type(L::Atomic),
    Field::new("searches", 2, T::String).list().omitempty().list_type(L::Atomic),
    Field::new("options", 3, T::Message(&POD_DNS_CONFIG_OPTION)).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static POD_DNS_CONFIG_OPTION: Message = Message { name: "io.k8s.api.core.v1.PodDNSConfigOption", type_meta: false, atomic: false, fields: &[
    Field::new("name", 1, T::String).omitempty(),
    Field::new("value", 2, T::String).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static POD_EXEC_OPTIONS: Message = Message { name: "io.k8s.api.core.v1.PodExecOptions", type_meta: true, atomic: false, fields: &[
    Field::new("stdin", 1, T::Bool).omitempty(),
    Field::new("stdout", 2, T::Bool).omitempty(),
    Field::new("stderr", 3, T::Bool).omitempty(),
    Field::new("tty", 4, T::Bool).omitempty(),
    Field::new("container", 5, T::String).omitempty(),
    Field::new("command", 6, T::String).list(),
] };

#[rustfmt::skip]
pub(crate) static POD_EXTENDED_RESOURCE_CLAIM_STATUS: Message = Message { name: "io.k8s.api.core.v1.PodExtendedResourceClaimStatus", type_meta: false, atomic: false, fields: &[
    Field::new("requestMappings", 1, T::Message(&CONTAINER_EXTENDED_RESOURCE_REQUEST)).list().required().list_type(L::Atomic),
    Field::new("resourceClaimName", 2, T::String).required(),
] };

#[rustfmt::skip]
pub(crate) static POD_IP: Message = Message { name: "io.k8s.api.core.v1.PodIP", type_meta: false, atomic: false, fields: &[
    Field::new("ip", 1, T::String).required(),
] };

#[rustfmt::skip]
pub(crate) static POD_LIST: Message = Message { name: "io.k8s.api.core.v1.PodList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&POD)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static POD_LOG_OPTIONS: Message = Message { name: "io.k8s.api.core.v1.PodLogOptions", type_meta: true, atomic: false, fields: &[
    Field::new("container", 1, T::String).omitempty(),
    Field::new("follow", 2, T::Bool).omitempty(),
    Field::new("previous", 3, T::Bool).omitempty(),
    Field::new("sinceSeconds", 4, T::Int64).pointer().omitempty(),
    Field::new("sinceTime", 5, T::Time).pointer().omitempty(),
    Field::new("timestamps", 6, T::Bool).omitempty(),
    Field::new("tailLines", 7, T::Int64).pointer().omitempty(),
    Field::new("limitBytes", 8, T::Int64).pointer().omitempty(),
    Field::new("insecureSkipTLSVerifyBackend", 9, T::Bool).omitempty(),
    Field::new("stream", 10, T::String).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static POD_OS: Message = Message { name: "io.k8s.api.core.v1.PodOS", type_meta: false, atomic: false, fields: &[
    Field::new("name", 1, T::String).required().go("v1.OSName"),
] };

#[rustfmt::skip]
pub(crate) static POD_PORT_FORWARD_OPTIONS: Message = Message { name: "io.k8s.api.core.v1.PodPortForwardOptions", type_meta: true, atomic: false, fields: &[
    Field::new("ports", 1, T::Int32).list().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static POD_PROXY_OPTIONS: Message = Message { name: "io.k8s.api.core.v1.PodProxyOptions", type_meta: true, atomic: false, fields: &[
    Field::new("path", 1, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static POD_READINESS_GATE: Message = Message { name: "io.k8s.api.core.v1.PodReadinessGate", type_meta: false, atomic: false, fields: &[
    Field::new("conditionType", 1, T::String).required().go("v1.PodConditionType"),
] };

#[rustfmt::skip]
pub(crate) static POD_RESOURCE_CLAIM: Message = Message { name: "io.k8s.api.core.v1.PodResourceClaim", type_meta: false, atomic: false, fields: &[
    Field::new("name", 1, T::String).required(),
    Field::new("resourceClaimName", 3, T::String).pointer().omitempty(),
    Field::new("resourceClaimTemplateName", 4, T::String).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static POD_RESOURCE_CLAIM_STATUS: Message = Message { name: "io.k8s.api.core.v1.PodResourceClaimStatus", type_meta: false, atomic: false, fields: &[
    Field::new("name", 1, T::String).required(),
    Field::new("resourceClaimName", 2, T::String).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static POD_SCHEDULING_GATE: Message = Message { name: "io.k8s.api.core.v1.PodSchedulingGate", type_meta: false, atomic: false, fields: &[
    Field::new("name", 1, T::String).required(),
] };

#[rustfmt::skip]
pub(crate) static POD_SCHEDULING_GROUP: Message = Message { name: "io.k8s.api.core.v1.PodSchedulingGroup", type_meta: false, atomic: false, fields: &[
    Field::new("podGroupName", 1, T::String).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static POD_SECURITY_CONTEXT: Message = Message { name: "io.k8s.api.core.v1.PodSecurityContext", type_meta: false, atomic: false, fields: &[
    Field::new("seLinuxOptions", 1, T::Message(&SE_LINUX_OPTIONS)).pointer().omitempty(),
    Field::new("runAsUser", 2, T::Int64).pointer().omitempty(),
    Field::new("runAsNonRoot", 3, T::Bool).pointer().omitempty(),
    Field::new("supplementalGroups", 4, T::Int64).list().omitempty().list_type(L::Atomic),
    Field::new("fsGroup", 5, T::Int64).pointer().omitempty(),
    Field::new("runAsGroup", 6, T::Int64).pointer().omitempty(),
    Field::new("sysctls", 7, T::Message(&SYSCTL)).list().omitempty().list_type(L::Atomic),
    Field::new("windowsOptions", 8, T::Message(&WINDOWS_SECURITY_CONTEXT_OPTIONS)).pointer().omitempty(),
    Field::new("fsGroupChangePolicy", 9, T::String).pointer().omitempty().go("v1.PodFSGroupChangePolicy").one_of(&["Always", "OnRootMismatch"]),
    Field::new("seccompProfile", 10, T::Message(&SECCOMP_PROFILE)).pointer().omitempty(),
    Field::new("appArmorProfile", 11, T::Message(&APP_ARMOR_PROFILE)).pointer().omitempty(),
    Field::new("supplementalGroupsPolicy", 12, T::String).pointer().omitempty().go("v1.SupplementalGroupsPolicy").one_of(&["Merge", "Strict"]),
    Field::new("seLinuxChangePolicy", 13, T::String).pointer().omitempty().go("v1.PodSELinuxChangePolicy"),
] };

#[rustfmt::skip]
pub(crate) static POD_SPEC: Message = Message { name: "io.k8s.api.core.v1.PodSpec", type_meta: false, atomic: false, fields: &[
    Field::new("volumes", 1, T::Message(&VOLUME)).list().omitempty().list_type(L::Map(&["name"])).merge_key("name").patch(P::MergeRetainKeys),
    Field::new("containers", 2, T::Message(&CONTAINER)).list().required().list_type(L::Map(&["name"])).merge_key("name").patch(P::Merge),
    Field::new("restartPolicy", 3, T::String).omitempty().go("v1.RestartPolicy").one_of(&["Always", "Never", "OnFailure"]),
    Field::new("terminationGracePeriodSeconds", 4, T::Int64).pointer().omitempty(),
    Field::new("activeDeadlineSeconds", 5, T::Int64).pointer().omitempty(),
    Field::new("dnsPolicy", 6, T::String).omitempty().go("v1.DNSPolicy").one_of(&["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]),
    Field::new("nodeSelector", 7, T::String).map().omitempty().atomic(),
    Field::new("serviceAccountName", 8, T::String).omitempty(),
    Field::new("serviceAccount", 9, T::String).omitempty(),
    Field::new("nodeName", 10, T::String).omitempty(),
    Field::new("hostNetwork", 11, T::Bool).omitempty(),
    Field::new("hostPID", 12, T::Bool).omitempty(),
    Field::new("hostIPC", 13, T::Bool).omitempty(),
    Field::new("securityContext", 14, T::Message(&POD_SECURITY_CONTEXT)).pointer().omitempty(),
    Field::new("imagePullSecrets", 15, T::Message(&LOCAL_OBJECT_REFERENCE)).list().omitempty().list_type(L::Map(&["name"])).merge_key("name").patch(P::Merge),
    Field::new("hostname", 16, T::String).omitempty(),
    Field::new("subdomain", 17, T::String).omitempty(),
    Field::new("affinity", 18, T::Message(&AFFINITY)).pointer().omitempty(),
    Field::new("schedulerName", 19, T::String).omitempty(),
    Field::new("initContainers", 20, T::Message(&CONTAINER)).list().omitempty().list_type(L::Map(&["name"])).merge_key("name").patch(P::Merge),
    Field::new("automountServiceAccountToken", 21, T::Bool).pointer().omitempty(),
    Field::new("tolerations", 22, T::Message(&TOLERATION)).list().omitempty().list_type(L::Atomic),
    Field::new("hostAliases", 23, T::Message(&HOST_ALIAS)).list().omitempty().list_type(L::Map(&["ip"])).merge_key("ip").patch(P::Merge),
    Field::new("priorityClassName", 24, T::String).omitempty(),
    Field::new("priority", 25, T::Int32).pointer().omitempty(),
    Field::new("dnsConfig", 26, T::Message(&POD_DNS_CONFIG)).pointer().omitempty(),
    Field::new("shareProcessNamespace", 27, T::Bool).pointer().omitempty(),
    Field::new("readinessGates", 28, T::Message(&POD_READINESS_GATE)).list().omitempty().list_type(L::Atomic),
    Field::new("runtimeClassName", 29, T::String).pointer().omitempty(),
    Field::new("enableServiceLinks", 30, T::Bool).pointer().omitempty(),
    Field::new("preemptionPolicy", 31, T::String).pointer().omitempty().go("v1.PreemptionPolicy").one_of(&["Never", "PreemptLowerPriority"]),
    Field::new("overhead", 32, T::Quantity).map().omitempty().go("v1.ResourceList"),
    Field::new("topologySpreadConstraints", 33, T::Message(&TOPOLOGY_SPREAD_CONSTRAINT)).list().omitempty().list_type(L::Map(&["topologyKey", "whenUnsatisfiable"])).merge_key("topologyKey").patch(P::Merge),
    Field::new("ephemeralContainers", 34, T::Message(&EPHEMERAL_CONTAINER)).list().omitempty().list_type(L::Map(&["name"])).merge_key("name").patch(P::Merge),
    Field::new("setHostnameAsFQDN", 35, T::Bool).pointer().omitempty(),
    Field::new("os", 36, T::Message(&POD_OS)).pointer().omitempty(),
    Field::new("hostUsers", 37, T::Bool).pointer().omitempty(),
    Field::new("schedulingGates", 38, T::Message(&POD_SCHEDULING_GATE)).list().omitempty().list_type(L::Map(&["name"])).merge_key("name").patch(P::Merge),
    Field::new("resourceClaims", 39, T::Message(&POD_RESOURCE_CLAIM)).list().omitempty().list_type(L::Map(&["name"])).merge_key("name").patch(P::MergeRetainKeys),
    Field::new("resources", 40, T::Message(&RESOURCE_REQUIREMENTS)).pointer().omitempty(),
    Field::new("hostnameOverride", 41, T::String).pointer().omitempty(),
    Field::new("schedulingGroup", 43, T::Message(&POD_SCHEDULING_GROUP)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static POD_STATUS: Message = Message { name: "io.k8s.api.core.v1.PodStatus", type_meta: false, atomic: false, fields: &[
    Field::new("phase", 1, T::String).omitempty().go("v1.PodPhase").one_of(&["Failed", "Pending", "Running", "Succeeded", "Unknown"]),
    Field::new("conditions", 2, T::Message(&POD_CONDITION)).list().omitempty().list_type(L::Map(&["type"])).merge_key("type").patch(P::Merge),
    Field::new("message", 3, T::String).omitempty(),
    Field::new("reason", 4, T::String).omitempty(),
    Field::new("hostIP", 5, T::String).omitempty(),
    Field::new("podIP", 6, T::String).omitempty(),
    Field::new("startTime", 7, T::Time).pointer().omitempty(),
    Field::new("containerStatuses", 8, T::Message(&CONTAINER_STATUS)).list().omitempty().list_type(L::Atomic),
    Field::new("qosClass", 9, T::String).omitempty().go("v1.PodQOSClass").one_of(&["BestEffort", "Burstable", "Guaranteed"]),
    Field::new("initContainerStatuses", 10, T::Message(&CONTAINER_STATUS)).list().omitempty().list_type(L::Atomic),
    Field::new("nominatedNodeName", 11, T::String).omitempty(),
    Field::new("podIPs", 12, T::Message(&POD_IP)).list().omitempty().list_type(L::Map(&["ip"])).merge_key("ip").patch(P::Merge),
    Field::new("ephemeralContainerStatuses", 13, T::Message(&CONTAINER_STATUS)).list().omitempty().list_type(L::Atomic),
    Field::new("resize", 14, T::String).omitempty().go("v1.PodResizeStatus"),
    Field::new("resourceClaimStatuses", 15, T::Message(&POD_RESOURCE_CLAIM_STATUS)).list().omitempty().list_type(L::Map(&["name"])).merge_key("name").patch(P::MergeRetainKeys),
    Field::new("hostIPs", 16, T::Message(&HOST_IP)).list().omitempty().list_type(L::Atomic).merge_key("ip").patch(P::Merge),
    Field::new("observedGeneration", 17, T::Int64).omitempty(),
    Field::new("extendedResourceClaimStatus", 18, T::Message(&POD_EXTENDED_RESOURCE_CLAIM_STATUS)).pointer().omitempty(),
    Field::new("allocatedResources", 19, T::Quantity).map().omitempty().go("v1.ResourceList"),
    Field::new("resources", 20, T::Message(&RESOURCE_REQUIREMENTS)).pointer().omitempty(),
    Field::new("nodeAllocatableResourceClaimStatuses", 21, T::Message(&NODE_ALLOCATABLE_RESOURCE_CLAIM_STATUS)).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static POD_STATUS_RESULT: Message = Message { name: "io.k8s.api.core.v1.PodStatusResult", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("status", 2, T::Message(&POD_STATUS)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static POD_TEMPLATE: Message = Message { name: "io.k8s.api.core.v1.PodTemplate", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("template", 2, T::Message(&POD_TEMPLATE_SPEC)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static POD_TEMPLATE_LIST: Message = Message { name: "io.k8s.api.core.v1.PodTemplateList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&POD_TEMPLATE)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static POD_TEMPLATE_SPEC: Message = Message { name: "io.k8s.api.core.v1.PodTemplateSpec", type_meta: false, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("spec", 2, T::Message(&POD_SPEC)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static PORT_STATUS: Message = Message { name: "io.k8s.api.core.v1.PortStatus", type_meta: false, atomic: false, fields: &[
    Field::new("port", 1, T::Int32).required(),
    Field::new("protocol", 2, T::String).required().go("v1.Protocol").one_of(&["SCTP", "TCP", "UDP"]),
    Field::new("error", 3, T::String).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static PORTWORX_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.PortworxVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("volumeID", 1, T::String).required(),
    Field::new("fsType", 2, T::String).omitempty(),
    Field::new("readOnly", 3, T::Bool).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static PREFERRED_SCHEDULING_TERM: Message = Message { name: "io.k8s.api.core.v1.PreferredSchedulingTerm", type_meta: false, atomic: false, fields: &[
    Field::new("weight", 1, T::Int32).required(),
    Field::new("preference", 2, T::Message(&NODE_SELECTOR_TERM)).required(),
] };

#[rustfmt::skip]
pub(crate) static PROBE: Message = Message { name: "io.k8s.api.core.v1.Probe", type_meta: false, atomic: false, fields: &[
    Field::new("handler", 1, T::Message(&PROBE_HANDLER)).inline(),
    Field::new("initialDelaySeconds", 2, T::Int32).omitempty(),
    Field::new("timeoutSeconds", 3, T::Int32).omitempty(),
    Field::new("periodSeconds", 4, T::Int32).omitempty(),
    Field::new("successThreshold", 5, T::Int32).omitempty(),
    Field::new("failureThreshold", 6, T::Int32).omitempty(),
    Field::new("terminationGracePeriodSeconds", 7, T::Int64).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static PROBE_HANDLER: Message = Message { name: "io.k8s.api.core.v1.ProbeHandler", type_meta: false, atomic: false, fields: &[
    Field::new("exec", 1, T::Message(&EXEC_ACTION)).pointer().omitempty(),
    Field::new("httpGet", 2, T::Message(&HTTP_GET_ACTION)).pointer().omitempty(),
    Field::new("tcpSocket", 3, T::Message(&TCP_SOCKET_ACTION)).pointer().omitempty(),
    Field::new("grpc", 4, T::Message(&GRPC_ACTION)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static PROJECTED_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.ProjectedVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("sources", 1, T::Message(&VOLUME_PROJECTION)).list().list_type(L::Atomic),
    Field::new("defaultMode", 2, T::Int32).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static QUOBYTE_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.QuobyteVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("registry", 1, T::String).required(),
    Field::new("volume", 2, T::String).required(),
    Field::new("readOnly", 3, T::Bool).omitempty(),
    Field::new("user", 4, T::String).omitempty(),
    Field::new("group", 5, T::String).omitempty(),
    Field::new("tenant", 6, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static RBD_PERSISTENT_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.RBDPersistentVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("monitors", 1, T::String).list().required().list_type(L::Atomic),
    Field::new("image", 2, T::String).required(),
    Field::new("fsType", 3, T::String).omitempty(),
    Field::new("pool", 4, T::String).omitempty(),
    Field::new("user", 5, T::String).omitempty(),
    Field::new("keyring", 6, T::String).omitempty(),
    Field::new("secretRef", 7, T::Message(&SECRET_REFERENCE)).pointer().omitempty(),
    Field::new("readOnly", 8, T::Bool).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static RBD_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.RBDVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("monitors", 1, T::String).list().required().list_type(L::Atomic),
    Field::new("image", 2, T::String).required(),
    Field::new("fsType", 3, T::String).omitempty(),
    Field::new("pool", 4, T::String).omitempty(),
    Field::new("user", 5, T::String).omitempty(),
    Field::new("keyring", 6, T::String).omitempty(),
    Field::new("secretRef", 7, T::Message(&LOCAL_OBJECT_REFERENCE)).pointer().omitempty(),
    Field::new("readOnly", 8, T::Bool).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static RANGE_ALLOCATION: Message = Message { name: "io.k8s.api.core.v1.RangeAllocation", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("range", 2, T::String),
    Field::new("data", 3, T::Bytes),
] };

#[rustfmt::skip]
pub(crate) static REPLICATION_CONTROLLER: Message = Message { name: "io.k8s.api.core.v1.ReplicationController", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("spec", 2, T::Message(&REPLICATION_CONTROLLER_SPEC)).omitempty(),
    Field::new("status", 3, T::Message(&REPLICATION_CONTROLLER_STATUS)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static REPLICATION_CONTROLLER_CONDITION: Message = Message { name: "io.k8s.api.core.v1.ReplicationControllerCondition", type_meta: false, atomic: false, fields: &[
    Field::new("type", 1, T::String).required().go("v1.ReplicationControllerConditionType"),
    Field::new("status", 2, T::String).required().go("v1.ConditionStatus"),
    Field::new("lastTransitionTime", 3, T::Time).omitempty(),
    Field::new("reason", 4, T::String).omitempty(),
    Field::new("message", 5, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static REPLICATION_CONTROLLER_LIST: Message = Message { name: "io.k8s.api.core.v1.ReplicationControllerList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&REPLICATION_CONTROLLER)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static REPLICATION_CONTROLLER_SPEC: Message = Message { name: "io.k8s.api.core.v1.ReplicationControllerSpec", type_meta: false, atomic: false, fields: &[
    Field::new("replicas", 1, T::Int32).pointer().omitempty(),
    Field::new("selector", 2, T::String).map().omitempty().atomic(),
    Field::new("template", 3, T::Message(&POD_TEMPLATE_SPEC)).pointer().omitempty(),
    Field::new("minReadySeconds", 4, T::Int32).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static REPLICATION_CONTROLLER_STATUS: Message = Message { name: "io.k8s.api.core.v1.ReplicationControllerStatus", type_meta: false, atomic: false, fields: &[
    Field::new("replicas", 1, T::Int32).required(),
    Field::new("fullyLabeledReplicas", 2, T::Int32).omitempty(),
    Field::new("observedGeneration", 3, T::Int64).omitempty(),
    Field::new("readyReplicas", 4, T::Int32).omitempty(),
    Field::new("availableReplicas", 5, T::Int32).omitempty(),
    Field::new("conditions", 6, T::Message(&REPLICATION_CONTROLLER_CONDITION)).list().omitempty().list_type(L::Map(&["type"])).merge_key("type").patch(P::Merge),
] };

#[rustfmt::skip]
pub(crate) static RESOURCE_CLAIM: Message = Message { name: "io.k8s.api.core.v1.ResourceClaim", type_meta: false, atomic: false, fields: &[
    Field::new("name", 1, T::String).required(),
    Field::new("request", 2, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static RESOURCE_FIELD_SELECTOR: Message = Message { name: "io.k8s.api.core.v1.ResourceFieldSelector", type_meta: false, atomic: true, fields: &[
    Field::new("containerName", 1, T::String).omitempty(),
    Field::new("resource", 2, T::String).required(),
    Field::new("divisor", 3, T::Quantity).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static RESOURCE_HEALTH: Message = Message { name: "io.k8s.api.core.v1.ResourceHealth", type_meta: false, atomic: false, fields: &[
    Field::new("resourceID", 1, T::String).required().go("v1.ResourceID"),
    Field::new("health", 2, T::String).omitempty().go("v1.ResourceHealthStatus"),
    Field::new("message", 6, T::String).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static RESOURCE_QUOTA: Message = Message { name: "io.k8s.api.core.v1.ResourceQuota", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("spec", 2, T::Message(&RESOURCE_QUOTA_SPEC)).omitempty(),
    Field::new("status", 3, T::Message(&RESOURCE_QUOTA_STATUS)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static RESOURCE_QUOTA_LIST: Message = Message { name: "io.k8s.api.core.v1.ResourceQuotaList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&RESOURCE_QUOTA)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static RESOURCE_QUOTA_SPEC: Message = Message { name: "io.k8s.api.core.v1.ResourceQuotaSpec", type_meta: false, atomic: false, fields: &[
    Field::new("hard", 1, T::Quantity).map().omitempty().go("v1.ResourceList"),
    Field::new("scopes", 2, T::String).list().omitempty().go("[]v1.ResourceQuotaScope").list_type(L::Atomic).one_of(&["BestEffort", "CrossNamespacePodAffinity", "NotBestEffort", "NotTerminating", "PriorityClass", "Terminating", "VolumeAttributesClass"]),
    Field::new("scopeSelector", 3, T::Message(&SCOPE_SELECTOR)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static RESOURCE_QUOTA_STATUS: Message = Message { name: "io.k8s.api.core.v1.ResourceQuotaStatus", type_meta: false, atomic: false, fields: &[
    Field::new("hard", 1, T::Quantity).map().omitempty().go("v1.ResourceList"),
    Field::new("used", 2, T::Quantity).map().omitempty().go("v1.ResourceList"),
] };

#[rustfmt::skip]
pub(crate) static RESOURCE_REQUIREMENTS: Message = Message { name: "io.k8s.api.core.v1.ResourceRequirements", type_meta: false, atomic: false, fields: &[
    Field::new("limits", 1, T::Quantity).map().omitempty().go("v1.ResourceList"),
    Field::new("requests", 2, T::Quantity).map().omitempty().go("v1.ResourceList"),
    Field::new("claims", 3, T::Message(&RESOURCE_CLAIM)).list().omitempty().list_type(L::Map(&["name"])),
] };

#[rustfmt::skip]
pub(crate) static RESOURCE_STATUS: Message = Message { name: "io.k8s.api.core.v1.ResourceStatus", type_meta: false, atomic: false, fields: &[
    Field::new("name", 1, T::String).required().go("v1.ResourceName"),
    Field::new("resources", 2, T::Message(&RESOURCE_HEALTH)).list().omitempty().list_type(L::Map(&["resourceID"])),
] };

#[rustfmt::skip]
pub(crate) static SE_LINUX_OPTIONS: Message = Message { name: "io.k8s.api.core.v1.SELinuxOptions", type_meta: false, atomic: false, fields: &[
    Field::new("user", 1, T::String).omitempty(),
    Field::new("role", 2, T::String).omitempty(),
    Field::new("type", 3, T::String).omitempty(),
    Field::new("level", 4, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SCALE_IO_PERSISTENT_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.ScaleIOPersistentVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("gateway", 1, T::String).required(),
    Field::new("system", 2, T::String).required(),
    Field::new("secretRef", 3, T::Message(&SECRET_REFERENCE)).pointer().required(),
    Field::new("sslEnabled", 4, T::Bool).omitempty(),
    Field::new("protectionDomain", 5, T::String).omitempty(),
    Field::new("storagePool", 6, T::String).omitempty(),
    Field::new("storageMode", 7, T::String).omitempty(),
    Field::new("volumeName", 8, T::String).omitempty(),
    Field::new("fsType", 9, T::String).omitempty(),
    Field::new("readOnly", 10, T::Bool).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SCALE_IO_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.ScaleIOVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("gateway", 1, T::String).required(),
    Field::new("system", 2, T::String).required(),
    Field::new("secretRef", 3, T::Message(&LOCAL_OBJECT_REFERENCE)).pointer().required(),
    Field::new("sslEnabled", 4, T::Bool).omitempty(),
    Field::new("protectionDomain", 5, T::String).omitempty(),
    Field::new("storagePool", 6, T::String).omitempty(),
    Field::new("storageMode", 7, T::String).omitempty(),
    Field::new("volumeName", 8, T::String).omitempty(),
    Field::new("fsType", 9, T::String).omitempty(),
    Field::new("readOnly", 10, T::Bool).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SCOPE_SELECTOR: Message = Message { name: "io.k8s.api.core.v1.ScopeSelector", type_meta: false, atomic: true, fields: &[
    Field::new("matchExpressions", 1, T::Message(&SCOPED_RESOURCE_SELECTOR_REQUIREMENT)).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static SCOPED_RESOURCE_SELECTOR_REQUIREMENT: Message = Message { name: "io.k8s.api.core.v1.ScopedResourceSelectorRequirement", type_meta: false, atomic: false, fields: &[
    Field::new("scopeName", 1, T::String).required().go("v1.ResourceQuotaScope").one_of(&["BestEffort", "CrossNamespacePodAffinity", "NotBestEffort", "NotTerminating", "PriorityClass", "Terminating", "VolumeAttributesClass"]),
    Field::new("operator", 2, T::String).required().go("v1.ScopeSelectorOperator").one_of(&["DoesNotExist", "Exists", "In", "NotIn"]),
    Field::new("values", 3, T::String).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static SECCOMP_PROFILE: Message = Message { name: "io.k8s.api.core.v1.SeccompProfile", type_meta: false, atomic: false, fields: &[
    Field::new("type", 1, T::String).required().go("v1.SeccompProfileType").one_of(&["Localhost", "RuntimeDefault", "Unconfined"]),
    Field::new("localhostProfile", 2, T::String).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SECRET: Message = Message { name: "io.k8s.api.core.v1.Secret", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("data", 2, T::Bytes).map().omitempty(),
    Field::new("type", 3, T::String).omitempty().go("v1.SecretType"),
    Field::new("stringData", 4, T::String).map().omitempty(),
    Field::new("immutable", 5, T::Bool).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SECRET_ENV_SOURCE: Message = Message { name: "io.k8s.api.core.v1.SecretEnvSource", type_meta: false, atomic: false, fields: &[
    Field::new("localObjectReference", 1, T::Message(&LOCAL_OBJECT_REFERENCE)).inline(),
    Field::new("optional", 2, T::Bool).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SECRET_KEY_SELECTOR: Message = Message { name: "io.k8s.api.core.v1.SecretKeySelector", type_meta: false, atomic: true, fields: &[
    Field::new("localObjectReference", 1, T::Message(&LOCAL_OBJECT_REFERENCE)).inline(),
    Field::new("key", 2, T::String).required(),
    Field::new("optional", 3, T::Bool).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SECRET_LIST: Message = Message { name: "io.k8s.api.core.v1.SecretList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&SECRET)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static SECRET_PROJECTION: Message = Message { name: "io.k8s.api.core.v1.SecretProjection", type_meta: false, atomic: false, fields: &[
    Field::new("localObjectReference", 1, T::Message(&LOCAL_OBJECT_REFERENCE)).inline(),
    Field::new("items", 2, T::Message(&KEY_TO_PATH)).list().omitempty().list_type(L::Atomic),
    Field::new("optional", 4, T::Bool).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SECRET_REFERENCE: Message = Message { name: "io.k8s.api.core.v1.SecretReference", type_meta: false, atomic: true, fields: &[
    Field::new("name", 1, T::String).omitempty(),
    Field::new("namespace", 2, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SECRET_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.SecretVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("secretName", 1, T::String).omitempty(),
    Field::new("items", 2, T::Message(&KEY_TO_PATH)).list().omitempty().list_type(L::Atomic),
    Field::new("defaultMode", 3, T::Int32).pointer().omitempty(),
    Field::new("optional", 4, T::Bool).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SECURITY_CONTEXT: Message = Message { name: "io.k8s.api.core.v1.SecurityContext", type_meta: false, atomic: false, fields: &[
    Field::new("capabilities", 1, T::Message(&CAPABILITIES)).pointer().omitempty(),
    Field::new("privileged", 2, T::Bool).pointer().omitempty(),
    Field::new("seLinuxOptions", 3, T::Message(&SE_LINUX_OPTIONS)).pointer().omitempty(),
    Field::new("runAsUser", 4, T::Int64).pointer().omitempty(),
    Field::new("runAsNonRoot", 5, T::Bool).pointer().omitempty(),
    Field::new("readOnlyRootFilesystem", 6, T::Bool).pointer().omitempty(),
    Field::new("allowPrivilegeEscalation", 7, T::Bool).pointer().omitempty(),
    Field::new("runAsGroup", 8, T::Int64).pointer().omitempty(),
    Field::new("procMount", 9, T::String).pointer().omitempty().go("v1.ProcMountType").one_of(&["Default", "Unmasked"]),
    Field::new("windowsOptions", 10, T::Message(&WINDOWS_SECURITY_CONTEXT_OPTIONS)).pointer().omitempty(),
    Field::new("seccompProfile", 11, T::Message(&SECCOMP_PROFILE)).pointer().omitempty(),
    Field::new("appArmorProfile", 12, T::Message(&APP_ARMOR_PROFILE)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SERIALIZED_REFERENCE: Message = Message { name: "io.k8s.api.core.v1.SerializedReference", type_meta: true, atomic: false, fields: &[
    Field::new("reference", 1, T::Message(&OBJECT_REFERENCE)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SERVICE: Message = Message { name: "io.k8s.api.core.v1.Service", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("spec", 2, T::Message(&SERVICE_SPEC)).omitempty(),
    Field::new("status", 3, T::Message(&SERVICE_STATUS)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SERVICE_ACCOUNT: Message = Message { name: "io.k8s.api.core.v1.ServiceAccount", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("secrets", 2, T::Message(&OBJECT_REFERENCE)).list().omitempty().list_type(L::Map(&["name"])).merge_key("name").patch(P::Merge),
    Field::new("imagePullSecrets", 3, T::Message(&LOCAL_OBJECT_REFERENCE)).list().omitempty().list_type(L::Atomic),
    Field::new("automountServiceAccountToken", 4, T::Bool).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SERVICE_ACCOUNT_LIST: Message = Message { name: "io.k8s.api.core.v1.ServiceAccountList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&SERVICE_ACCOUNT)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static SERVICE_ACCOUNT_TOKEN_PROJECTION: Message = Message { name: "io.k8s.api.core.v1.ServiceAccountTokenProjection", type_meta: false, atomic: false, fields: &[
    Field::new("audience", 1, T::String).omitempty(),
    Field::new("expirationSeconds", 2, T::Int64).pointer().omitempty(),
    Field::new("path", 3, T::String).required(),
] };

#[rustfmt::skip]
pub(crate) static SERVICE_LIST: Message = Message { name: "io.k8s.api.core.v1.ServiceList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&SERVICE)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static SERVICE_PORT: Message = Message { name: "io.k8s.api.core.v1.ServicePort", type_meta: false, atomic: false, fields: &[
    Field::new("name", 1, T::String).omitempty(),
    Field::new("protocol", 2, T::String).omitempty().go("v1.Protocol").one_of(&["SCTP", "TCP", "UDP"]),
    Field::new("port", 3, T::Int32).required(),
    Field::new("targetPort", 4, T::IntOrString).omitempty(),
    Field::new("nodePort", 5, T::Int32).omitempty(),
    Field::new("appProtocol", 6, T::String).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SERVICE_PROXY_OPTIONS: Message = Message { name: "io.k8s.api.core.v1.ServiceProxyOptions", type_meta: true, atomic: false, fields: &[
    Field::new("path", 1, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SERVICE_SPEC: Message = Message { name: "io.k8s.api.core.v1.ServiceSpec", type_meta: false, atomic: false, fields: &[
    Field::new("ports", 1, T::Message(&SERVICE_PORT)).list().omitempty().list_type(L::Map(&["port", "protocol"])).merge_key("port").patch(P::Merge),
    Field::new("selector", 2, T::String).map().omitempty().atomic(),
    Field::new("clusterIP", 3, T::String).omitempty(),
    Field::new("type", 4, T::String).omitempty().go("v1.ServiceType").one_of(&["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]),
    Field::new("externalIPs", 5, T::String).list().omitempty().list_type(L::Atomic),
    Field::new("sessionAffinity", 7, T::String).omitempty().go("v1.ServiceAffinity").one_of(&["ClientIP", "None"]),
    Field::new("loadBalancerIP", 8, T::String).omitempty(),
    Field::new("loadBalancerSourceRanges", 9, T::String).list().omitempty().list_type(L::Atomic),
    Field::new("externalName", 10, T::String).omitempty(),
    Field::new("externalTrafficPolicy", 11, T::String).omitempty().go("v1.ServiceExternalTrafficPolicy").one_of(&["Cluster", "Local"]),
    Field::new("healthCheckNodePort", 12, T::Int32).omitempty(),
    Field::new("publishNotReadyAddresses", 13, T::Bool).omitempty(),
    Field::new("sessionAffinityConfig", 14, T::Message(&SESSION_AFFINITY_CONFIG)).pointer().omitempty(),
    Field::new("ipFamilyPolicy", 17, T::String).pointer().omitempty().go("v1.IPFamilyPolicy").one_of(&["PreferDualStack", "RequireDualStack", "SingleStack"]),
    Field::new("clusterIPs", 18, T::String).list().omitempty().list_type(L::Atomic),
    Field::new("ipFamilies", 19, T::String).list().omitempty().go("[]v1.IPFamily").list_type(L::Atomic).one_of(&["", "IPv4", "IPv6"]),
    Field::new("allocateLoadBalancerNodePorts", 20, T::Bool).pointer().omitempty(),
    Field::new("loadBalancerClass", 21, T::String).pointer().omitempty(),
    Field::new("internalTrafficPolicy", 22, T::String).pointer().omitempty().go("v1.ServiceInternalTrafficPolicy").one_of(&["Cluster", "Local"]),
    Field::new("trafficDistribution", 23, T::String).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SERVICE_STATUS: Message = Message { name: "io.k8s.api.core.v1.ServiceStatus", type_meta: false, atomic: false, fields: &[
    Field::new("loadBalancer", 1, T::Message(&LOAD_BALANCER_STATUS)).omitempty(),
    Field::new("conditions", 2, T::Message(&super::meta_v1::CONDITION)).list().omitempty().list_type(L::Map(&["type"])).merge_key("type").patch(P::Merge),
] };

#[rustfmt::skip]
pub(crate) static SESSION_AFFINITY_CONFIG: Message = Message { name: "io.k8s.api.core.v1.SessionAffinityConfig", type_meta: false, atomic: false, fields: &[
    Field::new("clientIP", 1, T::Message(&CLIENT_IP_CONFIG)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SLEEP_ACTION: Message = Message { name: "io.k8s.api.core.v1.SleepAction", type_meta: false, atomic: false, fields: &[
    Field::new("seconds", 1, T::Int64).required(),
] };

#[rustfmt::skip]
pub(crate) static STORAGE_OS_PERSISTENT_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.StorageOSPersistentVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("volumeName", 1, T::String).omitempty(),
    Field::new("volumeNamespace", 2, T::String).omitempty(),
    Field::new("fsType", 3, T::String).omitempty(),
    Field::new("readOnly", 4, T::Bool).omitempty(),
    Field::new("secretRef", 5, T::Message(&OBJECT_REFERENCE)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static STORAGE_OS_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.StorageOSVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("volumeName", 1, T::String).omitempty(),
    Field::new("volumeNamespace", 2, T::String).omitempty(),
    Field::new("fsType", 3, T::String).omitempty(),
    Field::new("readOnly", 4, T::Bool).omitempty(),
    Field::new("secretRef", 5, T::Message(&LOCAL_OBJECT_REFERENCE)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SYSCTL: Message = Message { name: "io.k8s.api.core.v1.Sysctl", type_meta: false, atomic: false, fields: &[
    Field::new("name", 1, T::String).required(),
    Field::new("value", 2, T::String).required(),
] };

#[rustfmt::skip]
pub(crate) static TCP_SOCKET_ACTION: Message = Message { name: "io.k8s.api.core.v1.TCPSocketAction", type_meta: false, atomic: false, fields: &[
    Field::new("port", 1, T::IntOrString).required(),
    Field::new("host", 2, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static TAINT: Message = Message { name: "io.k8s.api.core.v1.Taint", type_meta: false, atomic: false, fields: &[
    Field::new("key", 1, T::String).required(),
    Field::new("value", 2, T::String).omitempty(),
    Field::new("effect", 3, T::String).required().go("v1.TaintEffect").one_of(&["NoExecute", "NoSchedule", "PreferNoSchedule"]),
    Field::new("timeAdded", 4, T::Time).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static TOLERATION: Message = Message { name: "io.k8s.api.core.v1.Toleration", type_meta: false, atomic: false, fields: &[
    Field::new("key", 1, T::String).omitempty(),
    Field::new("operator", 2, T::String).omitempty().go("v1.TolerationOperator").one_of(&["Equal", "Exists", "Gt", "Lt"]),
    Field::new("value", 3, T::String).omitempty(),
    Field::new("effect", 4, T::String).omitempty().go("v1.TaintEffect").one_of(&["NoExecute", "NoSchedule", "PreferNoSchedule"]),
    Field::new("tolerationSeconds", 5, T::Int64).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static TOPOLOGY_SPREAD_CONSTRAINT: Message = Message { name: "io.k8s.api.core.v1.TopologySpreadConstraint", type_meta: false, atomic: false, fields: &[
    Field::new("maxSkew", 1, T::Int32).required(),
    Field::new("topologyKey", 2, T::String).required(),
    Field::new("whenUnsatisfiable", 3, T::String).required().go("v1.UnsatisfiableConstraintAction").one_of(&["DoNotSchedule", "ScheduleAnyway"]),
    Field::new("labelSelector", 4, T::Message(&super::meta_v1::LABEL_SELECTOR)).pointer().omitempty(),
    Field::new("minDomains", 5, T::Int32).pointer().omitempty(),
    Field::new("nodeAffinityPolicy", 6, T::String).pointer().omitempty().go("v1.NodeInclusionPolicy").one_of(&["Honor", "Ignore"]),
    Field::new("nodeTaintsPolicy", 7, T::String).pointer().omitempty().go("v1.NodeInclusionPolicy").one_of(&["Honor", "Ignore"]),
    Field::new("matchLabelKeys", 8, T::String).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static TYPED_LOCAL_OBJECT_REFERENCE: Message = Message { name: "io.k8s.api.core.v1.TypedLocalObjectReference", type_meta: false, atomic: true, fields: &[
    Field::new("apiGroup", 1, T::String).pointer(),
    Field::new("kind", 2, T::String).required(),
    Field::new("name", 3, T::String).required(),
] };

#[rustfmt::skip]
pub(crate) static TYPED_OBJECT_REFERENCE: Message = Message { name: "io.k8s.api.core.v1.TypedObjectReference", type_meta: false, atomic: false, fields: &[
    Field::new("apiGroup", 1, T::String).pointer(),
    Field::new("kind", 2, T::String).required(),
    Field::new("name", 3, T::String).required(),
    Field::new("namespace", 4, T::String).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static VOLUME: Message = Message { name: "io.k8s.api.core.v1.Volume", type_meta: false, atomic: false, fields: &[
    Field::new("name", 1, T::String).required(),
    Field::new("volumeSource", 2, T::Message(&VOLUME_SOURCE)).inline(),
] };

#[rustfmt::skip]
pub(crate) static VOLUME_DEVICE: Message = Message { name: "io.k8s.api.core.v1.VolumeDevice", type_meta: false, atomic: false, fields: &[
    Field::new("name", 1, T::String).required(),
    Field::new("devicePath", 2, T::String).required(),
] };

#[rustfmt::skip]
pub(crate) static VOLUME_MOUNT: Message = Message { name: "io.k8s.api.core.v1.VolumeMount", type_meta: false, atomic: false, fields: &[
    Field::new("name", 1, T::String).required(),
    Field::new("readOnly", 2, T::Bool).omitempty(),
    Field::new("mountPath", 3, T::String).required(),
    Field::new("subPath", 4, T::String).omitempty(),
    Field::new("mountPropagation", 5, T::String).pointer().omitempty().go("v1.MountPropagationMode").one_of(&["Bidirectional", "HostToContainer", "None"]),
    Field::new("subPathExpr", 6, T::String).omitempty(),
    Field::new("recursiveReadOnly", 7, T::String).pointer().omitempty().go("v1.RecursiveReadOnlyMode"),
] };

#[rustfmt::skip]
pub(crate) static VOLUME_MOUNT_STATUS: Message = Message { name: "io.k8s.api.core.v1.VolumeMountStatus", type_meta: false, atomic: false, fields: &[
    Field::new("name", 1, T::String).required(),
    Field::new("mountPath", 2, T::String).required(),
    Field::new("readOnly", 3, T::Bool).omitempty(),
    Field::new("recursiveReadOnly", 4, T::String).pointer().omitempty().go("v1.RecursiveReadOnlyMode"),
    Field::new("volumeStatus", 5, T::Message(&VOLUME_STATUS)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static VOLUME_NODE_AFFINITY: Message = Message { name: "io.k8s.api.core.v1.VolumeNodeAffinity", type_meta: false, atomic: false, fields: &[
    Field::new("required", 1, T::Message(&NODE_SELECTOR)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static VOLUME_PROJECTION: Message = Message { name: "io.k8s.api.core.v1.VolumeProjection", type_meta: false, atomic: false, fields: &[
    Field::new("secret", 1, T::Message(&SECRET_PROJECTION)).pointer().omitempty(),
    Field::new("downwardAPI", 2, T::Message(&DOWNWARD_API_PROJECTION)).pointer().omitempty(),
    Field::new("configMap", 3, T::Message(&CONFIG_MAP_PROJECTION)).pointer().omitempty(),
    Field::new("serviceAccountToken", 4, T::Message(&SERVICE_ACCOUNT_TOKEN_PROJECTION)).pointer().omitempty(),
    Field::new("clusterTrustBundle", 5, T::Message(&CLUSTER_TRUST_BUNDLE_PROJECTION)).pointer().omitempty(),
    Field::new("podCertificate", 6, T::Message(&POD_CERTIFICATE_PROJECTION)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static VOLUME_RESOURCE_REQUIREMENTS: Message = Message { name: "io.k8s.api.core.v1.VolumeResourceRequirements", type_meta: false, atomic: false, fields: &[
    Field::new("limits", 1, T::Quantity).map().omitempty().go("v1.ResourceList"),
    Field::new("requests", 2, T::Quantity).map().omitempty().go("v1.ResourceList"),
] };

#[rustfmt::skip]
pub(crate) static VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.VolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("hostPath", 1, T::Message(&HOST_PATH_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("emptyDir", 2, T::Message(&EMPTY_DIR_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("gcePersistentDisk", 3, T::Message(&GCE_PERSISTENT_DISK_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("awsElasticBlockStore", 4, T::Message(&AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("gitRepo", 5, T::Message(&GIT_REPO_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("secret", 6, T::Message(&SECRET_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("nfs", 7, T::Message(&NFS_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("iscsi", 8, T::Message(&ISCSI_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("glusterfs", 9, T::Message(&GLUSTERFS_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("persistentVolumeClaim", 10, T::Message(&PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("rbd", 11, T::Message(&RBD_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("flexVolume", 12, T::Message(&FLEX_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("cinder", 13, T::Message(&CINDER_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("cephfs", 14, T::Message(&CEPH_FS_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("flocker", 15, T::Message(&FLOCKER_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("downwardAPI", 16, T::Message(&DOWNWARD_API_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("fc", 17, T::Message(&FC_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("azureFile", 18, T::Message(&AZURE_FILE_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("configMap", 19, T::Message(&CONFIG_MAP_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("vsphereVolume", 20, T::Message(&VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("quobyte", 21, T::Message(&QUOBYTE_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("azureDisk", 22, T::Message(&AZURE_DISK_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("photonPersistentDisk", 23, T::Message(&PHOTON_PERSISTENT_DISK_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("portworxVolume", 24, T::Message(&PORTWORX_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("scaleIO", 25, T::Message(&SCALE_IO_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("projected", 26, T::Message(&PROJECTED_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("storageos", 27, T::Message(&STORAGE_OS_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("csi", 28, T::Message(&CSI_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("ephemeral", 29, T::Message(&EPHEMERAL_VOLUME_SOURCE)).pointer().omitempty(),
    Field::new("image", 30, T::Message(&IMAGE_VOLUME_SOURCE)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static VOLUME_STATUS: Message = Message { name: "io.k8s.api.core.v1.VolumeStatus", type_meta: false, atomic: false, fields: &[
    Field::new("image", 1, T::Message(&IMAGE_VOLUME_STATUS)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE: Message = Message { name: "io.k8s.api.core.v1.VsphereVirtualDiskVolumeSource", type_meta: false, atomic: false, fields: &[
    Field::new("volumePath", 1, T::String).required(),
    Field::new("fsType", 2, T::String).omitempty(),
    Field::new("storagePolicyName", 3, T::String).omitempty(),
    Field::new("storagePolicyID", 4, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static WEIGHTED_POD_AFFINITY_TERM: Message = Message { name: "io.k8s.api.core.v1.WeightedPodAffinityTerm", type_meta: false, atomic: false, fields: &[
    Field::new("weight", 1, T::Int32).required(),
    Field::new("podAffinityTerm", 2, T::Message(&POD_AFFINITY_TERM)).required(),
] };

#[rustfmt::skip]
pub(crate) static WINDOWS_SECURITY_CONTEXT_OPTIONS: Message = Message { name: "io.k8s.api.core.v1.WindowsSecurityContextOptions", type_meta: false, atomic: false, fields: &[
    Field::new("gmsaCredentialSpecName", 1, T::String).pointer().omitempty(),
    Field::new("gmsaCredentialSpec", 2, T::String).pointer().omitempty(),
    Field::new("runAsUserName", 3, T::String).pointer().omitempty(),
    Field::new("hostProcess", 4, T::Bool).pointer().omitempty(),
] };
