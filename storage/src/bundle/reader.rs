//! Reads runs from a file one by one, so that a large file needs no more memory than its largest
//! run.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};

use longhaul_engine::{Payload, Summary};

use super::{Backup, BackupField, Footer, Header, HeaderLine, PublishedLine, RunLine, SCHEMA};
use crate::file_error::FileError;
use crate::history_file::{self, MAX_LINE};
use crate::run_record::{self, RunRecord};
use crate::wire::json;

/// The magic bytes of zstd files.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The beginning of files with single histories.
const HISTORY: &str = "{\"schema\":\"longhaul.history/";

/// The beginning of quarantine files, which a repair writes.
const QUARANTINE: &str = "{\"schema\":\"longhaul.quarantine/";

/// A file that is being read. It ends after the last run, or with the first error.
pub struct Reader<'a> {
    input: Box<dyn BufRead + 'a>,
    hasher: blake3::Hasher,
    /// The number of lines read.
    line: usize,
    /// Whether the last line had a line end.
    is_ended: bool,
    header: Header,
    form: Form,
    runs: u64,
}

enum Form {
    Bundle,
    /// Several histories in sequence; the first line of the next one is already read.
    Histories(Option<String>),
    Over,
}

impl<'a> Reader<'a> {
    /// Opens an export, a backup, or a file of histories; each may be compressed.
    pub fn new(input: impl Read + 'a) -> Result<Self, FileError> {
        let mut input: Box<dyn BufRead + 'a> = Box::new(BufReader::new(input));
        if input.fill_buf()?.starts_with(&ZSTD) {
            input = Box::new(BufReader::new(zstd::stream::read::Decoder::with_buffer(input)?));
        }
        let hasher = blake3::Hasher::new();
        let header = Header::default();
        let mut reader =
            Self { input, hasher, line: 0, is_ended: true, header, form: Form::Bundle, runs: 0 };
        let first = reader.next_line()?;
        let first = first.ok_or_else(|| FileError::OtherFile {
            expected: SCHEMA,
            found: "it is empty".into(),
        })?;
        if first.starts_with(HISTORY) {
            reader.form = Form::Histories(Some(first));
        } else {
            reader.header = header_of(&first)?;
        }
        Ok(reader)
    }

    /// The content of the first line.
    pub fn header(&self) -> Header {
        self.header
    }

    /// The next line without its line end; `None` at the end of the file.
    fn next_line(&mut self) -> Result<Option<String>, FileError> {
        let mut bytes = Vec::new();
        let length = (&mut self.input).take(MAX_LINE as u64 + 2).read_until(b'\n', &mut bytes)?;
        if length == 0 {
            return Ok(None);
        }
        self.line += 1;
        // The hash covers everything before the footer.
        if !bytes.starts_with(b"{\"end\":true,\"runs\":") {
            self.hasher.update(&bytes);
        }
        self.is_ended = bytes.last() == Some(&b'\n');
        if self.is_ended {
            bytes.pop();
        }
        if bytes.len() > MAX_LINE {
            return Err(
                self.line_error(format!("it is longer than the {MAX_LINE} bytes that are read"))
            );
        }
        String::from_utf8(bytes)
            .map(Some)
            .map_err(|_| self.line_error("it is not valid UTF-8".into()))
    }

    /// The next line, which must exist.
    fn line(&mut self) -> Result<String, FileError> {
        let line = self.next_line()?;
        // Only the last line of a file may lack its line end; any other line without one is
        // truncated.
        let whole = line.filter(|line| self.is_ended || line.starts_with("{\"end\":"));
        whole.ok_or(FileError::CutOff { line: self.line })
    }

    fn line_error(&self, problem: String) -> FileError {
        FileError::Line { line: self.line, problem }
    }

    fn run(&mut self) -> Result<Option<RunRecord>, FileError> {
        match std::mem::replace(&mut self.form, Form::Over) {
            Form::Over | Form::Histories(None) => Ok(None),
            Form::Histories(Some(first)) => self.history(first).map(Some),
            Form::Bundle => {
                let first = self.line()?;
                if first.starts_with("{\"end\":") {
                    return self.end(&first).map(|()| None);
                }
                let record = self.section(&first)?;
                self.runs += 1;
                self.form = Form::Bundle;
                Ok(Some(record))
            }
        }
    }

