//! Service: stored as it is written. Nobody here allocates addresses or node ports, so a Service without a `clusterIP`
//! stays without one, and its table row says `<none>`.
//!
//! Rules follow `pkg/apis/core/v1/defaults.go` and `pkg/apis/core/validation/validation.go` (`validateService`),
//! Kubernetes 1.36.

use std::{collections::BTreeSet, net::IpAddr};

use hotmap_object::FieldError;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    Column, Strategy,
    fields::{Fields, keep, list_mut, map_mut, set_default},
    metadata,
    rules::{self, Errors, IMMUTABLE, broken, child, index},
    table,
};

const TYPES: &[&str] = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const SESSION_AFFINITIES: &[&str] = &["ClientIP", "None"];
const TRAFFIC_POLICIES: &[&str] = &["Cluster", "Local"];
const IP_FAMILIES: &[&str] = &["IPv4", "IPv6"];
const IP_FAMILY_POLICIES: &[&str] = &["PreferDualStack", "RequireDualStack", "SingleStack"];
const TRAFFIC_DISTRIBUTIONS: &[&str] = &["PreferClose", "PreferSameZone", "PreferSameNode"];
/// How long `sessionAffinity: ClientIP` remembers a client unless told otherwise.
const AFFINITY_SECONDS: i64 = 3 * 60 * 60;
const AFFINITY_SECONDS_MAX: i64 = 24 * 60 * 60;

const UNENFORCED: &str = "spec: stored, but without effect: there is no cluster address and no DNS; pods are reached by their own addresses";

/// The rules of Services.
pub(crate) struct Service;

const COLUMNS: &[Column] = &[
    table::NAME,
    table::column("Type", "string", "How the service is reached."),
    table::column(
        "Cluster-IP",
        "string",
        "Address within the cluster, if the service has one.",
    ),
    table::column("External-IP", "string", "Addresses outside of the cluster."),
    table::column("Port(s)", "string", "Ports and protocols."),
    table::AGE,
    table::wide("Selector", "string", "Labels of the pods behind the service."),
];

impl Strategy for Service {
    fn default(&self, object: &mut Map<String, Value>) {
        if let Some(spec) = map_mut(object, "spec") {
            default_spec(spec);
        }
    }

    fn prepare_for_create(&self, object: &mut Map<String, Value>) {
        object.insert("status".to_owned(), json!({"loadBalancer": {}}));
    }

    fn prepare_for_update(&self, new: &mut Map<String, Value>, old: &Map<String, Value>, subresource: &str) {
        keep(new, old, if subresource == "status" { "spec" } else { "status" });
    }

    fn validate(&self, object: &Map<String, Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let spec = object.map("spec");
        shape_of_type(&mut errors, spec);
        ports(&mut errors, spec);
        metadata::labels(&mut errors, "spec.selector", spec.map("selector"));
        affinity(&mut errors, spec);
        if spec.text("type") != "ExternalName" {
            cluster_ips(&mut errors, spec);
        }
        for (at, ip) in spec.list("externalIPs").iter().enumerate() {
            let (path, ip) = (index("spec.externalIPs", at), ip.as_str().unwrap_or_default());
            if rules::ip(&mut errors, &path, ip).is_some() {
                rules::endpoint_ip(&mut errors, &path, ip);
            }
        }
        one_of(&mut errors, "spec.type", spec.text("type"), TYPES);
        node_ports(&mut errors, spec);
        load_balancer(&mut errors, spec);
        traffic(&mut errors, spec);
        errors
    }

    fn validate_update(
        &self,
        new: &Map<String, Value>,
        old: &Map<String, Value>,
        subresource: &str,
    ) -> Vec<FieldError> {
        if subresource == "status" {
            return Vec::new();
        }
        let mut errors = Vec::new();
        primary_ip_stays(&mut errors, new.map("spec"), old.map("spec"));
        errors.extend(self.validate(new));
        errors
    }

    fn warnings(&self, _object: &Map<String, Value>, old: Option<&Map<String, Value>>) -> Vec<String> {
        let news = old.is_none().then(|| UNENFORCED.to_owned());
        news.into_iter().collect()
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        &["spec.clusterIP", "spec.type"]
    }

