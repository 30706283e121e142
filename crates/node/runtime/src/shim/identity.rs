//! The last steps of a new process: it becomes somebody inside the pod, and then another program.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CString, OsStr};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::process::{DumpableBehavior, Signal};
use rustix::thread::{CapabilitySet, CapabilitySets, Gid, LinkNameSpaceType, Uid};

use super::launch::tell_groups;
use super::rootfs::{Setup, what};
use super::{accounts, seccomp};
use crate::protocol::Refusal;
use crate::spec::{Capabilities, ContainerConfig, ProcessUser, SeccompProfile};
use crate::sys;

/// Upstream's default (`defaultUnixEnv` in containerd's `pkg/oci`).
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The kernel knows no capability above this yet; numbers it does not know are skipped.
const CAPABILITY_MAX: u32 = 63;

/// Who a process is: what `exec` takes over from the container it joins. Only in the shim's memory, for it has secrets.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) user: ProcessUser,
    pub(crate) capabilities: Capabilities,
    pub(crate) no_new_privileges: bool,
    seccomp: SeccompProfile,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) cwd: PathBuf,
    pub(crate) oom_score_adj: i32,
    tty: bool,
}

/// What every container has unless somebody says otherwise.
fn with_defaults(mut env: Vec<(String, String)>, hostname: &str, tty: bool) -> Vec<(String, String)> {
    let mut default = |name: &str, value: &str| {
        if !env.iter().any(|(known, _)| known == name) {
            env.push((name.to_owned(), value.to_owned()));
        }
    };
    default("PATH", DEFAULT_PATH);
    default("HOSTNAME", hostname);
    if tty {
        default("TERM", "xterm");
    }
    env
}

impl Identity {
    pub(crate) fn of(config: &ContainerConfig, hostname: &str) -> Self {
        let capabilities = if config.privileged {
            Capabilities::ALL
        } else {
            config.capabilities
        };
        Self {
            user: config.user.clone(),
            capabilities,
            no_new_privileges: config.no_new_privileges && !config.privileged,
            seccomp: if config.privileged {
                SeccompProfile::Unconfined
            } else {
                config.seccomp
            },
            env: with_defaults(config.env.clone(), hostname, config.tty),
            cwd: config.cwd.clone(),
            oom_score_adj: config.oom_score_adj.unwrap_or(0),
            tty: config.tty,
        }
    }

    /// The names of variables that would be others, or not be there, with this environment.
    pub(crate) fn differs_in(&self, env: Vec<(String, String)>, hostname: &str) -> Vec<String> {
        let wanted = BTreeMap::from_iter(with_defaults(env, hostname, self.tty));
        let held = BTreeMap::from_iter(self.env.iter().cloned());
        let names: BTreeSet<&String> = wanted.keys().chain(held.keys()).collect();
        let differs = names
            .into_iter()
            .filter(|name| wanted.get(*name) != held.get(*name));
        differs.cloned().collect()
    }

    /// Becomes this identity in the pod's user namespace and runs the program; comes back only with the reason why not. The
    /// root is the container's already. `report` is the descriptor that tells the shim, closed by the exec.
    pub(crate) fn run(&self, argv: &[String], users: BorrowedFd<'_>, report: BorrowedFd<'_>) -> Refusal {
        let setup = |message| Refusal::Setup { message };
        match self.assume(users, report) {
            Ok(env) => exec(argv, &env),
            Err(message) => setup(message),
        }
    }

