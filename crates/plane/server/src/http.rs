//! HTTP as every client sees it: connections, limits, headers, media types.

pub(crate) mod negotiation;
