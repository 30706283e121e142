//! How much is taken on.

/// How much of a watched path is taken on. More is an error with a sentence, never a silent part of it: a watcher that
/// follows `/` by mistake shall say so, and not read the disk for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Levels of directories beneath the watched one. Default 16: ConfigMaps have as many as `items[].path` asks for, trees of
    /// configuration have a handful.
    pub depth: usize,
    /// Files. Default 10,000: each costs some 100 bytes, and some microseconds when it is new.
    pub files: usize,
    /// Directories. Default 1,000: each costs an inotify watch, of which older kernels give a user 8,192.
    pub directories: usize,
    /// Bytes of all files together. Default 64 MiB: a ConfigMap has 1 MiB at most, and so much is read in 0.1 s.
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            depth: 16,
            files: 10_000,
            directories: 1_000,
            bytes: 64 * 1024 * 1024,
        }
    }
}