    fn field_values(&self, object: &Map<String, Value>) -> Vec<(&'static str, String)> {
        let spec = object.map("spec");
        vec![
            ("spec.clusterIP", spec.text("clusterIP").to_owned()),
            ("spec.type", spec.text("type").to_owned()),
        ]
    }

    fn cells(&self, object: &Map<String, Value>, now: Timestamp) -> Vec<Value> {
        let spec = object.map("spec");
        let internal = spec.list("clusterIPs").first().and_then(Value::as_str);
        vec![
            table::name(object),
            spec.text("type").into(),
            internal.unwrap_or(table::NONE).into(),
            external_ip(object).into(),
            table::or_none(&port_texts(spec)),
            table::age(object, now),
            table::or_none(&selector(spec)),
        ]
    }
}

fn default_spec(spec: &mut Map<String, Value>) {
    set_default(spec, "sessionAffinity", "None");
    match spec.text("sessionAffinity") {
        "None" => {
            spec.remove("sessionAffinityConfig");
        }
        "ClientIP" => {
            let seconds = spec
                .map("sessionAffinityConfig")
                .map("clientIP")
                .int("timeoutSeconds");
            let seconds = seconds.unwrap_or(AFFINITY_SECONDS);
            let config = json!({"clientIP": {"timeoutSeconds": seconds}});
            spec.insert("sessionAffinityConfig".to_owned(), config);
        }
        _ => {}
    }
    set_default(spec, "type", "ClusterIP");
    for port in list_mut(spec, "ports")
        .iter_mut()
        .filter_map(Value::as_object_mut)
    {
        set_default(port, "protocol", "TCP");
        let target = port.member("targetPort");
        if target.is_none_or(|target| *target == json!(0) || *target == json!("")) {
            let number = port.int("port").unwrap_or_default();
            port.insert("targetPort".to_owned(), number.into());
        }
    }
    if is_external(spec) {
        set_default(spec, "externalTrafficPolicy", "Cluster");
    }
    if spec.text("type") != "ExternalName" {
        set_default(spec, "internalTrafficPolicy", "Cluster");
    }
    if spec.text("type") == "LoadBalancer" && spec.member("allocateLoadBalancerNodePorts").is_none() {
        spec.insert("allocateLoadBalancerNodePorts".to_owned(), true.into());
    }
    // Upstream's strategy keeps both spellings of the address in step.
    if spec.list("clusterIPs").is_empty() && spec.has("clusterIP") {
        let ips = json!([spec.text("clusterIP")]);
        spec.insert("clusterIPs".to_owned(), ips);
    }
}

fn is_external(spec: &Map<String, Value>) -> bool {
    match spec.text("type") {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => !spec.list("externalIPs").is_empty(),
        _ => false,
    }
}

fn is_headless(spec: &Map<String, Value>) -> bool {
    matches!(spec.list("clusterIPs"), [only] if only == "None")
}

fn shape_of_type(errors: &mut Errors, spec: &Map<String, Value>) {
    let of = spec.text("type");
    if spec.list("ports").is_empty() && !is_headless(spec) && of != "ExternalName" {
        errors.push(FieldError::required("spec.ports", ""));
    }
    match of {
        "LoadBalancer" | "NodePort" if is_headless(spec) => errors.push(FieldError::invalid(
            "spec.clusterIPs[0]",
            "None",
            format!("may not be set to 'None' for {of} services"),
        )),
        "ExternalName" => {
            let unset = ["clusterIPs", "ipFamilies", "ipFamilyPolicy"];
            for field in unset.into_iter().filter(|field| spec.has(field)) {
                let path = child("spec", field);
                errors.push(FieldError::forbidden(
                    path,
                    "may not be set for ExternalName services",
                ));
            }
            let name = spec.text("externalName");
            match name.strip_suffix('.').unwrap_or(name) {
                "" => errors.push(FieldError::required("spec.externalName", "")),
                name => broken(errors, "spec.externalName", name, rules::subdomain(name)),
            }
        }
        _ => {}
    }
}

