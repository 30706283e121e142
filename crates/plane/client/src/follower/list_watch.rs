//! What a follower needs of a server.

use std::future::Future;
use std::time::Duration;

use futures_core::Stream;
use tokio::sync::watch;

use crate::client::{Client, ListParams, WatchParams};
use crate::error::ClientError;
use crate::object::ObjectList;
use crate::path::ResourcePath;
use crate::watch::{WatchEvent, WatchStream};

/// Objects per page. Upstream's clients ask for as many.
const PAGE_OBJECTS: u32 = 500;

/// A collection that can be listed and watched: over HTTP, in process, or a script in a test.
pub trait ListWatch: Send {
    /// The events of one watch.
    type Watch: Stream<Item = Result<WatchEvent, ClientError>> + Send + Unpin;

    /// The whole collection as of one revision.
    fn list(&mut self) -> impl Future<Output = Result<ObjectList, ClientError>> + Send;

    /// Every change after `resource_version`, once and in order; too old a start is 410, here or as an event.
    fn watch(
        &mut self,
        resource_version: &str,
    ) -> impl Future<Output = Result<Self::Watch, ClientError>> + Send;

    /// Ends when there is reason to believe that the server can be reached again, after a failure to connect.
    fn recovered(&mut self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
}

/// A collection of an API server.
pub struct ClientListWatch {
    client: Client,
    path: ResourcePath,
    field_selector: String,
    label_selector: String,
    timeout: Duration,
    commit_time: bool,
    established: watch::Receiver<u64>,
}

impl ClientListWatch {
    /// The collection at `path`.
    pub fn new(client: Client, path: ResourcePath) -> Self {
        let established = client.established();
        Self {
            client,
            path,
            field_selector: String::new(),
            label_selector: String::new(),
            timeout: Duration::from_secs(300 + u64::from(getrandom::u32().unwrap_or_default() % 300)),
            commit_time: false,
            established,
        }
    }

    /// Asks for [`RawObject::committed`](crate::RawObject::committed), which only our own server tells.
    #[must_use]
    pub fn with_commit_time(mut self) -> Self {
        self.commit_time = true;
        self
    }

    /// Only objects whose fields match, such as `metadata.name=app`.
    #[must_use]
    pub fn with_field_selector(mut self, selector: impl Into<String>) -> Self {
        self.field_selector = selector.into();
        self
    }

    /// Only objects whose labels match.
    #[must_use]
    pub fn with_label_selector(mut self, selector: impl Into<String>) -> Self {
        self.label_selector = selector.into();
        self
    }

    /// After how long the server shall end each watch; 5 to 10 min, drawn once, without.
    #[must_use]
    pub fn with_watch_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// All pages: they are of one revision, that of the first.
    async fn list_pages(&self) -> Result<ObjectList, ClientError> {
        let mut params = ListParams {
            field_selector: self.field_selector.clone(),
            label_selector: self.label_selector.clone(),
            limit: PAGE_OBJECTS,
            ..ListParams::default()
        };
        let mut whole = self.client.list(&self.path, &params).await?;
        while !whole.continue_token.is_empty() {
            params.continue_token = std::mem::take(&mut whole.continue_token);
            let page = self.client.list(&self.path, &params).await?;
            whole.items.extend(page.items);
            whole.continue_token = page.continue_token;
        }
        Ok(whole)
    }

    /// From here on a new connection is news.
    fn noticed<T>(&mut self, result: Result<T, ClientError>) -> Result<T, ClientError> {
        if result.is_err() {
            self.established.mark_unchanged();
        }
        result
    }
}

impl ListWatch for ClientListWatch {
    type Watch = WatchStream;

    async fn list(&mut self) -> Result<ObjectList, ClientError> {
        let listed = self.list_pages().await;
        self.noticed(listed)
    }

    async fn watch(&mut self, resource_version: &str) -> Result<WatchStream, ClientError> {
        let params = WatchParams {
            field_selector: self.field_selector.clone(),
            label_selector: self.label_selector.clone(),
            resource_version: resource_version.to_owned(),
            allow_bookmarks: true,
            send_initial_events: false,
            timeout: Some(self.timeout),
            commit_time: self.commit_time,
        };
        let opened = self.client.watch(&self.path, &params).await;
        self.noticed(opened)
    }

    async fn recovered(&mut self) {
        if self.established.changed().await.is_err() {
            // The client is held by this very struct, so its pool cannot be gone.
            std::future::pending().await
        }
    }
}
