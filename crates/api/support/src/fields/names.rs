//! What a pod adds to its names and name servers.

use crate::{Table, row::works};

const NAMES: &str =
    "crates/hotmap/tests/node/network.rs::a_pod_has_names_a_resolver_and_where_it_asks_the_hosts_network";
const LIMITS: &str = "crates/node/agent/src/resolver.rs::what_c_libraries_do_not_take_is_left_out_and_named";

pub(super) const POD_DNS_CONFIG: Table = Table {
    message: "PodDNSConfig",
    rows: &[
        works(
            "nameservers",
            "behind those of the host; three in all",
            &[NAMES, LIMITS],
        ),
        works("options", "in the place of the host's of the same name", &[NAMES]),
        works(
            "searches",
            "behind those of the host; 32 in all",
            &[NAMES, LIMITS],
        ),
    ],
};

pub(super) const POD_DNS_CONFIG_OPTION: Table = Table {
    message: "PodDNSConfigOption",
    rows: &[
        works("name", "such as ndots", &[NAMES]),
        works("value", "stands behind a colon", &[NAMES]),
    ],
};

pub(super) const HOST_ALIAS: Table = Table {
    message: "HostAlias",
    rows: &[
        works("hostnames", "all in one line", &[NAMES]),
        works("ip", "the address of the line", &[NAMES]),
    ],
};
