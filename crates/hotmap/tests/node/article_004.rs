//! The experiments of examples/article-004.

use crate::{
    article_001::example,
    harness::{Release, Running},
    host::Node,
};

/// Names, types, modes and targets of `ls -ali`; inodes of the links.
struct Listing {
    shape: Vec<String>,
    links: Vec<String>,
}

/// A line whose end is the name of a dated directory, without the date.
fn undated(line: &str) -> String {
    match line.find("..2") {
        Some(at) => format!("{}..DATE", &line[..at]),
        None => line.to_owned(),
    }
}

fn listing(node: &Node) -> Listing {
    let printed = node.sh("test", "ls -ali /etc/cm");
    let (mut shape, mut links) = (Vec::new(), Vec::new());
    for line in printed.lines().skip(1) {
        let words = Vec::from_iter(line.split_whitespace());
        let name = words[9..].join(" ");
        shape.push(format!(
            "{} {} {} {}",
            words[1],
            words[3],
            words[4],
            undated(&name)
        ));
        if name.contains("-> ..data/") {
            links.push(format!("{} {name}", words[0]));
        }
    }
    Listing { shape, links }
}

#[test]
fn the_volume_looks_like_the_articles_and_its_links_stay() {
    let Some(node) = Node::start() else { return };
    node.apply(&example("article-004/test.yaml"));
    node.ready("test");
    let before = listing(&node);
    assert_eq!(
        before.shape,
        [
            "drwxrwxrwx root root .",
            "drwxr-xr-x root root ..",
            "drwxr-xr-x root root ..DATE",
            "lrwxrwxrwx root root ..data -> ..DATE",
            "lrwxrwxrwx root root aa -> ..data/aa",
            "lrwxrwxrwx root root mount.info -> ..data/mount.info",
        ]
    );
    node.edit("configmap test", r#"sed -i 's/This is test/This is new/' "$1""#)
        .ok();
    node.until_file("test", "/etc/cm/aa", "This is new.");
    // The old directory goes right after the change is visible.
    node.exec(
        "test",
        "until [ $(ls -d /etc/cm/..2* | wc -l) = 1 ]; do inotifywait -qq -t 1 -e delete /etc/cm || :; done",
    )
    .ok();
    let after = listing(&node);
    assert_eq!(after.shape, before.shape);
    assert_eq!(after.links, before.links, "the same inodes");
}

#[test]
fn inotify_on_the_directory_tells_the_articles_sequence() {
    let Some(node) = Node::start() else { return };
    node.apply(&example("article-004/test.yaml"));
    node.ready("test");
    let watch = [
        "exec",
        "test",
        "--",
        "sh",
        "-c",
        "exec inotifywait --monitor --format '%e %f' --event create,attrib,move,delete /etc/cm 2>&1",
    ];
    let mut watching = Running::start(&mut node.command(&watch));
    watching.line_with("Watches established");
    node.edit("configmap test", r#"sed -i 's/This is test/This is new/' "$1""#)
        .ok();
    let mut seen = Vec::new();
    while !seen
        .last()
        .is_some_and(|line: &String| line.starts_with("DELETE"))
    {
        seen.push(undated(&watching.line_with(" ..")));
    }
    assert_eq!(
        seen,
        [
            "CREATE,ISDIR ..DATE",
            "ATTRIB,ISDIR ..DATE",
            "CREATE ..data_tmp",
            "MOVED_FROM ..data_tmp",
            "MOVED_TO ..data",
            "DELETE,ISDIR ..DATE",
        ]
    );
}

#[test]
fn an_annotation_refreshes_what_a_deaf_watch_does_not() {
    let Some(node) = Node::start_with(
        Release::Newest,
        &["--fault-hold-watches", "--sync-frequency", "24h"],
    ) else {
        return;
    };
    node.apply(&example("article-004/test.yaml"));
    node.ready("test");
    let shown = || node.sh("test", "cat /etc/cm/aa");
    assert_eq!(shown(), "This is test.");
    node.call(&[
        "patch",
        "configmap",
        "test",
        "-p",
        r#"{"data": {"aa": "This is new.\n"}}"#,
    ])
    .ok();
    // A second object of the same node proves that the first one's news would have arrived by now.
    node.ok("create configmap later --from-literal=a=1");
    node.create([crate::host::pod("later", serde_json::json!({"containers": [crate::host::idle(serde_json::json!({
        "volumeMounts": [{"name": "c", "mountPath": "/c"}]}))], "volumes": [{"name": "c", "configMap": {"name": "later"}}]}))]);
    node.ready("later");
    assert_eq!(shown(), "This is test.", "the watch is held back");
    node.ok("annotate pod test refreshed=now");
    node.until_file("test", "/etc/cm/aa", "This is new.");
}