fn ports(errors: &mut Errors, spec: &Map<String, Value>) {
    let ports = spec.list("ports");
    let mut names = BTreeSet::new();
    for (at, port) in ports.iter().enumerate() {
        let path = index("spec.ports", at);
        match port.text("name") {
            "" if ports.len() > 1 => errors.push(FieldError::required(child(&path, "name"), "")),
            "" => {}
            name => {
                broken(errors, &child(&path, "name"), name, rules::label(name));
                if !names.insert(name) {
                    errors.push(FieldError::duplicate(child(&path, "name"), name));
                }
            }
        }
        rules::port_number(
            errors,
            &child(&path, "port"),
            port.int("port").unwrap_or_default(),
        );
        rules::protocol(errors, child(&path, "protocol"), port.text("protocol"));
        rules::port_or_name(errors, &child(&path, "targetPort"), port.member("targetPort"));
        if let Some(protocol) = port.member("appProtocol").and_then(Value::as_str) {
            rules::qualified_name(errors, &child(&path, "appProtocol"), protocol);
        }
    }
    let same = |one: &Value, other: &Value| {
        one.text("protocol") == other.text("protocol") && one.int("port") == other.int("port")
    };
    for (at, port) in ports.iter().enumerate() {
        if ports[..at].iter().any(|earlier| same(earlier, port)) {
            let shown = json!({"protocol": port.text("protocol"), "port": port.int("port")});
            errors.push(FieldError::duplicate(index("spec.ports", at), shown));
        }
    }
}

fn affinity(errors: &mut Errors, spec: &Map<String, Value>) {
    one_of(
        errors,
        "spec.sessionAffinity",
        spec.text("sessionAffinity"),
        SESSION_AFFINITIES,
    );
    if spec.text("sessionAffinity") == "ClientIP" {
        let seconds = spec
            .map("sessionAffinityConfig")
            .map("clientIP")
            .int("timeoutSeconds");
        let seconds = seconds.unwrap_or_default();
        if !(1..=AFFINITY_SECONDS_MAX).contains(&seconds) {
            errors.push(FieldError::invalid(
                "spec.sessionAffinityConfig.clientIP.timeoutSeconds",
                seconds,
                format!("must be greater than 0 and less than {AFFINITY_SECONDS_MAX}"),
            ));
        }
    }
}

fn cluster_ips(errors: &mut Errors, spec: &Map<String, Value>) {
    const PATH: &str = "spec.clusterIPs";
    let ips = spec.list("clusterIPs");
    let all = || Value::from(ips.to_vec());
    match (spec.text("clusterIP"), ips.first()) {
        ("", None) => {}
        ("", Some(_)) => errors.push(FieldError::invalid(
            PATH,
            all(),
            "must be empty when `clusterIP` is not specified",
        )),
        (_, None) => errors.push(FieldError::required(PATH, "")),
        (ip, Some(first)) if first != ip => {
            errors.push(FieldError::invalid(
                PATH,
                all(),
                "first value must match `clusterIP`",
            ));
        }
        _ => {}
    }
    for (at, family) in spec.list("ipFamilies").iter().enumerate() {
        let path = index("spec.ipFamilies", at);
        one_of(errors, &path, family.as_str().unwrap_or_default(), IP_FAMILIES);
        if spec.list("ipFamilies")[..at].contains(family) {
            errors.push(FieldError::duplicate(path, family.clone()));
        }
    }
    if let Some(policy) = spec.member("ipFamilyPolicy").and_then(Value::as_str) {
        one_of(errors, "spec.ipFamilyPolicy", policy, IP_FAMILY_POLICIES);
    }
    let mut families = Vec::new();
    for (at, ip) in ips.iter().enumerate() {
        let ip = ip.as_str().unwrap_or_default();
        if at == 0 && ip == "None" {
            if ips.len() > 1 {
                errors.push(FieldError::invalid(
                    PATH,
                    all(),
                    "'None' must be the first and only value",
                ));
            }
            continue;
        }
        families.extend(
            rules::ip(errors, &index(PATH, at), ip)
                .as_ref()
                .map(IpAddr::is_ipv4),
        );
    }
    if ips.len() > 2 {
        errors.push(FieldError::invalid(PATH, all(), "may only hold up to 2 values"));
    }
    if let [first, second] = families[..]
        && first == second
    {
        let rule = "may specify no more than one IP for each IP family";
        errors.push(FieldError::invalid(PATH, all(), rule));
    }
}

