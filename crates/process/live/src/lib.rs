//! Configuration as a typed value that follows its files.
