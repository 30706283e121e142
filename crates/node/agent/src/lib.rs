//! The node: follows objects, keeps volumes true, runs pods.
