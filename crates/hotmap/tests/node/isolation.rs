//! What root inside a pod finds of the host: nothing that an unprivileged user of the host could not read.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use serde_json::json;

use crate::host::{Node, idle, pod, secret};

/// A file of the host that only its root reads; gone with this value.
struct HostFile(PathBuf);

impl HostFile {
    fn write(path: PathBuf) -> Self {
        fs::write(&path, "of the host\n").expect("root writes anywhere");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a file of ours");
        Self(path)
    }
}

impl Drop for HostFile {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.0));
    }
}

#[test]
fn root_in_a_pod_reads_no_secret_of_the_host_or_of_other_pods() {
    let Some(node) = Node::start() else { return };
    node.create([secret("theirs", json!({"password": "hush"}))]);
    node.create([
        pod(
            "other",
            json!({"containers": [idle(json!({"volumeMounts": [{"name": "s", "mountPath": "/s"}]}))],
            "volumes": [{"name": "s", "secret": {"secretName": "theirs"}}]}),
        ),
        pod("curious", json!({"containers": [idle(json!({}))]})),
    ]);
    node.ready("other curious");
    assert_eq!(node.sh("other", "cat /s/password"), "hush");
    let late = HostFile::write(PathBuf::from(format!("/opt/hotmap-e2e-{}", node.id())));

    let data = node.server.data_dir().display().to_string();
    let kubeconfig = node.server.kubeconfig().display().to_string();
    let uid = node.field("pod/other", ".metadata.uid");
    let late = late.0.display().to_string();
    let mut refused = vec![
        "cat /etc/shadow".to_owned(),
        format!("cat {late}"),
        format!("cat {kubeconfig}"),
        format!("cat {data}/store.redb"),
        format!("cat {data}/pki/ca.key"),
        format!("ls {data}/pki"),
        format!("cat {data}/volumes/{uid}/s/password"),
        "ls /root/.ssh".to_owned(),
        "mount -t proc proc /mnt && cat /mnt/1/environ | grep HOTMAP".to_owned(),
        "chroot /proc/1/root/.. cat /etc/shadow".to_owned(),
        "mknod /tmp/sda b 8 0 && cat /tmp/sda".to_owned(),
        "cat /dev/mem".to_owned(),
        "echo 1 > /proc/sys/kernel/sysrq".to_owned(),
        "nsenter -t 1 -m cat /etc/shadow".to_owned(),
    ];
    refused.extend(["/etc/shadow", &kubeconfig, &late].map(|file| format!("cat /proc/*/root{file}")));
    refused.push(format!("cat /proc/*/root{data}/volumes/{uid}/*/*"));
    for attempt in refused {
        let tried = node.exec("curious", &attempt);
        assert_ne!(tried.code, 0, "{attempt}: {}", tried.stdout);
        assert!(
            !tried.stdout.contains("of the host") && !tried.stdout.contains("hush"),
            "{attempt}"
        );
    }
    // No socket of the host is there to be asked, whoever would answer, but the one that is for this pod alone.
    let sockets = "find / -xdev -type s 2>/dev/null; find /run /tmp /var -type s 2>/dev/null; cut -d ' ' -f 8 -s /proc/net/unix | grep -v RefCount";
    assert_eq!(node.exec("curious", sockets).stdout, "/run/hotmap/agent.sock\n");
    // What every pod has is its own.
    let files = "find /root /tmp /run -type f ! -path '/run/secrets/kubernetes.io/serviceaccount/*'";
    assert_eq!(node.sh("curious", files), "");
    assert_eq!(
        node.sh("curious", "ps -A -o pid= | wc -l | tr -d ' '")
            .parse::<u32>()
            .map(|count| count < 10),
        Ok(true)
    );
}

#[test]
fn a_pod_writes_into_its_own_layer_only() {
    let Some(node) = Node::start() else { return };
    node.create([pod("p", json!({"containers": [idle(json!({}))]}))]);
    node.ready("p");
    let mark = format!("hotmap-e2e-{}", node.id());
    let directories = [
        "/etc", "/var", "/opt", "/srv", "/home", "/mnt", "/tmp", "/run", "/root", "/dev/shm", "/var/tmp",
    ];
    for directory in directories {
        // Whether a directory can be written to is the image's affair; that it is not the host's is ours.
        drop(node.exec("p", &format!("echo x > {directory}/{mark}")));
        assert!(
            !PathBuf::from(directory).join(&mark).exists(),
            "{directory} is the host's"
        );
    }
    node.sh(
        "p",
        "echo x > /etc/hostname; echo 'x:x:0:0::/:' >> /etc/passwd; rm -f /etc/fstab",
    );
    let passwd = fs::read_to_string("/etc/passwd").expect("a host has users");
    assert!(!passwd.contains("x:x:0:0"), "the host's own files stay");
    node.exec("p", &format!("echo x > /usr/bin/{mark}")).ended(2);
    assert!(!PathBuf::from("/usr/bin").join(&mark).exists());
}
