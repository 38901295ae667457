//! The system calls of a process, as logged by the shim.

use std::path::PathBuf;

/// A file descriptor of the traced process.
pub(crate) type Fd = i32;

/// One successful call.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Open { fd: Fd, path: PathBuf, truncate: bool },
    Close { fd: Fd },
    Write { fd: Fd, offset: u64, data: Vec<u8> },
    Truncate { fd: Fd, length: u64 },
    Sync { fd: Fd },
    SyncAll,
    Rename { from: PathBuf, to: PathBuf },
    Unlink { path: PathBuf },
    MakeDirectory { path: PathBuf },
}

/// Parses a trace.
pub(crate) fn parse(mut bytes: &[u8]) -> Vec<Step> {
    let mut steps = Vec::new();
    while !bytes.is_empty() {
        let [op] = take(&mut bytes);
        let fd = i32::from_le_bytes(take(&mut bytes));
        let number = u64::from_le_bytes(take(&mut bytes));
        let path_length = u32::from_le_bytes(take(&mut bytes));
        let data_length = u32::from_le_bytes(take(&mut bytes));
        let path = path_of(&take_many(&mut bytes, path_length));
        let data = take_many(&mut bytes, data_length);
        steps.push(match op {
            b'O' => Step::Open { fd, path, truncate: number != 0 },
            b'C' => Step::Close { fd },
            b'W' => Step::Write { fd, offset: number, data },
            b'T' => Step::Truncate { fd, length: number },
            b'S' => Step::Sync { fd },
            b'F' => Step::SyncAll,
            b'R' => Step::Rename { from: path, to: path_of(&data) },
            b'U' => Step::Unlink { path },
            b'D' => Step::MakeDirectory { path },
            other => panic!("no such record: {other}"),
        });
    }
    steps
}

fn take<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
    let (head, rest) = bytes.split_first_chunk().unwrap();
    *bytes = rest;
    *head
}

fn take_many(bytes: &mut &[u8], length: u32) -> Vec<u8> {
    let (head, rest) = bytes.split_at(length as usize);
    *bytes = rest;
    head.to_vec()
}

fn path_of(bytes: &[u8]) -> PathBuf {
    // `a/./b` and `a//b` become `a/b`, so that each file has one path.
    PathBuf::from(std::str::from_utf8(bytes).unwrap()).components().collect()
}
