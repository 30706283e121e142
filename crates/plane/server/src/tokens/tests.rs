//! Tokens against objects that come and go.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use hotmap_object::{Draft, Object, Revision};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;
use crate::credentials::Credentials;

fn now() -> Timestamp {
    "2026-01-02T03:04:05Z".parse().expect("a time")
}

#[derive(Default)]
struct World(Mutex<BTreeMap<String, Arc<Object>>>);

impl World {
    fn put(&self, key: &str, uid: &str, deletion: Option<Timestamp>) {
        let mut metadata = json!({"name": key.rsplit('/').next(), "uid": uid});
        if let Some(at) = deletion {
            metadata["deletionTimestamp"] = at.to_string().into();
        }
        let Value::Object(object) = json!({ "metadata": metadata }) else {
            unreachable!("an object")
        };
        let object = Draft::new(&object, Vec::new()).at(Revision::ZERO);
        self.0.lock().insert(key.to_owned(), Arc::new(object));
    }

    fn remove(&self, key: &str) {
        self.0.lock().remove(key);
    }
}

impl Held for World {
    fn held(&self, plural: &str, namespace: &str, name: &str) -> Option<Arc<Object>> {
        self.0
            .lock()
            .get(&format!("{plural}/{namespace}/{name}"))
            .cloned()
    }
}

struct Issuer {
    tokens: Tokens,
    world: Arc<World>,
    _directory: tempfile::TempDir,
}

impl Issuer {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let credentials = Credentials::open(directory.path(), &[], now()).expect("fresh credentials");
        let world = Arc::new(World::default());
        world.put("serviceaccounts/ns/robot", "account-uid", None);
        world.put("pods/ns/p", "pod-uid", None);
        world.put("secrets/ns/s", "secret-uid", None);
        world.put("nodes//n", "node-uid", None);
        Self {
            tokens: Tokens::new(credentials.token_keys().clone(), world.clone()),
            world,
            _directory: directory,
        }
    }

    fn issue(&self, bound: Bound, seconds: i64) -> String {
        let account = reference("robot", "account-uid");
        let claims = Claims::new("ns", account, bound, api_audiences(), now(), seconds).expect("claims");
        self.tokens.issue(&claims).expect("a token")
    }

    fn check(&self, token: &str, at: Timestamp) -> Result<User, Refused> {
        self.tokens
            .authenticate(token, &api_audiences(), at)
            .map(|(user, _)| user)
    }
}

fn reference(name: &str, uid: &str) -> Reference {
    Reference {
        name: name.to_owned(),
        uid: uid.to_owned(),
    }
}

fn pod() -> Bound {
    Bound::Pod {
        pod: reference("p", "pod-uid"),
        node: Some(reference("n", "node-uid")),
    }
}

fn later(seconds: i64) -> Timestamp {
    now() + SignedDuration::from_secs(seconds)
}

#[test]
fn a_token_says_who_and_where_as_upstreams() {
    let issuer = Issuer::new();
    let token = issuer.issue(pod(), 3600);
    let parts: Vec<&str> = token.split('.').collect();
    let part = |at: usize| -> Value {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(parts[at]).expect("base64");
        serde_json::from_slice(&bytes).expect("JSON")
    };
    assert_eq!(part(0)["alg"], "ES256");
    let mut claims = part(1);
    let id = claims["jti"].take();
    assert_eq!(
        claims,
        json!({
            "aud": [ISSUER], "iss": ISSUER, "sub": "system:serviceaccount:ns:robot", "jti": null,
            "iat": now().as_second(), "nbf": now().as_second(), "exp": later(3600).as_second(),
            "kubernetes.io": {
                "namespace": "ns", "serviceaccount": {"name": "robot", "uid": "account-uid"},
                "pod": {"name": "p", "uid": "pod-uid"}, "node": {"name": "n", "uid": "node-uid"},
            },
        })
    );
    let user = issuer.check(&token, now()).expect("good");
    assert_eq!(
        (user.name.as_str(), user.uid.as_str()),
        ("system:serviceaccount:ns:robot", "account-uid")
    );
    assert_eq!(
        user.groups,
        [
            "system:serviceaccounts",
            "system:serviceaccounts:ns",
            "system:authenticated"
        ]
    );
    let extra = |key: &str, value: &str| {
        (
            format!("authentication.kubernetes.io/{key}"),
            vec![value.to_owned()],
        )
    };
    let id = format!("JTI={}", id.as_str().expect("an id"));
    assert_eq!(
        user.extra,
        [
            extra("credential-id", &id),
            extra("node-name", "n"),
            extra("node-uid", "node-uid"),
            extra("pod-name", "p"),
            extra("pod-uid", "pod-uid"),
        ]
    );
}

#[test]
fn times_count_with_a_minute_of_leeway() {
    let issuer = Issuer::new();
    let token = issuer.issue(Bound::Nothing, 600);
    for (at, expected) in [
        (later(-61), Some(Refused::NotYet)),
        (later(-60), None),
        (later(600), None),
        (later(660), None),
        (later(661), Some(Refused::Expired)),
    ] {
        assert_eq!(issuer.check(&token, at).err(), expected, "{at}");
    }
}

