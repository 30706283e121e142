//! Which objects of a resource a request is about.

use hotmap_kinds::Resource;
use hotmap_object::{FieldSelector, LabelSelector, ObjectIndex, Status};

use super::options::ListOptions;

/// Selects objects by namespace, labels and fields.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Selector {
    /// Empty: all namespaces, or a cluster-scoped kind.
    namespace: String,
    labels: LabelSelector,
    fields: FieldSelector,
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
        for requirement in options.fields.requirements() {
            check_field(resource, &requirement.field)?;
        }
        let namespace = namespace.unwrap_or_default().to_owned();
        let name = options
            .fields
            .exact("metadata.name")
            .filter(|name| !name.is_empty());
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
            fields: options.fields.clone(),
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

    /// Whether an object is selected.
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
