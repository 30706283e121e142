//! POST pods/NAME/eviction: a pod goes, if its budget allows it.
//!
//! ```text
//!   ended, not begun, leaving ────────────────────────────────▶ delete
//!   no budget ────────────────────────────────────────────────▶ delete
//!   one budget, pod does not serve and nobody is hurt ────────▶ delete, as long as it does not serve
//!   one budget ─▶ take one disruption (status of the budget) ─▶ delete; 429 if there is none
//! ```
//!
//! Rules follow `pkg/registry/core/pod/storage/eviction.go`, Kubernetes 1.36. The pod's last condition and the beginning of
//! its end are one write here, so nothing can come between them.

use std::sync::Arc;

use hotmap_kinds::{
    Disruption, EvictionError, count_disruption, disruption, find, guards, is_beyond_budgets, mark_evicted,
};
use hotmap_object::{
    FieldError, GroupResource, GroupVersionKind, Object as Shared, Revision, Status, StatusCause,
};
use serde_json::{Value, json};

use super::{
    Objects, Target, body,
    delete::{DeleteOptions, Next, check_preconditions, next},
    metadata,
    metadata::Object,
    options::{WriteOptions, invalid},
    rendering::plain,
    transaction::Decision,
};
use crate::{
    answer::{Answer, Body},
    cache::Selection,
    http::negotiation::Offer,
    request::ApiRequest,
};

const EVICTION: GroupVersionKind = GroupVersionKind::fixed("policy", "v1", "Eviction");
const STATUS: GroupVersionKind = GroupVersionKind::fixed("", "v1", "Status");
/// Upstream's spelling, singular, in this one error.
const BUDGET: GroupResource = GroupResource::fixed("policy", "poddisruptionbudget");
const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
/// Seconds until a budget that nobody has looked at yet will have been looked at.
const UNPROCESSED_SECONDS: u32 = 10;

/// What must still be true of the pod when it goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum While<'a> {
    Always,
    BeyondBudgets,
    /// The pod does not serve; the budget that says so is named in a refusal.
    Unchanged {
        since: Revision,
        budget: &'a str,
    },
}

impl Objects {
    pub(super) async fn evict(&self, request: &ApiRequest) -> Result<Answer, Status> {
        let negotiated = request.accept.negotiate(Offer::Plain)?;
        let options = WriteOptions::of(&request.query, "CreateOptions")?;
        let target = Target::of(request)?;
        let mut warnings = Vec::new();
        let table = hotmap_schema::kind(&EVICTION.group, &EVICTION.version, &EVICTION.kind)
            .ok_or_else(|| Status::internal("there is no table for Eviction"))?;
        let eviction = body::decode(request, table, options.field_validation, &mut warnings)?;
        check_names(&target, &eviction)?;
        let mut wanted = delete_options(&target, &eviction)?;
        wanted.dry_run |= options.dry_run;
        // The pod is at the same path, without what stands behind its name.
        let pod = Target {
            subresource: "",
            ..target
        };
        self.evict_pod(&pod, &wanted).await?;
        let status =
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
        let body = plain(&status, &STATUS, negotiated.media)?;
        let answer = Answer::new(201, negotiated.media.content_type(), Body::Full(body));
        Ok(answer.with_warnings(warnings))
    }

    async fn evict_pod(&self, target: &Target, options: &DeleteOptions) -> Result<(), Status> {
        loop {
            self.cache.fresh().await?;
            let current = self.cache_of(target.resource)?.get(&target.key);
            let current = current.ok_or_else(|| target.not_found())?;
            let pod = current.value();
            if is_beyond_budgets(&pod) {
                // `None`: it has begun to run since, and budgets are to be asked.
                match self.delete_while(target, options, While::BeyondBudgets).await? {
                    Some(()) => return Ok(()),
                    None => continue,
                }
            }
            let budgets = self.budgets_of(target, &pod)?;
            let [budget] = &budgets[..] else {
                if budgets.is_empty() {
                    return self.delete_while(target, options, While::Always).await.map(drop);
                }
                let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
                return Err(Status::new(500, "", message));
            };
            let name = &*budget.index().name;
            let condition = match disruption(&budget.value(), &pod) {
                Disruption::Uncounted => While::Unchanged {
                    since: current.revision(),
                    budget: name,
                },
                Disruption::Counted => {
                    self.take_disruption(target, name, options.dry_run).await?;
                    While::Always
                }
            };
            return self.delete_while(target, options, condition).await.map(drop);
        }
    }

