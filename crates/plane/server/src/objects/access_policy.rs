//! Roles and bindings on their way into the store: nobody grants more than they have, ClusterRoles that gather others'
//! rules are kept up with every write, and every cluster has the default ones.
//!
//! ```text
//!   write of a ClusterRole ──commit──▶ rules of those that gather it ──commit──▶ answer
//! ```

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt, try_join_all};
use hotmap_kinds::{Resource, find};
use hotmap_object::Status;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tracing::error;

use super::{Objects, Target, body, metadata, metadata::Object, transaction::Decision};
use crate::{
    answer::Answer,
    authorization::rbac::{
        Binding, GROUP, Grant, PolicyRule, Reconciled, Role, outdated, policy, reconciled_binding,
        reconciled_role,
    },
    request::{ApiRequest, Verb},
};

/// Rounds of writes after which gathering roles are left as they are until the next change: each round ends with the
/// roles as the last one found them, so more than one means that others write at the same time.
const AGGREGATION_ROUNDS_MAX: usize = 8;

/// Told when gathered rules may be out of date: a write of them has failed, or its request was cut off.
#[derive(Default)]
pub(super) struct Aggregation {
    behind: Notify,
}

/// Tells of what is behind, unless it is caught up.
struct Pending<'a>(Option<&'a Notify>);

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if let Some(behind) = self.0 {
            behind.notify_one();
        }
    }
}

/// Whether a request may change what other ClusterRoles gather.
pub(super) fn may_change_aggregation(request: &ApiRequest) -> bool {
    (request.resource.group, request.resource.plural) == (GROUP, "clusterroles")
        && !matches!(request.verb, Verb::Get | Verb::List | Verb::Watch)
}

impl Objects {
    /// # Errors
    ///
    /// 403 for a role or a binding that grants what the user does not have.
    pub(super) fn check_grant(
        &self,
        request: &ApiRequest,
        new: &Object,
        old: Option<&Object>,
    ) -> Result<(), Status> {
        let grant = Grant {
            user: &request.user,
            resource: request.resource,
            namespace: request.namespace.as_deref().unwrap_or_default(),
            name: request.name.as_deref().unwrap_or_default(),
            new,
            old,
        };
        grant.check(&self.roles)
    }

    pub(super) async fn handle_then_aggregate(&self, request: ApiRequest) -> Result<Answer, Status> {
        let mut pending = Pending(Some(&self.aggregation.behind));
        let answer = self.dispatch(request).await;
        match self.aggregate().await {
            Ok(()) => pending.0 = None,
            // The client's own write is done and durable.
            Err(error) => error!(%error, "gathered rules of cluster roles are out of date, trying again"),
        }
        answer
    }

    /// Returns when gathered rules may be out of date: [`Objects::bootstrap_access_policy`] brings them up.
    pub(crate) async fn aggregation_behind(&self) {
        self.aggregation.behind.notified().await;
    }

    /// Gives every ClusterRole that gathers the rules of others what it should have.
    async fn aggregate(&self) -> Result<(), Status> {
        for _ in 0..AGGREGATION_ROUNDS_MAX {
            let outdated = outdated(&self.roles.cluster_roles());
            if outdated.is_empty() {
                break;
            }
            try_join_all(outdated.into_iter().map(|(name, rules)| self.gather(name, rules))).await?;
        }
        Ok(())
    }

    async fn gather(&self, name: String, rules: Vec<PolicyRule>) -> Result<(), Status> {
        let target = Target::new(served("clusterroles"), "", String::new(), name);
        let written = self.transact(&target, false, |current| {
            let current = current.ok_or_else(|| target.not_found())?;
            if !metadata::has(&current.value, "aggregationRule") {
                return Ok(Decision::Keep);
            }
            let mut new = current.value.clone();
            new.insert("rules".to_owned(), json!(rules));
            self.change(&target, canonical(&target, new)?, current, &mut Vec::new())
        });
        unless_gone(written.await)
    }

    /// Creates the default roles and bindings that are missing, and adds what others lack. All in one go; where nothing
    /// is missing nothing is written.
    ///
    /// # Errors
    ///
    /// What a write answers when the store takes none.
    pub(crate) async fn bootstrap_access_policy(&self) -> Result<(), Status> {
        let mut writes: Vec<BoxFuture<'_, Result<(), Status>>> = Vec::new();
        for expected in self.expected_cluster_roles() {
            let existing = self.roles.cluster_role(&expected.metadata.name);
            if existing.is_none_or(|existing| reconciled_role(&existing, &expected).is_some()) {
                writes.push(self.reconcile_role(expected).boxed());
            }
        }
        for expected in policy::cluster_role_bindings() {
            let existing = self.roles.cluster_role_binding(&expected.metadata.name);
            if existing.is_none_or(|existing| reconciled_binding(&existing, &expected) != Reconciled::Keep) {
                writes.push(self.reconcile_binding(expected).boxed());
            }
        }
        try_join_all(writes).await?;
        self.aggregate().await
    }

