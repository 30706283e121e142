//! Runs lifecycle hooks.
//!
//! Rules and texts follow `pkg/kubelet/lifecycle/handlers.go`, Kubernetes 1.36: a command fails by its exit code, a request only
//! when nobody answers it, a sleep never. A server without TLS is asked again in plain text, and told no password. A `preStop` hook has the container's grace period and no more; a `postStart` hook has
//! as long as its container lives.

use std::{fmt::Write, time::Duration};

use hotmap_runtime::{ExecError, Runtime};

use crate::{
    http_get,
    pod::{Container, Hook, Pod},
};

/// Bytes of a hook's output that its message shows.
const OUTPUT_BYTES_MAX: usize = 10 * 1024;
/// A command of a hook has no time of its own (a year).
const NO_TIMEOUT: Duration = Duration::from_secs(366 * 86_400);

/// Runs a hook to its end; a failure says what the container's status says.
pub(crate) async fn run(
    runtime: &Runtime,
    pod: &Pod,
    container: &Container,
    pod_ip: &str,
    hook: &Hook,
) -> Result<(), String> {
    if let Some(exec) = &hook.exec {
        return run_command(runtime, pod, container, &exec.command).await;
    }
    if let Some(get) = &hook.http_get {
        let agent = concat!("kube-lifecycle/1.36 hotmap/", env!("CARGO_PKG_VERSION"));
        let mut answered = http_get::status(get, container, pod_ip, agent).await;
        if let Err(error) = &answered
            && http_get::wants_plain_http(error)
        {
            let plain = get.over_plain_http();
            answered = http_get::status(&plain, container, pod_ip, agent).await;
        }
        return answered.map(drop).map_err(|error| {
            let what = format!("HTTP lifecycle hook ({})", get.path);
            failed(&what, pod, container, &error)
        });
    }
    if let Some(sleep) = &hook.sleep {
        tokio::time::sleep(Duration::from_secs(sleep.seconds)).await;
        return Ok(());
    }
    Err("Cannot run handler: it names nothing to do".to_owned())
}

async fn run_command(
    runtime: &Runtime,
    pod: &Pod,
    container: &Container,
    command: &[String],
) -> Result<(), String> {
    let (uid, argv) = (&pod.metadata.uid, command.to_vec());
    let ran = runtime
        .exec_sync(uid, &container.name, argv, NO_TIMEOUT, OUTPUT_BYTES_MAX)
        .await;
    let shown = command.join(" ");
    let (error, output) = match ran {
        Ok(done) if done.exit_code == 0 => return Ok(()),
        Ok(done) => {
            let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
            let printed = [done.stdout, done.stderr].concat();
            let error = format!("command '{shown}' exited with {}: {stderr}", done.exit_code);
            (error, String::from_utf8_lossy(&printed).into_owned())
        }
        Err(ExecError::Exec { message, .. }) => (message, String::new()),
        Err(error) => (error.to_string(), String::new()),
    };
    let mut message = failed(
        &format!("Exec lifecycle hook ([{shown}])"),
        pod,
        container,
        &error,
    );
    write!(message, ", message: {output:?}").expect("a string takes everything");
    Err(message)
}

fn failed(what: &str, pod: &Pod, container: &Container, error: &str) -> String {
    let metadata = &pod.metadata;
    let pod_shown = format!("{}_{}({})", metadata.name, metadata.namespace, metadata.uid);
    format!(
        "{what} for Container {:?} in Pod {pod_shown:?} failed - error: {error}",
        container.name
    )
}

/// The signal of that name, `SIGTERM` or `SIGRTMIN+3`, as this kernel numbers it.
pub(crate) fn signal(name: &str) -> Option<i32> {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
        "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
        "VTALRM", "PROF", "WINCH", "POLL", "PWR", "SYS",
    ];
    /// The first and last signal that programs may give a meaning of their own, with the C library's two left out.
    const REALTIME: (i32, i32) = (34, 64);
    let name = name.strip_prefix("SIG")?;
    let known = NAMES.iter().position(|known| *known == name);
    let known = known.and_then(|index| i32::try_from(index + 1).ok());
    let realtime = || {
        let number = match name.split_at_checked(5)? {
            ("RTMIN", "") => REALTIME.0,
            ("RTMAX", "") => REALTIME.1,
            ("RTMIN", offset) => REALTIME.0 + offset.strip_prefix('+')?.parse::<i32>().ok()?,
            ("RTMAX", offset) => REALTIME.1 - offset.strip_prefix('-')?.parse::<i32>().ok()?,
            _ => return None,
        };
        (REALTIME.0..=REALTIME.1).contains(&number).then_some(number)
    };
    match name {
        "IOT" => signal("SIGABRT"),
        "IO" => signal("SIGPOLL"),
        "CLD" => signal("SIGCHLD"),
        _ => known.or_else(realtime),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_the_numbers_of_linux() {
        for (name, number) in [
            ("SIGTERM", Some(15)),
            ("SIGQUIT", Some(3)),
            ("SIGUSR1", Some(10)),
            ("SIGWINCH", Some(28)),
            ("SIGSYS", Some(31)),
            ("SIGIO", Some(29)),
            ("SIGRTMIN", Some(34)),
            ("SIGRTMIN+3", Some(37)),
            ("SIGRTMAX-2", Some(62)),
            ("SIGRTMIN+31", None),
            ("TERM", None),
            ("SIGNOPE", None),
        ] {
            assert_eq!(signal(name), number, "{name}");
        }
    }
}
