//! Kubernetes REST over a store.
