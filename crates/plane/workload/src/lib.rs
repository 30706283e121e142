//! Controllers: binding of pods and the namespace lifecycle.
