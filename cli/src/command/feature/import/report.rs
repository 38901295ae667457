//! The report of an import: keys that were mapped, kept or left out, and entries that were skipped.

use std::collections::BTreeSet;
use std::path::Path;

use longhaul_backlog::import::{Imported, Item, Kept, Merged, NotMapped, Skipped};
use longhaul_workflows::backlog::FeatureId;

/// How many entries are listed before the rest is counted.
const NAMED_MAX: usize = 20;

/// A finished import.
pub(super) struct Report<'a> {
    pub(super) file: &'a str,
    pub(super) list: &'a Path,
    pub(super) dry_run: bool,
    pub(super) imported: &'a Imported,
    pub(super) merged: &'a Merged,
}

impl<'a> Report<'a> {
    pub(super) fn added(&self) -> impl Iterator<Item = &'a Item> {
        self.merged.added.iter().map(|index| &self.imported.items[*index])
    }

    /// The kept keys of the added entries.
    pub(super) fn kept(&self) -> Vec<&'a Kept> {
        let added: BTreeSet<&FeatureId> = self.added().map(|item| &item.feature.id).collect();
        self.imported
            .kept_extra
            .iter()
            .filter(|kept| kept.id.as_ref().is_some_and(|id| added.contains(id)))
            .collect()
    }

    pub(super) fn not_mapped(&self) -> impl Iterator<Item = &'a NotMapped> {
        self.imported.not_mapped.iter().chain(&self.merged.not_mapped)
    }

    /// Its text for people.
    pub(super) fn summary(&self) -> String {
        let added = self.merged.added.len();
        let updated = self.merged.updated.len();
        let skipped = self.merged.skipped.len();
        let list = self.list.display();
        let differing =
            self.merged.skipped.iter().filter(|known| !known.differs.is_empty()).count();
        let mut text = match (added, updated, skipped) {
            (0, 0, 0) => format!("{}: nothing to add", self.file),
            (0, 0, skipped) => format!("nothing added: all {skipped} are in {list} already"),
            (0, updated, _) if self.dry_run => {
                format!("would update {} in {list}; nothing was written", features(updated))
            }
            (0, updated, _) => format!("updated {} in {list}", features(updated)),
            (added, _, _) if self.dry_run => {
                format!("would add {} to {list}; nothing was written", features(added))
            }
            (added, _, _) => format!(
                "added {} to {list}; a Longhaul that runs takes them up at once",
                features(added)
            ),
        };
        if added > 0 && updated > 0 {
            text += &format!("; {updated} updated");
        }
        if differing > 0 {
            text += &format!("; {differing} differ there: --update takes them over");
        }
        text
    }

    /// The report for people.
    pub(super) fn text(&self) -> String {
        let Imported { shape, items, mapped, notes, .. } = self.imported;
        let mut sections =
            vec![format!("{}: {shape}, {}", self.file, counted(items.len(), "entry", "entries"))];
        let mut section = |title: &str, lines: Vec<String>| {
            if !lines.is_empty() {
                sections.push(format!("{title}:"));
                sections.extend(lines.iter().map(|line| format!("  {}", printable(line))));
            }
        };
        let added = self.added().map(|item| format!("{}  {}", item.feature.id, item.feature.name));
        section(if self.dry_run { "would add" } else { "added" }, first_of(added.collect()));
        let mapped = mapped
            .iter()
            .map(|mapped| format!("{} -> {} ({})", mapped.from, mapped.to, mapped.entries));
        section("mapped", mapped.collect());
        section("kept as extra", self.kept_by_key());
        let left =
            self.not_mapped().map(|left| format!("{}: {}: {}", left.place, left.what, left.reason));
        section("not mapped", first_of(left.collect()));
        let skipped = self.merged.skipped.iter().map(|skipped| self.skipped_line(skipped));
        let updated = self.merged.updated.iter().map(|known| {
            let place = &self.imported.items[known.item].place;
            format!("{} ({place}): {}", known.id, known.differs.join(", "))
        });
        let title = if self.dry_run { "would update" } else { "updated" };
        section(title, first_of(updated.collect()));
        section("already in the list", first_of(skipped.collect()));
        section("notes", notes.clone());
        sections.join("\n")
    }

    /// Groups equal keys of several entries in one line.
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
            let renamed = if kept.kept_as == kept.key {
                String::new()
            } else {
                format!(" as {}", kept.kept_as)
            };
            format!("{}{renamed} ({count}): {}", kept.key, kept.reason)
        };
        let around =
            self.merged.kept_keys.iter().map(|kept| format!("{}: {}", kept.place, kept.reason));
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
}

fn features(count: usize) -> String {
    counted(count, "feature", "features")
}

fn counted(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// The first lines, and the number of omitted ones.
fn first_of(mut lines: Vec<String>) -> Vec<String> {
    let more = lines.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        lines.truncate(NAMED_MAX);
        lines.push(format!("and {more} more (-o json names all)"));
    }
    lines
}

/// Without control characters, which could steer a terminal.
fn printable(text: &str) -> String {
    text.replace(|letter: char| letter.is_control(), " ")
}
