//! Kubernetes REST over a store.

mod answer;
mod authorization;
mod http;
mod objects;
mod request;