    fn assume(&self, users: BorrowedFd<'_>, report: BorrowedFd<'_>) -> Setup<Vec<CString>> {
        // Until the exec this is a copy of the shim. Nobody in the pod may trace it or look through its descriptors.
        what(
            rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable),
            || "cannot become undumpable".to_owned(),
        )?;
        let env = self.environment()?;
        what(
            rustix::thread::move_into_link_name_space(users, Some(LinkNameSpaceType::User)),
            || "cannot join the pod's user namespace".to_owned(),
        )?;
        self.drop_bounding_set()?;
        if !self.no_new_privileges {
            // As long as CAP_SYS_ADMIN is there. The profile allows what is left to do.
            self.confine()?;
        }
        let groups = self.change_user()?;
        tell_groups(report, &groups)?;
        self.set_capabilities()?;
        // SAFETY: from here to the exec nothing but the report and the standard streams is used, and the process ends
        // by exec or _exit, so no owner drops a descriptor. Closed before chdir: a working directory must not lead
        // through one of the shim's.
        what(
            unsafe { sys::close_all_but(&[0, 1, 2, report.as_raw_fd()]) },
            || "cannot close descriptors".to_owned(),
        )?;
        self.change_directory()?;
        // After the change of user, which clears it: if the shim dies, nobody keeps the pod's promises.
        what(
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL)),
            || "cannot tie the process to its shim".to_owned(),
        )?;
        rustix::process::umask(Mode::from(0o022));
        sys::reset_signals();
        if self.no_new_privileges {
            what(rustix::thread::set_no_new_privs(true), || {
                "cannot set no_new_privs".to_owned()
            })?;
            self.confine()?;
        }
        Ok(env)
    }

    fn confine(&self) -> Setup<()> {
        match self.seccomp {
            SeccompProfile::Unconfined => Ok(()),
            SeccompProfile::RuntimeDefault => seccomp::install_default(self.capabilities),
        }
    }

    fn drop_bounding_set(&self) -> Setup<()> {
        for capability in 0..=CAPABILITY_MAX {
            let keep = self.capabilities.0 >> capability & 1 == 1;
            if !keep {
                let known = what(sys::drop_bounding(capability), || {
                    "cannot drop a capability".to_owned()
                })?;
                if !known {
                    break;
                }
            }
        }
        Ok(())
    }

    /// The groups that it has then.
    fn change_user(&self) -> Setup<Vec<u32>> {
        let (uid, gid) = (Uid::from_raw(self.user.uid), Gid::from_raw(self.user.gid));
        let merged = if self.user.merge_groups {
            accounts::groups_of(self.user.uid)
        } else {
            Vec::new()
        };
        // The primary group is among them, as containerd has it: else a file could be closed to it by giving it fewer rights
        // than others.
        let mut groups = self.user.supplementary_groups.clone();
        groups.extend(merged);
        groups.push(self.user.gid);
        groups.sort_unstable();
        groups.dedup();
        let raw: Vec<Gid> = groups.iter().copied().map(Gid::from_raw).collect();
        what(rustix::thread::set_thread_groups(&raw), || {
            "cannot set the supplementary groups".to_owned()
        })?;
        what(rustix::thread::set_thread_res_gid(gid, gid, gid), || {
            format!("cannot become group {}", gid.as_raw())
        })?;
        what(rustix::thread::set_thread_res_uid(uid, uid, uid), || {
            format!("cannot become user {}", uid.as_raw())
        })?;
        Ok(groups)
    }

    /// The kernel clears them itself when a user other than 0 executes a program.
    fn set_capabilities(&self) -> Setup<()> {
        let current = what(rustix::thread::capabilities(None), || {
            "cannot read capabilities".to_owned()
        })?;
        let set = CapabilitySet::from_bits_retain(self.capabilities.0) & current.permitted;
        let sets = CapabilitySets {
            effective: set,
            permitted: set,
            inheritable: CapabilitySet::empty(),
        };
        what(rustix::thread::set_capabilities(None, sets), || {
            "cannot set capabilities".to_owned()
        })
    }

    fn change_directory(&self) -> Setup<()> {
        let shown = self.cwd.display();
        what(rustix::process::chdir(&self.cwd), || {
            format!("cannot change to the working directory {shown}")
        })?;
        let here = what(rustix::process::getcwd(Vec::new()), || {
            format!("cannot name the working directory {shown}")
        })?;
        // The kernel writes "(unreachable)" before a place outside the root.
        if here.to_bytes().first() == Some(&b'/') {
            Ok(())
        } else {
            Err(format!("the working directory {shown} is outside the container"))
        }
    }

    fn environment(&self) -> Setup<Vec<CString>> {
        let mut env = self.env.clone();
        if !env.iter().any(|(name, _)| name == "HOME") {
            env.push(("HOME".to_owned(), accounts::home_of(self.user.uid)));
        }
        env.iter()
            .map(|(name, value)| {
                CString::new(format!("{name}={value}"))
                    .map_err(|_| format!("the environment variable {name} holds a zero byte"))
            })
            .collect()
    }
}

