//! `io.k8s.apimachinery.pkg.apis.meta.v1`, written by `cargo xtask schema`; do not edit.

use crate::message::{Field, ListType as L, Message, PatchStrategy as P, Type as T};

#[rustfmt::skip]
pub(crate) static API_GROUP: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroup", type_meta: true, atomic: false, fields: &[
    Field::new("name", 1, T::String).required(),
    Field::new("versions", 2, T::Message(&GROUP_VERSION_FOR_DISCOVERY)).list().required().list_type(L::Atomic),
    Field::new("preferredVersion", 3, T::Message(&GROUP_VERSION_FOR_DISCOVERY)).omitempty(),
    Field::new("serverAddressByClientCIDRs", 4, T::Message(&SERVER_ADDRESS_BY_CLIENT_CIDR)).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static API_GROUP_LIST: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroupList", type_meta: true, atomic: false, fields: &[
    Field::new("groups", 1, T::Message(&API_GROUP)).list().required().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static API_RESOURCE: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.APIResource", type_meta: false, atomic: false, fields: &[
    Field::new("name", 1, T::String).required(),
    Field::new("namespaced", 2, T::Bool).required(),
    Field::new("kind", 3, T::String).required(),
    Field::new("verbs", 4, T::Strings).required(),
    Field::new("shortNames", 5, T::String).list().omitempty().list_type(L::Atomic),
    Field::new("singularName", 6, T::String).required(),
    Field::new("categories", 7, T::String).list().omitempty().list_type(L::Atomic),
    Field::new("group", 8, T::String).omitempty(),
    Field::new("version", 9, T::String).omitempty(),
    Field::new("storageVersionHash", 10, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static API_RESOURCE_LIST: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList", type_meta: true, atomic: false, fields: &[
    Field::new("groupVersion", 1, T::String).required(),
    Field::new("resources", 2, T::Message(&API_RESOURCE)).list().required().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static API_VERSIONS: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.APIVersions", type_meta: true, atomic: false, fields: &[
    Field::new("versions", 1, T::String).list().required().list_type(L::Atomic),
    Field::new("serverAddressByClientCIDRs", 2, T::Message(&SERVER_ADDRESS_BY_CLIENT_CIDR)).list().required().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static APPLY_OPTIONS: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.ApplyOptions", type_meta: true, atomic: false, fields: &[
    Field::new("dryRun", 1, T::String).list().omitempty(),
    Field::new("force", 2, T::Bool),
    Field::new("fieldManager", 3, T::String),
] };

#[rustfmt::skip]
pub(crate) static CONDITION: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.Condition", type_meta: false, atomic: false, fields: &[
    Field::new("type", 1, T::String).required(),
    Field::new("status", 2, T::String).required().go("v1.ConditionStatus"),
    Field::new("observedGeneration", 3, T::Int64).omitempty(),
    Field::new("lastTransitionTime", 4, T::Time).required(),
    Field::new("reason", 5, T::String).required(),
    Field::new("message", 6, T::String).required(),
] };

#[rustfmt::skip]
pub(crate) static CREATE_OPTIONS: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.CreateOptions", type_meta: true, atomic: false, fields: &[
    Field::new("dryRun", 1, T::String).list().omitempty(),
    Field::new("fieldManager", 3, T::String).omitempty(),
    Field::new("fieldValidation", 4, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static DELETE_OPTIONS: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions", type_meta: true, atomic: false, fields: &[
    Field::new("gracePeriodSeconds", 1, T::Int64).pointer().omitempty(),
    Field::new("preconditions", 2, T::Message(&PRECONDITIONS)).pointer().omitempty(),
    Field::new("orphanDependents", 3, T::Bool).pointer().omitempty(),
    Field::new("propagationPolicy", 4, T::String).pointer().omitempty().go("v1.DeletionPropagation"),
    Field::new("dryRun", 5, T::String).list().omitempty().list_type(L::Atomic),
    Field::new("ignoreStoreReadErrorWithClusterBreakingPotential", 6, T::Bool).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static FIELD_SELECTOR_REQUIREMENT: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.FieldSelectorRequirement", type_meta: false, atomic: false, fields: &[
    Field::new("key", 1, T::String).required(),
    Field::new("operator", 2, T::String).required().go("v1.FieldSelectorOperator"),
    Field::new("values", 3, T::String).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static GET_OPTIONS: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.GetOptions", type_meta: true, atomic: false, fields: &[
    Field::new("resourceVersion", 1, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static GROUP_VERSION_FOR_DISCOVERY: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.GroupVersionForDiscovery", type_meta: false, atomic: false, fields: &[
    Field::new("groupVersion", 1, T::String).required(),
    Field::new("version", 2, T::String).required(),
] };

