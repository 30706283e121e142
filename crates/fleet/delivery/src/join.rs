//! Pods and reports become one answer. No I/O, no clock.

use std::collections::{BTreeMap, BTreeSet};

use hotmap_object::timestamp::micros;
use jiff::Timestamp;
use serde::{Serialize, Serializer};

use crate::{
    PodView, ReportView, Target, Via,
    pod::Run,
    report::{Entry, Revision, Row},
};

/// What the API says of the object itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Current {
    /// It is there.
    At {
        /// Its uid.
        uid: String,
        /// Its version.
        resource_version: String,
    },
    /// It is not there.
    Missing,
    /// It may not be read, for this reason: the newest version that a node reports is taken for the newest.
    Unreadable(String),
}

/// How a pod's volume or container stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// It has the current content.
    Current,
    /// It has the current content, and the program that reports on it has not loaded it.
    NotLoaded,
    /// It has something else.
    Behind,
    /// Word of the newest revision, or of the pod's start, is still to come.
    Waiting,
    /// Nobody can say.
    Unknown,
}

impl State {
    /// As the table shows it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Current => "Current",
            Self::NotLoaded => "NotLoaded",
            Self::Behind => "Behind",
            Self::Waiting => "Waiting",
            Self::Unknown => "Unknown",
        }
    }
}

/// One pod's volume or container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodRow {
    /// The pod.
    pub pod: String,
    /// Its node; empty if it has none.
    pub node: String,
    /// How it uses the object.
    pub via: Via,
    /// The version it has; empty if none, or if nobody knows.
    pub resource_version: String,
    /// How it stands.
    pub state: State,
    /// Since when it stands so; for [`State::Current`], by when it had the content.
    #[serde(serialize_with = "time", skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Why, unless all is well.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// What the time of a change begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Since {
    /// Its commit.
    Commit,
    /// A node's hearing of it: some API does not tell of commits.
    Heard,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The object.
    #[serde(flatten)]
    pub target: Target,
    /// The newest version; empty if the object is not there, or nobody knows.
    pub resource_version: String,
    /// Digest of its content, where a node tells.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// What is to be said about where the newest version comes from.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Pods that use the object.
    pub pods: usize,
    /// Those of which everything has the current content.
    pub pods_current: usize,
    /// Volumes that a program reports on.
    pub loaded_reporting: u64,
    /// Those whose program has loaded the current content.
    pub loaded_current: u64,
    /// How long the change took to the last volume that has it, in microseconds: the slowest node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowest_microseconds: Option<i64>,
    /// What that time begins with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowest_since: Option<Since>,
    /// One for each way of each pod, by pod.
    pub rows: Vec<PodRow>,
}

fn time<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => serializer.collect_str(&micros(*at)),
        None => serializer.serialize_none(),
    }
}

impl Status {
    /// Whether everybody has the current content, and who reports has loaded it.
    pub fn is_complete(&self) -> bool {
        self.rows.iter().all(|row| row.state == State::Current)
    }
}

/// Joins what the API says. The same world always gives the same answer.
pub fn join<'a>(
    target: &Target,
    current: &Current,
    pods: impl IntoIterator<Item = &'a PodView>,
    reports: impl IntoIterator<Item = &'a ReportView>,
) -> Status {
    let reports: BTreeMap<&str, &ReportView> = reports
        .into_iter()
        .map(|report| (report.metadata.name.as_str(), report))
        .collect();
    let entries: BTreeMap<&str, &Entry> = reports
        .iter()
        .filter_map(|(node, report)| Some((*node, report.entry(target)?)))
        .collect();
    let wanted = match current {
        Current::At { resource_version, .. } => resource_version.clone(),
        Current::Missing => String::new(),
        Current::Unreadable(_) => newest(entries.values().copied()),
    };
    let world = World {
        current,
        wanted: &wanted,
        reports: &reports,
        entries: &entries,
    };
    let mut rows = Vec::new();
    for pod in pods.into_iter().filter(|pod| pod.is_alive()) {
        rows.extend(
            pod.uses(target)
                .into_iter()
                .filter_map(|via| world.row(pod, target, via)),
        );
    }
    rows.sort_by(|one: &PodRow, other| (&one.pod, &one.via).cmp(&(&other.pod, &other.via)));
    let pods: BTreeSet<&str> = rows.iter().map(|row| row.pod.as_str()).collect();
    let late = rows.iter().filter(|row| row.state != State::Current);
    let late: BTreeSet<&str> = late.map(|row| row.pod.as_str()).collect();
    // What a node says counts if one of its pods is asked about, and if it speaks of the newest revision.
    let nodes: BTreeSet<&str> = rows.iter().map(|row| row.node.as_str()).collect();
    let heard: Vec<&Entry> = entries
        .iter()
        .filter(|(node, entry)| nodes.contains(**node) && world.has_heard(entry))
        .map(|(_, entry)| *entry)
        .collect();
    let digest = heard
        .iter()
        .find_map(|entry| entry.current.as_ref())
        .map(|held| held.digest.clone());
    let loaded = || heard.iter().filter_map(|entry| entry.loaded.as_ref());
    let slowest = slowest(&heard);
    let note = match current {
        Current::Unreadable(why) => format!("the newest version is what nodes report: {why}"),
        Current::At { .. } | Current::Missing => String::new(),
    };
    Status {
        target: target.clone(),
        resource_version: wanted.clone(),
        digest: digest.unwrap_or_default(),
        note,
        pods: pods.len(),
        pods_current: pods.len() - late.len(),
        loaded_reporting: loaded().map(|counts| counts.reporting).sum(),
        loaded_current: loaded().map(|counts| counts.current).sum(),
        slowest_microseconds: slowest.map(|(micros, _)| micros),
        slowest_since: slowest.map(|(_, since)| since),
        rows,
    }
}

