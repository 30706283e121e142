//! The zygote: one process per agent, that shims are forked from.
//!
//! ```text
//!   agent ──exec──▶ zygote ──fork──▶ shim of one pod     shim of another     …
//!     └─ SOCK_SEQPACKET: pod uid; its directory, its log, its greeting's pipe
//! ```
//!
//! It is this program, executed once: past the relocation of the program and the start of the allocator, and then it waits. A
//! shim that is forked from it pays for neither, and shares those pages with all others. It makes nothing and waits for nobody,
//! so that pods start side by side. It ends with its socket, which is to say with the agent; shims stay.
//!
//! It hands a shim nothing that it would not have from the agent: no descriptor but those of the message, and neither working directory
//! nor parent of its own.

use std::env;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::process::ExitCode;

use crate::cgroup;
use crate::protocol::{self, FRAME_FDS_MAX, Greeting, POD_UID_BYTES_MAX, SHIM_ARGUMENT, ZYGOTE_READY};
use crate::sys::{self, Cloned};

/// Becomes the zygote, outside the agent's process tree: the process that the agent waits for ends at once.
pub(super) fn detach(give_back_memory: fn()) -> ExitCode {
    // SAFETY: nothing is open yet but the standard streams; whatever else the agent leaked is not ours.
    let closed = unsafe { sys::close_all_but(&[0, 1, 2]) };
    match closed.and_then(|()| sys::clone_process(0, None)) {
        Ok(Cloned::Parent { .. }) => ExitCode::SUCCESS,
        Ok(Cloned::Child) => serve(give_back_memory),
        Err(error) => fail("cannot leave the agent", &error),
    }
}

/// Forks a shim for each message, until the agent is gone.
fn serve(give_back_memory: fn()) -> ExitCode {
    let _ = rustix::thread::set_name(c"hotmap-zygote");
    // What stops the agent is not for this process: it goes when the agent has gone.
    if let Err(error) = rustix::process::setsid() {
        return fail("cannot begin a session", &error.into());
    }
    sys::ignore_signals(&super::IGNORED);
    let instance_id = env::args().nth(2).unwrap_or_default();
    // For all shims: the agent too takes what there was when it started.
    let cgroups = cgroup::Instance::find(&instance_id);
    let agent = io::stdin();
    give_back_memory();
    if let Err(error) = protocol::send_with_fds(&agent, ZYGOTE_READY, &[]) {
        return fail("cannot speak to the agent", &error);
    }
    loop {
        let mut bytes = [0; POD_UID_BYTES_MAX + 1];
        let mut fds = Vec::new();
        match protocol::receive_with_fds(&agent, &mut bytes, &mut fds) {
            Ok(0) => return ExitCode::SUCCESS,
            Ok(length) => match Birth::read(&bytes[..length], fds) {
                Ok(birth) => {
                    if let Some(code) = birth.give(&instance_id, &cgroups, give_back_memory) {
                        return code;
                    }
                }
                Err(reason) => complain(format_args!("no shim is started: {reason}")),
            },
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return fail("cannot hear the agent", &error),
        }
    }
}

fn fail(what: &str, error: &io::Error) -> ExitCode {
    complain(format_args!("{what}: {error}"));
    ExitCode::FAILURE
}

/// To where the agent's log goes, if anybody reads that.
fn complain(message: impl Display) {
    let _ = writeln!(io::stderr(), "hotmap-zygote: {message}");
}

/// What a message asks for.
struct Birth {
    pod_uid: String,
    pod_dir: OwnedFd,
    log: OwnedFd,
    greeting: OwnedFd,
}

impl Birth {
    fn read(bytes: &[u8], fds: Vec<OwnedFd>) -> Result<Self, String> {
        let count = fds.len();
        let Ok([pod_dir, log, greeting]) = <[OwnedFd; FRAME_FDS_MAX]>::try_from(fds) else {
            return Err(format!(
                "{count} descriptors came along instead of {FRAME_FDS_MAX}"
            ));
        };
        let pod_uid = std::str::from_utf8(bytes)
            .ok()
            .filter(|uid| protocol::is_pod_uid(uid))
            .map(str::to_owned);
        match pod_uid {
            Some(pod_uid) => Ok(Self {
                pod_uid,
                pod_dir,
                log,
                greeting,
            }),
            None => {
                let reason = format!("{:?} is no pod's uid", String::from_utf8_lossy(bytes));
                refuse(greeting, &reason);
                Err(reason)
            }
        }
    }

    /// Forks the shim. `None` in the zygote; what comes back in the shim is its end.
    fn give(self, instance_id: &str, cgroups: &cgroup::Instance, give_back_memory: fn()) -> Option<ExitCode> {
        match sys::clone_sibling() {
            Ok(Cloned::Parent { .. }) => None,
            Ok(Cloned::Child) => Some(match self.begin(instance_id) {
                Ok(()) => super::run(cgroups, give_back_memory),
                Err(error) => fail("a shim cannot begin", &error),
            }),
            Err(error) => {
                refuse(self.greeting, &format!("cannot start the shim: {error}"));
                None
            }
        }
    }

    /// All that an execution of the program in the pod's directory would have given it.
    fn begin(self, instance_id: &str) -> io::Result<()> {
        sys::set_arguments(&[SHIM_ARGUMENT, instance_id, &self.pod_uid]);
        sys::duplicate_onto(File::open("/dev/null")?, 0)?;
        sys::duplicate_onto(&self.greeting, 1)?;
        sys::duplicate_onto(&self.log, 2)?;
        Ok(rustix::process::fchdir(&self.pod_dir)?)
    }
}

/// Says in the shim's place that there will be none.
fn refuse(greeting: OwnedFd, reason: &str) {
    let line = serde_json::to_string(&Greeting::Failed(reason.to_owned())).unwrap_or_default();
    let _ = writeln!(File::from(greeting), "{line}");
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_message_that_asks_for_nothing_is_answered_where_somebody_listens() {
        let null = || OwnedFd::from(File::open("/dev/null").expect("opened"));
        let long = "a".repeat(POD_UID_BYTES_MAX + 1);
        for (text, said) in [
            ("", "\"\" is no pod's uid"),
            ("../escape", "\"../escape\" is no pod's uid"),
            (&long, "is no pod's uid"),
        ] {
            let (mut read, write) = io::pipe().expect("a pipe");
            let fds = vec![null(), null(), write.into()];
            let refused = Birth::read(text.as_bytes(), fds).err().expect(text);
            let mut line = String::new();
            read.read_to_string(&mut line).expect("read");
            let Ok(Greeting::Failed(told)) = serde_json::from_str(&line) else {
                panic!("{line:?}");
            };
            assert!(told == refused && told.ends_with(said), "{told}");
        }
        let few = Birth::read(b"a-pod", vec![null()]).err();
        assert_eq!(few.as_deref(), Some("1 descriptors came along instead of 3"));
        assert!(Birth::read(b"a-pod", vec![null(), null(), null()]).is_ok());
    }
}
