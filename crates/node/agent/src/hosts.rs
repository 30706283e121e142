//! A pod's names: its host name, its domain, and the `/etc/hosts` of its containers.
//!
//! As `pkg/kubelet/kubelet_pods.go` has them (Kubernetes 1.36), down to the bytes of the file.

use crate::pod::{HostAlias, PodSpec};

/// Longest host name that the kernel takes without its last zero, and bytes of a full one.
const HOSTNAME_BYTES_MAX: usize = 63;
const FQDN_BYTES_MAX: usize = 64;
/// Nobody resolves names of it here; it is what upstream's installers give a cluster.
const CLUSTER_DOMAIN: &str = "cluster.local";

const HEADER: &str = "# Kubernetes-managed hosts file.\n";
const HEADER_HOST_NETWORK: &str = "# Kubernetes-managed hosts file (host network).\n";
const LOCAL: &str = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\n\
                     fe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n";

/// What a pod is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PodNames {
    hostname: String,
    domain: Option<String>,
}

impl PodNames {
    /// From `hostname`, `subdomain`, `hostnameOverride` and the pod's name.
    pub(crate) fn of(name: &str, namespace: &str, spec: &PodSpec) -> Self {
        if !spec.hostname_override.is_empty() {
            return Self {
                hostname: cut(&spec.hostname_override),
                domain: None,
            };
        }
        let hostname = match spec.hostname.as_str() {
            "" => name,
            hostname => hostname,
        };
        let has_domain = !spec.subdomain.is_empty();
        Self {
            hostname: cut(hostname),
            domain: has_domain.then(|| format!("{}.{namespace}.svc.{CLUSTER_DOMAIN}", spec.subdomain)),
        }
    }

    /// What the kernel is told: the short name, or the full one for `setHostnameAsFQDN`.
    ///
    /// # Errors
    /// Upstream's sentence about a name that is too long for the kernel.
    pub(crate) fn kernel_name(&self, as_fqdn: bool) -> Result<String, String> {
        let Some(domain) = self.domain.as_ref().filter(|_| as_fqdn) else {
            return Ok(self.hostname.clone());
        };
        let full = format!("{}.{domain}", self.hostname);
        if full.len() > FQDN_BYTES_MAX {
            return Err(format!(
                "failed to construct FQDN from pod hostname and cluster domain, FQDN {full} is too long ({FQDN_BYTES_MAX} \
                 characters is the max, {} characters requested)",
                full.len()
            ));
        }
        Ok(full)
    }

    /// The file of a pod with this address.
    pub(crate) fn hosts(&self, ip: &str, aliases: &[HostAlias]) -> String {
        let mut text = format!("{HEADER}{LOCAL}");
        let hostname = &self.hostname;
        match &self.domain {
            _ if ip.is_empty() => {}
            Some(domain) => text.push_str(&format!("{ip}\t{hostname}.{domain}\t{hostname}\n")),
            None => text.push_str(&format!("{ip}\t{hostname}\n")),
        }
        add_aliases(&mut text, aliases);
        text
    }
}

/// The file of a pod with `hostNetwork`: the host's own and the pod's aliases.
pub(crate) fn of_host_network(host: &str, aliases: &[HostAlias]) -> String {
    let mut text = format!("{HEADER_HOST_NETWORK}{host}");
    add_aliases(&mut text, aliases);
    text
}

fn add_aliases(text: &mut String, aliases: &[HostAlias]) {
    if aliases.is_empty() {
        return;
    }
    text.push_str("\n# Entries added by HostAliases.\n");
    for alias in aliases {
        text.push_str(&format!("{}\t{}\n", alias.ip, alias.hostnames.join("\t")));
    }
}

fn cut(name: &str) -> String {
    let short: String = name.chars().take(HOSTNAME_BYTES_MAX).collect();
    short.trim_end_matches(['-', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(hostname: &str, subdomain: &str, hostname_override: &str) -> PodSpec {
        PodSpec {
            hostname: hostname.to_owned(),
            subdomain: subdomain.to_owned(),
            hostname_override: hostname_override.to_owned(),
            ..PodSpec::default()
        }
    }

    #[test]
    fn a_pod_has_a_short_name_and_with_a_subdomain_a_full_one() {
        let long = format!("{}-{}", "a".repeat(62), "b".repeat(20));
        for (name, spec, short, full) in [
            ("web", spec("", "", ""), "web", "web"),
            (
                "web",
                spec("front", "sites", ""),
                "front",
                "front.sites.shop.svc.cluster.local",
            ),
            ("web", spec("front", "sites", "one.two"), "one.two", "one.two"),
            (&long, spec("", "", ""), &long[..62], &long[..62]),
        ] {
            let names = PodNames::of(name, "shop", &spec);
            assert_eq!(names.kernel_name(false).as_deref(), Ok(short));
            assert_eq!(names.kernel_name(true).as_deref(), Ok(full));
        }
        let names = PodNames::of("web", "shop", &spec(&"h".repeat(50), "sites", ""));
        let said = names.kernel_name(true).expect_err("too long");
        assert!(
            said.ends_with("is too long (64 characters is the max, 79 characters requested)"),
            "{said}"
        );
    }

    #[test]
    fn hosts_files_are_those_of_a_kubelet() {
        let local = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n";
        let aliases = [HostAlias {
            ip: "192.0.2.7".to_owned(),
            hostnames: vec!["db".to_owned(), "db.example.org".to_owned()],
        }];
        let added = "\n# Entries added by HostAliases.\n192.0.2.7\tdb\tdb.example.org\n";
        let plain = PodNames::of("web", "shop", &spec("", "", ""));
        let full = PodNames::of("web", "shop", &spec("", "sites", ""));
        for (text, expected) in [
            (
                plain.hosts("10.88.0.2", &[]),
                format!("# Kubernetes-managed hosts file.\n{local}10.88.0.2\tweb\n"),
            ),
            (
                full.hosts("10.88.0.2", &aliases),
                format!(
                    "# Kubernetes-managed hosts file.\n{local}10.88.0.2\tweb.sites.shop.svc.cluster.local\tweb\n{added}"
                ),
            ),
            (
                of_host_network("127.0.0.1 box\n", &aliases),
                format!("# Kubernetes-managed hosts file (host network).\n127.0.0.1 box\n{added}"),
            ),
        ] {
            assert_eq!(text, expected);
        }
    }
}
