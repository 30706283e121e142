//! The objects of one name in all namespaces, so that a follower holds these and no others.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_util::Stream;
use hotmap_client::{ClientError, ListWatch, ObjectList, WatchEvent};

/// A collection without the objects of other names.
pub(super) struct Named<S> {
    pub(super) collection: S,
    pub(super) name: &'static str,
}

/// A watch without the events of other names.
pub(super) struct NamedWatch<W> {
    watch: W,
    name: &'static str,
}

impl<S: ListWatch> ListWatch for Named<S> {
    type Watch = NamedWatch<S::Watch>;

    async fn list(&mut self) -> Result<ObjectList, ClientError> {
        let mut list = self.collection.list().await?;
        list.items.retain(|object| object.name() == self.name);
        Ok(list)
    }

    async fn watch(&mut self, resource_version: &str) -> Result<Self::Watch, ClientError> {
        let watch = self.collection.watch(resource_version).await?;
        let name = self.name;
        Ok(NamedWatch { watch, name })
    }

    async fn recovered(&mut self) {
        self.collection.recovered().await;
    }
}

impl<W> Stream for NamedWatch<W>
where
    W: Stream<Item = Result<WatchEvent, ClientError>> + Unpin,
{
    type Item = W::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<W::Item>> {
        loop {
            let event = ready!(Pin::new(&mut self.watch).poll_next(context));
            if !event
                .as_ref()
                .is_some_and(|event| is_of_another(event, self.name))
            {
                return Poll::Ready(event);
            }
        }
    }
}

fn is_of_another(event: &Result<WatchEvent, ClientError>, name: &str) -> bool {
    match event {
        Ok(WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object)) => {
            object.name() != name
        }
        Ok(WatchEvent::Bookmark { .. } | WatchEvent::Error(_)) | Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt, stream};
    use hotmap_client::RawObject;
    use serde_json::json;

    use super::*;

    struct Script;

    fn object(name: &str) -> RawObject {
        RawObject::from_json(json!({"metadata": {"name": name}}).to_string().into()).expect("an object")
    }

    impl ListWatch for Script {
        type Watch = stream::Iter<std::vec::IntoIter<Result<WatchEvent, ClientError>>>;

        async fn list(&mut self) -> Result<ObjectList, ClientError> {
            Ok(ObjectList {
                resource_version: "1".to_owned(),
                continue_token: String::new(),
                items: vec![object("other"), object("default")],
            })
        }

        async fn watch(&mut self, _: &str) -> Result<Self::Watch, ClientError> {
            let bookmark = WatchEvent::Bookmark {
                resource_version: "2".to_owned(),
                initial_events_end: false,
            };
            Ok(stream::iter(vec![
                Ok(WatchEvent::Added(object("other"))),
                Ok(WatchEvent::Modified(object("default"))),
                Ok(bookmark),
                Ok(WatchEvent::Deleted(object("other"))),
                Ok(WatchEvent::Deleted(object("default"))),
            ]))
        }
    }

    #[test]
    fn other_names_are_left_out_and_bookmarks_are_not() {
        let mut named = Named {
            collection: Script,
            name: "default",
        };
        let list = named.list().now_or_never().expect("at once").expect("a list");
        assert_eq!(
            list.items.iter().map(RawObject::name).collect::<Vec<_>>(),
            ["default"]
        );
        let watch = named
            .watch("1")
            .now_or_never()
            .expect("at once")
            .expect("a watch");
        let events: Vec<String> = watch
            .map(|event| match event {
                Ok(WatchEvent::Modified(object)) => format!("~{}", object.name()),
                Ok(WatchEvent::Deleted(object)) => format!("-{}", object.name()),
                Ok(WatchEvent::Bookmark { .. }) => "bookmark".to_owned(),
                other => format!("{other:?}"),
            })
            .collect()
            .now_or_never()
            .expect("at once");
        assert_eq!(events, ["~default", "bookmark", "-default"]);
    }
}
