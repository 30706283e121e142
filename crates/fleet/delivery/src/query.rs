//! Asks the API: once, or for as long as somebody wants to know. Watches, no polling.

use std::collections::BTreeMap;

use hotmap_client::{
    Client, ClientError, ClientListWatch, FollowEvent, Follower, FollowerConfig, ListParams, ObjectList,
    RawObject, ResourcePath,
};

use crate::{Current, PodView, ReportView, Status, Target, join};

/// Rights that are enough for everything here; the object itself may stay unreadable.
pub const RBAC: &str = "\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: hotmap-status
rules:
- apiGroups: [hotmap.dev]
  resources: [deliveryreports]
  verbs: [list, watch]
- apiGroups: ['']
  resources: [pods]
  verbs: [list, watch]
# For the newest version of a ConfigMap. Of a Secret it is what nodes report, unless you may read the Secret.
- apiGroups: ['']
  resources: [configmaps]
  verbs: [get, list, watch]
";

/// Objects of one page of a list.
const PAGE: u32 = 500;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The API has no DeliveryReports.
    #[error("this API knows no DeliveryReports: no hotmap runs beside it, or deploy/crds was not applied")]
    NoReports,
    /// The API refuses, or cannot be reached.
    #[error("cannot read {what}")]
    Api {
        /// What was asked for.
        what: &'static str,
        /// What the API said.
        source: ClientError,
    },
}

/// Asks once.
///
/// # Errors
/// [`QueryError`]
pub async fn ask(client: &Client, target: &Target) -> Result<Status, QueryError> {
    let current = match client.get(&object(target).name(target.name.as_str())).await {
        Ok(object) => current_of(&object),
        Err(error) => current_without(error)?,
    };
    // Reports come last: what they say is not older than what they are compared with.
    let pods = list(client, &pods(target), "pods").await?;
    let reports = list(client, &reports(), "DeliveryReports").await?;
    let pods: Vec<PodView> = pods.iter().filter_map(|pod| pod.parse().ok()).collect();
    let reports: Vec<ReportView> = reports.iter().filter_map(|report| report.parse().ok()).collect();
    Ok(join(target, &current, &pods, &reports))
}

async fn list(
    client: &Client,
    path: &ResourcePath,
    what: &'static str,
) -> Result<Vec<RawObject>, QueryError> {
    let mut params = ListParams {
        limit: PAGE,
        ..ListParams::default()
    };
    let mut all = Vec::new();
    loop {
        let page: ObjectList = client
            .list(path, &params)
            .await
            .map_err(|source| failed(what, source))?;
        all.extend(page.items);
        if page.continue_token.is_empty() {
            return Ok(all);
        }
        params.continue_token = page.continue_token;
    }
}

fn failed(what: &'static str, source: ClientError) -> QueryError {
    if what == "DeliveryReports" && source.is_not_found() {
        QueryError::NoReports
    } else {
        QueryError::Api { what, source }
    }
}

fn current_of(object: &RawObject) -> Current {
    Current::At {
        uid: object.uid().to_owned(),
        resource_version: object.resource_version().to_owned(),
    }
}

fn current_without(error: ClientError) -> Result<Current, QueryError> {
    match error.status() {
        Some(status) if status.code == 404 => Ok(Current::Missing),
        Some(status) if status.code == 403 => Ok(Current::Unreadable(status.message.clone())),
        _ => Err(failed("the object", error)),
    }
}

fn object(target: &Target) -> ResourcePath {
    ResourcePath::new("", "v1", target.kind.plural()).in_namespace(target.namespace.as_str())
}

fn pods(target: &Target) -> ResourcePath {
    ResourcePath::new("", "v1", "pods").in_namespace(target.namespace.as_str())
}

fn reports() -> ResourcePath {
    ResourcePath::new("hotmap.dev", "v1alpha1", "deliveryreports")
}

/// Asks for ever, see [`Following::next`].
pub struct Following {
    target: Target,
    object: Follower<ClientListWatch>,
    pods: Follower<ClientListWatch>,
    reports: Follower<ClientListWatch>,
    /// `None` until the API has said something.
    current: Option<Current>,
    known_pods: Option<BTreeMap<String, PodView>>,
    known_reports: Option<BTreeMap<String, ReportView>>,
    told: Option<Status>,
}

impl Following {
    /// Nothing is asked before [`Following::next`].
    pub fn new(client: Client, target: Target) -> Self {
        let follow = |path: ResourcePath| ClientListWatch::new(client.clone(), path);
        let selector = format!("metadata.name={}", target.name);
        Self {
            object: Follower::new(
                follow(object(&target)).with_field_selector(selector),
                FollowerConfig::STOCK,
            ),
            pods: Follower::new(follow(pods(&target)), FollowerConfig::STOCK),
            reports: Follower::new(follow(reports()), FollowerConfig::STOCK),
            target,
            current: None,
            known_pods: None,
            known_reports: None,
            told: None,
        }
    }

    /// The next answer that is another one; the first as soon as there is one. While the API cannot be heard the last
    /// answer stands. Cancel safe.
    ///
    /// # Errors
    /// [`QueryError`] if the API refuses.
    pub async fn next(&mut self) -> Result<Status, QueryError> {
        loop {
            tokio::select! {
                event = self.object.next() => match event {
                    FollowEvent::Initial(objects) => {
                        self.current = Some(objects.first().map_or(Current::Missing, current_of));
                    }
                    FollowEvent::Applied(object) => self.current = Some(current_of(&object)),
                    FollowEvent::Deleted(_) => self.current = Some(Current::Missing),
                    FollowEvent::Interrupted(error) if error.status().is_some_and(|status| status.code == 403) => {
                        self.current = Some(current_without(error)?);
                    }
                    FollowEvent::Interrupted(_) | FollowEvent::Resumed => {}
                },
                event = self.pods.next() => {
                    take(&mut self.known_pods, event, RawObject::uid).map_err(|error| failed("pods", error))?;
                }
                event = self.reports.next() => {
                    take(&mut self.known_reports, event, RawObject::name)
                        .map_err(|error| failed("DeliveryReports", error))?;
                }
            }
            let (Some(current), Some(pods), Some(reports)) =
                (&self.current, &self.known_pods, &self.known_reports)
            else {
                continue;
            };
            let status = join(&self.target, current, pods.values(), reports.values());
            if self.told.as_ref() != Some(&status) {
                self.told = Some(status.clone());
                return Ok(status);
            }
        }
    }
}

/// Takes an event in; a refusal is an error, everything else passes.
fn take<T: serde::de::DeserializeOwned>(
    known: &mut Option<BTreeMap<String, T>>,
    event: FollowEvent,
    key: fn(&RawObject) -> &str,
) -> Result<(), ClientError> {
    match event {
        FollowEvent::Initial(objects) => {
            let parsed = objects
                .iter()
                .filter_map(|object| Some((key(object).to_owned(), object.parse().ok()?)));
            *known = Some(parsed.collect());
        }
        FollowEvent::Applied(object) => {
            if let (Some(known), Ok(parsed)) = (known, object.parse()) {
                known.insert(key(&object).to_owned(), parsed);
            }
        }
        FollowEvent::Deleted(object) => {
            if let Some(known) = known {
                known.remove(key(&object));
            }
        }
        FollowEvent::Interrupted(error) => {
            if error
                .status()
                .is_some_and(|status| matches!(status.code, 401 | 403 | 404))
            {
                return Err(error);
            }
        }
        FollowEvent::Resumed => {}
    }
    Ok(())
}
