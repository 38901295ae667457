//! `claude-progress.txt`: appends entries for people and agents, each once, whatever else is in the
//! file.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use longhaul_engine::Payload;

use super::error::FilesError;
use super::place::{ProjectRoot, metadata};
use super::placed::{self, Links, Unreadable};
use super::text::clean;
use super::timeline::TimelineEntry;

pub(crate) const NAME: &str = "claude-progress.txt";
const RULER: &str = "============================================================";

/// The length of the end that an agent gets, in bytes.
const FOR_AGENTS: u64 = 1024 * 1024;
/// The length of the end that is searched for entries, in bytes.
const LOOKED_THROUGH: u64 = 1 << 30;
/// The longest line of an entry's header, in bytes.
const LONGEST_LINE: usize = 4 * 1024;
/// The longest entry that a crash can have truncated, in bytes.
const LONGEST_ENTRY: u64 = 1024 * 1024;

/// The file in a directory, only the end of a long one, from the start of a line; `None`: no file.
pub(crate) fn end(root: &Path) -> Result<Option<Vec<u8>>, Unreadable> {
    let Some(mut end) = placed::read_end(&root.join(NAME), Links::Within(root), FOR_AGENTS)? else {
        return Ok(None);
    };
    if end.len() as u64 == FOR_AGENTS {
        let line = end.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        end.drain(..line);
    }
    Ok(Some(end))
}

/// As [`end`], in the user's checkout: something else at its path is no file. See
/// [`progress_file_obstacle`].
pub(crate) fn end_in_checkout(root: &Path) -> Result<Option<Vec<u8>>, Unreadable> {
    match end(root) {
        // A link to itself is in the way as other links are.
        Err(Unreadable::Io { error, .. })
            if error.raw_os_error() == Some(nix::errno::Errno::ELOOP as i32) =>
        {
            Ok(None)
        }
        Err(error @ Unreadable::Io { .. }) => Err(error),
        read => Ok(read.unwrap_or_default()),
    }
}

/// Why Longhaul does not write its progress file in a directory, and agents do not get it; `None`:
/// nothing is in the way.
pub fn progress_file_obstacle(root: &Path) -> Option<String> {
    must_be_file(&root.join(NAME)).err().map(|error| error.to_string())
}

fn must_be_file(path: &Path) -> Result<(), FilesError> {
    match metadata(path)? {
        Some(found) if found.is_symlink() => Err(FilesError::Link(path.to_owned())),
        Some(found) if !found.is_file() => {
            Err(FilesError::NotA { expected: "file", path: path.to_owned() })
        }
        _ => Ok(()),
    }
}

/// Appends missing entries to the file.
#[derive(Debug, Default)]
pub(super) struct ProgressFile {
    pending: Vec<Entry>,
    /// The known length of the file. The part after it is searched for entries, so that none is
    /// appended twice.
    known: u64,
}

/// The identity of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Header {
    time: String,
    session: String,
    action: String,
    feature: String,
}

#[derive(Debug)]
struct Entry {
    header: Header,
    text: String,
}

impl ProgressFile {
    /// Adds entries to append.
    pub(super) fn take(&mut self, entries: &[TimelineEntry]) {
        let entries = entries.iter().filter(|entry| entry.entry.kind.is_for_progress_file());
        self.pending.extend(entries.map(Entry::of));
    }

    /// Appends the pending entries with one write.
    pub(super) fn append(&mut self, place: &ProjectRoot) -> Result<(), FilesError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let path = place.root.join(NAME);
        must_be_file(&path)?;
        self.append_to(&path).map_err(FilesError::file("append to", &path))
    }

    fn append_to(&mut self, path: &Path) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .custom_flags((nix::fcntl::OFlag::O_NOFOLLOW | nix::fcntl::OFlag::O_NONBLOCK).bits())
            .open(path)?;
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(io::Error::other("it is not a file"));
        }
        let length = found.len();
        if length != self.known {
            let from = if length < self.known { 0 } else { self.known };
            let wanted: HashSet<&Header> = self.pending.iter().map(|entry| &entry.header).collect();
            let mut found = FoundEntries::find(
                &mut file,
                from.max(length.saturating_sub(LOOKED_THROUGH)),
                &wanted,
            )?;
            self.pending.retain(|entry| !found.take(entry));
        }
        if self.pending.is_empty() {
            self.known = length;
            return Ok(());
        }
        let mut text = String::from(if ends_a_line(&mut file, length)? { "" } else { "\n" });
        text.extend(self.pending.iter().map(|entry| entry.text.as_str()));
        file.write_all(text.as_bytes())?;
        self.known = length + text.len() as u64;
        self.pending.clear();
        Ok(())
    }
}

