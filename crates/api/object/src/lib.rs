//! What every Kubernetes object has: a key, a revision, metadata, selectors to be found by, and `Status` for errors.
//!
//! No I/O and no async: everything here is a value or a pure function. The one thing looked up outside is the time zone
//! database.

mod cron_schedule;
mod field_error;
mod field_selector;
mod group;
mod label_selector;
pub mod names;
mod object;
mod quantity;
mod revision;
mod status;
pub mod timestamp;

pub use cron_schedule::{CronSchedule, CronScheduleError, UnknownTimeZone, time_zone};
pub use field_error::{FieldError, FieldErrorKind};
pub use field_selector::{FieldRequirement, FieldSelector, FieldSelectorError};
pub use group::{GroupResource, GroupVersionKind};
pub use label_selector::{LabelSelector, LabelSelectorError};
pub use object::{Draft, Object, ObjectIndex};
pub use quantity::{NotAQuantity, Quantity};
pub use revision::Revision;
pub use status::{Status, StatusCause, StatusDetails};
