//! Events about configuration that arrived in running pods, for those who ask for them.
//!
//! Writers of volumes note what became visible, which costs a lock. What is noted of one volume within a second is one
//! event, which names the newest revisions; what follows counts up that same event.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{
    clock::Clock,
    events::{Recorder, Subject},
    pod::Pod,
    references::ObjectRef,
    volumes::VolumeKey,
};

/// Changes of one volume in this time are told together.
const SETTLE: Duration = Duration::from_secs(1);

/// Revisions of the objects that a volume shows; `None` where it shows that the object is not there.
pub(crate) type Shown = BTreeMap<ObjectRef, Option<String>>;

/// Where changes are noted. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct ConfigurationEvents {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    /// One for each volume at most.
    waiting: Mutex<BTreeMap<VolumeKey, Waiting>>,
    noted: Notify,
}

struct Waiting {
    subject: Subject,
    changed: Shown,
}

impl ConfigurationEvents {
    /// These objects changed in what a volume shows.
    pub(crate) fn changed(&self, key: &VolumeKey, pod: &Pod, changed: Shown) {
        if changed.is_empty() {
            return;
        }
        self.inner
            .waiting
            .lock()
            .entry(key.clone())
            .or_insert_with(|| Waiting {
                subject: Subject::pod(pod),
                changed: Shown::new(),
            })
            .changed
            .extend(changed);
        self.inner.noted.notify_one();
    }

    /// Tells for ever about those pods that run.
    pub(crate) async fn tell_for_ever(
        self,
        recorder: Recorder,
        clock: impl Clock,
        is_running: impl Fn(&str) -> bool,
    ) {
        loop {
            self.inner.noted.notified().await;
            clock.sleep(SETTLE).await;
            let waiting = std::mem::take(&mut *self.inner.waiting.lock());
            for (key, Waiting { subject, changed }) in waiting {
                if is_running(&key.pod_uid) {
                    let message = message(&key.volume, &changed);
                    recorder.newest(subject, "ConfigurationUpdated", &key.volume, message);
                }
            }
        }
    }
}

/// What of `after` is new to those who saw `before`.
pub(crate) fn difference(before: &Shown, after: &Shown) -> Shown {
    let changed = after
        .iter()
        .filter(|(reference, version)| before.get(reference) != Some(version));
    changed
        .map(|(reference, version)| (reference.clone(), version.clone()))
        .collect()
}

fn message(volume: &str, changed: &Shown) -> String {
    let objects = changed.iter().map(|(reference, version)| {
        let object = format!("{}/{}", reference.kind.singular(), reference.name);
        match version {
            Some(version) => format!("{object} at revision {version}"),
            None => format!("no {object}"),
        }
    });
    format!("volume {volume:?} shows {}", Vec::from_iter(objects).join(", "))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;
    use tokio::sync::mpsc::error::TryRecvError;

    use super::*;
    use crate::references::ObjectKind;

    /// Time passes when the test says so.
    struct Hands(Arc<Notify>);

    impl Clock for Hands {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }

        async fn sleep(&self, _pause: Duration) {
            self.0.notified().await;
        }
    }

    fn reference(kind: ObjectKind, name: &str) -> ObjectRef {
        ObjectRef {
            kind,
            namespace: "n".to_owned(),
            name: name.to_owned(),
        }
    }

    fn app(version: &str) -> Shown {
        Shown::from([(reference(ObjectKind::ConfigMap, "app"), Some(version.to_owned()))])
    }

    #[test]
    fn what_a_volume_shows_is_compared_object_by_object() {
        let (app, db) = (
            reference(ObjectKind::ConfigMap, "app"),
            reference(ObjectKind::Secret, "db"),
        );
        let shown = |app_version: Option<&str>, db_version: &str| {
            Shown::from([
                (app.clone(), app_version.map(str::to_owned)),
                (db.clone(), Some(db_version.to_owned())),
            ])
        };
        for (before, after, told) in [
            (shown(Some("1"), "2"), shown(Some("1"), "2"), ""),
            (
                shown(Some("1"), "2"),
                shown(Some("812"), "2"),
                r#"volume "cfg" shows configmap/app at revision 812"#,
            ),
            (
                shown(Some("1"), "2"),
                shown(None, "3"),
                r#"volume "cfg" shows no configmap/app, secret/db at revision 3"#,
            ),
        ] {
            let changed = difference(&before, &after);
            let said = if changed.is_empty() {
                String::new()
            } else {
                message("cfg", &changed)
            };
            assert_eq!(said, told);
        }
    }

    #[tokio::test]
    async fn quick_changes_of_one_volume_are_one_event_about_a_running_pod() {
        let document =
            json!({"metadata": {"name": "web", "namespace": "n", "uid": "u"}, "spec": {"containers": []}});
        let pod = Pod::from_document(&document).expect("a pod");
        let key = |pod_uid: &str, volume: &str| VolumeKey {
            pod_uid: pod_uid.to_owned(),
            volume: volume.to_owned(),
        };
        let (recorder, mut told) = Recorder::for_tests();
        let events = ConfigurationEvents::default();
        let settled = Arc::new(Notify::new());
        let hands = Hands(Arc::clone(&settled));
        let telling = events
            .clone()
            .tell_for_ever(recorder, hands, |pod_uid| pod_uid == "u");
        let telling = tokio::spawn(telling);
        for version in ["1", "2", "3"] {
            events.changed(&key("u", "cfg"), &pod, app(version));
        }
        events.changed(&key("u", "other"), &pod, app("3"));
        events.changed(&key("u", "same"), &pod, Shown::new());
        events.changed(&key("not running", "cfg"), &pod, app("3"));
        settled.notify_one();
        let mut messages = Vec::new();
        for _ in 0..2 {
            messages.push(told.recv().await.expect("told").message().to_owned());
        }
        assert_eq!(
            messages,
            [
                r#"volume "cfg" shows configmap/app at revision 3"#,
                r#"volume "other" shows configmap/app at revision 3"#,
            ]
        );
        assert!(matches!(told.try_recv(), Err(TryRecvError::Empty)));
        events.changed(&key("u", "cfg"), &pod, app("4"));
        settled.notify_one();
        let next = told.recv().await.expect("told");
        assert_eq!(
            next.message(),
            r#"volume "cfg" shows configmap/app at revision 4"#
        );
        telling.abort();
    }
}
