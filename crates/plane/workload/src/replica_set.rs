//! Keeps as many pods as a ReplicaSet asks for.

pub(crate) mod decision;
mod ranking;
