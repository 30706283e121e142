//! The net below the watches: what is held is compared with what the API has, now and then.
//!
//! An answer that differs proves nothing yet: the watch's word may be on its way. It gets time to arrive; what it has not
//! told by then it has lost, which is a defect and counted.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use tokio::time::sleep;
use tracing::warn;

use super::{Followed, News, ObjectCache, READS_AT_ONCE, Read, Ticket, random_fraction, sync_period};
use crate::references::ObjectRef;

/// So long may a watch's word take: on a server that tells nodes every 5 s where the watch stands, it has passed by then.
const WATCH_PATIENCE: Duration = Duration::from_secs(5);

impl ObjectCache {
    pub(super) async fn resync_for_ever(self: Arc<Self>) {
        loop {
            sleep(sync_period(self.following.sync_frequency, random_fraction())).await;
            self.resync().await;
        }
    }

    async fn resync(self: &Arc<Self>) {
        let suspects: Vec<(ObjectRef, Ticket)> = stream::iter(self.ask_for_all())
            .map(async |(reference, ticket)| {
                let news = self.fetch(&reference, Read::Any).await?;
                self.compare(reference, ticket, news)
            })
            .buffer_unordered(READS_AT_ONCE)
            .filter_map(std::future::ready)
            .collect()
            .await;
        if suspects.is_empty() {
            return;
        }
        sleep(WATCH_PATIENCE).await;
        for (reference, ticket) in suspects {
            self.settle(reference, ticket).await;
        }
    }

    fn ask_for_all(&self) -> Vec<(ObjectRef, Ticket)> {
        let mut followed = self.followed.lock();
        let known = followed.iter_mut().filter(|(_, one)| one.entry.is_known());
        known
            .map(|(reference, one)| (reference.clone(), one.entry.ask()))
            .collect()
    }

    /// Whether the watch still has to tell of this.
    fn compare(
        self: &Arc<Self>,
        reference: ObjectRef,
        ticket: Ticket,
        news: News,
    ) -> Option<(ObjectRef, Ticket)> {
        let differs = self.with_entry(&reference, |entry| entry.is_contradicted(ticket, &news))?;
        if !differs {
            return None;
        }
        if self.is_watched(&reference) {
            return Some((reference, ticket));
        }
        // An immutable object was made anew under its name: nobody but us looks for that.
        self.answered(&reference, ticket, news);
        self.watch_if_mutable(&reference);
        None
    }

    async fn settle(self: &Arc<Self>, reference: ObjectRef, first: Ticket) {
        let unsettled = self.with_entry(&reference, |entry| entry.is_unsettled(first).then(|| entry.ask()));
        let Some(ticket) = unsettled.flatten() else {
            return;
        };
        let Some(news) = self.fetch(&reference, Read::Newest).await else {
            return;
        };
        let is_lost = self.with_entry(&reference, |entry| {
            entry.is_unsettled(first) && entry.is_contradicted(ticket, &news)
        });
        if is_lost == Some(true) {
            warn!(kind = reference.kind.name(), namespace = %reference.namespace, name = %reference.name,
                "a change was found that no watch has told of");
            self.metrics.repaired();
            self.answered(&reference, ticket, news);
        }
    }

    fn is_watched(&self, reference: &ObjectRef) -> bool {
        let followed = self.followed.lock();
        self.follows_node() || followed.get(reference).is_some_and(Followed::is_watched)
    }

    /// An object that was immutable has given way to one that is not.
    pub(super) fn watch_if_mutable(self: &Arc<Self>, reference: &ObjectRef) {
        if self.has_to_ask() || self.follows_node() {
            return;
        }
        if let Some(one) = self.followed.lock().get_mut(reference)
            && !one.is_watched()
            && !one.entry.is_immutable()
        {
            one.watch = Some(self.spawn(Arc::clone(self).follow(reference.clone())));
        }
    }
}

impl Followed {
    fn is_watched(&self) -> bool {
        self.watch.as_ref().is_some_and(|task| !task.0.is_finished())
    }
}
