//! Links between issues, in the spellings of several exporters.

use serde_json::{Map, Value, json};

/// The link types that are dependencies and that an export may write.
pub(crate) const BLOCKING: [&str; 2] = ["blocks", "conditional-blocks"];
/// Other spellings of a dependency.
const OTHER_BLOCKING: [&str; 6] =
    ["blocked_by", "blocked-by", "depends_on", "depends-on", "requires", "waits-for"];
/// Keys of an issue with the ids of issues that it waits for.
const LISTS: [&str; 3] = ["blocked_by", "blockedBy", "depends_on"];

/// The meaning of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Dependency,
    /// The target is the epic of the issue.
    Parent,
    /// The issue is a duplicate of the target.
    Duplicates,
    Other,
}

/// A link of an issue.
#[derive(Clone, Copy)]
pub(super) struct Link<'e> {
    /// The key of the issue and the index in its list.
    pub(super) key: &'static str,
    pub(super) index: usize,
    pub(super) value: &'e Value,
}

impl<'e> Link<'e> {
    /// Its type as written.
    pub(super) fn name(self) -> &'e str {
        let name = self.value.get("type").or_else(|| self.value.get("dependency_type"));
        name.and_then(Value::as_str).unwrap_or("blocks")
    }

    pub(super) fn kind(self) -> Kind {
        match self.name() {
            name if BLOCKING.contains(&name) || OTHER_BLOCKING.contains(&name) => Kind::Dependency,
            "parent-child" | "parent" | "child-of" => Kind::Parent,
            "duplicates" | "duplicate-of" | "duplicate_of" => Kind::Duplicates,
            _ => Kind::Other,
        }
    }

    /// The other issue as written: a text, or an invalid value.
    pub(super) fn written(self) -> &'e Value {
        let keys = ["depends_on_id", "target_id", "target", "id"];
        keys.iter().find_map(|key| self.value.get(key)).unwrap_or(self.value)
    }

    pub(super) fn target(self) -> Option<&'e str> {
        self.written().as_str()
    }

    /// Whether the link is a plain `blocks` from this issue to its target, without further fields.
    pub(super) fn is_plain(self) -> bool {
        let keys = self.value.as_object().into_iter().flat_map(Map::keys);
        let known = ["issue_id", "depends_on_id", "type"];
        self.name() == "blocks" && keys.into_iter().all(|key| known.contains(&key.as_str()))
    }
}

/// The links of an issue under all keys.
pub(super) fn links_of(issue: &Map<String, Value>) -> impl Iterator<Item = Link<'_>> {
    std::iter::once("dependencies").chain(LISTS).flat_map(|key| {
        let links = issue.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        links.iter().enumerate().map(move |(index, value)| Link { key, index, value })
    })
}

/// Why a closed issue is not done, if its links, fields or its reason say so.
pub(super) fn why_not_done(issue: &Map<String, Value>) -> Option<String> {
    if issue.get("status") != Some(&json!("closed")) {
        return None;
    }
    let text = |key: &str| issue.get(key).and_then(Value::as_str).map(str::trim);
    for key in ["duplicate_of", "superseded_by"] {
        if let Some(other) = text(key).filter(|other| !other.is_empty()) {
            return Some(format!("`{key}` names {other}"));
        }
    }
    let duplicates = links_of(issue).find(|link| link.kind() == Kind::Duplicates);
    if let Some(other) = duplicates.and_then(Link::target) {
        return Some(format!("it duplicates {other}"));
    }
    let reason = text("close_reason")?;
    is_withdrawal(reason).then(|| format!("it was closed as \"{reason}\""))
}

/// Whether the beginning of a close reason says that the work was not done.
fn is_withdrawal(reason: &str) -> bool {
    const BEFORE: [&str; 12] = [
        "closed as ",
        "closing as ",
        "closed: ",
        "closing: ",
        "marked as ",
        "marking as ",
        "resolved as ",
        "this is ",
        "it is ",
        "a ",
        "an ",
        "issue is ",
    ];
    const WORDS: [&str; 22] = [
        "duplicates",
        "duplicated",
        "duplicate",
        "dupe",
        "superseded",
        "supersedes",
        "stale",
        "obsolete",
        "outdated",
        "wontfix",
        "won't fix",
        "won't do",
        "wont do",
        "not planned",
        "invalid",
        "cancelled",
        "canceled",
        "abandoned",
        "no longer needed",
        "no longer relevant",
        "not needed",
        "deferred",
    ];
    const AFTER: [&str; 16] = [
        "of", "by", "issue", "bead", "task", "ticket", "epic", "with", "in", "after", "since",
        "because", "as", "and", "see", "work",
    ];
    let mut rest = reason.trim().to_lowercase();
    while let Some(shorter) = BEFORE.iter().find_map(|before| rest.strip_prefix(before)) {
        rest = shorter.trim_start().to_owned();
    }
    let Some(rest) = WORDS.iter().find_map(|word| rest.strip_prefix(word)) else { return false };
    let next: &str = rest.trim_start();
    // "Stale cache fixed" and "Duplicate code removed" are work.
    let is_end = !next.starts_with(|letter: char| letter.is_alphanumeric());
    let word = next.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
    is_end || AFTER.contains(&word) || word.contains(char::is_numeric)
}
