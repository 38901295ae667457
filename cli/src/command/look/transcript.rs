//! The entries of a conversation as text for people.

use longhaul_workflows::contracts::Usage;
use longhaul_workflows::projection::{TranscriptContent, TranscriptEntry};

use crate::terminal;

/// The most characters of a result or of arguments, unless they are wanted as a whole.
pub(super) const SHOWN: usize = 400;

/// An entry as text for people, for `logs`.
pub(in crate::command) fn line(entry: &TranscriptEntry) -> String {
    text(entry, SHOWN)
}

pub(super) fn text(entry: &TranscriptEntry, shown: usize) -> String {
    let cut = |text: &str| terminal::short(text.trim_end(), shown);
    match &entry.said {
        TranscriptContent::Prompt { text } => format!("\n{}\n", quoted(text.trim_end())),
        TranscriptContent::Text { text } => format!("\n{}\n\n", text.trim_end()),
        TranscriptContent::ToolCall { tool, arguments } => {
            format!("> {tool}: {}\n", terminal::safe(&cut(arguments)))
        }
        TranscriptContent::ToolResult { text, is_error: false, .. } => indented(&cut(text)),
        TranscriptContent::ToolResult { text, is_error: true, .. } => {
            format!("  failed:\n{}", indented(&cut(text)))
        }
        TranscriptContent::Answer { usage, stop, .. } => {
            let stop = stop.as_ref().map(|stop| format!("; it ended: {stop}")).unwrap_or_default();
            format!("* {}{stop}\n", tokens(usage))
        }
        TranscriptContent::Failed { reason, retry_at } => {
            let again = retry_at.map(|at| format!(", tried again at {}", terminal::time(at)));
            format!("! {}{}\n", cut(reason), again.unwrap_or_default())
        }
        TranscriptContent::Checkpoint { commit } => {
            format!("* checkpoint {}\n", commit.get(..10).unwrap_or(commit))
        }
        TranscriptContent::Summarised => "* the conversation restarts with a summary\n".into(),
        TranscriptContent::SubAgent { session } => format!("* sub-agent {session}\n"),
    }
}

/// The tokens of one answer.
fn tokens(usage: &Usage) -> String {
    let mut text = format!("{} tokens in, {} out", usage.input, usage.output);
    if usage.cache_read + usage.cache_write > 0 {
        text += &format!(", {} from the cache, {} to it", usage.cache_read, usage.cache_write);
    }
    text
}

fn quoted(text: &str) -> String {
    prefixed("| ", text)
}

fn indented(text: &str) -> String {
    prefixed("    ", text)
}

fn prefixed(prefix: &str, text: &str) -> String {
    let line = |line: &str| format!("{}\n", format!("{prefix}{line}").trim_end());
    text.lines().map(line).collect()
}
