//! A node joins over TLS bootstrapping, and keeps its certificate fresh.

use std::path::Path;

use hotmap_agent::{ApiClock, JoinConfig, JoinError, Rotation, join};
use hotmap_client::{AuthorityError, AuthorityHash, Client, ClientConfig, ResourcePath, WriteParams};
use hotmap_clock::ClockJumps;
use serde_json::{Value, json};

use crate::harness::{PATIENCE, Server, finish, hotmap, is_private};

fn tokens(server: &Server, arguments: &str) -> String {
    let mut command = hotmap();
    command
        .arg("token")
        .args(arguments.split_whitespace())
        .arg("--kubeconfig")
        .arg(server.kubeconfig());
    finish(&mut command, None).ok()
}

fn client(kubeconfig: &Path) -> Client {
    let config = ClientConfig::from_kubeconfig(kubeconfig, None).expect("a kubeconfig");
    Client::new(config).expect("a client")
}

fn certificate(kubeconfig: &Path) -> Vec<u8> {
    let config = ClientConfig::from_kubeconfig(kubeconfig, None).expect("a kubeconfig");
    config.identity.expect("a certificate").certificate_pem
}

async fn may_speak_as_n1(client: &Client) -> bool {
    let node = ResourcePath::new("", "v1", "nodes").name("n1");
    client.get(&node).await.is_ok()
}

#[test]
fn a_node_joins_with_a_token_and_stays_without_it() {
    let server = Server::start();
    let made: Value = serde_json::from_str(&tokens(&server, "create -o json")).expect("JSON");
    let text = |field: &str| made[field].as_str().expect("text").to_owned();
    let kubeconfig = server.home().join("agent.kubeconfig");
    let config = |token: &str, hash: &str, node: &str| JoinConfig {
        url: server.url().to_owned(),
        token: token.to_owned(),
        authority: hash.parse().expect("a hash"),
        node_name: node.to_owned(),
        kubeconfig: kubeconfig.clone(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        // Another authority, and a token that is none: nothing is written.
        let wrong = AuthorityHash::of_pem(
            &ClientConfig::from_kubeconfig(&server.kubeconfig(), None)
                .expect("a kubeconfig")
                .ca_pem,
        );
        let right = wrong.expect("a hash").to_string();
        assert_eq!(right, text("authorityHash"));
        let wrong = format!("sha256:{}", "0".repeat(64));
        let refused = join(&config(&text("token"), &wrong, "n1"))
            .await
            .expect_err("another authority");
        assert!(
            matches!(&refused, JoinError::Authority(AuthorityError::Other { seen, .. }) if *seen == right),
            "{refused}"
        );
        let refused = join(&config("abcdef.0123456789abcdef", &right, "n1"))
            .await
            .expect_err("no token");
        assert!(matches!(refused, JoinError::Token), "{refused}");
        assert!(!kubeconfig.exists());

        join(&config(&text("token"), &right, "n1"))
            .await
            .expect("the node joins");
        assert!(is_private(&kubeconfig));
        let content = std::fs::read_to_string(&kubeconfig).expect("readable");
        assert!(!content.contains(&text("token")));
        let node = client(&kubeconfig);
        let object = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}});
        let nodes = ResourcePath::new("", "v1", "nodes");
        node.create(&nodes, &object, &WriteParams::default())
            .await
            .expect("its own Node");
        assert!(may_speak_as_n1(&node).await);

        // The token goes, the node stays; its next certificate is asked for by the node itself.
        tokens(&server, &format!("delete {}", text("id")));
        let refused = join(&config(&text("token"), &right, "n1"))
            .await
            .expect_err("no token any more");
        assert!(matches!(refused, JoinError::Token), "{refused}");
        let before = certificate(&kubeconfig);
        let rotation = Rotation {
            kubeconfig: kubeconfig.clone(),
            node_name: "n1".to_owned(),
            at_start: true,
            api_clock: ApiClock::new(ClockJumps::never()),
        };
        let mut watch = node
            .watch(
                &nodes,
                &hotmap_client::WatchParams {
                    field_selector: "metadata.name=n1".to_owned(),
                    ..Default::default()
                },
            )
            .await
            .expect("a watch");
        let (told, mut renewed) = tokio::sync::mpsc::unbounded_channel();
        let rotating =
            tokio::spawn(rotation.run(node.clone(), move |until| told.send(until).unwrap_or_default()));
        let renewed = tokio::time::timeout(PATIENCE, renewed.recv()).await;
        renewed.expect("in time").expect("a new certificate");
        assert_ne!(certificate(&kubeconfig), before);
        assert!(is_private(&kubeconfig));
        assert!(may_speak_as_n1(&node).await && may_speak_as_n1(&client(&kubeconfig)).await);
        // The watch of before goes on.
        let mark = json!({"metadata": {"annotations": {"mark": "1"}}});
        let path = nodes.clone().name("n1");
        node.patch(
            &path,
            hotmap_client::PatchType::Merge,
            &mark,
            &WriteParams::default(),
        )
        .await
        .expect("a patch");
        let told = tokio::time::timeout(PATIENCE, async {
            loop {
                let event = futures_util::StreamExt::next(&mut watch)
                    .await
                    .expect("no end")
                    .expect("no break");
                if format!("{event:?}").contains("Modified") {
                    break;
                }
            }
        });
        told.await.expect("the change");
        rotating.abort();
    });
}
