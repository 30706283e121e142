//! A volume, and what it is made of.

use crate::{
    Table,
    row::{refused, works},
};

const DISK: &str = "no disk is attached: mount it on the host and name it by a hostPath";
const NETWORK: &str = "no network file system is mounted: mount it on the host and name it by a hostPath";
const DRIVER: &str = "there are no drivers of volumes here: use a hostPath or an emptyDir";
const PERSISTENT: &str =
    "there are no persistent volumes here: use a hostPath, or an emptyDir for what may go with the pod";
const STORAGE: &str = "crates/hotmap/tests/node/storage.rs::a_pod_that_takes_too_much_is_evicted_and_memory_ends_where_it_should";
const TYPES: &str =
    "crates/node/agent/src/volumes/host_path.rs::what_is_there_must_be_of_its_type_and_some_types_are_made";
const SHARED: &str =
    "crates/hotmap/tests/node/volumes.rs::containers_share_an_empty_dir_and_the_hosts_directory";
const VOLUMES: &str =
    "crates/hotmap/tests/node/volumes.rs::every_kind_of_configuration_has_its_content_owner_and_mode";

pub(super) const VOLUME: Table = Table {
    message: "Volume",
    rows: &[
        refused("awsElasticBlockStore", DISK),
        refused("azureDisk", DISK),
        refused("azureFile", NETWORK),
        refused("cephfs", NETWORK),
        refused("cinder", DISK),
        works("configMap", "files that follow every change", &[VOLUMES]),
        refused("csi", DRIVER),
        works("downwardAPI", "fields of the pod as files", &[VOLUMES]),
        works("emptyDir", "a directory that lives as long as the pod", &[SHARED]),
        refused("ephemeral", PERSISTENT),
        refused("fc", DISK),
        refused("flexVolume", DRIVER),
        refused("flocker", DRIVER),
        refused("gcePersistentDisk", DISK),
        refused(
            "gitRepo",
            "nothing is cloned: let an init container do it into an emptyDir",
        ),
        refused("glusterfs", NETWORK),
        works(
            "hostPath",
            "a directory, file or socket of the host",
            &[SHARED, TYPES],
        ),
        refused(
            "image",
            "no image is pulled: an image names a program of the host",
        ),
        refused("iscsi", DISK),
        works("name", "for mounts", &[VOLUMES]),
        refused("nfs", NETWORK),
        refused("persistentVolumeClaim", PERSISTENT),
        refused("photonPersistentDisk", DISK),
        refused("portworxVolume", DISK),
        works("projected", "several sources in one directory", &[VOLUMES]),
        refused("quobyte", DISK),
        refused("rbd", DISK),
        refused("scaleIO", DISK),
        works(
            "secret",
            "files that follow every change, in memory only",
            &[VOLUMES],
        ),
        refused("storageos", DISK),
        refused("vsphereVolume", DISK),
    ],
};

pub(super) const EMPTY_DIR_VOLUME_SOURCE: Table = Table {
    message: "EmptyDirVolumeSource",
    rows: &[
        works("medium", "the disk, or Memory", &[SHARED]),
        works(
            "sizeLimit",
            "in memory the size of the volume; on disk a pod that exceeds it is evicted, within some 10 s",
            &[
                STORAGE,
                "crates/node/agent/src/storage.rs::a_pod_goes_when_a_part_of_it_takes_more_than_its_limit",
            ],
        ),
    ],
};

pub(super) const HOST_PATH_VOLUME_SOURCE: Table = Table {
    message: "HostPathVolumeSource",
    rows: &[
        works(
            "path",
            "of the host; its owners and modes count as for a stranger",
            &[SHARED],
        ),
        works(
            "type",
            "checked, and made where the type says so; devices can be seen, not opened",
            &[TYPES, STORAGE],
        ),
    ],
};
