//! As much of HTTP 1.1 as clients of model services use.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::Hold;

/// The longest header section and the longest body, in bytes.
const LONGEST: u64 = 64 * 1024 * 1024;
/// The interval at which a held connection is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// A request as it came.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) method: String,
    /// Without the query.
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Message {
    /// The next request of a connection; `None` at its end.
    pub(crate) fn read(connection: &mut BufReader<TcpStream>) -> io::Result<Option<Self>> {
        let Some(first) = line(connection)? else { return Ok(None) };
        let mut words = first.split(' ');
        let method = words.next().unwrap_or_default().to_owned();
        let target = words.next().unwrap_or_default();
        let path = target.split('?').next().unwrap_or_default().to_owned();
        let mut headers = Vec::new();
        while let Some(line) = line(connection)?.filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            headers.push((name.to_lowercase(), value.trim().to_owned()));
        }
        let mut message = Self { method, path, headers, body: Vec::new() };
        let length = message.header("content-length").and_then(|length| length.parse().ok());
        let length: u64 = length.unwrap_or_default();
        if length > LONGEST {
            return Err(io::Error::other("the body is too long"));
        }
        connection.take(length).read_to_end(&mut message.body)?;
        Ok((message.body.len() as u64 == length).then_some(message))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

fn line(connection: &mut BufReader<TcpStream>) -> io::Result<Option<String>> {
    let mut line = String::new();
    let read = connection.take(LONGEST).read_line(&mut line)?;
    Ok((read > 0).then(|| line.trim_end().to_owned()))
}

/// Writes a response with a known body.
pub(crate) fn respond(
    connection: &mut TcpStream,
    status: u16,
    headers: &[(&str, String)],
    body: &[u8],
) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {status} scripted\r\ncontent-type: application/json\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
    connection.write_all(&[head.as_bytes(), body].concat())
}

/// Begins a response in chunks.
pub(crate) fn begin_stream(connection: &mut TcpStream, id: &str) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 200 scripted\r\ncontent-type: text/event-stream\r\nrequest-id: {id}\r\n\
         x-request-id: {id}\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    connection.write_all(head.as_bytes())
}

/// Writes a part of such a response in chunks of at most `size` bytes.
pub(crate) fn write_chunks(connection: &mut TcpStream, part: &[u8], size: usize) -> io::Result<()> {
    for chunk in part.chunks(size.max(1)) {
        let length = format!("{:x}\r\n", chunk.len());
        connection.write_all(&[length.as_bytes(), chunk, b"\r\n"].concat())?;
    }
    Ok(())
}

/// Ends such a response.
pub(crate) fn end_stream(connection: &mut TcpStream) -> io::Result<()> {
    connection.write_all(b"0\r\n\r\n")
}

/// Waits until the hold is released.
///
/// # Errors
/// If the client closes the connection first.
pub(crate) fn wait(connection: &TcpStream, hold: &Hold) -> io::Result<()> {
    connection.set_read_timeout(Some(LOOK))?;
    while !hold.is_released() {
        match connection.peek(&mut [0]) {
            Ok(0) => return Err(io::ErrorKind::ConnectionAborted.into()),
            Ok(_) => std::thread::sleep(LOOK),
            Err(error) if is_early(&error) => {}
            Err(error) => return Err(error),
        }
    }
    connection.set_read_timeout(None)
}

/// Whether the client has closed the connection.
pub(crate) fn is_closed(connection: &TcpStream) -> io::Result<bool> {
    connection.set_nonblocking(true)?;
    let closed = match connection.peek(&mut [0]) {
        Ok(read) => read == 0,
        Err(error) => !is_early(&error),
    };
    connection.set_nonblocking(false)?;
    Ok(closed)
}

fn is_early(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
