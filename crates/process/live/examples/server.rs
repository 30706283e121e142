//! A web server whose greeting and limits follow a directory, without a restart and without a lock.
//!
//! `cargo run -p hotmap-live --example server -- DIR`, with a file `app.yaml` in DIR: `greeting: hello`

use std::convert::Infallible;
use std::sync::Arc;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpListener;

use hotmap_live::{Live, Reload};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    greeting: String,
    #[serde(default = "one_mebibyte")]
    path_bytes_max: usize,
}

fn one_mebibyte() -> usize {
    1024 * 1024
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args().nth(1).ok_or("which directory?")?;
    let live = follow(&directory)?;
    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    println!("http://{}", listener.local_addr()?);
    serve(listener, live).await?;
    Ok(())
}

pub(crate) fn follow(directory: &str) -> Result<Live<Config>, hotmap_live::StartError> {
    Live::builder()
        .directory(directory)
        .environment("APP")
        .validate(|config: &Config| match config.greeting.is_empty() {
            true => Err("the greeting is empty"),
            false => Ok(()),
        })
        .on_reload(|reload| match reload {
            Reload::Loaded(_) => println!("loaded"),
            Reload::Refused(error) => eprintln!("{error}"),
        })
        .start()
}

pub(crate) async fn serve(listener: TcpListener, live: Live<Config>) -> std::io::Result<()> {
    loop {
        let (connection, _) = listener.accept().await?;
        let live = live.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| answer(request, live.load_full()));
            let served = http1::Builder::new().serve_connection(TokioIo::new(connection), service);
            if let Err(error) = served.await {
                eprintln!("{error}");
            }
        });
    }
}

/// One request sees one configuration from its start to its end.
async fn answer(
    request: Request<Incoming>,
    config: Arc<Config>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path();
    let mut response = Response::new(Full::from(format!("{}, {path}\n", config.greeting)));
    if path.len() > config.path_bytes_max {
        *response.status_mut() = StatusCode::URI_TOO_LONG;
    }
    Ok(response)
}
