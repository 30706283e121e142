//! The terminal on standard input, and whose it is.

use rustix::stdio::stdin;
use rustix::termios::isatty;

use super::sys;

/// The terminal that `run` was started in the foreground of. The child's group gets it, as a shell gives it to a job:
/// what is typed, Ctrl-C and Ctrl-Z included, goes to the child and not to `run`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    /// Zero if it is a group outside of this pid namespace.
    own_group: i32,
}

impl Terminal {
    /// None: standard input is no terminal, or somebody else is in its foreground.
    pub(crate) fn of_stdin() -> Option<Self> {
        let terminal = Self {
            own_group: sys::own_group(),
        };
        (isatty(stdin()) && terminal.is_ours()).then_some(terminal)
    }

    /// Whether `run` itself has the foreground: a shell has brought it back.
    pub(crate) fn is_ours(self) -> bool {
        self.is_of(self.own_group)
    }

    /// Whether this group has it.
    pub(crate) fn is_of(self, group: i32) -> bool {
        sys::foreground_group() == Some(group)
    }

    /// Puts a group into the foreground. SIGTTOU is blocked in this process, so this may be done from the background.
    /// A terminal that has gone away is no reason to fail: the child is told by SIGHUP.
    pub(crate) fn give_to(self, group: i32) {
        sys::set_foreground_group(group);
    }

    /// Takes the foreground back.
    pub(crate) fn take(self) {
        sys::set_foreground_group(self.own_group);
    }
}
