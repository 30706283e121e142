//! The Kubernetes Python client.

use crate::harness::{Python, Server};

fn run(script: &str) {
    if let Some(python) = Python::find() {
        let server = Server::start();
        assert_eq!(
            python.run(script, &server).ok().trim_end(),
            "done",
            "{}",
            server.log()
        );
    }
}

#[test]
fn the_python_client_reads_and_writes() {
    run(include_str!("python_objects.py"));
}

#[test]
fn the_python_client_watches_and_resumes() {
    run(include_str!("python_watches.py"));
}

#[test]
fn strict_certificate_checks_of_python_pass() {
    run(include_str!("python_tls.py"));
}