#[test]
fn a_token_ends_with_its_account_and_with_what_it_is_bound_to() {
    type Change = fn(&World);
    let other_uid = |kind, claim, claimed: &str| Refused::OtherUid {
        kind,
        claim,
        held: "other".to_owned(),
        claimed: claimed.to_owned(),
    };
    let secret = || Bound::Secret(reference("s", "secret-uid"));
    let node = || Bound::Node(reference("n", "node-uid"));
    let table: Vec<(Bound, Change, Option<Refused>)> = vec![
        (pod(), |_| {}, None),
        (
            Bound::Nothing,
            |world| world.remove("serviceaccounts/ns/robot"),
            Some(Refused::NoAccount {
                name: "robot".to_owned(),
            }),
        ),
        (
            pod(),
            |world| world.put("serviceaccounts/ns/robot", "other", None),
            Some(other_uid("service account", "claim", "account-uid")),
        ),
        (
            pod(),
            |world| world.put("serviceaccounts/ns/robot", "account-uid", Some(later(-61))),
            Some(Refused::AccountDeleted {
                namespace: "ns".to_owned(),
                name: "robot".to_owned(),
            }),
        ),
        (
            pod(),
            |world| world.remove("pods/ns/p"),
            Some(Refused::Invalidated),
        ),
        (
            pod(),
            |world| world.put("pods/ns/p", "other", None),
            Some(other_uid("pod", "service account pod ref claim", "pod-uid")),
        ),
        // A pod that is being deleted talks on for its grace and a minute.
        (
            pod(),
            |world| world.put("pods/ns/p", "pod-uid", Some(later(30))),
            None,
        ),
        (
            pod(),
            |world| world.put("pods/ns/p", "pod-uid", Some(later(-60))),
            None,
        ),
        (
            pod(),
            |world| world.put("pods/ns/p", "pod-uid", Some(later(-61))),
            Some(Refused::Invalidated),
        ),
        // A pod's node is told but does not count.
        (pod(), |world| world.remove("nodes//n"), None),
        (
            node(),
            |world| world.remove("nodes//n"),
            Some(Refused::Invalidated),
        ),
        (secret(), |_| {}, None),
        (
            secret(),
            |world| world.remove("secrets/ns/s"),
            Some(Refused::Invalidated),
        ),
        (
            secret(),
            |world| world.put("secrets/ns/s", "other", None),
            Some(other_uid(
                "secret",
                "service account secret ref claim",
                "secret-uid",
            )),
        ),
    ];
    for (at, (bound, change, expected)) in table.into_iter().enumerate() {
        let issuer = Issuer::new();
        let token = issuer.issue(bound, 3600);
        assert!(issuer.check(&token, now()).is_ok(), "before, row {at}");
        change(&issuer.world);
        // The signature is remembered by now; the world is looked at all the same.
        assert_eq!(issuer.check(&token, now()).err(), expected, "row {at}");
    }
}

#[test]
fn what_was_not_signed_by_us_for_us_is_refused() {
    let issuer = Issuer::new();
    let good = issuer.issue(Bound::Nothing, 3600);
    let (message, signature) = good.rsplit_once('.').expect("three parts");
    let (header, claims) = message.split_once('.').expect("three parts");
    let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let none = part(&json!({"alg": "none"}));
    let hashed = part(&json!({"alg": "HS256"}));
    let critical = part(&json!({"alg": "ES256", "crit": ["exp"]}));
    let other = Issuer::new().issue(Bound::Nothing, 3600);
    for (token, refused) in [
        (String::new(), Refused::Malformed),
        ("x".to_owned(), Refused::Malformed),
        ("a.b.c".to_owned(), Refused::Malformed),
        ("a".repeat(TOKEN_BYTES_MAX + 1), Refused::Malformed),
        (format!("{none}.{claims}."), Refused::Malformed),
        (format!("{none}.{claims}.{signature}"), Refused::Malformed),
        (format!("{hashed}.{claims}.{signature}"), Refused::Malformed),
        (format!("{critical}.{claims}.{signature}"), Refused::Malformed),
        (
            format!("{header}.{claims}.{claims}.{signature}"),
            Refused::Malformed,
        ),
        (
            format!("{header}.{}.{signature}", part(&json!({"sub": "me"}))),
            Refused::Signature,
        ),
        (other, Refused::Signature),
    ] {
        assert_eq!(issuer.check(&token, now()).err(), Some(refused), "{token}");
    }
    let elsewhere = issuer.tokens.authenticate(&good, &["vault".to_owned()], now());
    assert_eq!(elsewhere.err(), Some(Refused::Audience));
}

proptest::proptest! {
    #[test]
    fn no_text_is_taken_for_a_token_and_none_panics(text in "[a-zA-Z0-9_.=-]{0,200}") {
        static ISSUER: LazyLock<Issuer> = LazyLock::new(Issuer::new);
        proptest::prop_assert!(ISSUER.check(&text, now()).is_err());
    }
}
