//! The ledger as a DeliveryReport: an entry for each object, and rows for who is behind.

use std::collections::BTreeMap;

use hotmap_kinds::{OBJECTS_MAX, ROWS_MAX, ROWS_PER_OBJECT_MAX, TEXT_BYTES_MAX};
use hotmap_object::timestamp::micros;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::ledger::{Consumer, Ledger, PodEntry, Standing, Way};
use crate::references::ObjectRef;

/// What is gathered of one object.
#[derive(Default)]
struct Entry {
    consumers: usize,
    visible: Option<(Timestamp, Timestamp)>,
    reporting: usize,
    loaded: usize,
    behind: Vec<Value>,
}

impl Ledger {
    /// `objects` and `objectsOmitted` of the report: the same ledger always gives the same document.
    pub(crate) fn document(&self) -> Map<String, Value> {
        let mut entries: BTreeMap<&ObjectRef, Entry> = BTreeMap::new();
        for (uid, pod) in &self.pods {
            for (way, consumer) in &pod.consumers {
                for reference in &consumer.refs {
                    let entry = entries.entry(reference).or_default();
                    self.add((uid, pod), (way, consumer), reference, entry);
                }
            }
        }
        let omitted = entries.len().saturating_sub(OBJECTS_MAX);
        let mut rows_left = ROWS_MAX;
        let objects: Vec<Value> = entries
            .into_iter()
            .take(OBJECTS_MAX)
            .map(|(reference, entry)| self.entry(reference, entry, &mut rows_left))
            .collect();
        let mut document = Map::new();
        document.insert("objects".to_owned(), objects.into());
        document.insert("objectsOmitted".to_owned(), omitted.into());
        document
    }

    fn add(
        &self,
        (uid, pod): (&str, &PodEntry),
        (way, consumer): (&Way, &Consumer),
        reference: &ObjectRef,
        entry: &mut Entry,
    ) {
        entry.consumers += 1;
        let heard = self.objects.get(reference);
        let holding = consumer.holds.get(reference);
        let standing = consumer.stands(reference, heard);
        let mut row = |stage: &str, since: Option<Timestamp>, held: Option<&str>, reason: &str| {
            let mut row =
                json!({"pod": pod.name, "podUID": uid, "stage": stage, "reason": shortened(reason)});
            let (volume, container) = match way {
                Way::Volume(volume) => (Some(volume), None),
                Way::Environment { container } => (None, Some(container)),
                Way::SubPath { container, volume } => (Some(volume), Some(container)),
            };
            let texts = [
                ("volume", volume.cloned()),
                ("container", container.cloned()),
                ("resourceVersion", held.map(str::to_owned)),
                ("since", since.map(micros)),
            ];
            for (field, text) in texts {
                if let Some(text) = text {
                    row[field] = text.into();
                }
            }
            entry.behind.push(row);
        };
        let held = holding.and_then(|held| held.revision.as_deref());
        let held = held.map(|revision| revision.resource_version.as_str());
        if let Standing::Behind { since } = standing {
            row("projected", Some(since), held, &consumer.reason(way));
        } else if !consumer.shadowed.is_empty() {
            let names = consumer.shadowed.join(", ");
            let since = holding.map(|held| held.since);
            row(
                "projected",
                since,
                held,
                &format!("a file that somebody else put there hides {names}"),
            );
        }
        // How long the change took is not told by pods that started after it.
        if standing == Standing::Current
            && heard.is_some_and(|heard| pod.came <= heard.at)
            && let Some(held) = holding.filter(|held| held.revision.is_some())
        {
            let (first, last) = entry.visible.unwrap_or((held.since, held.since));
            entry.visible = Some((first.min(held.since), last.max(held.since)));
        }
        let Way::Volume(volume) = way else { return };
        let Some(load) = pod.loads.get(volume) else { return };
        entry.reporting += 1;
        if standing != Standing::Current {
            return;
        }
        if load.has(reference, heard.and_then(|heard| heard.current.as_ref())) {
            entry.loaded += 1;
        } else {
            let (reason, since) = load.reason();
            let since = since.or(holding.map(|held| held.since));
            let taken = load.revision(reference);
            let taken = taken.map(|revision| revision.resource_version.clone());
            let mut row = json!({"pod": pod.name, "podUID": uid, "volume": volume, "stage": "loaded", "reason": shortened(&reason)});
            if let Some(taken) = taken {
                row["resourceVersion"] = taken.into();
            }
            if let Some(since) = since {
                row["since"] = micros(since).into();
            }
            entry.behind.push(row);
        }
    }

    fn entry(&self, reference: &ObjectRef, entry: Entry, rows_left: &mut usize) -> Value {
        let mut shown = json!({
            "ref": {"kind": reference.kind.name(), "namespace": reference.namespace, "name": reference.name},
            "consumers": entry.consumers,
        });
        let heard = self.objects.get(reference);
        if let Some((heard, current)) = heard.and_then(|heard| Some((heard, heard.current.as_ref()?))) {
            shown["uid"] = current.uid.clone().into();
            let mut revision =
                json!({"resourceVersion": current.resource_version, "heardAt": micros(heard.at)});
            if !current.digest.is_empty() {
                revision["digest"] = current.digest.clone().into();
            }
            if let Some(committed) = heard.committed {
                revision["committedAt"] = micros(committed).into();
            }
            shown["current"] = revision;
        }
        if let Some((first, last)) = entry.visible {
            shown["visibleAt"] = json!({"first": micros(first), "last": micros(last)});
        }
        if entry.reporting > 0 {
            shown["loaded"] = json!({"reporting": entry.reporting, "current": entry.loaded});
        }
        if !entry.behind.is_empty() {
            shown["behindCount"] = entry.behind.len().into();
            let room = ROWS_PER_OBJECT_MAX.min(*rows_left);
            let rows: Vec<Value> = entry.behind.into_iter().take(room).collect();
            *rows_left -= rows.len();
            if !rows.is_empty() {
                shown["behind"] = rows.into();
            }
        }
        shown
    }
}

impl Consumer {
    fn reason(&self, way: &Way) -> String {
        match (way, &self.failure) {
            (_, Some(failure)) => failure.clone(),
            (Way::Environment { .. }, None) => {
                "variables are read when the container starts: restart it to have the change".to_owned()
            }
            (Way::SubPath { .. }, None) => {
                "a subPath shows what was there when the container started: restart it to have the change"
                    .to_owned()
            }
            (Way::Volume(_), None) => "it is on its way".to_owned(),
        }
    }
}

fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}