/// Once there is an address it stays, unless the service becomes an `ExternalName` or was one.
fn primary_ip_stays(errors: &mut Errors, new: &Map<String, Value>, old: &Map<String, Value>) {
    if [new, old].iter().any(|spec| spec.text("type") == "ExternalName") {
        return;
    }
    let before = old.list("clusterIPs");
    if !before.is_empty() && before.first() != new.list("clusterIPs").first() {
        let value = new.list("clusterIPs").to_vec();
        errors.push(FieldError::invalid("spec.clusterIPs[0]", value, IMMUTABLE));
    }
}

fn node_ports(errors: &mut Errors, spec: &Map<String, Value>) {
    let mut seen = BTreeSet::new();
    for (at, port) in spec.list("ports").iter().enumerate() {
        let Some(number) = port.int("nodePort").filter(|number| *number != 0) else {
            continue;
        };
        let path = child(&index("spec.ports", at), "nodePort");
        if spec.text("type") == "ClusterIP" {
            errors.push(FieldError::forbidden(
                path.as_str(),
                "may not be used when `type` is 'ClusterIP'",
            ));
        }
        if !seen.insert((port.text("protocol"), number)) {
            errors.push(FieldError::duplicate(path, number));
        }
    }
}

fn load_balancer(errors: &mut Errors, spec: &Map<String, Value>) {
    const ONLY: &str = "may only be used when `type` is 'LoadBalancer'";
    if spec.text("type") == "LoadBalancer" {
        return;
    }
    for (field, path) in [
        ("loadBalancerSourceRanges", "spec.LoadBalancerSourceRanges"),
        (
            "allocateLoadBalancerNodePorts",
            "spec.allocateLoadBalancerNodePorts",
        ),
        ("loadBalancerClass", "spec.loadBalancerClass"),
    ] {
        if spec.has(field) {
            errors.push(FieldError::forbidden(path, ONLY));
        }
    }
}

fn traffic(errors: &mut Errors, spec: &Map<String, Value>) {
    const EXTERNAL: &str = "spec.externalTrafficPolicy";
    let external = spec.text("externalTrafficPolicy");
    if is_external(spec) {
        one_of(errors, EXTERNAL, external, TRAFFIC_POLICIES);
    } else if !external.is_empty() {
        let rule = "may only be set for externally-accessible services";
        errors.push(FieldError::invalid(EXTERNAL, external, rule));
    }
    let checked_port = spec.int("healthCheckNodePort").unwrap_or_default();
    let needs_check = spec.text("type") == "LoadBalancer" && external == "Local";
    if !needs_check && checked_port != 0 {
        errors.push(FieldError::invalid(
            "spec.healthCheckNodePort",
            checked_port,
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
        ));
    }
    if let Some(policy) = spec.member("internalTrafficPolicy").and_then(Value::as_str) {
        one_of(errors, "spec.internalTrafficPolicy", policy, TRAFFIC_POLICIES);
    }
    if let Some(distribution) = spec.member("trafficDistribution").and_then(Value::as_str) {
        one_of(
            errors,
            "spec.trafficDistribution",
            distribution,
            TRAFFIC_DISTRIBUTIONS,
        );
    }
}

fn one_of(errors: &mut Errors, path: &str, value: &str, supported: &[&str]) {
    if value.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else if !supported.contains(&value) {
        errors.push(FieldError::not_supported(path, value, supported));
    }
}

