//! What a write has to do: decided from the payload and from what is in the directory, without clock or disk.
//!
//! [`AtomicWriter::write`](crate::AtomicWriter::write) looks at the directory, asks [`plan`], and executes the
//! steps in their order; there is no other path through it.

use std::collections::BTreeMap;

use crate::atomic_writer::{DATA_LINK, Durability, RevisionName, STAGED_DATA_LINK};
use crate::payload::Payload;

/// What is at the top of a volume's directory, so far as a writer cares.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActualVolume {
    /// Where `..data` points.
    pub data: DataLink,
    /// Whether the revision there is exactly the desired payload, with its modes and owners.
    pub is_desired: bool,
    /// Whether what is there is known to have reached the disk; asked of [`Durability::PowerLoss`] only.
    pub is_synced: bool,
    /// The replaced revision that still serves readers on their way and is to be kept.
    pub lingering: Option<RevisionName>,
    /// The names at the top, without `..data`. Absent names are free.
    pub names: BTreeMap<String, Name>,
}

/// Where `..data` points.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum DataLink {
    /// There is none: nothing was ever written.
    #[default]
    Missing,
    /// To a revision.
    Revision(RevisionName),
    /// Somewhere no writer points it. It is replaced; what it names is never touched.
    Foreign,
}

impl DataLink {
    pub(crate) fn revision(&self) -> Option<&RevisionName> {
        match self {
            Self::Revision(revision) => Some(revision),
            Self::Missing | Self::Foreign => None,
        }
    }

    pub(crate) fn into_revision(self) -> Option<RevisionName> {
        match self {
            Self::Revision(revision) => Some(revision),
            Self::Missing | Self::Foreign => None,
        }
    }
}

/// What a name at the top of the directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// A link of a writer's: to the same name beneath `..data`.
    Link,
    /// A name only writers use: a revision, or the staged link that a crash left.
    Reserved,
    /// Anything else: a writer never touches it.
    Foreign,
}

/// One thing to do in a volume. A crash between any two leaves the old or the new payload visible, whole, and
/// planning again from what is there then leads to the same end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Write the whole payload into a new revision directory that nobody looks at yet.
    Stage,
    /// Make `..data` name the staged revision: the one moment of change.
    Swap,
    /// Sync the files of the visible revision: it holds the payload, but who wrote it is not known.
    SyncRevision,
    /// Make the link of a new top-level name.
    Link(String),
    /// Sync the directory, before what the swap replaced goes.
    Sync,
    /// Remove the link of a dropped name.
    Unlink(String),
    /// Remove a revision nobody needs, or the staged link of a writer that died.
    Remove(String),
}

/// The steps that make `actual` show `payload`; the same input always gives the same steps.
pub fn plan(payload: &Payload, durability: Durability, actual: &ActualVolume) -> Vec<Step> {
    let mut steps = Vec::new();
    let visible = actual.data.revision().filter(|_| actual.is_desired);
    let is_power_proof = durability == Durability::PowerLoss;
    let staged_link = actual.names.get(STAGED_DATA_LINK);
    let remove_staged_link = staged_link.map(|_| Step::Remove(STAGED_DATA_LINK.to_owned()));
    if visible.is_none() {
        // Where the new link is made next.
        steps.extend(remove_staged_link.clone());
        steps.extend([Step::Stage, Step::Swap]);
    } else if is_power_proof && !actual.is_synced {
        steps.push(Step::SyncRevision);
    }

    let first_link = steps.len();
    let free = payload
        .top_level_names()
        .filter(|name| !actual.names.contains_key(*name));
    steps.extend(free.map(|name| Step::Link(name.to_owned())));
    let makes_links = steps.len() > first_link;
    if is_power_proof && (visible.is_none() || makes_links || !actual.is_synced) {
        // The removals below must not reach the disk ahead of the swap.
        steps.push(Step::Sync);
    }

    let dropped = actual
        .names
        .iter()
        .filter(|(name, is)| **is == Name::Link && !payload.has_top_level(name));
    steps.extend(dropped.map(|(name, _)| Step::Unlink(name.clone())));
    // What was visible until a swap goes, unless it lingers.
    let keep = [visible, actual.lingering.as_ref()];
    let is_kept = |name: &str| keep.iter().flatten().any(|kept| kept.as_str() == name);
    let outdated = actual
        .names
        .iter()
        .filter(|(name, is)| **is == Name::Reserved && *name != STAGED_DATA_LINK && !is_kept(name));
    steps.extend(outdated.map(|(name, _)| Step::Remove(name.clone())));
    if visible.is_some() {
        steps.extend(remove_staged_link);
    }
    steps
}

impl ActualVolume {
    /// Names of the payload that show something else at the top, because what is not a writer's own is in the
    /// way. It stays; the content is under `..data` only.
    pub fn shadowed(&self, payload: &Payload) -> Vec<String> {
        payload
            .top_level_names()
            .filter(|name| self.names.get(*name).is_some_and(|is| *is != Name::Link))
            .map(str::to_owned)
            .collect()
    }
}

impl Name {
    /// What a name is, told from the name and from where it links; `None` for `..data`, which is asked for
    /// apart.
    pub(crate) fn of(name: &str, link: Option<&str>) -> Option<Self> {
        if name == DATA_LINK {
            None
        } else if name == STAGED_DATA_LINK || RevisionName::parse(name).is_some() {
            Some(Self::Reserved)
        } else if link.is_some_and(|target| is_link_target(target, name)) && !name.starts_with("..") {
            Some(Self::Link)
        } else {
            Some(Self::Foreign)
        }
    }
}

