//! A container's `/etc/resolv.conf`.
//!
//! The rules are those of `pkg/kubelet/network/dns/dns.go` (Kubernetes 1.36); the order of the lines is containerd's.

use std::{collections::BTreeSet, net::IpAddr};

use crate::pod::{DnsConfig, DnsPolicy};

/// Name servers that a C library asks (`MaxDNSNameservers`).
const SERVERS_MAX: usize = 3;
/// Domains in which it searches, and bytes of them all with a space between two (`MaxDNSSearchPaths`, `MaxDNSSearchListChars`).
const SEARCHES_MAX: usize = 32;
const SEARCH_LINE_BYTES_MAX: usize = 2_048;
/// Bytes of a domain; some C libraries end the program that has a longer one (`DNS1123SubdomainMaxLength`).
const SEARCH_BYTES_MAX: usize = 253;

/// What resolves names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Resolver {
    servers: Vec<String>,
    searches: Vec<String>,
    options: Vec<String>,
}

/// A resolver, and what a pod should hear about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub(crate) resolver: Resolver,
    /// Each for an event with the reason `DNSConfigForming`.
    pub(crate) warnings: Vec<String>,
}

/// What a pod gets that has a network of its own, or shares the host's. `host` is what the host's file says; `beneath` is what
/// systemd-resolved asks, where it stands behind that file.
pub(crate) fn of_pod(
    policy: DnsPolicy,
    config: Option<&DnsConfig>,
    shares_network: bool,
    host: &Resolver,
    beneath: Option<&Resolver>,
) -> Resolved {
    let mut warnings = Vec::new();
    let base = match policy {
        DnsPolicy::None => Resolver::default(),
        _ if shares_network => host.clone(),
        _ => host.for_pods(beneath),
    };
    let whole = match config {
        Some(config) => base.with(config),
        None => base,
    };
    if whole.servers.is_empty() && policy != DnsPolicy::None {
        warnings.push(
            "this host's resolv.conf names no server that a pod can reach: no names are resolved but those in /etc/hosts; \
             name servers in dnsConfig, or start the node with --resolv-conf FILE"
                .to_owned(),
        );
    }
    let resolver = whole.within_limits(&mut warnings);
    Resolved { resolver, warnings }
}

impl Resolver {
    /// Reads a `resolv.conf`; what is wrong in it is passed over, as C libraries do.
    pub(crate) fn parse(text: &str) -> Self {
        let mut read = Self::default();
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("nameserver") => read.servers.extend(words.next().map(str::to_owned)),
                // The last line of its kind stands.
                Some("search") => {
                    let bare = words.filter(|word| *word != ".");
                    read.searches = bare
                        .map(|word| word.strip_suffix('.').unwrap_or(word).to_owned())
                        .collect();
                }
                Some("options") => words.for_each(|word| read.set_option(word)),
                _ => {}
            }
        }
        read
    }

    /// Without what answers on the host's loopback only, which a pod has to itself.
    fn for_pods(&self, beneath: Option<&Self>) -> Self {
        let is_loopback = |server: &String| server.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        if !self.servers.iter().any(is_loopback) {
            return self.clone();
        }
        let has_servers = |one: &&Self| !one.servers.is_empty() && !one.servers.iter().any(is_loopback);
        if let Some(beneath) = beneath.filter(has_servers) {
            return beneath.clone();
        }
        let mut rest = self.clone();
        rest.servers.retain(|server| !is_loopback(server));
        rest
    }

    /// With what the pod adds; its options win.
    fn with(mut self, config: &DnsConfig) -> Self {
        self.servers = once_each(self.servers.into_iter().chain(config.nameservers.iter().cloned()));
        self.searches = once_each(self.searches.into_iter().chain(config.searches.iter().cloned()));
        for option in &config.options {
            match option.value.as_deref() {
                None | Some("") => self.set_option(&option.name),
                Some(value) => self.set_option(&format!("{}:{value}", option.name)),
            }
        }
        self
    }

    fn set_option(&mut self, option: &str) {
        fn name(option: &str) -> &str {
            option.split(':').next().unwrap_or_default()
        }
        match self.options.iter_mut().find(|held| name(held) == name(option)) {
            Some(held) => *held = option.to_owned(),
            None => self.options.push(option.to_owned()),
        }
    }

    /// Cuts what C libraries would not take, and says so in upstream's words.
    fn within_limits(mut self, warnings: &mut Vec<String>) -> Self {
        if self.servers.len() > SERVERS_MAX {
            self.servers.truncate(SERVERS_MAX);
            warnings.push(format!(
                "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: {}",
                self.servers.join(" ")
            ));
        }
        let before = self.searches.len();
        self.searches.truncate(SEARCHES_MAX);
        self.searches.retain(|search| search.len() <= SEARCH_BYTES_MAX);
        while self.searches.join(" ").len() > SEARCH_LINE_BYTES_MAX {
            self.searches.pop();
        }
        if self.searches.len() < before {
            warnings.push(format!(
                "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: {}",
                self.searches.join(" ")
            ));
        }
        self
    }

    /// The file.
    pub(crate) fn render(&self) -> String {
        let mut text = String::new();
        if !self.searches.is_empty() {
            text.push_str(&format!("search {}\n", self.searches.join(" ")));
        }
        for server in &self.servers {
            text.push_str(&format!("nameserver {server}\n"));
        }
        if !self.options.is_empty() {
            text.push_str(&format!("options {}\n", self.options.join(" ")));
        }
        text
    }
}

