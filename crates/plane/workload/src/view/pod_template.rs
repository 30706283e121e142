//! A pod template: passed on whole, looked into by few.

use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A `PodTemplateSpec` as JSON; clones share it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PodTemplate(Arc<Value>);

impl PodTemplate {
    pub(crate) fn value(&self) -> &Value {
        &self.0
    }

    /// The labels its pods get.
    pub(crate) fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        let labels = self.0["metadata"]["labels"].as_object().into_iter().flatten();
        labels.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
    }
}

impl From<Value> for PodTemplate {
    fn from(template: Value) -> Self {
        Self(Arc::new(template))
    }
}

impl<'de> Deserialize<'de> for PodTemplate {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        Value::deserialize(input).map(Self::from)
    }
}
