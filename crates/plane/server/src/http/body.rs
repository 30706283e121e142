//! Reading the bodies of requests, never more than allowed.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hotmap_object::Status;
use http_body_util::BodyExt;
use hyper::{
    Request,
    body::{Body, Incoming},
    header::EXPECT,
};

/// Upstream's limit for every body, etcd's request limit twice over.
pub(crate) const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;
/// Beyond its limit a body is read and thrown away this far, so that a client that is still sending gets to read the
/// answer; then the connection is cut.
const DRAIN_BYTES_MAX: usize = 64 * 1024 * 1024;
const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);

/// The whole body.
///
/// # Errors
///
/// 413 if it is too large, whether it says so beforehand or not; 400 if it ends early.
pub(crate) async fn read(request: &mut Request<Incoming>) -> Result<Bytes, Status> {
    let announced = usize::try_from(request.body().size_hint().lower()).unwrap_or(usize::MAX);
    let waits_for_leave = request.headers().contains_key(EXPECT);
    let body = request.body_mut();
    if announced > BODY_BYTES_MAX {
        if !waits_for_leave {
            drain(body).await;
        }
        return Err(Status::too_large(BODY_BYTES_MAX));
    }
    let mut held = BytesMut::with_capacity(announced);
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| Status::bad_request(format!("the body could not be read: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if held.len() + data.len() > BODY_BYTES_MAX {
            drain(body).await;
            return Err(Status::too_large(BODY_BYTES_MAX));
        }
        if held.is_empty() && data.len() >= announced && body.is_end_stream() {
            return Ok(data);
        }
        held.extend_from_slice(&data);
    }
    Ok(held.freeze())
}

async fn drain(body: &mut Incoming) {
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