fn once_each(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    all.filter(|one| seen.insert(one.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::DnsOption;

    const HOST: &str = "# ours\nnameserver 192.0.2.53\nsearch old\nsearch example.org. . lab\noptions ndots:1 rotate\noptions ndots:2\n";
    const STUB: &str = "nameserver 127.0.0.53\noptions edns0 trust-ad\nsearch .\n";
    const BENEATH: &str = "nameserver 192.0.2.1\nnameserver 192.0.2.2\nsearch home\n";

    fn option(name: &str, value: Option<&str>) -> DnsOption {
        DnsOption {
            name: name.to_owned(),
            value: value.map(str::to_owned),
        }
    }

    fn config(nameservers: &[&str], searches: &[&str], options: Vec<DnsOption>) -> DnsConfig {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
        DnsConfig {
            nameservers: words(nameservers),
            searches: words(searches),
            options,
        }
    }

    #[test]
    fn each_policy_has_its_file() {
        let own = config(
            &["198.51.100.1", "192.0.2.53"],
            &["lab", "svc"],
            vec![option("ndots", Some("5")), option("edns0", None)],
        );
        for (policy, own, shares, host, rendered) in [
            (
                DnsPolicy::Default,
                None,
                false,
                HOST,
                "search example.org lab\nnameserver 192.0.2.53\noptions ndots:2 rotate\n",
            ),
            (
                DnsPolicy::ClusterFirst,
                Some(&own),
                false,
                HOST,
                "search example.org lab svc\nnameserver 192.0.2.53\nnameserver 198.51.100.1\noptions ndots:5 rotate edns0\n",
            ),
            (
                DnsPolicy::None,
                Some(&own),
                false,
                HOST,
                "search lab svc\nnameserver 198.51.100.1\nnameserver 192.0.2.53\noptions ndots:5 edns0\n",
            ),
            // What only the host reaches is of no use to a pod, unless it is on the host's network.
            (
                DnsPolicy::Default,
                None,
                false,
                STUB,
                "search home\nnameserver 192.0.2.1\nnameserver 192.0.2.2\n",
            ),
            (
                DnsPolicy::ClusterFirstWithHostNet,
                None,
                true,
                STUB,
                "nameserver 127.0.0.53\noptions edns0 trust-ad\n",
            ),
        ] {
            let beneath = Resolver::parse(BENEATH);
            let resolved = of_pod(policy, own, shares, &Resolver::parse(host), Some(&beneath));
            assert_eq!(
                (resolved.resolver.render().as_str(), resolved.warnings),
                (rendered, vec![]),
                "{policy:?}"
            );
        }
    }

    #[test]
    fn a_host_that_names_nobody_but_itself_is_told_of() {
        let resolved = of_pod(DnsPolicy::Default, None, false, &Resolver::parse(STUB), None);
        assert_eq!(resolved.resolver.render(), "options edns0 trust-ad\n");
        assert!(
            resolved.warnings[0].starts_with("this host's resolv.conf names no server that a pod can reach")
        );
        let mixed = Resolver::parse("nameserver ::1\nnameserver 192.0.2.9\n");
        let resolved = of_pod(DnsPolicy::Default, None, false, &mixed, None);
        assert_eq!(
            (resolved.resolver.render().as_str(), resolved.warnings),
            ("nameserver 192.0.2.9\n", vec![])
        );
    }

    #[test]
    fn what_c_libraries_do_not_take_is_left_out_and_named() {
        let many: Vec<String> = (0..40).map(|number| format!("d{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let own = config(&["192.0.2.1", "192.0.2.2", "192.0.2.3"], &many, Vec::new());
        let resolved = of_pod(
            DnsPolicy::Default,
            Some(&own),
            false,
            &Resolver::parse(HOST),
            None,
        );
        assert_eq!(
            resolved.warnings[0],
            "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: 192.0.2.53 \
             192.0.2.1 192.0.2.2"
        );
        assert!(
            resolved.warnings[1].ends_with(" d28 d29"),
            "{}",
            resolved.warnings[1]
        );
        let long = "x".repeat(250);
        let long: Vec<String> = (10..20).map(|number| format!("{long}{number}")).collect();
        let mut long: Vec<&str> = long.iter().map(String::as_str).collect();
        let too_long = "y".repeat(254);
        long.push(&too_long);
        let own = config(&["192.0.2.1"], &long, Vec::new());
        let resolved = of_pod(DnsPolicy::None, Some(&own), false, &Resolver::default(), None);
        assert_eq!(
            resolved.resolver.searches.len(),
            8,
            "eight of 252 and the spaces between them"
        );
        assert_eq!(resolved.warnings.len(), 1);
    }
}
