//! Makes ReplicaSets follow their Deployment.

mod bounds;
mod conditions;
mod creation;
mod plan;
mod recreate;
mod revision;
mod rolling;
mod scale;
mod status;
mod template;
