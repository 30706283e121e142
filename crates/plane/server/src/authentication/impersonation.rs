//! `kubectl --as`: one request in somebody else's name, for who may do that.
//!
//! Follows `apiserver/pkg/endpoints/filters/impersonation/impersonation.go`, Kubernetes 1.36.

use std::sync::Arc;

use hotmap_object::Status;
use hyper::header::HeaderMap;

use crate::{
    authorization::{Attributes, Authorizer},
    request::{User, percent_decode},
};

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";
const AUTHENTICATION: &str = "authentication.k8s.io";

/// Whose request this is: the user's own, or that of whom the headers name.
///
/// # Errors
///
/// 403 for who may not act as them, 400 for headers that name no user.
pub(crate) fn acting(
    user: Arc<User>,
    headers: &HeaderMap,
    authorizer: &Authorizer,
) -> Result<Arc<User>, Status> {
    if !headers
        .keys()
        .any(|name| name.as_str().starts_with("impersonate-"))
    {
        return Ok(user);
    }
    let name = texts(headers, USER)?.into_iter().next().unwrap_or_default();
    let mut wanted = User {
        groups: texts(headers, GROUP)?,
        uid: texts(headers, UID)?.into_iter().next().unwrap_or_default(),
        extra: extra(headers)?,
        name,
    };
    if wanted.name.is_empty() {
        return Err(Status::bad_request(
            "requested impersonation of groups, uid or extra without impersonating a user",
        ));
    }
    for attributes in attributes(&wanted) {
        authorizer.authorize(&user, &attributes)?;
    }
    add_implied_groups(&mut wanted);
    tracing::debug!(user = user.name, acting_as = wanted.name, "impersonation");
    Ok(Arc::new(wanted))
}

/// One thing to be allowed for each thing asked for.
fn attributes(wanted: &User) -> Vec<Attributes> {
    let one = |group: &str, resource: &str, name: &str| Attributes {
        verb: "impersonate".to_owned(),
        group: group.to_owned(),
        version: if group.is_empty() { "" } else { "v1" }.to_owned(),
        resource: resource.to_owned(),
        name: name.to_owned(),
        ..Attributes::default()
    };
    let mut all = vec![match service_account(&wanted.name) {
        Some((namespace, name)) => Attributes {
            namespace: namespace.to_owned(),
            ..one("", "serviceaccounts", name)
        },
        None => one("", "users", &wanted.name),
    }];
    all.extend(wanted.groups.iter().map(|group| one("", "groups", group)));
    if !wanted.uid.is_empty() {
        all.push(one(AUTHENTICATION, "uids", &wanted.uid));
    }
    for (key, values) in &wanted.extra {
        all.extend(values.iter().map(|value| Attributes {
            subresource: key.clone(),
            ..one(AUTHENTICATION, "userextras", value)
        }));
    }
    all
}

/// Groups that everybody of a kind is in. Who names groups decides about them, but for the one of all that are known.
fn add_implied_groups(user: &mut User) {
    if let (true, Some((namespace, _))) = (user.groups.is_empty(), service_account(&user.name)) {
        let own = format!("system:serviceaccounts:{namespace}");
        user.groups.extend(["system:serviceaccounts".to_owned(), own]);
    }
    let implied = if user.name == "system:anonymous" {
        "system:unauthenticated"
    } else {
        "system:authenticated"
    };
    if !user.is_in(implied) && !user.is_in("system:unauthenticated") {
        user.groups.push(implied.to_owned());
    }
}

/// Namespace and name of `system:serviceaccount:NAMESPACE:NAME`.
fn service_account(user: &str) -> Option<(&str, &str)> {
    user.strip_prefix("system:serviceaccount:")?
        .split_once(':')
        .filter(|(namespace, name)| !namespace.is_empty() && !name.is_empty() && !name.contains(':'))
}

