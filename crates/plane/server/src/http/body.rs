//! Reading the bodies of requests, never more than allowed.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hotmap_object::Status;
use http_body_util::BodyExt;
use hyper::{
    Request, Version,
    body::{Body, Incoming},
    header::EXPECT,
};

/// Upstream's limit for every body, etcd's request limit twice over.
pub(crate) const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;
/// What a client announces is not what it sends: no more than this is set aside beforehand.
const RESERVED_BYTES_MAX: usize = 256 * 1024;
/// A refused body is read and thrown away this far; a client that sends on beyond it is cut off.
const DRAIN_BYTES_MAX: usize = 16 * 1024 * 1024;
const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);

/// The whole body.
///
/// # Errors
///
/// 413 if it is too large, whether it says so beforehand or not; 400 if it ends early.
pub(crate) async fn read(request: &mut Request<Incoming>) -> Result<Bytes, Status> {
    let announced = usize::try_from(request.body().size_hint().lower()).unwrap_or(usize::MAX);
    let body = request.body_mut();
    if announced > BODY_BYTES_MAX {
        return Err(Status::too_large(BODY_BYTES_MAX));
    }
    let mut held = BytesMut::with_capacity(announced.min(RESERVED_BYTES_MAX));
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| Status::bad_request(format!("the body could not be read: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if held.len() + data.len() > BODY_BYTES_MAX {
            return Err(Status::too_large(BODY_BYTES_MAX));
        }
        if held.is_empty() && data.len() >= announced && body.is_end_stream() {
            return Ok(data);
        }
        held.extend_from_slice(&data);
    }
    Ok(held.freeze())
}

/// Reads and throws away what nobody has read. An HTTP/1 client that is still sending when its connection is closed may
/// never see the answer; HTTP/2 can refuse one stream, and a client that waits for leave to send need not get it.
pub(crate) async fn drain(request: &mut Request<Incoming>) {
    let waits_for_leave = request.headers().contains_key(EXPECT);
    if request.version() == Version::HTTP_2 || waits_for_leave || request.body().is_end_stream() {
        return;
    }
    let body = request.body_mut();
    let all = async {
        let mut left = DRAIN_BYTES_MAX;
        while let Some(Ok(frame)) = body.frame().await
            && let Some(data) = frame.data_ref()
        {
            left = match left.checked_sub(data.len()) {
                Some(left) => left,
                None => return,
            };
        }
    };
    // Whether it came to the end or not: the answer is sent next.
    let _ = tokio::time::timeout(DRAIN_TIME_MAX, all).await;
}