/// Where the link of a top-level name points.
pub(crate) fn link_target(name: &str) -> String {
    format!("{DATA_LINK}/{name}")
}

fn is_link_target(target: &str, name: &str) -> bool {
    target
        .strip_prefix(DATA_LINK)
        .and_then(|rest| rest.strip_prefix('/'))
        == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::{FileMode, PayloadFile};

    const OLD: &str = "..2026_01_31_09_05_07.1";
    const OLDER: &str = "..2026_01_31_09_05_07.0";

    fn payload(paths: &str) -> Payload {
        let mut payload = Payload::new();
        for path in paths.split_whitespace() {
            let file = PayloadFile::new("x", FileMode::DEFAULT);
            payload.insert(path.parse().unwrap(), file).unwrap();
        }
        payload
    }

    fn actual(data: DataLink, is_desired: bool, names: &[(&str, Name)]) -> ActualVolume {
        ActualVolume {
            data,
            is_desired,
            names: names.iter().map(|(name, is)| ((*name).to_owned(), *is)).collect(),
            ..ActualVolume::default()
        }
    }

    fn revision(name: &str) -> DataLink {
        DataLink::Revision(RevisionName::parse(name).unwrap())
    }

    fn check(paths: &str, durability: Durability, actual: &ActualVolume, steps: &str) {
        let shown: Vec<String> = plan(&payload(paths), durability, actual)
            .iter()
            .map(|step| match step {
                Step::Stage => "stage".to_owned(),
                Step::Swap => "swap".to_owned(),
                Step::SyncRevision => "sync-revision".to_owned(),
                Step::Link(name) => format!("link {name}"),
                Step::Sync => "sync".to_owned(),
                Step::Unlink(name) => format!("unlink {name}"),
                Step::Remove(name) => format!("remove {name}"),
            })
            .collect();
        assert_eq!(shown.join(", "), steps, "{paths:?} over {actual:?}");
    }

    #[test]
    fn steps_lead_from_what_is_there_to_the_payload() {
        use Durability::{PowerLoss, Process};
        use Name::{Foreign, Link, Reserved};
        let empty = actual(DataLink::Missing, false, &[]);
        check("", Process, &empty, "stage, swap");
        check("b/x a b/y", Process, &empty, "stage, swap, link a, link b");
        check("a", PowerLoss, &empty, "stage, swap, link a, sync");
        let same = actual(revision(OLD), true, &[(OLD, Reserved), ("a", Link)]);
        check("a", Process, &same, "");
        check("a", PowerLoss, &same, "sync-revision, sync");
        let synced = ActualVolume {
            is_synced: true,
            ..same
        };
        check("a", PowerLoss, &synced, "");
        let other = actual(revision(OLD), false, &[(OLD, Reserved), ("a", Link), ("b", Link)]);
        let steps = format!("stage, swap, link c, unlink b, remove {OLD}");
        check("a c", Process, &other, &steps);
        let steps = format!("stage, swap, link c, sync, unlink b, remove {OLD}");
        check("a c", PowerLoss, &other, &steps);
        let foreign = actual(DataLink::Foreign, false, &[("a", Foreign), ("z", Foreign)]);
        check("a", Process, &foreign, "stage, swap");
        assert_eq!(foreign.shadowed(&payload("a b")), ["a"]);
    }

    #[test]
    fn what_a_crash_left_is_removed_where_it_is_in_the_way_first() {
        use Name::{Link, Reserved};
        let names = [
            (OLDER, Reserved),
            (OLD, Reserved),
            (STAGED_DATA_LINK, Reserved),
            ("a", Link),
        ];
        let same = actual(revision(OLD), true, &names);
        let steps = format!("remove {OLDER}, remove {STAGED_DATA_LINK}");
        check("a", Durability::Process, &same, &steps);
        let other = actual(revision(OLD), false, &names);
        let steps = format!("remove {STAGED_DATA_LINK}, stage, swap, remove {OLDER}, remove {OLD}");
        check("a", Durability::Process, &other, &steps);
    }

    #[test]
    fn a_revision_lingers_as_long_as_it_is_to_be_kept() {
        use Name::{Link, Reserved};
        let names = [(OLDER, Reserved), (OLD, Reserved), ("a", Link)];
        let lingering = ActualVolume {
            lingering: RevisionName::parse(OLD),
            ..actual(revision(OLD), false, &names)
        };
        check(
            "a",
            Durability::Process,
            &lingering,
            &format!("stage, swap, remove {OLDER}"),
        );
    }

    #[test]
    fn only_a_link_to_its_own_name_is_a_writers() {
        for (name, link, is) in [
            ("a", Some("..data/a"), Some(Name::Link)),
            ("a", Some("..data/b"), Some(Name::Foreign)),
            ("a", Some("..dataa"), Some(Name::Foreign)),
            ("a", None, Some(Name::Foreign)),
            ("..a", Some("..data/..a"), Some(Name::Foreign)),
            (STAGED_DATA_LINK, None, Some(Name::Reserved)),
            (OLD, Some("/etc"), Some(Name::Reserved)),
            (DATA_LINK, Some(OLD), None),
        ] {
            assert_eq!(Name::of(name, link), is, "{name} -> {link:?}");
        }
    }
}