fn texts(headers: &HeaderMap, name: &str) -> Result<Vec<String>, Status> {
    let values = headers.get_all(name).iter();
    values
        .filter(|value| !value.is_empty())
        .map(|value| String::from_utf8(value.as_bytes().to_vec()).map_err(|_| not_text(name)))
        .collect()
}

fn extra(headers: &HeaderMap) -> Result<Vec<(String, Vec<String>)>, Status> {
    let names = headers.keys().map(hyper::header::HeaderName::as_str);
    let mut extra = Vec::new();
    for name in names.filter(|name| name.starts_with(EXTRA)) {
        extra.push((percent_decode(&name[EXTRA.len()..], false), texts(headers, name)?));
    }
    extra.sort();
    Ok(extra)
}

fn not_text(name: &str) -> Status {
    Status::bad_request(format!("header {name} is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderName, HeaderValue};

    use super::*;
    use crate::authorization::{
        rbac::RoleIndex,
        references::{PodReferences, Referenced},
    };

    struct NoPods;

    impl PodReferences for NoPods {
        fn node_refers_to(&self, _: &str, _: Referenced, _: &str, _: &str) -> bool {
            false
        }

        fn node_of(&self, _: &str, _: &str) -> Option<String> {
            None
        }
    }

    fn acting_as(groups: &[&str], headers: &[(&str, &str)]) -> Result<Arc<User>, String> {
        let user = User {
            name: "me".to_owned(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
            ..User::default()
        };
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(
                name.parse::<HeaderName>().expect("a name"),
                HeaderValue::from_str(value).expect("a value"),
            );
        }
        acting(
            Arc::new(user),
            &map,
            &Authorizer::new(Arc::new(NoPods), Arc::new(RoleIndex::with_defaults())),
        )
        .map_err(|status| format!("{} {}", status.code, status.message))
    }

    #[test]
    fn administrators_act_as_anybody_with_the_groups_upstream_gives_them() {
        for (headers, name, groups) in [
            (&[][..], "me", &["system:masters"][..]),
            (&[("Impersonate-User", "bob")], "bob", &["system:authenticated"]),
            (
                &[
                    ("Impersonate-User", "bob"),
                    ("Impersonate-Group", "dev"),
                    ("Impersonate-Group", "ops"),
                ],
                "bob",
                &["dev", "ops", "system:authenticated"],
            ),
            (
                &[("Impersonate-User", "system:anonymous")],
                "system:anonymous",
                &["system:unauthenticated"],
            ),
            (
                &[("Impersonate-User", "system:serviceaccount:ns:robot")],
                "system:serviceaccount:ns:robot",
                &[
                    "system:serviceaccounts",
                    "system:serviceaccounts:ns",
                    "system:authenticated",
                ],
            ),
        ] {
            let user = acting_as(&["system:masters"], headers).expect(name);
            assert_eq!(user.name, name);
            assert_eq!(user.groups, groups, "{name}");
        }
        let headers = [
            ("Impersonate-User", "bob"),
            ("Impersonate-Uid", "7"),
            ("Impersonate-Extra-example.com%2Fteam", "a"),
        ];
        let user = acting_as(&["system:masters"], &headers).expect("allowed");
        assert_eq!(user.uid, "7");
        assert_eq!(
            user.extra,
            [("example.com/team".to_owned(), vec!["a".to_owned()])]
        );
    }

    #[test]
    fn nobody_else_does() {
        for (headers, refused) in [
            (
                &[("Impersonate-User", "bob")][..],
                r#"403 users "bob" is forbidden: User "me" cannot impersonate resource "users" in API group "" at the cluster scope"#,
            ),
            (
                &[("Impersonate-User", "system:serviceaccount:ns:robot")],
                r#"403 serviceaccounts "robot" is forbidden: User "me" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "ns""#,
            ),
            (
                &[("Impersonate-Group", "system:masters")],
                "400 requested impersonation of groups, uid or extra without impersonating a user",
            ),
        ] {
            assert_eq!(
                acting_as(&["system:authenticated"], headers).err().as_deref(),
                Some(refused)
            );
        }
    }
}
