//! `edit` and `write`: change files so that a repeated attempt changes nothing more.
//!
//! An edit is recorded, in the records of the tree, before the file is replaced: the digests of the
//! file before and after, and the answer. An attempt that finds its own record and the file as the
//! record says has been here before. A record goes with its tree, so that a tree that was made
//! again has none.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::tool_tree::{Fault, LONGEST, ToolTree, quoted};
use crate::machine::{self, Operation};
use crate::process::{make_directory_durably, write_durably};
use longhaul_engine::Failure;

use crate::files::placed::{self, Links};

/// The most lines to name.
const NAMED: usize = 5;

/// One replacement of text.
#[derive(Debug)]
pub(super) struct Edit<'a> {
    pub(super) path: &'a str,
    pub(super) old: &'a str,
    pub(super) new: &'a str,
    pub(super) count: Option<u64>,
    pub(super) all: bool,
}

/// The effect of an edit, recorded before the edit.
#[derive(Serialize, Deserialize)]
struct Record {
    before: String,
    after: String,
    answer: String,
}

/// The places that an edit works with.
#[derive(Debug, Clone, Copy)]
pub(super) struct EditContext<'a> {
    pub(super) tree: &'a ToolTree,
    pub(super) root: &'a Path,
    /// The file of the record, unique to the call and its arguments.
    pub(super) record: &'a Path,
}

/// Replaces a whole file.
pub(super) fn write(site: EditContext<'_>, given: &str, content: &str) -> Result<String, Fault> {
    let path = site.tree.path(given)?;
    site.tree.target(&path, true)?.write(site.root, content.as_bytes())?;
    Ok(format!("Wrote {} lines to {}.", content.lines().count(), quoted(&path)))
}

/// Replaces text in a file.
pub(super) fn edit(site: EditContext<'_>, edit: &Edit<'_>) -> Result<String, Fault> {
    let path = site.tree.path(edit.path)?;
    let content = site.tree.read(&path, LONGEST)?;
    let digest = digest(&content);
    if let Some(record) = recorded(site.record)?
        && record.after == digest
        && record.before != digest
    {
        return Ok(record.answer);
    }
    let Ok(text) = std::str::from_utf8(&content) else {
        return Err(format!("{} is not UTF-8 text: use `shell`.", quoted(&path)).into());
    };
    let Replaced { text: after, answer } = replaced(edit, &path, text)?;
    let target = site.tree.target(&path, false)?;
    let record = Record { before: digest, after: self::digest(after.as_bytes()), answer };
    keep(site.record, &record)?;
    target.write(site.root, after.as_bytes())?;
    Ok(record.answer)
}

/// The result of an edit.
struct Replaced {
    /// The new text.
    text: String,
    /// The answer to the model.
    answer: String,
}

fn replaced(edit: &Edit<'_>, path: &Path, text: &str) -> Result<Replaced, Fault> {
    let shown = quoted(path);
    if edit.old.is_empty() {
        return Err("`old` is empty: give the text to replace.".to_owned().into());
    }
    if edit.old == edit.new {
        return Err("`old` and `new` are equal.".to_owned().into());
    }
    let lines: Vec<_> = lines_of(text, edit.old).collect();
    let found = lines.len();
    if found == 0 {
        return Err(format!("`old` does not occur in {shown}. {}", hint(text, edit.old)).into());
    }
    let expected = edit.count.unwrap_or(1);
    if !edit.all && found as u64 != expected {
        let all = if found > NAMED { ", …" } else { "" };
        let named: Vec<_> = lines.iter().take(NAMED).map(ToString::to_string).collect();
        let times = times(found);
        let lines = named.join(", ");
        return Err(format!(
            "`old` occurs {times} in {shown}, not {}: at line {lines}{all}. Include more of the \
             text around it, or set `count` or `all`.",
            self::times(usize::try_from(expected).unwrap_or(usize::MAX)),
        )
        .into());
    }
    let answer = format!("Replaced {} in {shown}, at line {}.", times(found), lines[0]);
    Ok(Replaced { text: text.replace(edit.old, edit.new), answer })
}

fn times(count: usize) -> String {
    if count == 1 { "once".into() } else { format!("{count} times") }
}

/// The line of each occurrence, from 1.
fn lines_of<'a>(text: &'a str, old: &'a str) -> impl Iterator<Item = usize> + 'a {
    let mut line = 1;
    let mut from = 0;
    text.match_indices(old).map(move |(at, _)| {
        line += text[from..at].matches('\n').count();
        from = at;
        line
    })
}

/// Why a text may not be found.
fn hint(text: &str, old: &str) -> &'static str {
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.contains("\r\n") && text.replace("\r\n", "\n").contains(old) {
        "The lines of the file end with CR LF: edit one line at a time, or use `shell`."
    } else if squeezed(text).contains(&squeezed(old)) && !old.trim().is_empty() {
        "It does with other white space: copy the text exactly, with its indentation."
    } else {
        "Read the file again, and copy the text exactly, without line numbers."
    }
}

fn digest(content: &[u8]) -> String {
    blake3::hash(content).to_hex().to_string()
}

/// The record of an earlier attempt.
fn recorded(file: &Path) -> Result<Option<Record>, Fault> {
    let content = placed::read(file, Links::Refused, LONGEST)
        .map_err(|error| Fault::Call(machine::unreadable(&error, file, Failure::machine)))?;
    Ok(content.and_then(|content| serde_json::from_slice(&content).ok()))
}

fn keep(file: &Path, record: &Record) -> Result<(), Fault> {
    let content = serde_json::to_vec(record).expect("a record has a JSON form");
    let directory = file.parent().unwrap_or(file);
    make_directory_durably(directory).and_then(|()| write_durably(file, &content)).map_err(
        |error| {
            let message = format!("an edit cannot be recorded in {}: {error}", directory.display());
            Fault::Call(machine::failure(
                &error,
                Operation::Files,
                directory,
                message,
                Failure::machine,
            ))
        },
    )
}
