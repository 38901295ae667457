//! Reading runs from a file, one after the other, so that a large file needs no more memory than its largest run.

use std::io::{BufRead, BufReader, Read};

use longhaul_engine::RunId;

use super::{Backup, BundleError, FAMILY, Header, VERSION, line, section, v1};
use crate::carried::Carried;
use crate::history_file::line::{reason, shown};
use crate::history_file::{self, MAX_LINE};

/// What files that were compressed with zstd begin with.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// What the files of single histories begin with.
const HISTORY: &str = "{\"schema\":\"longhaul.history/";

/// A file that is being read. It ends after the last run, or with the first error.
pub struct Reader<'a> {
    input: Box<dyn BufRead + 'a>,
    hasher: blake3::Hasher,
    /// The lines that were read.
    line: usize,
    /// Whether the last of them had an end.
    is_ended: bool,
    header: Header,
    form: Form,
    runs: u64,
}

enum Form {
    Bundle,
    /// One history after the other; the first line of the next one is read already.
    Histories(Option<String>),
    Over,
}

impl<'a> Reader<'a> {
    /// Begins to read a file: an export or a backup, compressed or not, or histories.
    pub fn new(input: impl Read + 'a) -> Result<Self, BundleError> {
        let mut input: Box<dyn BufRead + 'a> = Box::new(BufReader::new(input));
        if input.fill_buf()?.starts_with(&ZSTD) {
            input = Box::new(BufReader::new(zstd::stream::read::Decoder::with_buffer(input)?));
        }
        let (hasher, header) = (blake3::Hasher::new(), Header::default());
        let mut reader = Self { input, hasher, line: 0, is_ended: true, header, form: Form::Bundle, runs: 0 };
        let first = reader.next_line()?;
        let first = first.ok_or_else(|| BundleError::NotABundle { found: "it is empty".into() })?;
        if first.starts_with(HISTORY) {
            reader.form = Form::Histories(Some(first));
        } else {
            reader.header = header_of(&first)?;
        }
        Ok(reader)
    }

    /// What the first line says.
    pub fn header(&self) -> Header {
        self.header
    }

    /// The next line without its end; `None` at the end of the file.
    fn next_line(&mut self) -> Result<Option<String>, BundleError> {
        let mut bytes = Vec::new();
        let length = (&mut self.input).take(MAX_LINE as u64 + 2).read_until(b'\n', &mut bytes)?;
        if length == 0 {
            return Ok(None);
        }
        self.line += 1;
        // The footer is no part of what it vouches for.
        if !bytes.starts_with(b"{\"end\":true,\"runs\":") {
            self.hasher.update(&bytes);
        }
        self.is_ended = bytes.last() == Some(&b'\n');
        if self.is_ended {
            bytes.pop();
        }
        if bytes.len() > MAX_LINE {
            return Err(self.wrong(format!("it is longer than the {MAX_LINE} bytes that are read")));
        }
        String::from_utf8(bytes).map(Some).map_err(|_| self.wrong("it is no text in UTF-8".into()))
    }

    /// A line that must be there.
    fn line(&mut self) -> Result<String, BundleError> {
        let line = self.next_line()?;
        // The last line end of a file may be missing; any other was cut off with what followed.
        let whole = line.filter(|line| self.is_ended || line.starts_with("{\"end\":"));
        whole.ok_or(BundleError::CutOff { line: self.line })
    }

    fn wrong(&self, problem: String) -> BundleError {
        BundleError::Line { line: self.line, problem }
    }

    fn run(&mut self) -> Result<Option<Carried>, BundleError> {
        match std::mem::replace(&mut self.form, Form::Over) {
            Form::Over | Form::Histories(None) => Ok(None),
            Form::Histories(Some(first)) => self.history(first).map(Some),
            Form::Bundle => {
                let first = self.line()?;
                if first.starts_with("{\"end\":") {
                    return self.end(&first).map(|()| None);
                }
                let carried = self.section(&first)?;
                self.runs += 1;
                self.form = Form::Bundle;
                Ok(Some(carried))
            }
        }
    }

    /// The history that begins with a line that was read.
    fn history(&mut self, first: String) -> Result<Carried, BundleError> {
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
        let (run, events) = history_file::read(&text).map_err(|error| BundleError::History { line: begin, error })?;
        let missing = format!("the history of run {run} does not begin with its start");
        Carried::of_history(run, events).ok_or(BundleError::Line { line: begin, problem: missing })
    }