struct World<'a> {
    current: &'a Current,
    wanted: &'a str,
    reports: &'a BTreeMap<&'a str, &'a ReportView>,
    entries: &'a BTreeMap<&'a str, &'a Entry>,
}

impl World<'_> {
    /// `None`: a container that has ended and left nothing to say.
    fn row(&self, pod: &PodView, target: &Target, via: Via) -> Option<PodRow> {
        let node = pod.spec.node_name.as_str();
        let row = |resource_version: &str, state, since, reason: &str| PodRow {
            pod: pod.metadata.name.clone(),
            node: node.to_owned(),
            via: via.clone(),
            resource_version: resource_version.to_owned(),
            state,
            since,
            reason: reason.to_owned(),
        };
        if node.is_empty() {
            return Some(row("", State::Waiting, None, "the pod has no node yet"));
        }
        let Some(report) = self.reports.get(node) else {
            let reason = format!("node {node} has no DeliveryReport");
            return Some(row("", State::Unknown, None, &reason));
        };
        let Some(entry) = self.entries.get(node) else {
            let reason = format!("the report of node {node} does not speak of {target}");
            return Some(match report.objects_omitted {
                0 => row("", State::Waiting, None, &format!("{reason} yet")),
                _ => row("", State::Unknown, None, &format!("{reason}: it is full")),
            });
        };
        if let Some(behind) = entry.row(&pod.metadata.uid, &via) {
            let Row {
                resource_version,
                since,
                reason,
                ..
            } = behind;
            let state = match behind.stage.as_str() {
                "loaded" => State::NotLoaded,
                _ => State::Behind,
            };
            return Some(row(resource_version, state, *since, reason));
        }
        let run = match &via {
            Via::Environment(container) | Via::SubPath { container, .. } => pod.run(container),
            Via::Volume(_) if pod.has_started() => Run::Runs,
            Via::Volume(_) => Run::Waits,
        };
        match run {
            Run::Ended => return None,
            Run::Waits => return Some(row("", State::Waiting, None, "it has not started")),
            Run::Runs => {}
        }
        if !self.has_heard(entry) {
            let has = entry
                .current
                .as_ref()
                .map(|held| held.resource_version.as_str())
                .unwrap_or_default();
            let reason = match self.wanted {
                "" => format!("node {node} has not reported yet that the object is gone"),
                wanted => format!("node {node} has not reported on revision {wanted} yet"),
            };
            return Some(row(has, State::Waiting, None, &reason));
        }
        if entry.behind_count > entry.behind.len() as u64 {
            let reason = format!("the report of node {node} has no room for all who are behind");
            return Some(row("", State::Unknown, None, &reason));
        }
        // Who came after the change has had it since the start.
        let visible = entry.visible_at.as_ref().and_then(|span| span.last);
        let since = visible.max(pod.status.start_time);
        Some(row(self.wanted, State::Current, since, ""))
    }

    /// Whether a node speaks of the newest revision.
    fn has_heard(&self, entry: &Entry) -> bool {
        let held = entry.current.as_ref();
        match self.current {
            Current::Missing => held.is_none(),
            Current::At {
                uid,
                resource_version,
            } => held
                .is_some_and(|held| entry.uid == *uid && !is_older(&held.resource_version, resource_version)),
            Current::Unreadable(_) => held.is_some_and(|held| !is_older(&held.resource_version, self.wanted)),
        }
    }
}

/// Versions of one object are numbers that grow; of others only equality is known.
fn is_older(held: &str, wanted: &str) -> bool {
    match (held.parse::<u64>(), wanted.parse::<u64>()) {
        (Ok(held), Ok(wanted)) => held < wanted,
        _ => held != wanted,
    }
}

fn newest<'a>(entries: impl Iterator<Item = &'a Entry>) -> String {
    let versions = entries.filter_map(|entry| entry.current.as_ref());
    let versions = versions.map(|held| held.resource_version.as_str());
    versions
        .max_by_key(|version| version.parse::<u64>().unwrap_or_default())
        .unwrap_or_default()
        .to_owned()
}

/// The longest way of the change to the last who has it: from its commit if each node can tell, else from hearing of it.
fn slowest(entries: &[&Entry]) -> Option<(i64, Since)> {
    let spans: Vec<(&Revision, Timestamp)> = entries
        .iter()
        .filter_map(|entry| Some((entry.current.as_ref()?, entry.visible_at.as_ref()?.last?)))
        .collect();
    let since = match spans.iter().all(|(current, _)| current.committed_at.is_some()) {
        true => Since::Commit,
        false => Since::Heard,
    };
    let delays = spans.iter().filter_map(|(current, last)| {
        let begun = match since {
            Since::Commit => current.committed_at,
            Since::Heard => current.heard_at,
        };
        let micros = last.duration_since(begun?).as_micros();
        i64::try_from(micros).ok().filter(|micros| *micros >= 0)
    });
    Some((delays.max()?, since))
}

#[cfg(test)]
mod tests;