    /// The history that begins with a line already read.
    fn history(&mut self, first: String) -> Result<RunRecord, FileError> {
        let begin = self.line;
        let mut text = first;
        let mut next = None;
        while let Some(line) = self.next_line()? {
            if line.starts_with(HISTORY) {
                next = Some(line);
                break;
            }
            text.push('\n');
            text += &line;
        }
        self.form = Form::Histories(next);
        let (run, events) = history_file::read_at(begin, &text)?;
        let missing = format!("the history of run {run} does not begin with its start");
        RunRecord::of_history(run, events).ok_or(FileError::Line { line: begin, problem: missing })
    }

    fn section(&mut self, first: &str) -> Result<RunRecord, FileError> {
        let head: RunLine = self.parsed(json::read("the first line of a run", first))?;
        let begin = self.line + 1;
        let mut lines = Vec::new();
        let mut hasher = blake3::Hasher::new();
        for _ in 0..head.events.saturating_add(head.mail).saturating_add(head.published) {
            let line = self.line()?;
            hasher.update(line.as_bytes()).update(b"\n");
            lines.push(line);
        }
        let computed = hasher.finalize().to_hex().to_string();
        if head.blake3 != computed {
            return Err(FileError::Checksum { line: self.line, recorded: head.blake3, computed });
        }
        let mut numbered = (begin..).zip(&lines);
        let mut events = Vec::new();
        for (line, text) in numbered.by_ref().take(count(head.events)) {
            events.push(at(line, json::read_event(text))?);
        }
        let mut mailbox = Vec::new();
        for (line, text) in numbered.by_ref().take(count(head.mail)) {
            mailbox.push(at(line, json::read_message(text))?);
        }
        let mut published = BTreeMap::new();
        for (line, text) in numbered {
            let (name, value) = at(line, published_of(text))?;
            if published.last_key_value().is_some_and(|(last, _)| *last >= name) {
                return Err(FileError::Line {
                    line,
                    problem: "published values are not in order".into(),
                });
            }
            published.insert(name, value);
        }
        let summary = head.pruned.map(Summary::from).or_else(|| run_record::fold(&events));
        let summary = summary.ok_or_else(|| {
            self.line_error(format!("the history of run {} has no start", head.run))
        })?;
        let record = RunRecord { run: head.run, events, summary, mailbox, published };
        crate::archive::check(&record).map_err(|error| self.line_error(error.to_string()))?;
        Ok(record)
    }

    /// The value parsed from the last line.
    fn parsed<T>(&self, parsed: Result<T, String>) -> Result<T, FileError> {
        parsed.map_err(|problem| self.line_error(problem))
    }

    fn end(&mut self, line: &str) -> Result<(), FileError> {
        let footer: Footer = self.parsed(json::read("the last line", line))?;
        let computed = self.hasher.finalize().to_hex().to_string();
        let at = self.line;
        if footer.blake3 != computed {
            return Err(FileError::Checksum { line: at, recorded: footer.blake3, computed });
        }
        if footer.runs != self.runs || !footer.end {
            return Err(self.line_error(format!(
                "{} runs are announced, but {} are present",
                footer.runs, self.runs
            )));
        }
        if self.next_line()?.is_some() {
            return Err(self.line_error("something follows after the end".into()));
        }
        Ok(())
    }
}

impl Iterator for Reader<'_> {
    type Item = Result<RunRecord, FileError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.run().transpose();
        // After an error the next history of a sequence can still be read; the rest of a bundle
        // cannot be trusted.
        if matches!(next, Some(Err(_))) && !matches!(self.form, Form::Histories(_)) {
            self.form = Form::Over;
        }
        next
    }
}

fn at<T>(line: usize, parsed: Result<T, String>) -> Result<T, FileError> {
    parsed.map_err(|problem| FileError::Line { line, problem })
}

fn count(lines: u64) -> usize {
    usize::try_from(lines).unwrap_or(usize::MAX)
}

fn published_of(line: &str) -> Result<(String, Payload), String> {
    let PublishedLine { name, value } = json::read("a published value", line)?;
    let payload = json::extract(&value)?;
    json::check_form(value.get(), json::embed(&payload)?.get())?;
    Ok((name, payload))
}

fn header_of(line: &str) -> Result<Header, FileError> {
    if line.starts_with(QUARANTINE) {
        return Err(FileError::Quarantined);
    }
    SCHEMA.check(line)?;
    let header =
        json::read("the header", line).map_err(|problem| FileError::Line { line: 1, problem })?;
    let HeaderLine { backup, .. } = header;
    Ok(Header { backup: backup.map(|BackupField { epoch, at }| Backup { epoch, at: at.0 }) })
}
