//! Service: rules of the kind.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::{Column, Strategy, table};

/// Rules of the kind.
pub(crate) struct Service;

const COLUMNS: &[Column] = &[table::NAME, table::AGE];

impl Strategy for Service {
    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Map<String, Value>, now: Timestamp) -> Vec<Value> {
        vec![table::name(object), table::age(object, now)]
    }
}
