//! Which objects of a resource a request is about.

use hotmap_kinds::Resource;
use hotmap_object::{FieldSelector, LabelSelector, ObjectIndex, Status};

use super::{
    node_selection::{NODE_FIELD, selectable},
    options::ListOptions,
};

/// Selects objects by namespace, labels and fields.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Selector {
    /// Empty: all namespaces, or a cluster-scoped kind.
    namespace: String,
    labels: LabelSelector,
    fields: FieldSelector,
    /// Only what the pods of this node refer to: whoever lists or watches finds the members.
    node: Option<String>,
    /// Key of the only object that can match.
    key: Option<String>,
}

impl Selector {
    /// # Errors
    ///
    /// 400 for a field that the kind cannot be selected by.
    pub(super) fn new(
        resource: &Resource,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Result<Self, Status> {
        let (nodes, fields) = options.fields.clone().split(NODE_FIELD);
        let node = match nodes.as_slice() {
            [] => None,
            [one] if one.equal && !one.value.is_empty() && selectable(resource).is_some() => {
                Some(one.value.clone())
            }
            _ => {
                return Err(Status::bad_request(format!(
                    "field label not supported: {NODE_FIELD}"
                )));
            }
        };
        for requirement in fields.requirements() {
            check_field(resource, &requirement.field)?;
        }
        let namespace = namespace.unwrap_or_default().to_owned();
        let name = options
            .fields
            .exact("metadata.name")
            .filter(|name| !name.is_empty());
        let name = name.filter(|_| node.is_none());
        let key = name.and_then(|name| match (resource.namespaced, namespace.is_empty()) {
            (false, _) => Some(name.to_owned()),
            (true, false) => Some(format!("{namespace}/{name}")),
            (true, true) => {
                let namespace = options
                    .fields
                    .exact("metadata.namespace")
                    .filter(|held| !held.is_empty())?;
                Some(format!("{namespace}/{name}"))
            }
        });
        Ok(Self {
            namespace,
            labels: options.labels.clone(),
            fields,
            node,
            key,
        })
    }

    /// `namespace/`, or empty for all.
    pub(super) fn prefix(&self) -> String {
        match self.namespace.as_str() {
            "" => String::new(),
            namespace => format!("{namespace}/"),
        }
    }

    /// The key of the only object that can match, if the selector names one.
    pub(super) fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// The node whose pods refer to what is selected, if the selector names one.
    pub(super) fn node(&self) -> Option<&str> {
        self.node.as_deref()
    }

    /// Whether an object is selected, whatever pods refer to.
    pub(super) fn matches(&self, index: &ObjectIndex) -> bool {
        (self.namespace.is_empty() || *index.namespace == *self.namespace)
            && (self.labels.is_everything() || self.labels.matches(|key| index.label(key)))
            && (self.fields.is_everything() || self.fields.matches(|field| index.field(field)))
    }
}

fn check_field(resource: &Resource, field: &str) -> Result<(), Status> {
    let own = resource.strategy.selectable_fields();
    let is_known = match field {
        "metadata.name" => true,
        // Kinds with fields of their own list all of them, and cluster-scoped ones leave the namespace out.
        "metadata.namespace" => resource.namespaced || own.is_empty(),
        field => own.contains(&field),
    };
    if is_known {
        return Ok(());
    }
    Err(Status::bad_request(if own.is_empty() {
        format!("{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
    } else {
        format!("field label not supported: {field}")
    }))
}