fn ends_a_line(file: &mut File, length: u64) -> io::Result<bool> {
    if length == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::Start(length - 1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

impl Entry {
    fn of(entry: &TimelineEntry) -> Self {
        let header = Header {
            time: entry.key.at.format("%Y-%m-%d %H:%M:%S").to_string(),
            session: entry.session.clone(),
            action: Payload::of(&entry.entry.kind).read().unwrap_or_default(),
            feature: entry.feature.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string),
        };
        let Header { time, session, action, feature } = &header;
        let mut text = format!(
            "{RULER}\n[{time}] Session: {session}\nAction: {action}\nFeature: {feature}\n\n"
        );
        text.push_str(&free_text(&entry.entry.in_full()));
        text.push('\n');
        if let Some(commit) = &entry.entry.commit {
            text.push_str("\nCommit: ");
            text.push_str(commit);
            text.push('\n');
        }
        Self { header, text }
    }
}

/// Escapes text that looks like the header of another entry.
fn free_text(text: &str) -> String {
    let text = clean(text);
    let safe = |line: &str| {
        if line.trim_end() == RULER { format!(" {line}") } else { line.trim_end().to_owned() }
    };
    text.trim().lines().map(safe).collect::<Vec<_>>().join("\n")
}

/// The entries found in a file.
#[derive(Debug)]
struct FoundEntries {
    counts: HashMap<Header, usize>,
    /// The last entry, with everything after it; empty if that is longer than an entry can be.
    last: Vec<u8>,
}

impl FoundEntries {
    /// Finds entries with these headers. Memory use is bounded, whatever the file holds.
    fn find(file: &mut File, from: u64, wanted: &HashSet<&Header>) -> io::Result<Self> {
        let mut counts = HashMap::new();
        let mut last = None;
        let mut at = from;
        // The header lines after the last ruler, and their offset.
        let mut head: Option<(u64, Vec<u8>, usize)> = None;
        file.seek(SeekFrom::Start(from))?;
        let mut reader = BufReader::new(&mut *file);
        let mut line = Vec::new();
        loop {
            let length = read_line(&mut reader, &mut line)?;
            if length == 0 {
                break;
            }
            if let Some((begin, text, lines)) = &mut head {
                text.extend_from_slice(&line);
                *lines += 1;
                if *lines == 3 {
                    if let Some(header) = Header::read(text) {
                        last = Some(*begin);
                        if wanted.contains(&header) {
                            *counts.entry(header).or_insert(0) += 1;
                        }
                    }
                    head = None;
                }
            }
            if line.trim_ascii_end() == RULER.as_bytes() {
                head = Some((at, Vec::new(), 0));
            }
            at += length;
        }
        let mut bytes = Vec::new();
        if let Some(begin) = last.filter(|begin| at - begin <= LONGEST_ENTRY) {
            file.seek(SeekFrom::Start(begin))?;
            file.take(LONGEST_ENTRY).read_to_end(&mut bytes)?;
        }
        Ok(Self { counts, last: bytes })
    }

    /// Whether the file holds an entry; each is counted once. A truncated one does not count.
    fn take(&mut self, entry: &Entry) -> bool {
        let Some(count) = self.counts.get_mut(&entry.header).filter(|count| **count > 0) else {
            return false;
        };
        *count -= 1;
        let last = self.last.trim_ascii_end();
        let whole = entry.text.as_bytes().trim_ascii_end();
        let is_cut = last.len() < whole.len() && whole.starts_with(last);
        !(is_cut && *count == 0 && Header::read(cut_line(last).1).as_ref() == Some(&entry.header))
    }
}

/// Reads a line into a buffer, only the beginning of a long one. Returns its whole length; zero at
/// the end.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<u64> {
    line.clear();
    let mut length = 0;
    loop {
        let piece = reader.fill_buf()?;
        if piece.is_empty() {
            return Ok(length);
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(piece.len(), |end| end + 1);
        let room = LONGEST_LINE.saturating_sub(line.len()).min(used);
        line.extend_from_slice(&piece[..room]);
        reader.consume(used);
        length += used as u64;
        if end.is_some() {
            if line.last() != Some(&b'\n') {
                line.push(b'\n');
            }
            return Ok(length);
        }
    }
}

impl Header {
    /// Parses the three lines after a ruler.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (first, rest) = cut_line(bytes);
        let (second, rest) = cut_line(rest);
        let (third, _) = cut_line(rest);
        let (time, session) = first.strip_prefix('[')?.split_once("] Session: ")?;
        Some(Self {
            time: time.to_owned(),
            session: session.to_owned(),
            action: second.strip_prefix("Action: ")?.to_owned(),
            feature: third.strip_prefix("Feature: ")?.to_owned(),
        })
    }
}

/// The first line as text, without its end, and the rest.
fn cut_line(bytes: &[u8]) -> (&str, &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let (line, rest) =
        end.map_or((bytes, &bytes[bytes.len()..]), |end| (&bytes[..end], &bytes[end + 1..]));
    (std::str::from_utf8(line).unwrap_or_default().trim_end(), rest)
}
