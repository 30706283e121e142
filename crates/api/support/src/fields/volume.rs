//! A volume, and what it is made of.

use crate::{
    State, Table,
    row::{refused, works},
};

const KIND: &str = "this kind of volume is not supported";
const SHARED: &str =
    "crates/hotmap/tests/node/volumes.rs::containers_share_an_empty_dir_and_the_hosts_directory";
const VOLUMES: &str =
    "crates/hotmap/tests/node/volumes.rs::every_kind_of_configuration_has_its_content_owner_and_mode";

pub(super) const VOLUME: Table = Table {
    message: "Volume",
    rows: &[
        refused("awsElasticBlockStore", KIND),
        refused("azureDisk", KIND),
        refused("azureFile", KIND),
        refused("cephfs", KIND),
        refused("cinder", KIND),
        works("configMap", "files that follow every change", &[VOLUMES]),
        refused("csi", KIND),
        works("downwardAPI", "fields of the pod as files", &[VOLUMES]),
        works("emptyDir", "a directory that lives as long as the pod", &[SHARED]),
        refused("ephemeral", KIND),
        refused("fc", KIND),
        refused("flexVolume", KIND),
        refused("flocker", KIND),
        refused("gcePersistentDisk", KIND),
        refused("gitRepo", KIND),
        refused("glusterfs", KIND),
        works("hostPath", "a directory of the host", &[SHARED]),
        refused(
            "image",
            "no image is pulled: an image names a program of the host",
        ),
        refused("iscsi", KIND),
        works("name", "for mounts", &[VOLUMES]),
        refused("nfs", KIND),
        refused("persistentVolumeClaim", KIND),
        refused("photonPersistentDisk", KIND),
        refused("portworxVolume", KIND),
        works("projected", "several sources in one directory", &[VOLUMES]),
        refused("quobyte", KIND),
        refused("rbd", KIND),
        refused("scaleIO", KIND),
        works(
            "secret",
            "files that follow every change, in memory only",
            &[VOLUMES],
        ),
        refused("storageos", KIND),
        refused("vsphereVolume", KIND),
    ],
};

pub(super) const EMPTY_DIR_VOLUME_SOURCE: Table = Table {
    message: "EmptyDirVolumeSource",
    rows: &[
        works("medium", "the disk, or Memory", &[SHARED]),
        refused("sizeLimit", "the size of an emptyDir is not limited"),
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
            "Directory, DirectoryOrCreate or none",
            &["crates/hotmap/tests/node/fields.rs::small_fields_are_seen_from_inside"],
        )
        .only(
            &["", "Directory", "DirectoryOrCreate"],
            State::Refused,
            "only directories are mounted",
        ),
    ],
};
