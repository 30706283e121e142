//! Reviews: questions that the server answers at once; they have no rules of their own and are never listed.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::{Column, Strategy, table};

/// The rules of reviews.
pub(crate) struct Review;

impl Strategy for Review {
    fn columns(&self) -> &'static [Column] {
        &[table::NAME, table::AGE]
    }

    fn cells(&self, object: &Map<String, Value>, now: Timestamp) -> Vec<Value> {
        vec![table::name(object), table::age(object, now)]
    }
}
