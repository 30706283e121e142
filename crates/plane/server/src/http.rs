//! HTTP as every client sees it: connections, limits, headers, media types.

pub(crate) mod body;
pub(crate) mod connection;
mod date;
pub(crate) mod deadline;
pub(crate) mod encoding;
pub(crate) mod entrance;
pub(crate) mod negotiation;
mod pretty;
pub(crate) mod response;