fn external_ip(object: &Map<String, Value>) -> String {
    let spec = object.map("spec");
    let named = spec.list("externalIPs").iter().filter_map(Value::as_str);
    match spec.text("type") {
        "ClusterIP" | "NodePort" => joined_or(named.collect(), table::NONE),
        "LoadBalancer" => {
            let ingress = object.map("status").map("loadBalancer").list("ingress");
            let given: BTreeSet<&str> = ingress
                .iter()
                .map(|one| {
                    if one.has("ip") {
                        one.text("ip")
                    } else {
                        one.text("hostname")
                    }
                })
                .filter(|address| !address.is_empty())
                .collect();
            joined_or(given.into_iter().chain(named).collect(), "<pending>")
        }
        "ExternalName" => spec.text("externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

fn joined_or(texts: Vec<&str>, otherwise: &str) -> String {
    if texts.is_empty() {
        otherwise.to_owned()
    } else {
        texts.join(",")
    }
}

fn port_texts(spec: &Map<String, Value>) -> String {
    let texts = spec.list("ports").iter().map(|port| {
        let (number, protocol) = (port.int("port").unwrap_or_default(), port.text("protocol"));
        match port.int("nodePort").filter(|node_port| *node_port > 0) {
            Some(node_port) => format!("{number}:{node_port}/{protocol}"),
            None => format!("{number}/{protocol}"),
        }
    });
    texts.collect::<Vec<_>>().join(",")
}

fn selector(spec: &Map<String, Value>) -> String {
    let pairs = spec.map("selector").iter();
    let texts = pairs.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    texts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{map, texts};

    fn defaulted(value: Value) -> Map<String, Value> {
        let mut object = map(value);
        Service.default(&mut object);
        object
    }

    #[test]
    fn defaults_allocate_nothing() {
        let object = defaulted(json!({"spec": {"ports": [{"port": 80}]}}));
        assert_eq!(
            Value::Object(object),
            json!({"spec": {"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
                            "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}]}})
        );
    }

    #[test]
    fn services_are_checked() {
        let table = [
            (json!({"spec": {"ports": [{"port": 80}]}}), vec![]),
            (json!({"spec": {"clusterIP": "None"}}), vec![]),
            (json!({"spec": {}}), vec!["spec.ports: Required value"]),
            (
                json!({"spec": {"type": "Nope", "ports": [{"port": 80}]}}),
                vec![
                    "spec.type: Unsupported value: \"Nope\": supported values: \"ClusterIP\", \"ExternalName\", \"LoadBalancer\", \"NodePort\"",
                ],
            ),
            (
                json!({"spec": {"ports": [{"port": 0}, {"name": "a", "port": 80}, {"name": "a", "port": 81, "targetPort": "Bad"}]}}),
                vec![
                    "spec.ports[0].name: Required value",
                    "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
                    "spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive",
                    "spec.ports[2].name: Duplicate value: \"a\"",
                    "spec.ports[2].targetPort: Invalid value: \"Bad\": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
                ],
            ),
            (
                json!({"spec": {"type": "ExternalName"}}),
                vec!["spec.externalName: Required value"],
            ),
            (
                json!({"spec": {"ports": [{"port": 80, "nodePort": 30000}]}}),
                vec!["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"],
            ),
            (
                json!({"spec": {"clusterIP": "x", "ports": [{"port": 80}]}}),
                vec![
                    "spec.clusterIPs[0]: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
                ],
            ),
            (
                json!({"spec": {"externalTrafficPolicy": "Local", "ports": [{"port": 80}]}}),
                vec![
                    "spec.externalTrafficPolicy: Invalid value: \"Local\": may only be set for externally-accessible services",
                ],
            ),
        ];
        for (object, wanted) in table {
            assert_eq!(
                texts(&Service.validate(&defaulted(object.clone()))),
                wanted,
                "{object}"
            );
        }
    }

    #[test]
    fn the_address_stays() {
        let old = defaulted(json!({"spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 80}]}}));
        let new = defaulted(json!({"spec": {"clusterIP": "10.0.0.2", "ports": [{"port": 80}]}}));
        assert_eq!(
            texts(&Service.validate_update(&new, &old, "")),
            ["spec.clusterIPs[0]: Invalid value: [\"10.0.0.2\"]: field is immutable"]
        );
        assert_eq!(texts(&Service.validate_update(&old, &old, "")), [""; 0]);
    }

    #[test]
    fn the_row_shows_addresses_and_ports() {
        let now = "2026-01-01T00:00:05Z".parse().expect("a time");
        let object = defaulted(
            json!({"metadata": {"name": "s"}, "spec": {"type": "NodePort", "clusterIP": "10.0.0.1",
            "ports": [{"port": 80, "nodePort": 30080}, {"port": 53, "protocol": "UDP"}], "selector": {"a": "b", "c": "d"}}}),
        );
        assert_eq!(
            Value::Array(Service.cells(&object, now)),
            json!([
                "s",
                "NodePort",
                "10.0.0.1",
                "<none>",
                "80:30080/TCP,53/UDP",
                "<unknown>",
                "a=b,c=d"
            ])
        );
    }
}
