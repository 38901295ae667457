//! `claude-progress.txt`: entries appended for people and agents, each once, whatever else is in the file.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use super::error::FilesError;
use super::happening::Happening;
use super::place::{Place, look};
use super::text::clean;

const NAME: &str = "claude-progress.txt";
const RULER: &str = "============================================================";

/// Appends to the file what is not in it yet.
#[derive(Debug, Default)]
pub(super) struct ProgressFile {
    pending: Vec<Entry>,
    /// How much of the file is known. Behind that, entries are looked for, so that none is appended again.
    known: u64,
}

/// What tells entries apart.
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
    /// Takes what is to be told there.
    pub(super) fn take(&mut self, told: &[Happening]) {
        let told = told.iter().filter(|happening| happening.kind.is_for_progress_file());
        self.pending.extend(told.map(Entry::of));
    }

    /// Appends what was taken, with one write.
    pub(super) fn append(&mut self, place: &Place) -> Result<(), FilesError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let path = place.root.join(NAME);
        match look(&path)? {
            Some(found) if found.is_symlink() => return Err(FilesError::Link(path)),
            Some(found) if !found.is_file() => return Err(FilesError::NotA { expected: "file", path }),
            _ => {}
        }
        self.append_to(&path).map_err(FilesError::file("append to", &path))
    }

    fn append_to(&mut self, path: &Path) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .custom_flags(nix::fcntl::OFlag::O_NOFOLLOW.bits())
            .open(path)?;
        let length = file.metadata()?.len();
        if length != self.known {
            let mut unknown = Vec::new();
            file.seek(SeekFrom::Start(if length < self.known { 0 } else { self.known }))?;
            file.read_to_end(&mut unknown)?;
            let mut held = Held::find(&unknown);
            self.pending.retain(|entry| !held.take(entry));
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
    fn of(happening: &Happening) -> Self {
        let header = Header {
            time: happening.key.at.format("%Y-%m-%d %H:%M:%S").to_string(),
            session: happening.session.clone(),
            action: happening.kind.name().to_owned(),
            feature: happening.feature.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string),
        };
        let Header { time, session, action, feature } = &header;
        let mut text = format!("{RULER}\n[{time}] Session: {session}\nAction: {action}\nFeature: {feature}\n\n");
        text.push_str(&free_text(&happening.text));
        text.push('\n');
        if let Some(commit) = &happening.commit {
            text.push_str("\nCommit: ");
            text.push_str(commit);
            text.push('\n');
        }
        Self { header, text }
    }
}

/// Text that cannot be taken for the beginning of another entry.
fn free_text(text: &str) -> String {
    let text = clean(text);
    let safe = |line: &str| if line.trim_end() == RULER { format!(" {line}") } else { line.trim_end().to_owned() };
    text.trim().lines().map(safe).collect::<Vec<_>>().join("\n")
}

/// The entries that a file holds.
#[derive(Debug)]
struct Held<'a> {
    counts: HashMap<Header, usize>,
    /// The last one, with everything behind it.
    last: &'a [u8],
}

impl<'a> Held<'a> {
    fn find(bytes: &'a [u8]) -> Self {
        let mut counts = HashMap::new();
        let mut last = &bytes[bytes.len()..];
        let mut rest = bytes;
        while !rest.is_empty() {
            let (line, after) = cut_line(rest);
            if line == RULER
                && let Some(header) = Header::read(after)
            {
                *counts.entry(header).or_insert(0) += 1;
                last = rest;
            }
            rest = after;
        }
        Self { counts, last }
    }

    /// Whether the file holds an entry; each is counted once. One that a crash has cut off does not count.
    fn take(&mut self, entry: &Entry) -> bool {
        let Some(count) = self.counts.get_mut(&entry.header).filter(|count| **count > 0) else { return false };
        *count -= 1;
        let (last, whole) = (self.last.trim_ascii_end(), entry.text.as_bytes().trim_ascii_end());
        let is_cut = last.len() < whole.len() && whole.starts_with(last);
        !(is_cut && *count == 0 && Header::read(cut_line(last).1).as_ref() == Some(&entry.header))
    }
}

impl Header {
    /// Reads the three lines that follow on a ruler.
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

/// The first line, as far as it is text and without its end, and what follows on it.
fn cut_line(bytes: &[u8]) -> (&str, &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let (line, rest) = end.map_or((bytes, &bytes[bytes.len()..]), |end| (&bytes[..end], &bytes[end + 1..]));
    (std::str::from_utf8(line).unwrap_or_default().trim_end(), rest)
}
