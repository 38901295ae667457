//! What an import says: what was mapped, what is kept, what is not, what was there.

use std::collections::BTreeSet;
use std::path::Path;

use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::backlog::import::{Imported, Item, Kept, Merged, NotMapped, Skipped};
use serde_json::{Value, json};

/// How many entries are named one by one before the rest is counted.
const NAMED_MAX: usize = 20;
const IN_THE_LIST: &str = "its id is in the project's list already";

/// An import that is over.
pub(super) struct Report<'a> {
    pub(super) file: &'a str,
    pub(super) list: &'a Path,
    pub(super) dry_run: bool,
    pub(super) imported: &'a Imported,
    pub(super) merged: &'a Merged,
}

impl Report<'_> {
    fn added(&self) -> impl Iterator<Item = &Item> {
        self.merged.added.iter().map(|index| &self.imported.items[*index])
    }

    /// What is kept of the entries that were added.
    fn kept(&self) -> Vec<&Kept> {
        let added: BTreeSet<&FeatureId> = self.added().map(|item| &item.feature.id).collect();
        self.imported.kept_extra.iter().filter(|kept| added.contains(&kept.id)).collect()
    }

    fn not_mapped(&self) -> impl Iterator<Item = &NotMapped> {
        self.imported.not_mapped.iter().chain(&self.merged.not_mapped)
    }

    /// One line for a person.
    pub(super) fn summary(&self) -> String {
        let (added, skipped) = (self.merged.added.len(), self.merged.skipped.len());
        let list = self.list.display();
        match (added, skipped) {
            (0, 0) => format!("{}: nothing to add", self.file),
            (0, skipped) => format!("nothing added: all {skipped} are in {list} already"),
            (added, _) if self.dry_run => format!("would add {} to {list}; nothing was written", features(added)),
            (added, _) => format!("added {} to {list}; a Longhaul that runs takes them up at once", features(added)),
        }
    }

    /// The report for people.
    pub(super) fn text(&self) -> String {
        let Imported { shape, items, mapped, notes, .. } = self.imported;
        let mut sections = vec![format!("{}: {shape}, {} entries", self.file, items.len())];
        let mut section = |title: &str, lines: Vec<String>| {
            if !lines.is_empty() {
                sections.push(format!("{title}:"));
                sections.extend(lines.iter().map(|line| format!("  {}", printable(line))));
            }
        };
        let added = self.added().map(|item| format!("{}  {}", item.feature.id, item.feature.name));
        section(if self.dry_run { "would add" } else { "added" }, first_of(added.collect()));
        let mapped = mapped.iter().map(|mapped| format!("{} -> {} ({})", mapped.from, mapped.to, mapped.entries));
        section("mapped", mapped.collect());
        section("kept as extra", self.kept_by_key());
        let left = self.not_mapped().map(|left| format!("{}: {}: {}", left.place, left.what, left.reason));
        section("not mapped", first_of(left.collect()));
        let skipped = self.merged.skipped.iter().map(|skipped| self.skipped_line(skipped));
        section("already in the list", first_of(skipped.collect()));
        section("notes", notes.clone());
        sections.join("\n")
    }

    /// Equal keys of several entries in one line.
    fn kept_by_key(&self) -> Vec<String> {
        let mut counted: Vec<(&Kept, usize)> = Vec::new();
        for kept in self.kept() {
            let is_same = |other: &Kept| other.key == kept.key && other.reason == kept.reason;
            match counted.iter_mut().find(|(other, _)| is_same(other)) {
                Some((_, count)) => *count += 1,
                None => counted.push((kept, 1)),
            }
        }
        let line = |(kept, count): &(&Kept, usize)| {
            let renamed = if kept.kept_as == kept.key { String::new() } else { format!(" as {}", kept.kept_as) };
            format!("{}{renamed} ({count}): {}", kept.key, kept.reason)
        };
        let around = self.merged.kept_keys.iter().map(|place| format!("{place}: a key of the list"));
        counted.iter().map(line).chain(around).collect()
    }

    fn skipped_line(&self, skipped: &Skipped) -> String {
        let item = &self.imported.items[skipped.item];
        let differs = if skipped.differs.is_empty() {
            String::new()
        } else {
            format!(": another {} there, left as it is", skipped.differs.join(", "))
        };
        format!("{} ({}){differs}", skipped.id, item.place)
    }

    /// The report for programs.
    pub(super) fn json(&self) -> Value {
        let Imported { shape, items, mapped, notes, .. } = self.imported;
        let added = self.added().map(|item| {
            let Item { feature, place, extra } = item;
            let claimed = extra.get("claimed_passes").cloned().unwrap_or(json!(false));
            with_place(place, json!({ "id": feature.id, "name": feature.name, "claimed_passes": claimed }))
        });
        let around = self.merged.kept_keys.iter().map(|place| {
            let key = place.pointer.as_deref().and_then(|pointer| pointer.rsplit('/').next());
            with_place(place, json!({ "key": key, "kept_as": key, "reason": "a key of the list" }))
        });
        let kept = self.kept().into_iter().map(|kept| json!(kept)).chain(around);
        let skipped = self.merged.skipped.iter().map(|skipped| {
            let place = &self.imported.items[skipped.item].place;
            with_place(place, json!({ "id": skipped.id, "reason": IN_THE_LIST, "differs": skipped.differs }))
        });
        json!({
            "schema": "longhaul.feature_import/1",
            "file": self.file,
            "list": self.list,
            "shape": shape,
            "dry_run": self.dry_run,
            "entries": items.len(),
            "added": added.collect::<Vec<_>>(),
            "mapped": mapped,
            "kept_extra": kept.collect::<Vec<_>>(),
            "not_mapped": self.not_mapped().collect::<Vec<_>>(),
            "skipped": skipped.collect::<Vec<_>>(),
            "notes": notes,
        })
    }
}

fn with_place(place: &impl serde::Serialize, mut object: Value) -> Value {
    if let (Ok(Value::Object(place)), Some(object)) = (serde_json::to_value(place), object.as_object_mut()) {
        object.extend(place);
    }
    object
}

fn features(count: usize) -> String {
    format!("{count} feature{}", if count == 1 { "" } else { "s" })
}

/// The first lines, and how many more there are.
fn first_of(mut lines: Vec<String>) -> Vec<String> {
    let more = lines.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        lines.truncate(NAMED_MAX);
        lines.push(format!("and {more} more (-o json names all)"));
    }
    lines
}

/// What comes from a file must not steer a terminal.
fn printable(text: &str) -> String {
    text.replace(|letter: char| letter.is_control(), " ")
}
