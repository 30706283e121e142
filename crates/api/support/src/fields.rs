//! The tables, one file per type of the API or per group of small ones.

mod container;
mod environment;
mod ephemeral_container;
mod lifecycle;
mod names;
mod pod_security_context;
mod pod_spec;
mod probe;
mod scheduling;
mod security_context;
mod volume;
mod volume_content;
mod volume_mount;

use crate::Table;

/// Every table, in the order in which a reader meets the types.
pub const TABLES: &[Table] = &[
    pod_spec::POD_SPEC,
    pod_spec::POD_OS,
    pod_spec::POD_READINESS_GATE,
    names::POD_DNS_CONFIG,
    names::POD_DNS_CONFIG_OPTION,
    names::HOST_ALIAS,
    scheduling::AFFINITY,
    scheduling::NODE_AFFINITY,
    scheduling::NODE_SELECTOR,
    scheduling::NODE_SELECTOR_TERM,
    scheduling::NODE_SELECTOR_REQUIREMENT,
    scheduling::POD_SCHEDULING_GATE,
    scheduling::TOLERATION,
    pod_security_context::POD_SECURITY_CONTEXT,
    pod_security_context::SECCOMP_PROFILE,
    container::CONTAINER,
    container::RESOURCE_REQUIREMENTS,
    container::CONTAINER_PORT,
    ephemeral_container::EPHEMERAL_CONTAINER,
    environment::ENV_VAR,
    environment::ENV_VAR_SOURCE,
    environment::CONFIG_MAP_KEY_SELECTOR,
    environment::SECRET_KEY_SELECTOR,
    environment::OBJECT_FIELD_SELECTOR,
    environment::RESOURCE_FIELD_SELECTOR,
    environment::ENV_FROM_SOURCE,
    environment::CONFIG_MAP_ENV_SOURCE,
    environment::SECRET_ENV_SOURCE,
    security_context::SECURITY_CONTEXT,
    security_context::CAPABILITIES,
    probe::PROBE,
    probe::EXEC_ACTION,
    probe::HTTP_GET_ACTION,
    probe::HTTP_HEADER,
    probe::TCP_SOCKET_ACTION,
    probe::GRPC_ACTION,
    lifecycle::LIFECYCLE,
    lifecycle::LIFECYCLE_HANDLER,
    lifecycle::SLEEP_ACTION,
    volume_mount::VOLUME_MOUNT,
    volume::VOLUME,
    volume::EMPTY_DIR_VOLUME_SOURCE,
    volume::HOST_PATH_VOLUME_SOURCE,
    volume_content::CONFIG_MAP_VOLUME_SOURCE,
    volume_content::SECRET_VOLUME_SOURCE,
    volume_content::KEY_TO_PATH,
    volume_content::DOWNWARD_API_VOLUME_SOURCE,
    volume_content::DOWNWARD_API_VOLUME_FILE,
    volume_content::PROJECTED_VOLUME_SOURCE,
    volume_content::VOLUME_PROJECTION,
    volume_content::CONFIG_MAP_PROJECTION,
    volume_content::SECRET_PROJECTION,
    volume_content::DOWNWARD_API_PROJECTION,
    volume_content::SERVICE_ACCOUNT_TOKEN_PROJECTION,
];
