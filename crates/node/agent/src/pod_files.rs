//! The files in `/etc` that say who a container is and whom it asks for names.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use hotmap_runtime::FileConfig;

use crate::{
    hosts::{self, PodNames},
    pod::{DnsPolicy, Pod},
    resolver::{self, Resolver},
};

const HOST_RESOLVER: &str = "/etc/resolv.conf";
/// What systemd-resolved asks itself; the file of the host then names its address on loopback only.
const BENEATH_SYSTEMD_RESOLVED: &str = "/run/systemd/resolve/resolv.conf";

/// Where a pod stands in the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) ip: String,
    /// Whether it shares the host's network, asked for or not.
    pub(crate) shares_network: bool,
}

/// The files, and what the pod should hear about them.
#[derive(Debug)]
pub(crate) struct PodFiles {
    pub(crate) files: Vec<FileConfig>,
    /// Each for an event with the reason `DNSConfigForming`.
    pub(crate) warnings: Vec<String>,
}

/// Makes them from what the host says now. Blocks. `resolv_conf`: a file other than the host's own.
///
/// # Errors
/// A file of the host that cannot be read, or a name that is too long, as a sentence.
pub(crate) fn of(pod: &Pod, standing: &Standing, resolv_conf: Option<&PathBuf>) -> Result<PodFiles, String> {
    let spec = &pod.spec;
    let names = PodNames::of(&pod.metadata.name, &pod.metadata.namespace, spec);
    let hosts = if spec.host_network {
        hosts::of_host_network(&read(Path::new("/etc/hosts"))?, &spec.host_aliases)
    } else {
        names.hosts(&standing.ip, &spec.host_aliases)
    };
    let host = Resolver::parse(&read(
        resolv_conf.map_or(Path::new(HOST_RESOLVER), PathBuf::as_path),
    )?);
    // Who names a file means that file.
    let beneath = match resolv_conf {
        Some(_) => None,
        None => Some(Resolver::parse(&read(Path::new(BENEATH_SYSTEMD_RESOLVED))?)),
    };
    let resolved = resolver::of_pod(
        spec.dns_policy,
        spec.dns_config.as_ref(),
        standing.shares_network,
        &host,
        beneath.as_ref(),
    );
    let file = |path: &str, content: String| FileConfig {
        path: path.into(),
        content,
    };
    Ok(PodFiles {
        files: vec![
            file("/etc/hosts", hosts),
            file("/etc/hostname", format!("{}\n", kernel_name(pod)?)),
            file("/etc/resolv.conf", resolved.resolver.render()),
        ],
        warnings: resolved.warnings,
    })
}

/// The host name inside: with `hostNetwork` it is the host's.
///
/// # Errors
/// A full name that is too long for the kernel.
pub(crate) fn kernel_name(pod: &Pod) -> Result<String, String> {
    if pod.spec.host_network {
        let uname = rustix::system::uname();
        return Ok(uname.nodename().to_string_lossy().into_owned());
    }
    let names = PodNames::of(&pod.metadata.name, &pod.metadata.namespace, &pod.spec);
    names.kernel_name(pod.spec.set_hostname_as_fqdn)
}

/// Whether the pod wants a name server of the cluster, which there is none of.
pub(crate) fn misses_cluster_dns(pod: &Pod) -> bool {
    match pod.spec.dns_policy {
        DnsPolicy::ClusterFirst => !pod.spec.host_network,
        DnsPolicy::ClusterFirstWithHostNet => true,
        DnsPolicy::Default | DnsPolicy::None => false,
    }
}

/// A file that is not there says nothing.
fn read(path: &Path) -> Result<String, String> {
    match fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
    }
}
