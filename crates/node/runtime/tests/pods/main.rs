//! Pods as they run: real namespaces, mounts and links. Needs root; skipped with a word otherwise.

mod attach;
mod confinement;
mod fixture;
mod hostile;
mod isolation;
mod lifecycle;
mod limits;
mod mount_swaps;
mod restart;
mod sessions;
mod shared_pids;
mod targets;
mod zygote;
