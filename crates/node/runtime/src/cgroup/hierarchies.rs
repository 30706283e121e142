//! Which hierarchies there are, and what each is good for: from the mount table, and what a cgroup v2 says of itself.

use std::fs;
use std::path::{Path, PathBuf};

use super::plan::{Controller, Version};
use crate::mountinfo::Mount;

/// A mounted hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    pub(crate) version: Version,
    pub(crate) mount: PathBuf,
    /// What it can do for us. Each controller is in one hierarchy only; the second has it of a cgroup v2 without any.
    pub(crate) controllers: Vec<Controller>,
}

/// The hierarchies that matter: the cgroup v2, also without controllers, for it names and kills; then those of v1 that have a
/// controller which v2 has not.
pub(crate) fn find(mounts: &[Mount]) -> Vec<Hierarchy> {
    let mut found = Vec::new();
    if let Some(mount) = mounts.iter().rfind(|mount| mount.fs_type == "cgroup2") {
        found.push(Hierarchy {
            version: Version::V2,
            mount: mount.target.clone(),
            controllers: listed(&mount.target.join("cgroup.controllers")),
        });
    }
    for controller in Controller::ALL {
        let is_taken = |one: &Hierarchy| one.controllers.contains(&controller);
        if found.iter().any(is_taken) {
            continue;
        }
        let has_it = |mount: &&Mount| {
            let mut options = mount.super_options.split(',');
            mount.fs_type == "cgroup" && options.any(|option| option == controller.name())
        };
        let Some(mount) = mounts.iter().rfind(has_it) else {
            continue;
        };
        match found
            .iter_mut()
            .find(|one| one.version == Version::V1 && one.mount == mount.target)
        {
            Some(together) => together.controllers.push(controller),
            None => found.push(Hierarchy {
                version: Version::V1,
                mount: mount.target.clone(),
                controllers: vec![controller],
            }),
        }
    }
    found
}

/// The controllers named in a file of a cgroup v2; none if it cannot be read.
pub(super) fn listed(file: &Path) -> Vec<Controller> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let named = |controller: &Controller| {
        text.split_ascii_whitespace()
            .any(|name| name == controller.name())
    };
    Controller::ALL.into_iter().filter(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mountinfo;

    #[test]
    fn every_controller_is_taken_from_where_it_is() {
        let separate = ["cpu", "memory", "pids"].as_slice();
        // What cgroup v2 has, if it is mounted; the hierarchies of v1; what is found.
        let table: [(Option<&str>, &[&str], &str); 6] = [
            (
                Some("cpuset cpu io memory hugetlb pids\n"),
                &[],
                "V2 unified cpu memory pids",
            ),
            (
                Some("hugetlb\n"),
                separate,
                "V2 unified, V1 cpu cpu, V1 memory memory, V1 pids pids",
            ),
            (
                Some("pids\n"),
                &["cpu,cpuacct", "memory", "pids"],
                "V2 unified pids, V1 cpu,cpuacct cpu, V1 memory memory",
            ),
            (None, &["pids"], "V1 pids pids"),
            (None, &["cpu,pids"], "V1 cpu,pids cpu pids"),
            (None, &[], ""),
        ];
        for (unified, others, expected) in table {
            let fake = tempfile::tempdir().expect("a directory");
            let root = fake.path().display();
            let mut mounts = String::new();
            for name in others {
                mounts += &format!("9 1 0:9 / {root}/{name} rw - cgroup cgroup rw,{name}\n");
            }
            if let Some(controllers) = unified {
                fs::create_dir(fake.path().join("unified")).expect("made");
                fs::write(fake.path().join("unified/cgroup.controllers"), controllers).expect("written");
                mounts += &format!("8 1 0:8 / {root}/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n");
            }
            let shown: Vec<String> = find(&mountinfo::parse(mounts.as_bytes()))
                .iter()
                .map(|one| {
                    let name = one.mount.strip_prefix(fake.path()).expect("below");
                    let mut words = vec![format!("{:?}", one.version), name.display().to_string()];
                    words.extend(one.controllers.iter().map(|one| one.name().to_owned()));
                    words.join(" ")
                })
                .collect();
            assert_eq!(shown.join(", "), expected, "{mounts}");
        }
    }
}
