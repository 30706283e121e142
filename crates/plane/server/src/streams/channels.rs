//! The frames of `v4.channel.k8s.io` and `v5.channel.k8s.io`: one byte names the channel, the rest is data.
//!
//! Follows `apimachinery/pkg/util/remotecommand/constants.go`, Kubernetes 1.36.

use bytes::{BufMut, Bytes, BytesMut};
use hotmap_object::Status;
use serde_json::{Value, json};

use super::websocket::Protocol;
use crate::node_access::{ExitStatus, TerminalSize};

pub(super) const STDIN: u8 = 0;
pub(super) const STDOUT: u8 = 1;
pub(super) const STDERR: u8 = 2;
pub(super) const ERROR: u8 = 3;
const RESIZE: u8 = 4;
/// v5 only: the byte behind it names the channel that has ended.
const CLOSE: u8 = 255;

/// What a client sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Received {
    Input(Bytes),
    EndOfInput,
    Resize(TerminalSize),
    /// Empty frames, and channels that a client has nothing to say on.
    Nothing,
}

pub(super) fn read(mut frame: Bytes, protocol: Protocol) -> Received {
    if frame.is_empty() {
        return Received::Nothing;
    }
    let data = frame.split_off(1);
    match frame[0] {
        STDIN if !data.is_empty() => Received::Input(data),
        RESIZE => resize(&data).map_or(Received::Nothing, Received::Resize),
        CLOSE if protocol == Protocol::V5 && data[..] == [STDIN] => Received::EndOfInput,
        _ => Received::Nothing,
    }
}

pub(super) fn frame(channel: u8, data: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(1 + data.len());
    frame.put_u8(channel);
    frame.put_slice(data);
    frame.freeze()
}

/// The last frame on the error channel: how it ended.
pub(super) fn ended(exit: &Result<ExitStatus, Status>) -> Bytes {
    let status = match exit {
        Ok(ExitStatus(0)) => json!({"metadata": {}, "status": "Success"}),
        Ok(ExitStatus(code)) => json!({
            "metadata": {},
            "status": "Failure",
            "reason": "NonZeroExitCode",
            "message": format!("command terminated with non-zero exit code: exit status {code}"),
            "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
        }),
        Err(status) => status.to_value(),
    };
    frame(ERROR, status.to_string().as_bytes())
}

/// What says that input has ended, where the other side knows v5.
pub(super) fn end_of_input() -> Bytes {
    frame(CLOSE, &[STDIN])
}

/// A terminal's new size.
pub(super) fn resized(size: TerminalSize) -> Bytes {
    let size = json!({"Width": size.width, "Height": size.height});
    frame(RESIZE, size.to_string().as_bytes())
}

/// How a command ended, from the data of the last frame on the error channel.
pub(super) fn exit(data: &[u8]) -> Result<ExitStatus, Status> {
    let value: Value = serde_json::from_slice(data).map_err(Status::internal)?;
    if value["status"] == "Success" {
        return Ok(ExitStatus(0));
    }
    let mut causes = value["details"]["causes"].as_array().into_iter().flatten();
    let code = causes.find(|cause| cause["reason"] == "ExitCode");
    let code = code.and_then(|cause| cause["message"].as_str()?.parse().ok());
    match code {
        Some(code) if value["reason"] == "NonZeroExitCode" => Ok(ExitStatus(code)),
        _ => Err(serde_json::from_value(value).unwrap_or_else(Status::internal)),
    }
}

fn resize(data: &[u8]) -> Option<TerminalSize> {
    let size: Value = serde_json::from_slice(data).ok()?;
    let side = |name: &str| u16::try_from(size[name].as_u64()?).ok();
    Some(TerminalSize {
        width: side("Width")?,
        height: side("Height")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_by_their_first_byte() {
        for (frame, protocol, received) in [
            (
                &b"\x00abc"[..],
                Protocol::V4,
                Received::Input(Bytes::from_static(b"abc")),
            ),
            (b"\x00", Protocol::V5, Received::Nothing),
            (b"", Protocol::V5, Received::Nothing),
            (b"\xff\x00", Protocol::V5, Received::EndOfInput),
            (b"\xff\x00", Protocol::V4, Received::Nothing),
            (b"\xff", Protocol::V5, Received::Nothing),
            (br#"-{"Width":80,"Height":24}"#, Protocol::V5, Received::Nothing),
            (
                b"\x04{\"Width\":80,\"Height\":24}",
                Protocol::V5,
                Received::Resize(TerminalSize {
                    width: 80,
                    height: 24,
                }),
            ),
            (b"\x04{\"Width\":-1}", Protocol::V5, Received::Nothing),
        ] {
            assert_eq!(
                read(Bytes::copy_from_slice(frame), protocol),
                received,
                "{frame:?}"
            );
        }
    }

    #[test]
    fn what_one_side_says_the_other_understands() {
        for code in [0, 1, 137] {
            assert_eq!(exit(&ended(&Ok(ExitStatus(code)))[1..]), Ok(ExitStatus(code)));
        }
        let refused = exit(&ended(&Err(Status::bad_request("no")))[1..]).expect_err("a failure");
        assert_eq!((refused.code, refused.message.as_str()), (400, "no"));
        assert!(exit(b"x").is_err());
        let size = TerminalSize {
            width: 80,
            height: 24,
        };
        assert_eq!(read(resized(size), Protocol::V5), Received::Resize(size));
        assert_eq!(read(end_of_input(), Protocol::V5), Received::EndOfInput);
    }

    #[test]
    fn the_last_frame_carries_the_exit_code() {
        let text = |exit| String::from_utf8(ended(&exit)[1..].to_vec()).expect("JSON");
        assert!(text(Ok(ExitStatus(0))).contains(r#""status":"Success""#));
        assert!(text(Ok(ExitStatus(7))).contains(r#"{"message":"7","reason":"ExitCode"}"#));
        assert!(text(Err(Status::internal("x"))).contains("InternalError"));
    }
}
