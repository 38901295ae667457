//! The events of an agent as text for people.

use std::mem;

use longhaul_workflows::contracts::{Usage, WindowUse};

use super::{AgentEvent, Reader, by_name};

/// The most characters of the output of a tool, of its input, and of an error.
const SHOWN: usize = 400;
/// The longest line, in bytes; the rest of a longer one is dropped.
const LONGEST: usize = 16 * 1024 * 1024;

/// Turns the output of an agent into a transcript, piece by piece.
pub struct Transcript {
    reader: Box<dyn Reader>,
    lines: Lines,
    printer: Printer,
}

impl Transcript {
    /// A transcript of the output in a log, if a driver wrote it: the name of its file ends with
    /// the name of the driver.
    pub fn of_log(file_name: &str) -> Option<Self> {
        let (_, name) = file_name.split_once("-session-")?;
        let reader = by_name(name.split('.').next()?)?.reader();
        Some(Self { reader, lines: Lines::default(), printer: Printer::default() })
    }

    /// The text of the next piece of output.
    pub fn take(&mut self, piece: &[u8]) -> String {
        let mut text = String::new();
        for line in self.lines.take(piece) {
            for event in self.reader.line(&line) {
                text += &self.printer.print(&event);
            }
        }
        text
    }

    /// The text of an unfinished last line.
    pub fn finish(&mut self) -> String {
        let events = self.lines.rest().into_iter().flat_map(|line| self.reader.line(&line));
        events.map(|event| self.printer.print(&event)).collect()
    }
}

impl std::fmt::Debug for Transcript {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Transcript").finish_non_exhaustive()
    }
}

/// Cuts output into lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    unfinished: Vec<u8>,
}

impl Lines {
    /// The lines that a piece of output completes.
    pub(super) fn take(&mut self, piece: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            let room = LONGEST.saturating_sub(self.unfinished.len());
            self.unfinished.extend_from_slice(&part[..part.len().min(room)]);
            if part.ends_with(b"\n") {
                lines.extend(self.rest());
            }
        }
        lines
    }

    /// The unfinished last line, if it is not empty.
    pub(super) fn rest(&mut self) -> Option<String> {
        let line = mem::take(&mut self.unfinished);
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end_matches(['\n', '\r']);
        (!line.trim().is_empty()).then(|| line.to_owned())
    }
}

/// Prints the events of an agent.
#[derive(Debug, Default)]
pub(super) struct Printer {
    usage: Option<Usage>,
    /// The filled part of the window that was printed last, in per cent.
    percent: u64,
}

impl Printer {
    /// The text of an event, with its newline; empty for those without text.
    pub(super) fn print(&mut self, event: &AgentEvent) -> String {
        match event {
            AgentEvent::Usage { usage, .. } => self.usage = Some(*usage),
            AgentEvent::Window(WindowUse { used, size }) if *size > 0 => {
                let percent = used * 100 / size;
                if std::mem::replace(&mut self.percent, percent) != percent {
                    return format!("* {percent} % of the window is filled\n");
                }
            }
            AgentEvent::Ended(end) => return self.used() + &ended(end),
            _ => {}
        }
        render(event)
    }

    fn used(&mut self) -> String {
        let Some(usage) = self.usage.take() else { return String::new() };
        let Usage { input, output, cache_read, cache_write } = usage;
        let cached = cache_read + cache_write;
        format!("* tokens so far: {input} input, {cached} cached input, {output} output\n")
    }
}

fn render(event: &AgentEvent) -> String {
    match event {
        AgentEvent::Began { conversation, version, model } => {
            let version = version.as_ref().map(|it| format!(", version {it}")).unwrap_or_default();
            let model = model.as_ref().map(|it| format!(", model {it}")).unwrap_or_default();
            let id = if conversation.is_empty() { "goes on" } else { conversation };
            format!("* conversation {id}{version}{model}\n")
        }
        AgentEvent::Text(text) => format!("\n{}\n\n", text.trim_end()),
        AgentEvent::ToolBegan { name, input, .. } => format!("> {name}: {}\n", short(input)),
        AgentEvent::ToolEnded { output, ok, .. } => {
            let output = short(output.trim());
            match (ok, output.is_empty()) {
                (true, true) => String::new(),
                (true, false) => indented(&output),
                (false, true) => "  failed\n".into(),
                (false, false) => format!("  failed:\n{}", indented(&output)),
            }
        }
        AgentEvent::ToolRefused { name, reason, .. } => {
            format!("! {name} was refused{}\n", after_colon(reason))
        }
        AgentEvent::Retrying(end) => {
            format!("! request failed, tried again{}\n", after_colon(&end.message))
        }
        AgentEvent::Compacted { before: Some(before), after: Some(after) } => {
            format!("* conversation summarised: {before} tokens became {after}\n")
        }
        AgentEvent::Compacted { .. } => "* conversation summarised\n".into(),
        AgentEvent::Note(text) => format!("{}\n", short(text.trim_end())),
        AgentEvent::Ended(_)
        | AgentEvent::Usage { .. }
        | AgentEvent::ToolGranted { .. }
        | AgentEvent::Window(_)
        | AgentEvent::Answering
        | AgentEvent::AnswerBegan
        | AgentEvent::AnswerEnded => String::new(),
    }
}

fn ended(end: &super::End) -> String {
    use longhaul_workflows::contracts::AgentOutcome::Completed;
    if end.outcome == Completed {
        return "* end of the turn\n".into();
    }
    let outcome = serde_json::to_value(end.outcome).unwrap_or_default();
    let outcome = outcome.as_str().unwrap_or_default().replace('_', " ");
    format!("! the turn ended, {outcome}{}\n", after_colon(&end.message))
}

fn after_colon(text: &str) -> String {
    let text = short(text.trim());
    if text.is_empty() { text } else { format!(": {text}") }
}

fn indented(text: &str) -> String {
    text.lines().flat_map(|line| ["    ", line, "\n"]).collect()
}

fn short(text: &str) -> String {
    let mut short: String = text.chars().take(SHOWN).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