#[rustfmt::skip]
pub(crate) static LABEL_SELECTOR: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector", type_meta: false, atomic: true, fields: &[
    Field::new("matchLabels", 1, T::String).map().omitempty(),
    Field::new("matchExpressions", 2, T::Message(&LABEL_SELECTOR_REQUIREMENT)).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static LABEL_SELECTOR_REQUIREMENT: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelectorRequirement", type_meta: false, atomic: false, fields: &[
    Field::new("key", 1, T::String).required(),
    Field::new("operator", 2, T::String).required().go("v1.LabelSelectorOperator"),
    Field::new("values", 3, T::String).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static LIST: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.List", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&LIST_META)).omitempty(),
    Field::new("items", 2, T::RawExtension).list(),
] };

#[rustfmt::skip]
pub(crate) static LIST_META: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta", type_meta: false, atomic: false, fields: &[
    Field::new("selfLink", 1, T::String).omitempty(),
    Field::new("resourceVersion", 2, T::String).omitempty(),
    Field::new("continue", 3, T::String).omitempty(),
    Field::new("remainingItemCount", 4, T::Int64).pointer().omitempty(),
    Field::new("shardInfo", 5, T::Message(&SHARD_INFO)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static LIST_OPTIONS: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.ListOptions", type_meta: true, atomic: false, fields: &[
    Field::new("labelSelector", 1, T::String).omitempty(),
    Field::new("fieldSelector", 2, T::String).omitempty(),
    Field::new("watch", 3, T::Bool).omitempty(),
    Field::new("resourceVersion", 4, T::String).omitempty(),
    Field::new("timeoutSeconds", 5, T::Int64).pointer().omitempty(),
    Field::new("limit", 7, T::Int64).omitempty(),
    Field::new("continue", 8, T::String).omitempty(),
    Field::new("allowWatchBookmarks", 9, T::Bool).omitempty(),
    Field::new("resourceVersionMatch", 10, T::String).omitempty().go("v1.ResourceVersionMatch"),
    Field::new("sendInitialEvents", 11, T::Bool).pointer().omitempty(),
    Field::new("shardSelector", 15, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static MANAGED_FIELDS_ENTRY: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry", type_meta: false, atomic: false, fields: &[
    Field::new("manager", 1, T::String).omitempty(),
    Field::new("operation", 2, T::String).omitempty().go("v1.ManagedFieldsOperationType"),
    Field::new("apiVersion", 3, T::String).omitempty(),
    Field::new("time", 4, T::Time).pointer().omitempty(),
    Field::new("fieldsType", 6, T::String).omitempty(),
    Field::new("fieldsV1", 7, T::FieldsV1).pointer().omitempty(),
    Field::new("subresource", 8, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static OBJECT_META: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", type_meta: false, atomic: false, fields: &[
    Field::new("name", 1, T::String).omitempty(),
    Field::new("generateName", 2, T::String).omitempty(),
    Field::new("namespace", 3, T::String).omitempty(),
    Field::new("selfLink", 4, T::String).omitempty(),
    Field::new("uid", 5, T::String).omitempty().go("types.UID"),
    Field::new("resourceVersion", 6, T::String).omitempty(),
    Field::new("generation", 7, T::Int64).omitempty(),
    Field::new("creationTimestamp", 8, T::Time).omitzero(),
    Field::new("deletionTimestamp", 9, T::Time).pointer().omitempty(),
    Field::new("deletionGracePeriodSeconds", 10, T::Int64).pointer().omitempty(),
    Field::new("labels", 11, T::String).map().omitempty(),
    Field::new("annotations", 12, T::String).map().omitempty(),
    Field::new("ownerReferences", 13, T::Message(&OWNER_REFERENCE)).list().omitempty().list_type(L::Map(&["uid"])).merge_key("uid").patch(P::Merge),
    Field::new("finalizers", 14, T::String).list().omitempty().list_type(L::Set).patch(P::Merge),
    Field::new("managedFields", 17, T::Message(&MANAGED_FIELDS_ENTRY)).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static OWNER_REFERENCE: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference", type_meta: false, atomic: true, fields: &[
    Field::new("kind", 1, T::String).required(),
    Field::new("name", 3, T::String).required(),
    Field::new("uid", 4, T::String).required().go("types.UID"),
    Field::new("apiVersion", 5, T::String).required(),
    Field::new("controller", 6, T::Bool).pointer().omitempty(),
    Field::new("blockOwnerDeletion", 7, T::Bool).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static PARTIAL_OBJECT_METADATA: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadata", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&OBJECT_META)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static PARTIAL_OBJECT_METADATA_LIST: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadataList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&PARTIAL_OBJECT_METADATA)).list(),
] };

#[rustfmt::skip]
pub(crate) static PATCH_OPTIONS: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.PatchOptions", type_meta: true, atomic: false, fields: &[
    Field::new("dryRun", 1, T::String).list().omitempty(),
    Field::new("force", 2, T::Bool).pointer().omitempty(),
    Field::new("fieldManager", 3, T::String).omitempty(),
    Field::new("fieldValidation", 4, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static PRECONDITIONS: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.Preconditions", type_meta: false, atomic: false, fields: &[
    Field::new("uid", 1, T::String).pointer().omitempty().go("types.UID"),
    Field::new("resourceVersion", 2, T::String).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SERVER_ADDRESS_BY_CLIENT_CIDR: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.ServerAddressByClientCIDR", type_meta: false, atomic: false, fields: &[
    Field::new("clientCIDR", 1, T::String).required(),
    Field::new("serverAddress", 2, T::String).required(),
] };