    /// The budgets that are about the pod.
    fn budgets_of(&self, target: &Target, pod: &Object) -> Result<Vec<Arc<Shared>>, Status> {
        let budgets = find("policy", "v1", "poddisruptionbudgets").expect("budgets are served");
        let prefix = format!("{}/", target.namespace);
        let selection = Selection {
            start: "",
            prefix: &prefix,
            key: None,
            limit: None,
            matches: &|_| true,
        };
        let page = self.cache_of(budgets)?.list(&selection, self.cache.revision());
        let held = page.items.into_iter();
        Ok(held.filter(|budget| guards(&budget.value(), pod)).collect())
    }

    async fn take_disruption(&self, pod: &Target, budget: &str, dry_run: bool) -> Result<(), Status> {
        let budgets = find("policy", "v1", "poddisruptionbudgets").expect("budgets are served");
        let target = Target::new(budgets, "status", pod.namespace.clone(), budget.to_owned());
        let taken = self.transact(&target, dry_run, |current| {
            let current = current.ok_or_else(|| target.not_found())?;
            let mut budget = current.value.clone();
            count_disruption(&mut budget, &pod.name, self.now()).map_err(|error| refusal(&target, &error))?;
            self.encode(&target, budget).map(Decision::Put)
        });
        taken.await.map(drop)
    }

    /// Marks and deletes the pod, in one step, if the condition holds then; `None` if a pod that no budget was about
    /// has become one.
    async fn delete_while(
        &self,
        target: &Target,
        options: &DeleteOptions,
        condition: While<'_>,
    ) -> Result<Option<()>, Status> {
        let mut has_begun = false;
        let deleted = self.transact(target, options.dry_run, |current| {
            let current = current.ok_or_else(|| target.not_found())?;
            check_preconditions(target, options, current)?;
            has_begun = condition == While::BeyondBudgets && !is_beyond_budgets(&current.value);
            if has_begun {
                return Ok(Decision::Keep);
            }
            if let While::Unchanged { since, budget } = condition
                && since != current.shared.revision()
            {
                return Err(unprocessed(budget));
            }
            let mut pod = current.value.clone();
            mark_evicted(&mut pod, self.now());
            Ok(match next(target, &pod, options, self.now()) {
                Next::Keep => Decision::Put(self.encode(target, pod)?),
                Next::Put(pod) => Decision::Put(self.encode(target, pod)?),
                Next::Delete => Decision::Delete(Some(self.encode(target, pod)?)),
            })
        });
        deleted.await?;
        Ok((!has_begun).then_some(()))
    }
}

fn check_names(target: &Target, eviction: &Object) -> Result<(), Status> {
    let fields = metadata::of(eviction);
    if metadata::text(fields, "name") != target.name {
        let text = "name in URL does not match name in Eviction object";
        return Err(Status::bad_request(text));
    }
    if !["", target.namespace.as_str()].contains(&metadata::text(fields, "namespace")) {
        let text = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Status::bad_request(text));
    }
    Ok(())
}

fn delete_options(target: &Target, eviction: &Object) -> Result<DeleteOptions, Status> {
    let nothing = Object::new();
    let sent = eviction.get("deleteOptions").and_then(Value::as_object);
    let sent = sent.unwrap_or(&nothing);
    const FIELD: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";
    if sent.get(FIELD) == Some(&Value::Bool(true)) {
        let detail = "can not be set for pod eviction, try after removing the option";
        let error = FieldError::invalid(format!("deleteOptions.{FIELD}"), true, detail);
        return Err(Status::invalid(&EVICTION, &target.name, &[error]));
    }
    let mut errors = Vec::new();
    let options = DeleteOptions::read(sent, &mut errors);
    invalid("DeleteOptions", errors)?;
    Ok(options)
}

fn refusal(target: &Target, error: &EvictionError) -> Status {
    match error {
        EvictionError::Unprocessed { .. } => unprocessed(&target.name),
        EvictionError::Exhausted(why) => too_many(why.clone(), 0),
        EvictionError::Broken(why) => Status::forbidden(&BUDGET, &target.name, why),
    }
}

fn unprocessed(budget: &str) -> Status {
    let error = EvictionError::Unprocessed {
        budget: budget.to_owned(),
    };
    too_many(error.to_string(), UNPROCESSED_SECONDS)
}

fn too_many(why: String, seconds: u32) -> Status {
    let mut status = Status::too_many_requests(REFUSED, seconds);
    let cause = StatusCause {
        reason: "DisruptionBudget".to_owned(),
        message: why,
        field: String::new(),
    };
    status.details.get_or_insert_default().causes.push(cause);
    status
}