    fn section(&mut self, first: &str) -> Result<Carried, BundleError> {
        let head: v1::Head = line::read("the first line of a run", first).map_err(|problem| self.wrong(problem))?;
        let run = RunId::new(head.run).map_err(|error| self.wrong(error.to_string()))?;
        let mut carried = match head.pruned {
            None => self.whole(&run, head.lines)?,
            Some(summary) => self.pruned(run, head.lines, summary)?,
        };
        for _ in 0..head.mail {
            let line = self.line()?;
            carried.mailbox.push(section::message(&line).map_err(|problem| self.wrong(problem))?);
        }
        for _ in 0..head.published {
            let line = self.line()?;
            let (name, value) = section::published(&line).map_err(|problem| self.wrong(problem))?;
            if carried.published.last_key_value().is_some_and(|(last, _)| *last >= name) {
                return Err(self.wrong("published values are not in order".into()));
            }
            carried.published.insert(name, value);
        }
        crate::archive::check(&carried).map_err(|error| self.wrong(error.to_string()))?;
        Ok(carried)
    }

    fn whole(&mut self, run: &RunId, lines: u64) -> Result<Carried, BundleError> {
        let begin = self.line + 1;
        let mut text = String::new();
        for _ in 0..lines {
            text += &self.line()?;
            text.push('\n');
        }
        let (found, events) = history_file::read(&text).map_err(|error| BundleError::History { line: begin, error })?;
        if found != *run {
            return Err(self.wrong(format!("the history is of run {found}, and run {run} was announced")));
        }
        section::whole(found, events).map_err(|problem| BundleError::Line { line: begin, problem })
    }

    fn pruned(&mut self, run: RunId, lines: u64, summary: v1::Summary) -> Result<Carried, BundleError> {
        let summary = section::thaw(summary).map_err(|problem| self.wrong(problem))?;
        let mut events = Vec::new();
        for _ in 0..lines {
            let line = self.line()?;
            let event = history_file::read_event(self.line, &line);
            events.push(event.map_err(|error| BundleError::History { line: 1, error })?);
        }
        if events.first().is_none_or(|event| event.position == 0) {
            return Err(self.wrong(format!("run {run} is said to be pruned and is not")));
        }
        let (mailbox, published) = (Vec::new(), std::collections::BTreeMap::new());
        Ok(Carried { run, events, summary, mailbox, published })
    }

    fn end(&mut self, line: &str) -> Result<(), BundleError> {
        let footer: v1::Footer = line::read("the last line", line).map_err(|problem| self.wrong(problem))?;
        let computed = self.hasher.finalize().to_hex().to_string();
        let at = self.line;
        if footer.blake3 != computed {
            return Err(BundleError::Checksum { line: at, recorded: footer.blake3, computed });
        }
        if footer.runs != self.runs || !footer.end {
            return Err(self.wrong(format!("{} runs are announced, and {} are there", footer.runs, self.runs)));
        }
        if self.next_line()?.is_some() {
            return Err(self.wrong("something follows after the end".into()));
        }
        Ok(())
    }
}

impl Iterator for Reader<'_> {
    type Item = Result<Carried, BundleError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.run().transpose();
        // The next history of several can be read although this one cannot; of a bundle nothing is sure any more.
        if matches!(next, Some(Err(_))) && !matches!(self.form, Form::Histories(_)) {
            self.form = Form::Over;
        }
        next
    }
}

fn header_of(line: &str) -> Result<Header, BundleError> {
    /// What the first lines of all versions have in common.
    #[derive(serde::Deserialize)]
    struct AnyVersion {
        schema: String,
    }
    let unfit = |problem| BundleError::Line { line: 1, problem };
    let any: AnyVersion = serde_json::from_str(line).map_err(|error| {
        if line.starts_with(&format!("{{\"schema\":\"{FAMILY}")) {
            return unfit(format!("the header: {}", reason(&error)));
        }
        BundleError::NotABundle { found: format!("it says {}", shown(line)) }
    })?;
    let version = any.schema.strip_prefix(FAMILY).and_then(|version| version.parse::<u32>().ok());
    match version {
        None if any.schema.starts_with("longhaul.quarantine/") => return Err(BundleError::Quarantined),
        Some(VERSION) if any.schema == format!("{FAMILY}{VERSION}") => {}
        Some(found) if found > VERSION => return Err(BundleError::Newer { found }),
        _ => return Err(BundleError::NotABundle { found: format!("its schema is {}", shown(&any.schema)) }),
    }
    let header: v1::Header = self::line::read("the header", line).map_err(unfit)?;
    let backup =
        header.backup.map(|backup| Ok(Backup { epoch: backup.epoch, at: history_file::read_time(&backup.at)? }));
    Ok(Header { backup: backup.transpose().map_err(unfit)? })
}
