//! The output of a server as a stream of the lines that are JSON: its diagnostics are left out.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::process::Observer;

/// The most bytes of a line. At a longer one the output ends, and with it the connection.
const MOST: usize = 32 * 1024 * 1024;

/// The two ends of the output.
pub(super) fn output() -> (Lines, Output) {
    let (sender, receiver) = unbounded_channel();
    (Lines { sender: Some(sender), line: Vec::new() }, Output { receiver, rest: Vec::new() })
}

/// Takes the output of the server.
pub(super) struct Lines {
    /// `None`: a line was too long.
    sender: Option<UnboundedSender<Vec<u8>>>,
    /// The begin of a line.
    line: Vec<u8>,
}

impl Observer for Lines {
    fn take(&mut self, chunk: &[u8]) {
        let Some(sender) = &self.sender else { return };
        if self.line.len() + chunk.len() > MOST {
            self.sender = None;
            self.line = Vec::new();
            return;
        }
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                if line.trim_ascii_start().starts_with(b"{") {
                    // The client may have ended first.
                    let _ = sender.send(line);
                }
            }
        }
    }
}

/// Reads the lines.
pub(super) struct Output {
    receiver: UnboundedReceiver<Vec<u8>>,
    rest: Vec<u8>,
}

impl AsyncRead for Output {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.rest.is_empty() {
            match ready!(self.receiver.poll_recv(context)) {
                Some(line) => self.rest = line,
                None => return Poll::Ready(Ok(())),
            }
        }
        let length = buffer.remaining().min(self.rest.len());
        let part: Vec<u8> = self.rest.drain(..length).collect();
        buffer.put_slice(&part);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn lines_that_are_no_json_are_left_out() {
        let (mut lines, mut output) = output();
        for chunk in ["starting\n{\"a\":", "1}\nwarning", ": x\n{}\n{\"cut"] {
            lines.take(chunk.as_bytes());
        }
        drop(lines);
        let mut text = String::new();
        output.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "{\"a\":1}\n{}\n");
    }
}
