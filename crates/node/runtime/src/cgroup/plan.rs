//! What is written into which file of a cgroup, so that its processes have what they may use. No I/O.

use crate::spec::Resources;

/// The time in which a quota of CPU time may be used up, in microseconds: a kubelet's `cpuCFSQuotaPeriod`.
const PERIOD_MICROS: u64 = 100_000;

/// The kernel's share of a cgroup that nobody said anything about.
const SHARES_DEFAULT: u64 = 1_024;

/// What a hierarchy can count and limit, as far as pods are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Controller {
    Cpu,
    Memory,
    Pids,
}

impl Controller {
    pub(crate) const ALL: [Self; 3] = [Self::Cpu, Self::Memory, Self::Pids];

    /// The kernel's name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Pids => "pids",
        }
    }
}

/// Which of the kernel's two interfaces a hierarchy has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V1,
    V2,
}

/// Whose cgroup it is: they differ in what is set where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// All pods of an instance.
    Instance,
    /// One pod with its shim: its share.
    Pod,
    /// All containers of a pod: its limits.
    Containers,
    /// One container.
    Container,
}

/// One file, and what it is to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) file: &'static str,
    pub(crate) text: String,
    /// Without it a limit would not be in force; others depend on how the kernel was built.
    pub(crate) is_required: bool,
}

impl Setting {
    fn required(file: &'static str, text: impl ToString) -> Self {
        Self {
            file,
            text: text.to_string(),
            is_required: true,
        }
    }

    fn optional(file: &'static str, text: impl ToString) -> Self {
        Self {
            is_required: false,
            ..Self::required(file, text)
        }
    }
}

/// What to write, in this order. A limit that is not asked for is lifted: the cgroup may be one that is used again.
pub(crate) fn settings(
    version: Version,
    controller: Controller,
    level: Level,
    resources: &Resources,
) -> Vec<Setting> {
    let mut settings = Vec::new();
    match controller {
        Controller::Cpu => {
            if level != Level::Containers {
                settings.push(share(version, resources.cpu_shares));
            }
            if matches!(level, Level::Containers | Level::Container) {
                settings.extend(quota(version, resources.cpu_quota_micros));
            }
        }
        Controller::Memory if matches!(level, Level::Containers | Level::Container) => {
            settings.extend(memory(version, resources.memory_bytes));
            if version == Version::V2 && level == Level::Container {
                // Half a container is of no use to anybody (`singleProcessOOMKill: false`, the kubelet's default on v2).
                settings.push(Setting::optional("memory.oom.group", 1));
            }
        }
        Controller::Pids if matches!(level, Level::Instance | Level::Containers) => {
            let text = resources.pids.map_or("max".to_owned(), |pids| pids.to_string());
            settings.push(Setting::required("pids.max", text));
        }
        Controller::Memory | Controller::Pids => {}
    }
    settings
}

fn share(version: Version, shares: Option<u64>) -> Setting {
    match (version, shares) {
        (Version::V1, shares) => Setting::required("cpu.shares", shares.unwrap_or(SHARES_DEFAULT)),
        (Version::V2, Some(shares)) => Setting::required("cpu.weight", weight(shares)),
        (Version::V2, None) => Setting::required("cpu.weight", 100),
    }
}

/// As `getCPUWeight` in `pkg/kubelet/cm`, Kubernetes 1.36: 2 to 262144 becomes 1 to 10000.
fn weight(shares: u64) -> u64 {
    1 + (shares.clamp(2, 262_144) - 2) * 9_999 / 262_142
}

fn quota(version: Version, quota_micros: Option<u64>) -> Vec<Setting> {
    match version {
        Version::V1 => vec![
            Setting::required("cpu.cfs_period_us", PERIOD_MICROS),
            Setting::required(
                "cpu.cfs_quota_us",
                quota_micros.map_or("-1".to_owned(), |micros| micros.to_string()),
            ),
        ],
        Version::V2 => {
            let quota = quota_micros.map_or("max".to_owned(), |micros| micros.to_string());
            vec![Setting::required("cpu.max", format!("{quota} {PERIOD_MICROS}"))]
        }
    }
}

