//! Endpoints: the addresses behind a Service, stored as somebody wrote them.
//!
//! Rules follow `pkg/apis/core/validation/validation.go` (`ValidateEndpoints`), Kubernetes 1.36.

use std::net::IpAddr;

use hotmap_object::FieldError;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::{
    Column, Strategy,
    fields::{Fields, list_mut, set_default},
    rules::{self, Errors, broken, child, index},
    table,
};

/// The table shows this many addresses and counts the rest.
const SHOWN_MAX: usize = 3;

/// The rules of Endpoints.
pub(crate) struct Endpoints;

const COLUMNS: &[Column] = &[
    table::NAME,
    table::column(
        "Endpoints",
        "string",
        "The first ready addresses with their ports.",
    ),
    table::AGE,
];

impl Strategy for Endpoints {
    fn default(&self, object: &mut Map<String, Value>) {
        for subset in list_mut(object, "subsets")
            .iter_mut()
            .filter_map(Value::as_object_mut)
        {
            for port in list_mut(subset, "ports")
                .iter_mut()
                .filter_map(Value::as_object_mut)
            {
                set_default(port, "protocol", "TCP");
            }
        }
    }

    fn validate(&self, object: &Map<String, Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        for (at, one) in object.list("subsets").iter().enumerate() {
            subset(&mut errors, &index("subsets", at), one);
        }
        errors
    }

    fn validate_update(
        &self,
        new: &Map<String, Value>,
        old: &Map<String, Value>,
        _subresource: &str,
    ) -> Vec<FieldError> {
        // What an older release accepted may stay as it is.
        if new.list("subsets") == old.list("subsets") {
            Vec::new()
        } else {
            self.validate(new)
        }
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Map<String, Value>, now: Timestamp) -> Vec<Value> {
        vec![
            table::name(object),
            addresses(object).into(),
            table::age(object, now),
        ]
    }
}

fn subset(errors: &mut Errors, path: &str, subset: &Value) {
    let (ready, not_ready) = (subset.list("addresses"), subset.list("notReadyAddresses"));
    if ready.is_empty() && not_ready.is_empty() {
        errors.push(FieldError::required(
            path,
            "must specify `addresses` or `notReadyAddresses`",
        ));
    }
    for (name, addresses) in [("addresses", ready), ("notReadyAddresses", not_ready)] {
        for (at, one) in addresses.iter().enumerate() {
            address(errors, &index(&child(path, name), at), one);
        }
    }
    let ports = subset.list("ports");
    for (at, one) in ports.iter().enumerate() {
        port(errors, &index(&child(path, "ports"), at), one, ports.len() > 1);
    }
}

fn address(errors: &mut Errors, path: &str, address: &Value) {
    let ip = address.text("ip");
    rules::ip(errors, &child(path, "ip"), ip);
    let hostname = address.text("hostname");
    if !hostname.is_empty() {
        broken(errors, &child(path, "hostname"), hostname, rules::label(hostname));
    }
    if let Some(node) = address.member("nodeName").and_then(Value::as_str) {
        broken(errors, &child(path, "nodeName"), node, rules::subdomain(node));
    }
    rules::endpoint_ip(errors, &child(path, "ip"), ip);
}

fn port(errors: &mut Errors, path: &str, port: &Value, needs_name: bool) {
    match port.text("name") {
        "" if needs_name => errors.push(FieldError::required(child(path, "name"), "")),
        "" => {}
        name => broken(errors, &child(path, "name"), name, rules::label(name)),
    }
    rules::port_number(errors, &child(path, "port"), port.int("port").unwrap_or_default());
    rules::protocol(errors, child(path, "protocol"), port.text("protocol"));
    if let Some(protocol) = port.member("appProtocol").and_then(Value::as_str) {
        rules::qualified_name(errors, &child(path, "appProtocol"), protocol);
    }
}

fn addresses(object: &Map<String, Value>) -> String {
    let subsets = object.list("subsets");
    if subsets.is_empty() {
        return table::NONE.to_owned();
    }
    let mut all = Vec::new();
    for subset in subsets {
        let ips = || subset.list("addresses").iter().map(|address| address.text("ip"));
        if subset.list("ports").is_empty() {
            all.extend(ips().map(str::to_owned));
        }
        for port in subset.list("ports") {
            let port = port.int("port").unwrap_or_default();
            all.extend(ips().map(|ip| host_port(ip, port)));
        }
    }
    let more = all.len().saturating_sub(SHOWN_MAX);
    all.truncate(SHOWN_MAX);
    let shown = all.join(",");
    if more > 0 {
        format!("{shown} + {more} more...")
    } else {
        shown
    }
}

fn host_port(ip: &str, port: i64) -> String {
    match ip.parse() {
        Ok(IpAddr::V6(_)) => format!("[{ip}]:{port}"),
        _ => format!("{ip}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{map, texts};

    #[test]
    fn addresses_and_ports_are_checked() {
        let table = [
            (
                json!({"subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80, "protocol": "TCP"}]}]}),
                vec![],
            ),
            (
                json!({"subsets": [{}]}),
                vec!["subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`"],
            ),
            (
                json!({"subsets": [{"addresses": [{"ip": "127.0.0.1"}],
                                    "ports": [{"port": 0, "protocol": "X", "name": "a"}, {"port": 1, "protocol": "TCP"}]}]}),
                vec![
                    "subsets[0].addresses[0].ip: Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, ::1/128)",
                    "subsets[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
                    "subsets[0].ports[0].protocol: Unsupported value: \"X\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
                    "subsets[0].ports[1].name: Required value",
                ],
            ),
        ];
        for (object, wanted) in table {
            assert_eq!(
                texts(&Endpoints.validate(&map(object.clone()))),
                wanted,
                "{object}"
            );
        }
    }

    #[test]
    fn the_row_shows_three_addresses() {
        let object = map(json!({"subsets": [
            {"addresses": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}], "ports": [{"port": 80}, {"port": 81}]}]}));
        assert_eq!(
            addresses(&object),
            "10.0.0.1:80,[fd00::1]:80,10.0.0.1:81 + 1 more..."
        );
        assert_eq!(addresses(&map(json!({}))), "<none>");
    }
}