#[rustfmt::skip]
pub(crate) static SHARD_INFO: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.ShardInfo", type_meta: false, atomic: false, fields: &[
    Field::new("selector", 1, T::String).required(),
] };

#[rustfmt::skip]
pub(crate) static STATUS: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.Status", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&LIST_META)).omitempty(),
    Field::new("status", 2, T::String).omitempty(),
    Field::new("message", 3, T::String).omitempty(),
    Field::new("reason", 4, T::String).omitempty().go("v1.StatusReason"),
    Field::new("details", 5, T::Message(&STATUS_DETAILS)).pointer().omitempty(),
    Field::new("code", 6, T::Int32).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static STATUS_CAUSE: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.StatusCause", type_meta: false, atomic: false, fields: &[
    Field::new("reason", 1, T::String).omitempty().go("v1.CauseType"),
    Field::new("message", 2, T::String).omitempty(),
    Field::new("field", 3, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static STATUS_DETAILS: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.StatusDetails", type_meta: false, atomic: false, fields: &[
    Field::new("name", 1, T::String).omitempty(),
    Field::new("group", 2, T::String).omitempty(),
    Field::new("kind", 3, T::String).omitempty(),
    Field::new("causes", 4, T::Message(&STATUS_CAUSE)).list().omitempty().list_type(L::Atomic),
    Field::new("retryAfterSeconds", 5, T::Int32).omitempty(),
    Field::new("uid", 6, T::String).omitempty().go("types.UID"),
] };

#[rustfmt::skip]
pub(crate) static TABLE_OPTIONS: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.TableOptions", type_meta: true, atomic: false, fields: &[
    Field::new("includeObject", 1, T::String).omitempty().go("v1.IncludeObjectPolicy"),
] };

#[rustfmt::skip]
pub(crate) static UPDATE_OPTIONS: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.UpdateOptions", type_meta: true, atomic: false, fields: &[
    Field::new("dryRun", 1, T::String).list().omitempty(),
    Field::new("fieldManager", 2, T::String).omitempty(),
    Field::new("fieldValidation", 3, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static WATCH_EVENT: Message = Message { name: "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent", type_meta: false, atomic: false, fields: &[
    Field::new("type", 1, T::String).required(),
    Field::new("object", 2, T::RawExtension).required(),
] };
