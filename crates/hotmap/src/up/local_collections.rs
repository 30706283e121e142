//! Controllers follow the objects of the server in this process, without a connection.

use std::pin::Pin;

use futures_util::{Stream, StreamExt, stream};
use hotmap_client::{
    ClientError, FollowerConfig, ListWatch, ObjectList, RawObject, ResourcePath, WatchEvent,
};
use hotmap_object::{Object, Revision};
use hotmap_server::{LocalChange, LocalObjects};
use hotmap_workload::Collections;

/// The collections of the server in this process.
#[derive(Clone)]
pub(super) struct LocalCollections(pub(super) LocalObjects);

/// One of them.
pub(super) struct LocalListWatch {
    objects: LocalObjects,
    path: ResourcePath,
}

impl Collections for LocalCollections {
    type ListWatch = LocalListWatch;

    const PATIENCE: FollowerConfig = FollowerConfig::IN_PROCESS;

    fn collection(&self, path: ResourcePath) -> LocalListWatch {
        LocalListWatch {
            objects: self.0.clone(),
            path,
        }
    }
}

impl ListWatch for LocalListWatch {
    type Watch = Pin<Box<dyn Stream<Item = Result<WatchEvent, ClientError>> + Send>>;

    async fn list(&mut self) -> Result<ObjectList, ClientError> {
        let (objects, revision) = self.objects.list(self.path.group(), self.path.plural()).await?;
        Ok(ObjectList {
            resource_version: revision.to_string(),
            continue_token: String::new(),
            items: objects
                .iter()
                .map(|object| raw(object))
                .collect::<Result<_, _>>()?,
        })
    }

    async fn watch(&mut self, resource_version: &str) -> Result<Self::Watch, ClientError> {
        let since: Revision = resource_version.parse().map_err(|_| ClientError::Request {
            why: "the revision to follow from is no number".to_owned(),
        })?;
        let changes = self
            .objects
            .changes(self.path.group(), self.path.plural(), since)?;
        let events = stream::unfold(changes, async |mut changes| {
            let event = match changes.next().await {
                Ok(change) => event(&change),
                Err(status) => Ok(WatchEvent::Error(status)),
            };
            Some((event, changes))
        });
        Ok(events.boxed())
    }
}

fn event(change: &LocalChange) -> Result<WatchEvent, ClientError> {
    Ok(match change {
        LocalChange::Added(object) => WatchEvent::Added(raw(object)?),
        LocalChange::Modified(object) => WatchEvent::Modified(raw(object)?),
        LocalChange::Deleted(object) => WatchEvent::Deleted(raw(object)?),
    })
}

fn raw(object: &Object) -> Result<RawObject, ClientError> {
    RawObject::from_json(object.json().clone())
}