/// Finds the program as runc does (Go's `exec.LookPath`), in its words, and runs it.
fn exec(argv: &[String], env: &[CString]) -> Refusal {
    let Some(program) = argv.first() else {
        return Refusal::Invalid {
            message: "no command specified".to_owned(),
        };
    };
    let Ok(arguments) = argv
        .iter()
        .map(|argument| CString::new(argument.as_str()))
        .collect::<Result<Vec<_>, _>>()
    else {
        return Refusal::Invalid {
            message: "an argument holds a zero byte".to_owned(),
        };
    };
    let path = match look_up(program, env) {
        Ok(path) => path,
        Err(refusal) => return refusal,
    };
    let error = match CString::new(path.as_os_str().as_bytes()) {
        Ok(c_path) => sys::execute(&c_path, &arguments, env),
        Err(_) => io::Error::from_raw_os_error(libc::EINVAL),
    };
    let exit_code = if error.kind() == io::ErrorKind::NotFound {
        127
    } else {
        126
    };
    Refusal::Exec {
        message: format!("exec {}: {}", path.display(), go_text(&error)),
        exit_code,
    }
}

fn look_up(program: &str, env: &[CString]) -> Result<PathBuf, Refusal> {
    let refuse = |text: &str, exit_code| Refusal::Exec {
        message: format!("exec: {program:?}: {text}"),
        exit_code,
    };
    if program.contains('/') {
        let path = PathBuf::from(program);
        return match executable(&path) {
            Ok(()) => Ok(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(refuse(&format!("stat {program}: {}", go_text(&error)), 127))
            }
            Err(error) => Err(refuse(&go_text(&error), 126)),
        };
    }
    let path = env
        .iter()
        .rev()
        .find_map(|pair| pair.to_bytes().strip_prefix(b"PATH="));
    for dir in path.unwrap_or_default().split(|byte| *byte == b':') {
        let dir = if dir.is_empty() {
            Path::new(".")
        } else {
            Path::new(OsStr::from_bytes(dir))
        };
        let candidate = dir.join(program);
        if !program.is_empty() && executable(&candidate).is_ok() {
            return Ok(candidate);
        }
    }
    Err(refuse("executable file not found in $PATH", 127))
}

fn executable(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::EISDIR));
    }
    let flags = rustix::fs::AtFlags::EACCESS;
    Ok(rustix::fs::accessat(
        rustix::fs::CWD,
        path,
        rustix::fs::Access::EXEC_OK,
        flags,
    )?)
}

/// The system's words without Rust's number behind them, lower-case as Go has them.
fn go_text(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| {
        first.to_lowercase().chain(letters).collect()
    })
}

/// Makes three descriptors the standard streams, in a session of their own; with a terminal it is the session's.
pub(crate) fn take_streams(streams: [BorrowedFd<'_>; 3], controlling: bool) -> Setup<()> {
    what(rustix::process::setsid(), || "cannot begin a session".to_owned())?;
    // Above 2 first: one of them may be 0, 1 or 2 itself.
    let mut moved = Vec::new();
    for stream in streams {
        let flags = rustix::io::fcntl_dupfd_cloexec(stream, 3);
        moved.push(what(flags, || "cannot copy a stream".to_owned())?);
    }
    for (number, stream) in moved.iter().enumerate() {
        what(sys::duplicate_onto(stream, number as RawFd), || {
            "cannot connect a stream".to_owned()
        })?;
    }
    if controlling {
        what(rustix::process::ioctl_tiocsctty(moved[0].as_fd()), || {
            "cannot take the terminal".to_owned()
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_looked_up_in_runcs_words() {
        let env = [CString::new("PATH=/nowhere:/bin:/usr/bin").expect("no zero")];
        let cases = [
            ("sh", Ok("/bin/sh")),
            ("/bin/sh", Ok("/bin/sh")),
            (
                "no-such-program",
                Err((
                    r#"exec: "no-such-program": executable file not found in $PATH"#,
                    127,
                )),
            ),
            (
                "/no/such",
                Err((
                    r#"exec: "/no/such": stat /no/such: no such file or directory"#,
                    127,
                )),
            ),
            ("/etc", Err((r#"exec: "/etc": is a directory"#, 126))),
            (
                "/etc/passwd",
                Err((r#"exec: "/etc/passwd": permission denied"#, 126)),
            ),
            ("", Err((r#"exec: "": executable file not found in $PATH"#, 127))),
        ];
        for (program, expected) in cases {
            let expected = expected
                .map(PathBuf::from)
                .map_err(|(message, exit_code): (&str, i32)| Refusal::Exec {
                    message: message.to_owned(),
                    exit_code,
                });
            assert_eq!(look_up(program, &env), expected, "{program:?}");
        }
    }
}
