//! Pods that are replaced one after the other while somebody keeps asking them: no request is lost.
//!
//! The client does what a load balancer does. It asks the pods that the API says are ready and not on their way out, and a
//! pod's preStop hook lets it serve until the client has heard that it goes.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::{IpAddr, SocketAddr, TcpStream},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    harness::{PATIENCE, finish},
    host::{Node, config_map, pod},
};

/// How long the client waits for news between two rounds of questions.
const ROUND: Duration = Duration::from_millis(5);

/// One line per change of a pod: name, address, readiness, and when it was deleted.
const LINE: &str = r#"jsonpath={.metadata.name} {.status.podIP} {.status.conditions[?(@.type=="Ready")].status} {.metadata.deletionTimestamp}{"\n"}"#;

/// A pod whose nginx says which version it is, and goes once the client lets it go.
pub(crate) fn template(version: &str) -> Value {
    let conf = format!(
        "events {{}}\nhttp {{ access_log off; server {{ listen 80; location / {{ return 200 {version}; }} }} }}\n"
    );
    json!({"terminationGracePeriodSeconds": 60,
        "containers": [{"name": "nginx", "image": "nginx",
            "command": ["sh", "-c", format!("printf '{}' > /tmp/nginx.conf; exec nginx -c /tmp/nginx.conf -g 'daemon off;'", conf.replace('\n', "\\n"))],
            "readinessProbe": {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 1},
            "lifecycle": {"preStop": {"exec": {"command":
                ["sh", "-c", "until test -e /tmp/left; do inotifywait -qq -t 1 -e create /tmp || :; done"]}}}}]})
}

/// What a client has seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Answers, by what they said.
    pub(crate) answers: BTreeMap<String, usize>,
    /// Requests without a good answer, and why.
    pub(crate) failures: Vec<String>,
}

/// Asks ready pods for as long as it lives.
pub(crate) struct Client {
    stop: Arc<AtomicBool>,
    first: Receiver<()>,
    asking: Option<JoinHandle<Seen>>,
}

impl Client {
    /// Begins to ask every pod of this label.
    pub(crate) fn start(node: &Node, selector: &str) -> Self {
        let watch = node.command(&["get", "pods", "-l", selector, "--watch", "-o", LINE]);
        let leave = |pod: &str| node.command(&["exec", pod, "--", "touch", "/tmp/left"]);
        // Commands are made here: the threads know nothing of the node.
        let template = leave("POD");
        let stop = Arc::<AtomicBool>::default();
        let (sender, first) = channel::<()>();
        let asking = thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                let mut balancer = Balancer {
                    lines: lines_of(watch),
                    leave: template,
                    ready: BTreeMap::new(),
                    left: Vec::new(),
                    seen: Seen::default(),
                };
                let mut first = Some(sender);
                while !stop.load(Ordering::SeqCst) {
                    balancer.round();
                    if !balancer.seen.answers.is_empty() {
                        // Ends the wait for it, once.
                        drop(first.take());
                    }
                }
                balancer.seen
            }
        });
        let client = Self {
            stop,
            first,
            asking: Some(asking),
        };
        let waited = client.first.recv_timeout(PATIENCE);
        assert_eq!(waited, Err(RecvTimeoutError::Disconnected), "no answer yet");
        client
    }

    /// Ends it, and says what it has seen.
    pub(crate) fn stop(mut self) -> Seen {
        self.stop.store(true, Ordering::SeqCst);
        let asking = self.asking.take().expect("it asks");
        asking.join().expect("the client does not panic")
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
    }
}

struct Balancer {
    lines: Receiver<String>,
    leave: Command,
    ready: BTreeMap<String, IpAddr>,
    left: Vec<String>,
    seen: Seen,
}

impl Balancer {
    /// Hears the news, then asks every pod in turn.
    fn round(&mut self) {
        let news = self.lines.recv_timeout(ROUND).ok();
        let news: Vec<String> = news.into_iter().chain(self.lines.try_iter()).collect();
        news.iter().for_each(|line| self.hear(line));
        for (pod, address) in &self.ready {
            match ask(SocketAddr::new(*address, 80)) {
                Ok(answer) => *self.seen.answers.entry(answer).or_default() += 1,
                Err(error) => self.seen.failures.push(format!("{pod}: {error}")),
            }
        }
    }

    fn hear(&mut self, line: &str) {
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap_or_default();
        let (pod, address, ready, deleted) = (word(), word(), word(), word());
        match address.parse() {
            Ok(address) if ready == "True" && deleted.is_empty() => {
                self.ready.insert(pod.to_owned(), address);
            }
            _ => {
                self.ready.remove(pod);
            }
        }
        if !deleted.is_empty() && !self.left.iter().any(|left| left == pod) {
            self.left.push(pod.to_owned());
            // No request to it is under way: they are made one after the other, here.
            let mut leave = Command::new(self.leave.get_program());
            leave.args(self.leave.get_args().map(
                |argument| {
                    if argument == "POD" { pod.as_ref() } else { argument }
                },
            ));
            leave.envs(
                self.leave
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            );
            thread::spawn(move || drop(finish(&mut leave, None)));
        }
    }
}

fn lines_of(mut command: Command) -> Receiver<String> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("kubectl is here");
        let pipe = BufReader::new(child.stdout.take().expect("piped"));
        for line in pipe.lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
        drop(child.kill());
        drop(child.wait());
    });
    lines
}

/// One request on a connection of its own; the body of a good answer.
fn ask(server: SocketAddr) -> Result<String, String> {
    let asked = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&server, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: pod\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = asked().map_err(|error| error.to_string())?;
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.1 200 ") => Ok(body.to_owned()),
        _ => Err(format!("answered {answer:?}")),
    }
}

#[test]
fn no_request_is_lost_while_pods_are_replaced() {
    let Some(node) = Node::start() else { return };
    let make = |name: String, version: &str| {
        let mut pod = pod(&name, template(version));
        pod["metadata"]["labels"] = json!({"app": "web"});
        node.create([pod]);
        node.ready(&name);
        name
    };
    // Something else that changes must not disturb anybody.
    node.create([config_map("beside", json!({"a": "1"}))]);
    for number in 0..3 {
        make(format!("old-{number}"), "old");
    }
    let client = Client::start(&node, "app=web");
    for number in 0..3 {
        make(format!("new-{number}"), "new");
        node.ok(&format!("delete pod old-{number} --timeout=120s"));
    }
    let seen = client.stop();
    assert_eq!(seen.failures, [""; 0], "{:?}", seen.answers);
    let versions: Vec<&str> = seen.answers.keys().map(String::as_str).collect();
    assert_eq!(versions, ["new", "old"]);
    println!("{:?}", seen.answers);
}

#[test]
fn no_request_is_lost_while_a_deployment_rolls() {
    let Some(node) = Node::start() else { return };
    let deployment = |version: &str| {
        let metadata = json!({"labels": {"app": "web", "version": version}});
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
            "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {"metadata": metadata, "spec": template(version)}}})
    };
    let rolled = || node.ok("rollout status deployment/web --timeout=120s");
    node.create([deployment("one")]);
    rolled();
    let client = Client::start(&node, "app=web");
    for (before, version) in [("one", "two"), ("two", "three")] {
        node.create([deployment(version)]);
        rolled();
        node.ok(&format!(
            "wait --for=delete pod -l version={before} --timeout=120s"
        ));
    }
    let seen = client.stop();
    assert_eq!(seen.failures, [""; 0], "{:?}", seen.answers);
    let versions: Vec<&str> = seen.answers.keys().map(String::as_str).collect();
    assert_eq!(versions, ["one", "three", "two"]);
}