/// Swap would be a way around the limit, so there is none, where the kernel counts it.
fn memory(version: Version, bytes: Option<u64>) -> Vec<Setting> {
    match (version, bytes) {
        (Version::V1, Some(bytes)) => vec![
            Setting::required("memory.limit_in_bytes", bytes),
            // Never below the one before, hence after it.
            Setting::optional("memory.memsw.limit_in_bytes", bytes),
        ],
        (Version::V1, None) => vec![
            Setting::optional("memory.memsw.limit_in_bytes", -1),
            Setting::required("memory.limit_in_bytes", -1),
        ],
        (Version::V2, Some(bytes)) => vec![
            Setting::required("memory.max", bytes),
            Setting::optional("memory.swap.max", 0),
        ],
        (Version::V2, None) => vec![
            Setting::required("memory.max", "max"),
            Setting::optional("memory.swap.max", "max"),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(version: Version, level: Level, resources: &Resources) -> Vec<String> {
        let all = Controller::ALL.into_iter();
        all.flat_map(|controller| settings(version, controller, level, resources))
            .map(|one| {
                let mark = if one.is_required { "" } else { "?" };
                format!("{}{mark}={}", one.file, one.text)
            })
            .collect()
    }

    #[test]
    fn each_level_has_its_files_in_both_versions() {
        let resources = Resources {
            cpu_shares: Some(512),
            cpu_quota_micros: Some(25_000),
            memory_bytes: Some(32 << 20),
            pids: Some(64),
        };
        let none = Resources::default();
        let table: [(Version, Level, &Resources, &[&str]); 10] = [
            (
                Version::V1,
                Level::Instance,
                &resources,
                &["cpu.shares=512", "pids.max=64"],
            ),
            (Version::V1, Level::Pod, &resources, &["cpu.shares=512"]),
            (
                Version::V1,
                Level::Containers,
                &resources,
                &[
                    "cpu.cfs_period_us=100000",
                    "cpu.cfs_quota_us=25000",
                    "memory.limit_in_bytes=33554432",
                    "memory.memsw.limit_in_bytes?=33554432",
                    "pids.max=64",
                ],
            ),
            (
                Version::V1,
                Level::Container,
                &resources,
                &[
                    "cpu.shares=512",
                    "cpu.cfs_period_us=100000",
                    "cpu.cfs_quota_us=25000",
                    "memory.limit_in_bytes=33554432",
                    "memory.memsw.limit_in_bytes?=33554432",
                ],
            ),
            (
                Version::V1,
                Level::Containers,
                &none,
                &[
                    "cpu.cfs_period_us=100000",
                    "cpu.cfs_quota_us=-1",
                    "memory.memsw.limit_in_bytes?=-1",
                    "memory.limit_in_bytes=-1",
                    "pids.max=max",
                ],
            ),
            (
                Version::V2,
                Level::Instance,
                &resources,
                &["cpu.weight=20", "pids.max=64"],
            ),
            (Version::V2, Level::Pod, &resources, &["cpu.weight=20"]),
            (
                Version::V2,
                Level::Containers,
                &resources,
                &[
                    "cpu.max=25000 100000",
                    "memory.max=33554432",
                    "memory.swap.max?=0",
                    "pids.max=64",
                ],
            ),
            (
                Version::V2,
                Level::Container,
                &resources,
                &[
                    "cpu.weight=20",
                    "cpu.max=25000 100000",
                    "memory.max=33554432",
                    "memory.swap.max?=0",
                    "memory.oom.group?=1",
                ],
            ),
            (
                Version::V2,
                Level::Container,
                &none,
                &[
                    "cpu.weight=100",
                    "cpu.max=max 100000",
                    "memory.max=max",
                    "memory.swap.max?=max",
                    "memory.oom.group?=1",
                ],
            ),
        ];
        for (version, level, resources, expected) in table {
            assert_eq!(
                shown(version, level, resources),
                expected,
                "{version:?} {level:?}"
            );
        }
    }

    #[test]
    fn shares_become_weights_as_a_kubelet_makes_them() {
        for (shares, expected) in [
            (0, 1),
            (2, 1),
            (102, 4),
            (1_024, 39),
            (262_144, 10_000),
            (u64::MAX, 10_000),
        ] {
            assert_eq!(weight(shares), expected, "{shares}");
        }
    }
}