    /// The default roles; one that gathers and is yet to be created has its rules already.
    fn expected_cluster_roles(&self) -> Vec<Role> {
        let mut expected = policy::cluster_roles();
        let mut known = self.roles.cluster_roles();
        let is_missing = |role: &&Role| self.roles.cluster_role(&role.metadata.name).is_none();
        known.extend(expected.iter().filter(is_missing).cloned().map(Arc::new));
        let mut gathered = outdated(&known);
        for role in &mut expected {
            let is_missing = self.roles.cluster_role(&role.metadata.name).is_none();
            if let Some(rules) = gathered.remove(&role.metadata.name).filter(|_| is_missing) {
                role.rules = rules;
            }
        }
        expected
    }

    async fn reconcile_role(&self, expected: Role) -> Result<(), Status> {
        let target = Target::new(
            served("clusterroles"),
            "",
            String::new(),
            expected.metadata.name.clone(),
        );
        let written = self.transact(&target, false, |current| {
            let current = current.ok_or_else(|| target.not_found())?;
            let existing = view::<Role>(&current.value)?;
            let Some(role) = reconciled_role(&existing, &expected) else {
                return Ok(Decision::Keep);
            };
            let mut new = current.value.clone();
            write_role(&mut new, &role);
            self.change(&target, canonical(&target, new)?, current, &mut Vec::new())
        });
        match written.await {
            Err(gone) if gone.code == 404 => {
                let mut role = Object::new();
                write_role(&mut role, &expected);
                self.create_default(&target, role).await
            }
            written => written.map(drop),
        }
    }

    async fn reconcile_binding(&self, expected: Binding) -> Result<(), Status> {
        let name = expected.metadata.name.clone();
        let target = Target::new(served("clusterrolebindings"), "", String::new(), name);
        let mut recreates = false;
        let written = self.transact(&target, false, |current| {
            let current = current.ok_or_else(|| target.not_found())?;
            let existing = view::<Binding>(&current.value)?;
            let reconciled = reconciled_binding(&existing, &expected);
            recreates = reconciled == Reconciled::Recreate;
            match reconciled {
                Reconciled::Keep => Ok(Decision::Keep),
                Reconciled::Recreate => Ok(Decision::Delete(None)),
                Reconciled::Change(binding) => {
                    let mut new = current.value.clone();
                    write_binding(&mut new, &binding);
                    self.change(&target, canonical(&target, new)?, current, &mut Vec::new())
                }
            }
        });
        match written.await {
            Err(gone) if gone.code == 404 => {}
            written => {
                written?;
                if !recreates {
                    return Ok(());
                }
            }
        }
        let mut binding = Object::new();
        write_binding(&mut binding, &expected);
        self.create_default(&target, binding).await
    }

    async fn create_default(&self, target: &Target, mut object: Object) -> Result<(), Status> {
        metadata::of_mut(&mut object).insert("name".to_owned(), target.name.clone().into());
        let object = canonical(target, object)?;
        let mut warnings = Vec::new();
        let created = self.create_object(target.resource, "", object, false, &mut warnings);
        match created.await {
            // Another server on the same store was faster.
            Err(taken) if taken.reason == "AlreadyExists" => Ok(()),
            created => created.map(drop),
        }
    }
}

fn served(plural: &str) -> &'static Resource {
    find(GROUP, "v1", plural).expect("roles and bindings are served")
}

fn view<T: for<'de> Deserialize<'de>>(object: &Object) -> Result<T, Status> {
    T::deserialize(object).map_err(Status::internal)
}

fn canonical(target: &Target, object: Object) -> Result<Object, Status> {
    let checked = body::canonical(Value::Object(object), target.resource.schema, &[]);
    checked
        .map(|checked| checked.object)
        .map_err(|error| Status::internal(body::type_error(&error)))
}

fn write_role(object: &mut Object, role: &Role) {
    write_metadata(object, &role.metadata);
    object.insert("rules".to_owned(), json!(role.rules));
    match &role.aggregation_rule {
        Some(rule) => object.insert("aggregationRule".to_owned(), json!(rule)),
        None => object.remove("aggregationRule"),
    };
}

fn write_binding(object: &mut Object, binding: &Binding) {
    write_metadata(object, &binding.metadata);
    object.insert("roleRef".to_owned(), json!(binding.role_ref));
    object.insert("subjects".to_owned(), json!(binding.subjects));
}

fn write_metadata(object: &mut Object, held: &crate::authorization::rbac::Metadata) {
    let metadata = metadata::of_mut(object);
    metadata.insert("labels".to_owned(), json!(held.labels));
    metadata.insert("annotations".to_owned(), json!(held.annotations));
}

fn unless_gone<T>(written: Result<T, Status>) -> Result<(), Status> {
    match written {
        Err(gone) if gone.code == 404 => Ok(()),
        written => written.map(drop),
    }
}
